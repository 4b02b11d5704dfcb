// The reference of OP_BOX.
#include "cpu/reference/scalar_op.h"

#include <stdlib.h>

// The sum over the box is made of sums of columns, or a radius of thousands would never end.
enum status box_scalar(const struct scalar_work *work)
{
    const struct op *op = work->op;
    const struct plane *from = work->from, *to = work->to;
    int rx = op->box.radius_x, ry = op->box.radius_y;
    int64_t n = (2 * (int64_t)rx + 1) * (2 * (int64_t)ry + 1);
    size_t columns = (size_t)to->width + 2 * (size_t)rx;
    int64_t *column = malloc(columns * sizeof *column);
    if (!column)
        return STATUS_MEMORY;
    for (int y = 0; y < to->height; y++) {
        for (size_t i = 0; i < columns; i++) {
            int x = (int)i - rx;
            if (y == 0) {
                column[i] = 0;
                for (int k = -ry; k <= ry; k++)
                    column[i] += plane_extended(from, op, x, k);
            } else {
                column[i] +=
                    plane_extended(from, op, x, y + ry) - plane_extended(from, op, x, y - ry - 1);
            }
        }
        int64_t sum = 0;
        for (size_t i = 0; i < 2 * (size_t)rx; i++)
            sum += column[i];
        for (int x = 0; x < to->width; x++) {
            sum += column[x + 2 * rx];
            *plane_at(to, x, y) = (uint16_t)((2 * sum + n) / (2 * n));
            sum -= column[x];
        }
    }
    free(column);
    return STATUS_OK;
}
