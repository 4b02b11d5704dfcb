// Template matching, and the frames around what it found.
#include "plan/op_info.h"

static size_t analysis_bytes(const struct op *op, int width, int height)
{
    (void)width, (void)height;
    return match_analysis_bytes(&op->match);
}

static int reads_analysis(const struct op *op)
{
    return op->mark.match;
}

const struct op_info op_match_info = {
    .name = "match", .family = OP_FAMILY_FULL_FRAME, .analysis_bytes = analysis_bytes};
const struct op_info op_mark_info = {
    .name = "mark", .family = OP_FAMILY_FULL_FRAME, .reads_analysis = reads_analysis};
