// The reference of pointwise operations: op_apply() of every sample.
#include "cpu/reference/scalar_op.h"

enum status pointwise_scalar(const struct scalar_work *work)
{
    size_t samples = (size_t)work->to->width * (size_t)work->to->height;
    for (size_t k = 0; k < samples; k++)
        work->to->sample[k] = (uint16_t)op_apply(work->op, work->from->sample[k]);
    return STATUS_OK;
}
