// The reference of OP_SEPARABLE.
#include "cpu/reference/scalar_op.h"

#include <stdlib.h>

// A grid of values that reaches beyond the picture: columns first_x .. , rows first_y ..
struct grid {
    int first_x, first_y, width, height;
    int64_t *value;
};

static enum status grid_init(struct grid *grid, int first_x, int last_x, int first_y, int last_y)
{
    *grid = (struct grid){first_x, first_y, last_x - first_x + 1, last_y - first_y + 1, NULL};
    grid->value = malloc((size_t)grid->width * (size_t)grid->height * sizeof *grid->value);
    return grid->value ? STATUS_OK : STATUS_MEMORY;
}

static int64_t *grid_at(const struct grid *grid, int x, int y)
{
    return &grid->value[(size_t)(y - grid->first_y) * (size_t)grid->width +
                        (size_t)(x - grid->first_x)];
}

// c of OP_SEPARABLE at (m, n): the tent-weighted sum around a grid point.
static int64_t tent_sum(const struct op *op, const struct plane *from, int m, int n)
{
    const struct op_separable *f = &op->separable;
    int dx = 1 << f->decimate_x, dy = 1 << f->decimate_y;
    int64_t sum = 0;
    for (int b = 1 - dy; b < dy; b++)
        for (int a = 1 - dx; a < dx; a++)
            sum += (int64_t)(dx - abs(a)) * (dy - abs(b)) *
                   plane_extended(from, op, m * dx + a, n * dy + b);
    return sum;
}

// The four grid samples around picture column x and row y, linearly interpolated; times Dx Dy.
static int64_t interpolated(const struct op_separable *f, const struct grid *grid, int x, int y)
{
    int dx = 1 << f->decimate_x, dy = 1 << f->decimate_y;
    int m = x >> f->decimate_x, n = y >> f->decimate_y, fx = x & (dx - 1), fy = y & (dy - 1);
    int64_t sum = 0;
    for (int b = 0; b < (fy ? 2 : 1); b++)
        for (int a = 0; a < (fx ? 2 : 1); a++)
            sum += (int64_t)(a ? fx : dx - fx) * (b ? fy : dy - fy) * *grid_at(grid, m + a, n + b);
    return sum;
}

// The blurred value, its sum still `bits_below` bits above the code value.
static int finished(const struct op_separable *f, int64_t sum, int bits_below, int x, int depth)
{
    if (!f->amount)
        return (int)rounded_shift(sum, bits_below);
    int fraction = 16 - depth;
    int64_t blurred = rounded_shift(sum, bits_below - fraction);
    int64_t sharp = ((int64_t)x << fraction) * (256 + f->amount) - blurred * f->amount;
    return (int)clamp(rounded_shift(sharp, 8 + fraction), f->low, f->high);
}

static int last_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d;
}

enum status separable_scalar(const struct scalar_work *work)
{
    const struct op *op = work->op;
    const struct op_separable *f = &op->separable;
    const struct plane *from = work->from, *to = work->to;
    bool coarse = f->decimate_x || f->decimate_y;
    int last_x = last_on_grid(to->width, f->decimate_x);
    int last_y = last_on_grid(to->height, f->decimate_y);
    int rx = f->radius_x, ry = f->radius_y;
    struct grid samples = {0}, columns = {0}, both = {0};
    enum status status = STATUS_MEMORY;
    if (grid_init(&samples, -rx, last_x + rx, -ry, last_y + ry) ||
        grid_init(&columns, -rx, last_x + rx, 0, last_y) || grid_init(&both, 0, last_x, 0, last_y))
        goto fail;
    for (int y = -ry; y <= last_y + ry; y++)
        for (int x = -rx; x <= last_x + rx; x++)
            *grid_at(&samples, x, y) = coarse
                                           ? rounded_shift(tent_sum(op, from, x, y) << f->fraction,
                                                           2 * (f->decimate_x + f->decimate_y))
                                           : plane_extended(from, op, x, y);
    for (int y = 0; y <= last_y; y++)
        for (int x = -rx; x <= last_x + rx; x++) {
            int64_t sum = 0;
            for (int k = -ry; k <= ry; k++)
                sum += f->tap_y[abs(k)] * *grid_at(&samples, x, y + k);
            *grid_at(&columns, x, y) = rounded_shift(sum, coarse ? f->bits : f->bits - f->fraction);
        }
    for (int y = 0; y <= last_y; y++)
        for (int x = 0; x <= last_x; x++) {
            int64_t sum = 0;
            for (int k = -rx; k <= rx; k++)
                sum += f->tap_x[abs(k)] * *grid_at(&columns, x + k, y);
            *grid_at(&both, x, y) = coarse ? rounded_shift(sum, f->bits) : sum;
        }
    int bits_below = f->fraction + (coarse ? f->decimate_x + f->decimate_y : f->bits);
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++)
            *plane_at(to, x, y) = (uint16_t)finished(f, interpolated(f, &both, x, y), bits_below,
                                                     *plane_at(from, x, y), work->depth);
    status = STATUS_OK;
fail:
    free(samples.value);
    free(columns.value);
    free(both.value);
    return status;
}
