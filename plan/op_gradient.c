// The length of the gradient by 3x3 derivatives.
#include "plan/op_info.h"

static struct op_reach reach(const struct op *op)
{
    (void)op;
    return (struct op_reach){1, 1, 1, 1};
}

const struct op_info op_gradient_info = {
    .name = "gradient", .family = OP_FAMILY_STENCIL, .reach = reach};
