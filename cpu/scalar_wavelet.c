// The definition of OP_WAVELET: in double precision, the two terms of (r - 2) exp(-r / 2) = (u^2 -
// 1) e^(-u^2 / 2) e^(-v^2 / 2) + e^(-u^2 / 2) (v^2 - 1) e^(-v^2 / 2) down the columns, then along
// rows.
#include "cpu/scalar_plane.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The lines of one scale, from -reach to reach, and a row of sums down the columns by each.
struct lines {
    int reach;
    double *smooth, *bent;
    double *smooth_sum, *bent_sum;
    int *column; // of the picture, for each place from -reach to the width + reach; -1: none
};

static void lines_free(struct lines *lines)
{
    free(lines->smooth);
    free(lines->bent);
    free(lines->smooth_sum);
    free(lines->bent_sum);
    free(lines->column);
}

static enum status lines_init(struct lines *lines, const struct scalar_whole *work, double scale)
{
    const struct op_wavelet *op = &work->op->wavelet;
    int width = work->from->width;
    int reach = lines->reach = (int)floor(op->support * scale);
    size_t count = 2 * (size_t)reach + 1;
    lines->smooth = malloc(count * sizeof(double));
    lines->bent = malloc(count * sizeof(double));
    lines->smooth_sum = malloc((size_t)width * sizeof(double));
    lines->bent_sum = malloc((size_t)width * sizeof(double));
    lines->column = malloc(((size_t)width + count) * sizeof(int));
    if (!lines->smooth || !lines->bent || !lines->smooth_sum || !lines->bent_sum || !lines->column)
        return STATUS_MEMORY;
    for (int x = 0; x < width + 2 * reach; x++)
        lines->column[x] = border_index(work->op->border, x - reach, width);
    double factor = op_wavelet_factor(op, scale);
    for (int k = -reach; k <= reach; k++) {
        double u2 = (double)k * k / (scale * scale);
        lines->smooth[reach + k] = exp(-u2 / 2);
        lines->bent[reach + k] = factor * (u2 - 1) * exp(-u2 / 2);
    }
    return STATUS_OK;
}

static void sum_columns(const struct scalar_whole *work, struct lines *lines, int y)
{
    const struct op *op = work->op;
    memset(lines->smooth_sum, 0, (size_t)work->from->width * sizeof(double));
    memset(lines->bent_sum, 0, (size_t)work->from->width * sizeof(double));
    for (int k = -lines->reach; k <= lines->reach; k++) {
        int row = border_index(op->border, y + k, work->from->height);
        for (int x = 0; x < work->from->width && row >= 0; x++) {
            double f = *plane_at(work->from, x, row) - op->wavelet.black;
            lines->smooth_sum[x] += lines->smooth[lines->reach + k] * f;
            lines->bent_sum[x] += lines->bent[lines->reach + k] * f;
        }
    }
}

static double sum_row(const struct lines *lines, int x)
{
    double sum = 0;
    for (int k = 0; k <= 2 * lines->reach; k++) {
        int column = lines->column[x + k];
        if (column >= 0)
            sum += lines->bent[k] * lines->smooth_sum[column] +
                   lines->smooth[k] * lines->bent_sum[column];
    }
    return sum;
}

// What is shown at one place, from the W_k in order.
static void show(const struct op_wavelet *op, int k, double w, double *shown, int *winner)
{
    if (op->show == WAVELET_ABS || op->show == WAVELET_SIGNED) {
        if (k == 0)
            *shown = w;
    } else if (k == 0 || fabs(w) > *shown) {
        *shown = fabs(w);
        *winner = k;
    }
}

static int code(const struct op_wavelet *op, double shown, int winner)
{
    if (op->show == WAVELET_WINNER)
        return shown * op->gain < 0.5 ? 0 : winner + 1 < op->high ? winner + 1 : op->high;
    double value =
        op->show == WAVELET_SIGNED ? op->high / 2.0 + shown * op->gain : fabs(shown) * op->gain;
    return (int)floor(fmin(fmax(value, 0), op->high) + 0.5);
}

enum status wavelet_scalar(const struct scalar_whole *work)
{
    const struct op_wavelet *op = &work->op->wavelet;
    int width = work->from->width, height = work->from->height;
    size_t samples = (size_t)width * (size_t)height;
    double *shown = malloc(samples * sizeof *shown), *energy = work->side;
    int *winner = calloc(samples, sizeof *winner);
    enum status status = shown && winner ? STATUS_OK : STATUS_MEMORY;
    for (int k = 0; k < op->scales && !status; k++) {
        float *plane = energy && op->planes ? (float *)(energy + op->scales) + k * samples : NULL;
        struct lines lines = {0};
        double sum = 0;
        status = lines_init(&lines, work, op->scale[k]);
        for (int y = 0; y < height && !status; y++) {
            sum_columns(work, &lines, y);
            for (int x = 0; x < width; x++) {
                size_t at = (size_t)y * (size_t)width + (size_t)x;
                double w = sum_row(&lines, x);
                show(op, k, w, &shown[at], &winner[at]);
                sum += w * w;
                if (plane)
                    plane[at] = (float)w;
            }
        }
        if (energy)
            energy[k] = sum / (double)samples;
        lines_free(&lines);
    }
    for (size_t at = 0; at < samples && !status; at++)
        work->to->sample[at] = (uint16_t)code(op, shown[at], winner[at]);
    free(shown);
    free(winner);
    return status;
}
