// Statistics of a plane, which stays as it is.
#include "plan/op_info.h"

#include <math.h>

struct moments statistics_moments(const struct op_statistics *op, const struct statistics *found,
                                  double samples)
{
    double mean = (double)found->sum / samples;
    double variance = (double)found->squares / samples - mean * mean;
    return (struct moments){.low = ((double)found->low - op->zero) / op->scale,
                            .high = ((double)found->high - op->zero) / op->scale,
                            .mean = (mean - op->zero) / op->scale,
                            .deviation = sqrt(fmax(variance, 0)) / op->scale};
}

static size_t analysis_bytes(const struct op *op, int width, int height)
{
    (void)op, (void)width, (void)height;
    return sizeof(struct statistics);
}

const struct op_info op_statistics_info = {
    .name = "statistics", .family = OP_FAMILY_FULL_FRAME, .analysis_bytes = analysis_bytes};
