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
    .name = "separable", .family = OP_FAMILY_STENCIL, .reach = reach, .print = print};
