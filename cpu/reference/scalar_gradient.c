// The reference of OP_GRADIENT.
#include "cpu/reference/scalar_op.h"

#include <stdlib.h>

// floor(sqrt(value)), bit by bit.
static int64_t square_root(int64_t value)
{
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return root;
}

static int64_t gradient_length(const struct op_gradient *f, int64_t gx, int64_t gy)
{
    switch (f->norm) {
    case NORM_L1:
        return rounded_shift((llabs(gx) + llabs(gy)) * f->scale, 16);
    case NORM_L2:
        return rounded_shift(square_root((gx * gx + gy * gy) * 65536) * f->scale, 24);
    case NORM_X:
        return rounded_shift(llabs(gx) * f->scale, 16);
    case NORM_Y:
        return rounded_shift(llabs(gy) * f->scale, 16);
    }
    return 0;
}

enum status gradient_scalar(const struct scalar_work *work)
{
    const struct op *op = work->op;
    const struct plane *from = work->from, *to = work->to;
    const struct op_gradient *f = &op->gradient;
    const int smooth[3] = {f->side, f->center, f->side};
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            int64_t gx = 0, gy = 0;
            for (int k = -1; k <= 1; k++) {
                gx += smooth[k + 1] * (plane_extended(from, op, x + 1, y + k) -
                                       plane_extended(from, op, x - 1, y + k));
                gy += smooth[k + 1] * (plane_extended(from, op, x + k, y + 1) -
                                       plane_extended(from, op, x + k, y - 1));
            }
            *plane_at(to, x, y) =
                (uint16_t)(f->base + clamp(gradient_length(f, gx, gy), 0, f->limit));
        }
    return STATUS_OK;
}
