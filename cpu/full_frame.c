#include "cpu/full_frame.h"

void full_frame_copy_row(const struct full_frame_work *work, int y)
{
    static const struct component bytes = {.step = 1, .bytes = 1};
    static const struct component words = {
        .step = 2, .bytes = 2, .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    bool deep = work->depth > 8;
    work->rows->load[deep]((const uint8_t *)work->from + y * work->from_stride,
                           deep ? &words : &bytes, max_sample(work->depth),
                           (uint8_t *)work->to + y * work->to_stride, work->width);
}

enum status full_frame_create(const struct full_frame_request *request,
                              struct full_frame **full_frame)
{
    *full_frame = NULL;
    switch (request->op->kind) {
    case OP_STATISTICS:
        return statistics_create(request, full_frame);
    case OP_WAVELET:
        return wavelet_create(request, full_frame);
    case OP_MATCH:
        return match_create(request, full_frame);
    case OP_MARK:
        return mark_create(request, full_frame);
    default:
        return STATUS_FAILED;
    }
}
