// The reference of OP_CONVOLVE.
#include "cpu/reference/scalar_op.h"

#include <stdlib.h>
#include <string.h>

static int convolved(const struct op_convolve *f, int64_t sum)
{
    if (f->absolute && sum < 0)
        sum = -sum;
    return (int)clamp(f->base + ((sum + f->offset) >> f->bits), f->low, f->high);
}

static void convolve_weights(const struct op *op, const struct plane *from, const struct plane *to)
{
    const struct op_convolve *f = &op->convolve;
    for (int y = 0; y < to->height; y++)
        for (int x = 0; x < to->width; x++) {
            int64_t sum = 0;
            for (int j = 0; j < f->height; j++)
                for (int i = 0; i < f->width; i++)
                    sum += (int64_t)f->weight[j * f->width + i] *
                           plane_extended(from, op, x + i - f->origin_x, y + j - f->origin_y);
            *plane_at(to, x, y) = (uint16_t)convolved(f, sum);
        }
}

// t of line r around row y, for all columns that the kernel reaches.
static void sum_columns(const struct op *op, const struct plane *from, int r, int y,
                        int64_t *columns)
{
    const struct op_convolve *f = &op->convolve;
    for (int k = 0; k < from->width + f->width - 1; k++) {
        columns[k] = INT64_C(1) << f->column_shift >> 1;
        for (int j = 0; j < f->height; j++)
            columns[k] += (int64_t)f->line_y[r][j] *
                          plane_extended(from, op, k - f->origin_x, y + j - f->origin_y);
        columns[k] >>= f->column_shift;
    }
}

// Lines instead of weights: sums of a column of each picture column, then of a row of those.
static enum status convolve_lines(const struct op *op, const struct plane *from,
                                  const struct plane *to)
{
    const struct op_convolve *f = &op->convolve;
    size_t width = (size_t)to->width, reached = width + (size_t)f->width - 1;
    int64_t *sums = malloc((width + reached) * sizeof *sums);
    if (!sums)
        return STATUS_MEMORY;
    int64_t *columns = sums + width;
    for (int y = 0; y < to->height; y++) {
        memset(sums, 0, width * sizeof *sums);
        for (int r = 0; r < f->rank; r++) {
            sum_columns(op, from, r, y, columns);
            for (size_t x = 0; x < width; x++)
                for (int i = 0; i < f->width; i++)
                    sums[x] += f->line_x[r][i] * columns[x + (size_t)i];
        }
        for (int x = 0; x < to->width; x++)
            *plane_at(to, x, y) = (uint16_t)convolved(f, sums[x]);
    }
    free(sums);
    return STATUS_OK;
}

enum status convolve_scalar(const struct scalar_work *work)
{
    if (work->op->convolve.rank)
        return convolve_lines(work->op, work->from, work->to);
    convolve_weights(work->op, work->from, work->to);
    return STATUS_OK;
}
