#include "cpu/full_frame.h"

#include <assert.h>

static full_frame_op *const ops[OP_KINDS] = {
    [OP_STATISTICS] = statistics_create,
    [OP_WAVELET] = wavelet_create,
    [OP_MATCH] = match_create,
    [OP_MARK] = mark_create,
};

void full_frame_copy_row(const struct full_frame_work *work, int y)
{
    assert(work->to && y >= 0 && y < work->height);
    work->rows->load[work->depth > 8]((const uint8_t *)work->from + y * work->from_stride,
                                      component_plain(work->depth), max_sample(work->depth),
                                      (uint8_t *)work->to + y * work->to_stride, work->width);
}

enum status full_frame_create(const struct full_frame_request *request,
                              struct full_frame **full_frame)
{
    assert(op_is_full_frame(request->op) && ops[request->op->kind] && request->bands > 0);
    *full_frame = NULL;
    return ops[request->op->kind](request, full_frame);
}
