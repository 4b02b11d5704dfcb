// Which file makes which operation on the whole picture.
#include "kernels/launch.h"

extern "C" size_t whole_constants(const struct op *op, int width, int height, void *to)
{
    switch (op->kind) {
    case OP_WAVELET:
        return wavelet_constants(op, width, height, to);
    case OP_MATCH:
        return match_constants(&op->match, to);
    case OP_MARK:
        return mark_constants(&op->mark, to);
    default:
        return 0;
    }
}

extern "C" size_t whole_scratch(const struct op *op, int width, int height)
{
    switch (op->kind) {
    case OP_WAVELET:
        return wavelet_scratch(op, width, height);
    case OP_MATCH:
        return match_scratch(&op->match, width, height);
    default:
        return 0;
    }
}

extern "C" cudaError_t whole_async(const struct whole *whole, cudaStream_t stream)
{
    switch (whole->op->kind) {
    case OP_STATISTICS:
        return statistics_async(whole, stream);
    case OP_WAVELET:
        return wavelet_async(whole, stream);
    case OP_MATCH:
        return match_async(whole, stream);
    case OP_MARK:
        return mark_async(whole, stream);
    default:
        return cudaErrorNotSupported;
    }
}

static struct view view_of(const uint8_t *data, int stride, int depth)
{
    struct view view = view_plain((uint8_t *)data, 0, stride, depth > 8 ? 2 : 1);
    view.most = max_sample(depth);
    return view;
}

extern "C" cudaError_t whole_copy_async(const struct whole *whole, cudaStream_t stream)
{
    const struct source source = {.view = view_of(whole->from, whole->from_stride, whole->depth),
                                  .width = whole->width,
                                  .height = whole->height};
    const struct sink sink = {.view = {view_of(whole->to, whole->to_stride, whole->depth)},
                              .views = 1,
                              .width = whole->width,
                              .height = whole->height,
                              .frames = 1};
    return pointwise_copy_async(&source, &sink, stream);
}
