// Statistics of a plane, which stays as it is.
#include "plan/op_info.h"

static size_t analysis_bytes(const struct op *op, int width, int height)
{
    (void)op, (void)width, (void)height;
    return sizeof(struct statistics);
}

const struct op_info op_statistics_info = {
    .name = "statistics", .family = OP_FAMILY_FULL_FRAME, .analysis_bytes = analysis_bytes};
