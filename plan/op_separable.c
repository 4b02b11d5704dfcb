// Separable symmetric filters, on the picture's grid or a coarser one.
#include "plan/op_info.h"
#include "plan/plan.h"

// The reach along one axis. On a grid D apart, the taps reach radius * D from a grid point, a grid
// point is less than D from the place, and its tent less than D wide.
static int axis_reach(int radius, int decimate)
{
    return decimate ? ((radius + 2) << decimate) - 2 : radius;
}

static struct op_reach reach(const struct op *op)
{
    const struct op_separable *f = &op->separable;
    int x = axis_reach(f->radius_x, f->decimate_x), y = axis_reach(f->radius_y, f->decimate_y);
    return (struct op_reach){x, x, y, y};
}

static bool same(const struct op *a, const struct op *b)
{
    const struct op_separable *f = &a->separable, *g = &b->separable;
    return f->radius_x == g->radius_x && f->radius_y == g->radius_y && f->bits == g->bits &&
           f->fraction == g->fraction && f->decimate_x == g->decimate_x &&
           f->decimate_y == g->decimate_y && f->amount == g->amount && f->low == g->low &&
           f->high == g->high && op_same_numbers(f->tap_x, g->tap_x, f->radius_x + 1) &&
           op_same_numbers(f->tap_y, g->tap_y, f->radius_y + 1);
}

static void print(const struct plan *plan, const struct plan_step *step, FILE *to)
{
    const struct op_separable *f = &step->stencil->separable;
    (void)plan;
    fprintf(to, " (%d + %d taps of %d bits", 2 * f->radius_y + 1, 2 * f->radius_x + 1, f->bits);
    if (f->decimate_x || f->decimate_y)
        fprintf(to, ", on every %dth column and %dth row", 1 << f->decimate_x, 1 << f->decimate_y);
    fprintf(to, ")");
}

const struct op_info op_separable_info = {
    .name = "separable", .family = OP_FAMILY_STENCIL, .reach = reach, .same = same, .print = print};
