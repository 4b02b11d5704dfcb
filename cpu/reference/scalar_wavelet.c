// The reference of OP_WAVELET, step by step as plan/op.h has it.
#include "cpu/reference/scalar_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/wavelet_grid.h"

// Numbers, row by row without gaps.
struct reals {
    int width, height;
    float *at;
};

static float *real(const struct reals *reals, int x, int y)
{
    return &reals->at[(size_t)y * (size_t)reals->width + (size_t)x];
}

static enum status reals_init(struct reals *reals, int width, int height)
{
    *reals = (struct reals){width, height, calloc((size_t)width * (size_t)height, sizeof(float))};
    return reals->at ? STATUS_OK : STATUS_MEMORY;
}

// Working memory of a frame. `values` and both sums are of one scale.
struct transform {
    const struct scalar_work *work;
    struct wavelet_grid *grid;
    struct reals samples; // less black
    struct reals cells[WAVELET_LEVELS];
    struct reals values, smooth, bent, splines;
    struct reals w;
};

// The chain of `count` taps, and values `step` apart.
static float chain(const float *tap, const float *value, int count, ptrdiff_t step)
{
    float sum = 0;
    for (int k = 0; k < count; k++)
        sum = fmaf(tap[k], value[k * step], sum);
    return sum;
}

// ---- cells ----

static void make_samples(const struct transform *self)
{
    const struct plane *from = self->work->from;
    for (int y = 0; y < from->height; y++)
        for (int x = 0; x < from->width; x++)
            *real(&self->samples, x, y) =
                (float)*plane_at(from, x, y) - (float)self->work->op->wavelet.black;
}

static float sum_down(const struct transform *self, const struct wavelet_cell *cell, int x)
{
    const float *tap = self->grid->tap + cell->tap;
    float part[WAVELET_PARTS] = {0}, sum = 0;
    for (int k = 0; k < cell->count; k++) {
        float *own = &part[(cell->first + k) % WAVELET_PARTS];
        *own = fmaf(tap[k], *real(&self->samples, x, cell->first + k), *own);
    }
    for (int r = 0; r < WAVELET_PARTS; r++)
        sum += part[r];
    return sum;
}

static float sum_along(const struct transform *self, const struct wavelet_level *level, int number,
                       const float *from)
{
    const struct wavelet_axis *axis = &level->x;
    const struct wavelet_cell *cell = &axis->cell[number];
    const float *tap = self->grid->tap + cell->tap;
    bool inner = number >= axis->inner && number < axis->inner + axis->inners;
    float share[WAVELET_SHARES] = {0};
    if (1 << level->decimate <= (inner ? WAVELET_CHAINED_INSIDE : WAVELET_CHAINED))
        return chain(tap, from + cell->first, cell->count, 1);
    for (int k = 0; k < cell->count; k++)
        share[k % WAVELET_SHARES] = fmaf(tap[k], from[cell->first + k], share[k % WAVELET_SHARES]);
    for (int half = WAVELET_SHARES / 2; half > 0; half /= 2)
        for (int m = 0; m < half; m++)
            share[m] += share[m + half];
    return share[0];
}

static void make_cells(const struct transform *self, const struct wavelet_level *level, float *line,
                       const struct reals *cells)
{
    for (int y = 0; y < cells->height; y++) {
        const struct wavelet_cell *row = &level->y.cell[y];
        for (int x = 0; x < self->samples.width && level->decimate; x++)
            line[x] = sum_down(self, row, x);
        for (int x = 0; x < cells->width; x++) {
            const struct wavelet_cell *column = &level->x.cell[x];
            if (level->decimate)
                *real(cells, x, y) = sum_along(self, level, x, line);
            else if (row->count && column->count)
                *real(cells, x, y) = *real(&self->samples, column->first, row->first);
        }
    }
}

// ---- values ----

static void make_values(const struct transform *self, const struct wavelet_filter *filter)
{
    const struct wavelet_level *level = &self->grid->level[filter->level];
    const struct reals *cells = &self->cells[filter->level];
    const float *smooth = self->grid->tap + filter->smooth, *bent = self->grid->tap + filter->bent;
    int taps = 2 * filter->radius + 1, beside = level->margin - filter->radius;
    for (int y = 0; y < level->rows; y++) {
        for (int x = 0; x < level->columns + 2 * filter->radius; x++) {
            const float *from = real(cells, x + beside, y + beside);
            *real(&self->smooth, x, 0) = chain(smooth, from, taps, cells->width);
            *real(&self->bent, x, 0) = chain(bent, from, taps, cells->width);
        }
        for (int x = 0; x < level->columns; x++) {
            float sum = 0;
            for (int a = 0; a < taps; a++) {
                sum = fmaf(bent[a], *real(&self->smooth, x + a, 0), sum);
                sum = fmaf(smooth[a], *real(&self->bent, x + a, 0), sum);
            }
            *real(&self->values, x, y) = sum;
        }
    }
}

// ---- W ----

static float paired(const struct wavelet_level *level, int phase, const float h[WAVELET_SPLINE])
{
    int d = 1 << level->decimate, near = phase > d / 2 ? d - phase : phase;
    float sum[3], rest[3];
    for (int n = 0; n < 3; n++) {
        sum[n] = h[n] + h[5 - n];
        rest[n] = h[n] - h[5 - n];
    }
    float even = chain(level->even[near], sum, 3, 1), odd = chain(level->odd[near], rest, 3, 1);
    return phase == d / 2 ? even : phase < d / 2 ? even + odd : even - odd;
}

