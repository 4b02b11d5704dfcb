#include "plan/wavelet_grid.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/portable.h"

#define PREFILTER 0.9    // deviation of the cells' Gaussian, in cells
#define FILTER_REACH 5.2 // deviations
#define LEAST_RATIO 2.5  // s / D

enum { FREQUENCIES = 64 };

static const double pi = 3.14159265358979323846;

// log2 D.
static int decimation(double scale)
{
    int decimate = 0;
    while (ldexp(2 * LEAST_RATIO, decimate) <= scale)
        decimate++;
    return decimate;
}

// Room for `count` taps, which are 0, at a multiple of four. Returns their place, -1 without
// memory.
static int add_taps(struct wavelet_grid *grid, int count)
{
    count = (count + 3) / 4 * 4;
    float *tap = realloc(grid->tap, ((size_t)grid->taps + (size_t)count) * sizeof *tap);
    if (!tap)
        return -1;
    grid->tap = tap;
    memset(tap + grid->taps, 0, (size_t)count * sizeof *tap);
    grid->taps += count;
    return grid->taps - count;
}

// ---- filters ----

// A tap that nothing would be left of is 0: sums stay clear of the least numbers that there are.
static float tap_of(double value)
{
    return fabs(value) < 0x1p-40 ? 0 : (float)value;
}

// On the samples themselves.
static void direct_taps(double scale, double factor, int radius, float *smooth, float *bent)
{
    for (int k = -radius; k <= radius; k++) {
        double u2 = k * k / (scale * scale), g = portable_exp(-u2 / 2);
        smooth[radius + k] = tap_of(g);
        bent[radius + k] = tap_of(factor * (u2 - 1) * g);
    }
}

static double power(double x, int n)
{
    double product = 1;
    for (int k = 0; k < n; k++)
        product *= x;
    return product;
}

// The factor missing, at an angular frequency per cell, to a Gaussian of deviation `sigma` cells.
static double response(double sigma, double theta)
{
    double missing = sigma * sigma - PREFILTER * PREFILTER;
    double spline = power(portable_cos((pi - theta) / 2) / (theta / 2), WAVELET_SPLINE);
    return portable_exp(-missing * theta * theta / 2) / spline;
}

// cos(k theta) of frequency n, brought to half a turn, which is 2 FREQUENCIES of its steps.
static double wave(int k, int n)
{
    int step = k * (2 * n + 1) % (4 * FREQUENCIES);
    step = step > 2 * FREQUENCIES ? 4 * FREQUENCIES - step : step;
    return portable_cos(step * pi / (2 * FREQUENCIES));
}

// On cells: from frequency back to place. Responses have vanished long before theta = pi.
static void grid_taps(double sigma, double factor, int radius, float *smooth, float *bent)
{
    for (int k = 0; k <= radius; k++) {
        double g = 0, h = 0;
        for (int n = 0; n < FREQUENCIES; n++) {
            double theta = (n + 0.5) * pi / FREQUENCIES;
            double part = response(sigma, theta) * wave(k, n) / FREQUENCIES;
            g += part;
            h -= part * sigma * sigma * theta * theta;
        }
        smooth[radius + k] = smooth[radius - k] = tap_of(g);
        bent[radius + k] = bent[radius - k] = tap_of(factor * h);
    }
}

// The variance of the quintic spline is 1/2.
static int filter_radius(double sigma, int decimate)
{
    double variance = sigma * sigma - (decimate ? PREFILTER * PREFILTER + 0.5 : 0);
    return (int)ceil(FILTER_REACH * sqrt(variance));
}

static enum status filter_init(struct wavelet_grid *grid, const struct op_wavelet *op, int k)
{
    struct wavelet_filter *filter = &grid->filter[k];
    double scale = op->scale[k], factor = op_wavelet_factor(op, scale);
    int decimate = grid->level[filter->level].decimate, radius = filter->radius;
    int count = 2 * radius + 1 + 2 * WAVELET_ZEROS;
    int smooth = add_taps(grid, count), bent = add_taps(grid, count);
    if (smooth < 0 || bent < 0)
        return STATUS_MEMORY;
    filter->smooth = smooth + WAVELET_ZEROS;
    filter->bent = bent + WAVELET_ZEROS;
    float *smooth_tap = grid->tap + filter->smooth, *bent_tap = grid->tap + filter->bent;
    if (decimate)
        grid_taps(ldexp(scale, -decimate), factor * 2 * pi * scale * scale, radius, smooth_tap,
                  bent_tap);
    else
        direct_taps(scale, factor, radius, smooth_tap, bent_tap);
    return STATUS_OK;
}

