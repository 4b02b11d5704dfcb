// OP_MARK (plan/match.h): a copy, and frames around matches in it.
#include <assert.h>

#include "kernels/full_frame/match.cuh"
#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"

struct mark {
    uint8_t *to;
    int to_stride;
    int width, height;
    int shift_x, shift_y;
    const struct op_matches *matches;
    const int3 *shape; // width, height and value of each template
};

static __device__ inline bool is_framed(const struct mark *m, int k, int x, int y)
{
    const struct op_found *found = &m->matches->found[k];
    int3 shape = m->shape[found->number];
    return match_is_framed(match_box_of(found, shape.x, shape.y), m->matches->line, x, y,
                           m->shift_x, m->shift_y);
}

// Blocks draw one frame each, blockIdx.y those rows of it that are its own. A sample that belongs
// to a better one, too, is left to that.
template <typename T> static __global__ void mark_frames(const __grid_constant__ struct mark m)
{
    int k = blockIdx.x;
    if (k >= m.matches->count)
        return;
    const struct op_found *found = &m.matches->found[k];
    int3 shape = m.shape[found->number];
    struct match_box box = match_box_of(found, shape.x, shape.y);
    int line = m.matches->line;
    int left = max((box.left - line) >> m.shift_x, 0);
    int right = min(((box.right + line - 1) >> m.shift_x) + 1, m.width);
    int top = max((box.top - line) >> m.shift_y, 0);
    int bottom = min(((box.bottom + line - 1) >> m.shift_y) + 1, m.height);
    for (int y = top + blockIdx.y; y < bottom; y += gridDim.y)
        for (int x = left + threadIdx.x; x < right; x += blockDim.x) {
            bool own = is_framed(&m, k, x, y);
            for (int better = 0; better < k && own; better++)
                own = !is_framed(&m, better, x, y);
            if (own)
                ((T *)(m.to + (i64)y * m.to_stride))[x] = (T)shape.z;
        }
}

static void mark_constants(const struct op_use *use, struct constants *memory,
                           struct op_constants *to)
{
    const struct op_mark *op = &use->op->mark;
    void *host;
    to->full_frame = constants_take(memory, sizeof(int3) * (size_t)op->count, &host);
    int3 *shape = (int3 *)host;
    for (int k = 0; k < op->count && host; k++)
        shape[k] = make_int3(op->templates[k].width, op->templates[k].height, op->value[k]);
}

static cudaError_t mark_async(const struct full_frame *frame, cudaStream_t stream)
{
    const struct op_mark *op = &frame->op->mark;
    struct mark m = {.to = frame->to,
                     .to_stride = frame->to_stride,
                     .width = frame->width,
                     .height = frame->height,
                     .shift_x = op->shift_x,
                     .shift_y = op->shift_y,
                     .matches = (const struct op_matches *)frame->reads,
                     .shape = (const int3 *)frame->constants};
    assert(frame->to && frame->reads);
    const dim3 frames = dim3((unsigned)op->most, 8);
    cudaError_t error = pointwise_copy_frame_async(frame, stream);
    if (error)
        return error;
    if (frame->depth > 8)
        kernel_launch(mark_frames<uint16_t>, frames, 128, 0, stream, m);
    else
        kernel_launch(mark_frames<uint8_t>, frames, 128, 0, stream, m);
    return cudaGetLastError();
}

const struct op_kernels mark_kernels = {
    .kind = OP_MARK,
    .constants = mark_constants,
    .full_frame_async = mark_async,
    .launches = true,
};
