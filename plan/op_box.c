// The mean over a box.
#include "plan/op_info.h"

static struct op_reach reach(const struct op *op)
{
    const struct op_box *f = &op->box;
    return (struct op_reach){f->radius_x, f->radius_x, f->radius_y, f->radius_y};
}

static bool same(const struct op *a, const struct op *b)
{
    return a->box.radius_x == b->box.radius_x && a->box.radius_y == b->box.radius_y;
}

const struct op_info op_box_info = {
    .name = "box", .family = OP_FAMILY_STENCIL, .reach = reach, .same = same};