// ---- levels ----

// A cell's weights for the samples at distances -reach .. reach of its place.
struct prefilter {
    int reach;
    double *weight;
    int tap; // where they are, as they are
};

static enum status prefilter_init(struct prefilter *prefilter, struct wavelet_grid *grid,
                                  int decimate)
{
    double deviation = ldexp(PREFILTER, decimate), norm = sqrt(2 * pi) * deviation;
    int reach = decimate ? WAVELET_REACH << decimate : 0;
    *prefilter = (struct prefilter){reach, NULL, add_taps(grid, 2 * reach + 1)};
    prefilter->weight = malloc(((size_t)2 * (size_t)reach + 1) * sizeof(double));
    if (!prefilter->weight || prefilter->tap < 0)
        return STATUS_MEMORY;
    for (int k = -reach; k <= reach; k++) {
        double u = k / deviation;
        prefilter->weight[reach + k] = decimate ? portable_exp(-u * u / 2) / norm : 1;
        grid->tap[prefilter->tap + reach + k] = (float)prefilter->weight[reach + k];
    }
    return STATUS_OK;
}

// A cell beside or across an edge: each sample of the picture has the sum of the weights of all the
// places where it stands. `sum` has room for `length` numbers.
static enum status fold_cell(struct wavelet_grid *grid, const struct prefilter *prefilter,
                             enum border border, int place, int length, double *sum,
                             struct wavelet_cell *cell)
{
    int first = length, last = -1;
    memset(sum, 0, (size_t)length * sizeof *sum);
    for (int k = -prefilter->reach; k <= prefilter->reach; k++) {
        int at = border_index(border, place + k, length);
        if (at < 0)
            continue;
        sum[at] += prefilter->weight[prefilter->reach + k];
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    *cell = (struct wavelet_cell){0};
    if (last < 0)
        return STATUS_OK;
    *cell = (struct wavelet_cell){first, last - first + 1, add_taps(grid, last - first + 1)};
    if (cell->tap < 0)
        return STATUS_MEMORY;
    for (int k = 0; k < cell->count; k++)
        grid->tap[cell->tap + k] = (float)sum[first + k];
    return STATUS_OK;
}

// The cell at the picture's first sample. The first of the values is two before it where splines
// are.
static int first_place(const struct wavelet_level *level)
{
    return level->margin + (level->decimate ? WAVELET_SPLINE / 2 - 1 : 0);
}

static enum status axis_init(struct wavelet_axis *axis, struct wavelet_grid *grid,
                             const struct prefilter *prefilter, enum border border, int length,
                             const struct wavelet_level *level)
{
    enum status status = STATUS_OK;
    int reach = prefilter->reach;
    double *sum = malloc((size_t)length * sizeof *sum);
    axis->cell = calloc((size_t)axis->cells, sizeof *axis->cell);
    if (!sum || !axis->cell)
        status = STATUS_MEMORY;
    for (int k = 0; k < axis->cells && !status; k++) {
        int place = (k - first_place(level)) * (1 << level->decimate);
        if (k >= axis->inner && k < axis->inner + axis->inners)
            axis->cell[k] = (struct wavelet_cell){place - reach, 2 * reach + 1, prefilter->tap};
        else
            status = fold_cell(grid, prefilter, border, place, length, sum, &axis->cell[k]);
    }
    free(sum);
    return status;
}

// 120 times the quintic B-spline about 0. What is added is exact where 32 x is an integer.
static double spline(double x)
{
    double sum = power(fmax(3 - fabs(x), 0), 5) - 6 * power(fmax(2 - fabs(x), 0), 5);
    return sum + 15 * power(fmax(1 - fabs(x), 0), 5);
}

// The weight of value n, of the six around W_s, where x % D = `phase`.
static double weight_of(int decimate, int phase, int n)
{
    return spline(ldexp(phase, -decimate) - (n - 2)) / 120;
}

static void even_and_odd(struct wavelet_level *level)
{
    for (int phase = 0; phase <= 1 << level->decimate >> 1; phase++)
        for (int n = 0; n < 3; n++) {
            double a = weight_of(level->decimate, phase, n);
            double b = weight_of(level->decimate, phase, 5 - n);
            level->even[phase][n] = (float)((a + b) / 2);
            level->odd[phase][n] = (float)((a - b) / 2);
        }
}

static enum status spline_init(struct wavelet_level *level)
{
    int d = 1 << level->decimate;
    if (!level->decimate)
        return STATUS_OK;
    level->period = d < WAVELET_PERIOD ? WAVELET_PERIOD : d;
    level->spline = malloc((size_t)level->period * WAVELET_SPLINE * sizeof *level->spline);
    if (!level->spline)
        return STATUS_MEMORY;
    for (int n = 0; n < WAVELET_SPLINE; n++)
        for (int x = 0; x < level->period; x++)
            level->spline[n * level->period + x] = (float)weight_of(level->decimate, x % d, n);
    if (d <= WAVELET_PAIRED)
        even_and_odd(level);
    return STATUS_OK;
}

static enum status level_init(struct wavelet_grid *grid, struct wavelet_level *level,
                              enum border border)
{
    struct prefilter prefilter;
    enum status status = prefilter_init(&prefilter, grid, level->decimate);
    level->prefilter = prefilter.tap;
    if (!status)
        status = axis_init(&level->x, grid, &prefilter, border, grid->width, level);
    if (!status)
        status = axis_init(&level->y, grid, &prefilter, border, grid->height, level);
    if (!status)
        status = spline_init(level);
    free(prefilter.weight);
    return status;
}

// ---- the whole ----

static int values_along(int length, int decimate)
{
    return decimate ? ((length - 1) >> decimate) + WAVELET_SPLINE : length;
}

static void outline_axis(struct wavelet_axis *axis, const struct wavelet_level *level, int values,
                         int length)
{
    int reach = level->decimate ? WAVELET_REACH : 0;
    int inners = ((length - 1) >> level->decimate) - 2 * reach + 1;
    axis->cells = values + 2 * level->margin;
    axis->inner = first_place(level) + reach;
    axis->inners = inners > 0 ? inners : 0;
}

// 2^16 to 2^17 of these steps are about the largest |W_s| of a picture, or a little more.
static float energy_step(const struct op_wavelet *op, double scale)
{
    double most = 255 * op_wavelet_factor(op, scale) / op->unit * (4.625 * scale * scale + 2);
    int log_2;
    frexp(most, &log_2);
    return ldexpf(1, 17 - log_2);
}

// A level, whose margin is that of its scales, which become its own. Returns how many there are.
static int outline_level(struct wavelet_grid *grid, const struct op_wavelet *op, int decimate)
{
    struct wavelet_level *level = &grid->level[grid->levels];
    int count = 0;
    *level = (struct wavelet_level){.decimate = decimate};
    for (int k = 0; k < op->scales; k++) {
        if (decimation(op->scale[k]) != decimate)
            continue;
        int radius = filter_radius(ldexp(op->scale[k], -decimate), decimate);
        grid->filter[k] = (struct wavelet_filter){
            .level = grid->levels, .radius = radius, .step = energy_step(op, op->scale[k])};
        level->margin = radius > level->margin ? radius : level->margin;
        count++;
    }
    level->columns = values_along(grid->width, decimate);
    level->rows = values_along(grid->height, decimate);
    outline_axis(&level->x, level, level->columns, grid->width);
    outline_axis(&level->y, level, level->rows, grid->height);
    return count;
}

void wavelet_grid_outline(const struct op *op, int width, int height, struct wavelet_grid *grid)
{
    *grid = (struct wavelet_grid){.width = width, .height = height, .filters = op->wavelet.scales};
    for (int decimate = 0; decimate < WAVELET_LEVELS; decimate++)
        if (outline_level(grid, &op->wavelet, decimate) || decimate == 0)
            grid->levels++;
}

enum status wavelet_grid_create(const struct op *op, int width, int height,
                                struct wavelet_grid **grid)
{
    assert(op->kind == OP_WAVELET && op->wavelet.scales > 0 &&
           op->wavelet.scales <= WAVELET_SCALES);
    assert(width > 0 && height > 0);
    struct wavelet_grid *made = *grid = malloc(sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    wavelet_grid_outline(op, width, height, made);
    for (int k = 0; k < made->filters && !status; k++)
        status = filter_init(made, &op->wavelet, k);
    for (int k = 0; k < made->levels && !status; k++)
        status = level_init(made, &made->level[k], op->border);
    if (status)
        wavelet_grid_destroy(grid);
    return status;
}

void wavelet_grid_destroy(struct wavelet_grid **grid)
{
    if (!*grid)
        return;
    for (int k = 0; k < WAVELET_LEVELS; k++) {
        free((*grid)->level[k].x.cell);
        free((*grid)->level[k].y.cell);
        free((*grid)->level[k].spline);
    }
    free((*grid)->tap);
    free(*grid);
    *grid = NULL;
}
