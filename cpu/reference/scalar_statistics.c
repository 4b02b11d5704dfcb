// The reference of OP_STATISTICS.
#include "cpu/reference/scalar_op.h"

#include <string.h>

enum status statistics_scalar(const struct scalar_work *work)
{
    size_t samples = (size_t)work->from->width * (size_t)work->from->height;
    struct statistics *found = work->analysis;
    *found = (struct statistics){.low = UINT16_MAX};
    for (size_t k = 0; k < samples; k++) {
        int x = work->from->sample[k];
        found->low = x < found->low ? x : found->low;
        found->high = x > found->high ? x : found->high;
        found->sum += (uint64_t)x;
        found->squares += (uint64_t)x * (uint64_t)x;
        found->bin[x >> (work->depth - 8)]++;
    }
    memcpy(work->to->sample, work->from->sample, samples * sizeof *work->to->sample);
    return STATUS_OK;
}