static float spline_down(const struct wavelet_level *level, int phase,
                         const float h[WAVELET_SPLINE])
{
    float weight[WAVELET_SPLINE], at_value[3] = {h[0] + h[4], h[1] + h[3], h[2]};
    for (int n = 0; n < WAVELET_SPLINE; n++)
        weight[n] = level->spline[n * level->period + phase];
    if (1 << level->decimate > WAVELET_PAIRED)
        return chain(weight, h, WAVELET_SPLINE, 1);
    return phase ? paired(level, phase, h) : chain(weight, at_value, 3, 1);
}

static void make_w(const struct transform *self, const struct wavelet_level *level)
{
    int d = 1 << level->decimate;
    for (int y = 0; y < level->rows && level->decimate; y++)
        for (int x = 0; x < self->w.width; x++) {
            float weight[WAVELET_SPLINE];
            for (int n = 0; n < WAVELET_SPLINE; n++)
                weight[n] = level->spline[n * level->period + x % d];
            *real(&self->splines, x, y) =
                chain(weight, real(&self->values, x / d, y), WAVELET_SPLINE, 1);
        }
    for (int y = 0; y < self->w.height; y++)
        for (int x = 0; x < self->w.width; x++) {
            float h[WAVELET_SPLINE];
            for (int n = 0; n < WAVELET_SPLINE && level->decimate; n++)
                h[n] = *real(&self->splines, x, y / d + n);
            *real(&self->w, x, y) =
                level->decimate ? spline_down(level, y % d, h) : *real(&self->values, x, y);
        }
}

// ---- results ----

// The value shown at one place, from the W_k in order.
static void show(const struct op_wavelet *op, int k, float w, float *shown, int *winner)
{
    if (op->show == WAVELET_ABS || op->show == WAVELET_SIGNED) {
        if (k == 0)
            *shown = w;
    } else if (fabsf(w) > *shown) {
        *shown = fabsf(w);
        *winner = k;
    }
}

static int code(const struct op_wavelet *op, float shown, int winner)
{
    float gain = (float)op->gain, high = (float)op->high;
    if (op->show == WAVELET_SHOW_SCALE)
        return shown * gain < 0.5f ? 0 : winner + 1 < op->high ? winner + 1 : op->high;
    float value = op->show == WAVELET_SIGNED ? fmaf(shown, gain, high / 2) : fabsf(shown) * gain;
    return (int)(fminf(fmaxf(value, 0), high) + 0.5f);
}

static double energy(const struct reals *w, float step)
{
    uint64_t sum = 0;
    for (int y = 0; y < w->height; y++)
        for (int x = 0; x < w->width; x++) {
            int64_t steps = (int64_t)rintf(*real(w, x, y) * step);
            sum += (uint64_t)(steps * steps);
        }
    return (double)sum / step / step / ((double)w->width * w->height);
}

static enum status transform_init(struct transform *self, const struct scalar_work *work)
{
    int width = work->from->width, height = work->from->height, columns = 0, rows = 0;
    *self = (struct transform){.work = work};
    enum status status = wavelet_grid_create(work->op, width, height, &self->grid);
    for (int k = 0; !status && k < self->grid->levels; k++) {
        const struct wavelet_level *level = &self->grid->level[k];
        columns = level->x.cells > columns ? level->x.cells : columns;
        rows = level->rows > rows ? level->rows : rows;
        status = reals_init(&self->cells[k], level->x.cells, level->y.cells);
    }
    if (status || reals_init(&self->samples, width, height) ||
        reals_init(&self->values, columns, rows) || reals_init(&self->smooth, columns, 1) ||
        reals_init(&self->bent, columns, 1) || reals_init(&self->splines, width, rows) ||
        reals_init(&self->w, width, height))
        return STATUS_MEMORY;
    return STATUS_OK;
}

static void transform_finish(struct transform *self)
{
    for (int k = 0; k < WAVELET_LEVELS; k++)
        free(self->cells[k].at);
    free(self->samples.at);
    free(self->values.at);
    free(self->smooth.at);
    free(self->bent.at);
    free(self->splines.at);
    free(self->w.at);
    wavelet_grid_destroy(&self->grid);
}

static void make_all_cells(struct transform *self)
{
    make_samples(self);
    for (int k = 0; k < self->grid->levels; k++)
        make_cells(self, &self->grid->level[k], self->values.at, &self->cells[k]);
}

enum status wavelet_scalar(const struct scalar_work *work)
{
    const struct op_wavelet *op = &work->op->wavelet;
    size_t samples = (size_t)work->from->width * (size_t)work->from->height;
    float *shown = calloc(samples, sizeof *shown);
    int *winner = calloc(samples, sizeof *winner);
    struct transform self;
    enum status status = transform_init(&self, work);
    status = shown && winner ? status : STATUS_MEMORY;
    if (!status)
        make_all_cells(&self);
    for (int k = 0; k < op->scales && !status; k++) {
        const struct wavelet_filter *filter = &self.grid->filter[k];
        make_values(&self, filter);
        make_w(&self, &self.grid->level[filter->level]);
        for (size_t at = 0; at < samples; at++)
            show(op, k, self.w.at[at], &shown[at], &winner[at]);
        if (work->analysis)
            ((double *)work->analysis)[k] = energy(&self.w, filter->step);
        if (work->analysis && op->planes)
            memcpy((float *)op_wavelet_planes(op, work->analysis) + (size_t)k * samples, self.w.at,
                   samples * sizeof(float));
    }
    for (size_t at = 0; at < samples && !status; at++)
        work->to->sample[at] = (uint16_t)code(op, shown[at], winner[at]);
    free(shown);
    free(winner);
    transform_finish(&self);
    return status;
}
