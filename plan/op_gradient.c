// The length of the gradient by 3x3 derivatives.
#include "plan/op_info.h"

static struct op_reach reach(const struct op *op)
{
    (void)op;
    return (struct op_reach){1, 1, 1, 1};
}

static bool same(const struct op *a, const struct op *b)
{
    const struct op_gradient *f = &a->gradient, *g = &b->gradient;
    return f->side == g->side && f->center == g->center && f->norm == g->norm &&
           f->scale == g->scale && f->base == g->base && f->limit == g->limit;
}

const struct op_info op_gradient_info = {
    .name = "gradient", .family = OP_FAMILY_STENCIL, .reach = reach, .same = same};
