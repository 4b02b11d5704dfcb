// Which file makes which operation on the full frame.
#include "kernels/launch.h"

extern "C" size_t full_frame_constants(const struct op *op, int width, int height, void *to)
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

extern "C" size_t full_frame_scratch(const struct op *op, int width, int height)
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

extern "C" cudaError_t full_frame_async(const struct full_frame *frame, cudaStream_t stream)
{
    switch (frame->op->kind) {
    case OP_STATISTICS:
        return statistics_async(frame, stream);
    case OP_WAVELET:
        return wavelet_async(frame, stream);
    case OP_MATCH:
        return match_async(frame, stream);
    case OP_MARK:
        return mark_async(frame, stream);
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

extern "C" cudaError_t full_frame_copy_async(const struct full_frame *frame, cudaStream_t stream)
{
    const struct source source = {.view = view_of(frame->from, frame->from_stride, frame->depth),
                                  .width = frame->width,
                                  .height = frame->height};
    const struct sink sink = {.view = {view_of(frame->to, frame->to_stride, frame->depth)},
                              .views = 1,
                              .width = frame->width,
                              .height = frame->height,
                              .frames = 1};
    return pointwise_copy_async(&source, &sink, stream);
}
