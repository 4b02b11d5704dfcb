// OP_WAVELET by the grids of plan/wavelet_grid.h, in phases of parts that any thread may make:
//
//   samples    cells of the first level: the picture with what its border puts around it
//   cells      of the other levels
//   values     of the scales that have a grid
//   results    rows of the picture, with all that is only of a row
//   energies
//
// The same comes of any number of bands.
#include "cpu/full_frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES, CELLS, VALUES, RESULTS, ENERGIES, PHASES };

// Rows of values, or of the result, that are made together.
enum { ROWS = 16 };

// Rows of floats.
struct reals_plane {
    float *row;
    ptrdiff_t stride; // floats
};

// Working memory of a band while it makes a part.
struct scratch {
    float *line, *wide; // rows
    float *spline[WAVELET_SPLINE];
    float *most, *winner; // ROWS rows
    float *smooth, *bent; // ROWS rows of sums; W of them comes in place of the second
    ptrdiff_t stride;
};

struct wavelet {
    struct full_frame base;
    const struct op *op;
    const struct wavelet_kernels *kernels;
    struct wavelet_grid *grid;
    struct reals_plane cells[WAVELET_LEVELS];
    struct reals_plane *values; // of each scale; no rows where D = 1
    struct scratch *scratch;    // of each band
    int bands;
    uint64_t *energy; // of each part of the results, each scale: squares of steps
};

// ---- memory ----

static ptrdiff_t padded(int width)
{
    return (width + 15) / 16 * 16 + WAVELET_PAD;
}

static bool plane_init(struct wavelet *self, struct reals_plane *plane, int width, int rows)
{
    plane->stride = padded(width);
    plane->row = calloc((size_t)plane->stride * (size_t)rows, sizeof *plane->row);
    self->base.memory += (size_t)plane->stride * (size_t)rows * sizeof *plane->row;
    return plane->row;
}

static float *plane_row(const struct reals_plane *plane, int y)
{
    return plane->row + y * plane->stride;
}

// The longest row that a band has: of cells, of samples apart, or of values as often as they stand.
static int longest_row(const struct wavelet_grid *grid)
{
    int longest = grid->width + WAVELET_CHAINED_INSIDE * (WAVELET_PAD + 1);
    for (int k = 0; k < grid->levels; k++) {
        const struct wavelet_level *level = &grid->level[k];
        int wide = level->decimate ? grid->width + ((WAVELET_SPLINE + 1) << level->decimate) : 0;
        longest = level->x.cells > longest ? level->x.cells : longest;
        longest = wide > longest ? wide : longest;
    }
    return longest;
}

static bool scratch_init(struct scratch *scratch, const struct wavelet_grid *grid)
{
    scratch->stride = padded(longest_row(grid));
    size_t row = (size_t)scratch->stride;
    scratch->line = calloc((2 + WAVELET_SPLINE + 4 * ROWS) * row, sizeof(float));
    scratch->wide = scratch->line + row;
    for (int n = 0; n < WAVELET_SPLINE; n++)
        scratch->spline[n] = scratch->wide + (size_t)(n + 1) * row;
    scratch->most = scratch->wide + (WAVELET_SPLINE + 1) * row;
    scratch->winner = scratch->most + ROWS * row;
    scratch->smooth = scratch->winner + ROWS * row;
    scratch->bent = scratch->smooth + ROWS * row;
    return scratch->line;
}

static int parts_of(int rows)
{
    return (rows + ROWS - 1) / ROWS;
}

static bool make_room(struct wavelet *self)
{
    const struct wavelet_grid *grid = self->grid;
    bool made = true;
    for (int k = 0; k < grid->levels && made; k++)
        made = plane_init(self, &self->cells[k], grid->level[k].x.cells, grid->level[k].y.cells);
    for (int k = 0; k < grid->filters && made; k++) {
        const struct wavelet_level *level = &grid->level[grid->filter[k].level];
        if (level->decimate)
            made = plane_init(self, &self->values[k], level->columns, level->rows);
    }
    for (int k = 0; k < self->bands && made; k++)
        made = scratch_init(&self->scratch[k], grid);
    return made;
}

static void destroy(struct full_frame **full_frame)
{
    struct wavelet *self = (struct wavelet *)*full_frame;
    for (int k = 0; k < WAVELET_LEVELS; k++)
        free(self->cells[k].row);
    for (int k = 0; self->values && k < self->op->wavelet.scales; k++)
        free(self->values[k].row);
    for (int k = 0; self->scratch && k < self->bands; k++)
        free(self->scratch[k].line);
    wavelet_grid_destroy(&self->grid);
    free(self->values);
    free(self->scratch);
    free(self->energy);
    free(self);
    *full_frame = NULL;
}

// ---- phases ----

// The scales that somebody wants.
static int scales(const struct wavelet *self, const struct full_frame_work *work)
{
    bool one = self->op->wavelet.show == WAVELET_ABS || self->op->wavelet.show == WAVELET_SIGNED;
    return one && !work->analysis ? 1 : self->op->wavelet.scales;
}

// Which level and row of cells, of all levels but the first one after another, a part is.
static int find_row(const struct wavelet_grid *grid, int *part)
{
    int level = 1;
    while (*part >= grid->level[level].y.cells)
        *part -= grid->level[level++].y.cells;
    return level;
}

// The same of bands of values.
static int find_band(const struct wavelet *self, int *part)
{
    int k = 0;
    for (;; k++) {
        const struct wavelet_level *level = &self->grid->level[self->grid->filter[k].level];
        int count = level->decimate ? parts_of(level->rows) : 0;
        if (*part < count)
            return k;
        *part -= count;
    }
}

static int parts(const struct wavelet *self, const struct full_frame_work *work, int phase)
{
    const struct wavelet_grid *grid = self->grid;
    int count = 0;
    switch (phase) {
    case SAMPLES:
        return parts_of(grid->level[0].y.cells);
    case CELLS:
        for (int k = 1; k < grid->levels; k++)
            count += grid->level[k].y.cells;
        return count;
    case VALUES:
        for (int k = 0; k < scales(self, work); k++)
            if (self->values[k].row)
                count += parts_of(grid->level[grid->filter[k].level].rows);
        return count;
    case RESULTS:
        return parts_of(grid->height);
    default:
        return work->analysis ? 1 : 0;
    }
}

// A row of samples with what its border puts beside it.
static void extend_row(const struct wavelet_level *level, float *row)
{
    int width = level->columns;
    for (int k = 0; k < level->margin; k++) {
        const struct wavelet_cell *before = &level->x.cell[k];
        const struct wavelet_cell *behind = &level->x.cell[level->margin + width + k];
        row[k] = before->count ? row[level->margin + before->first] : 0;
        row[level->margin + width + k] = behind->count ? row[level->margin + behind->first] : 0;
    }
}

static void run_samples(const struct wavelet *self, const struct full_frame_work *work, int part)
{
    const struct wavelet_level *level = &self->grid->level[0];
    for (int y = part * ROWS; y < (part + 1) * ROWS && y < level->y.cells; y++) {
        const struct wavelet_cell *cell = &level->y.cell[y];
        float *row = plane_row(&self->cells[0], y);
        if (!cell->count)
            continue; // it stays zero
        self->kernels->load[work->depth > 8](
            (const uint8_t *)work->from + cell->first * work->from_stride, max_sample(work->depth),
            (float)self->op->wavelet.black, row + level->margin, level->columns);
        extend_row(level, row);
    }
}

static void run_cells(const struct wavelet *self, const struct scratch *scratch, int part)
{
    const struct wavelet_level *level = &self->grid->level[find_row(self->grid, &part)];
    const struct wavelet_cell *cell = &level->y.cell[part];
    const struct reals_plane *samples = &self->cells[0];
    int margin = self->grid->level[0].margin;
    self->kernels->down(plane_row(samples, margin + cell->first) + margin, samples->stride, cell,
                        self->grid->tap + cell->tap, scratch->line, self->grid->width);
    self->kernels->cells(scratch->line, level, self->grid->tap, scratch->wide,
                         plane_row(&self->cells[level - self->grid->level], part));
}

// Values of one scale, rows from first_y on, `to` being the first.
static void make_values(const struct wavelet *self, const struct scratch *scratch, int k,
                        int first_y, int rows, float *to, ptrdiff_t stride)
{
    const struct wavelet_filter *filter = &self->grid->filter[k];
    const struct wavelet_level *level = &self->grid->level[filter->level];
    struct wavelet_taps taps = {self->grid->tap + filter->smooth, self->grid->tap + filter->bent,
                                filter->radius};
    const float *row[ROWS + 2 * WAVELET_RADIUS];
    int beside = level->margin - filter->radius;
    for (int i = 0; i < rows + 2 * filter->radius; i++)
        row[i] = plane_row(&self->cells[filter->level], first_y + beside + i) + beside;
    self->kernels->columns(row, &taps, rows, scratch->smooth, scratch->bent, scratch->stride,
                           level->columns + 2 * filter->radius);
    for (int y = 0; y < rows; y++)
        self->kernels->row(scratch->smooth + y * scratch->stride,
                           scratch->bent + y * scratch->stride, &taps, to + y * stride,
                           level->columns);
}

static void run_values(const struct wavelet *self, const struct scratch *scratch, int part)
{
    int k = find_band(self, &part), first = part * ROWS;
    int rows = self->grid->level[self->grid->filter[k].level].rows - first;
    make_values(self, scratch, k, first, rows < ROWS ? rows : ROWS,
                plane_row(&self->values[k], first), self->values[k].stride);
}

// ---- results ----

// A spline along row y of values.
static void make_spline(const struct wavelet *self, const struct scratch *scratch, int k, int y,
                        float *to)
{
    const struct wavelet_level *level = &self->grid->level[self->grid->filter[k].level];
    self->kernels->widen(plane_row(&self->values[k], y), level->decimate, scratch->wide,
                         level->columns);
    self->kernels->spline(scratch->wide, level, to, self->grid->width);
}

// W of one scale in `rows` rows from first_y on: as many at a time as are between the same values.
static void make_between(const struct wavelet *self, const struct scratch *scratch, int k,
                         int first_y, int rows)
{
    const struct wavelet_level *level = &self->grid->level[self->grid->filter[k].level];
    int d = 1 << level->decimate, made = first_y / d;
    for (int y = first_y; y < first_y + rows; y += d - y % d) {
        const float *row[WAVELET_SPLINE];
        int phase = y % d, count = d - phase < first_y + rows - y ? d - phase : first_y + rows - y;
        for (; made < y / d + WAVELET_SPLINE; made++)
            make_spline(self, scratch, k, made, scratch->spline[made % WAVELET_SPLINE]);
        for (int n = 0; n < WAVELET_SPLINE; n++)
            row[n] = scratch->spline[(y / d + n) % WAVELET_SPLINE];
        self->kernels->between(row, level, phase, count,
                               scratch->bent + (y - first_y) * scratch->stride, scratch->stride,
                               self->grid->width);
    }
}

static void show_row(const struct wavelet *self, const struct scratch *scratch, int k, int y,
                     const float *w)
{
    enum wavelet_show show = self->op->wavelet.show;
    float *most = scratch->most + y * scratch->stride;
    float *winner = scratch->winner + y * scratch->stride;
    if (show == WAVELET_MAX)
        self->kernels->most(w, most, self->grid->width);
    else if (show == WAVELET_SHOW_SCALE)
        self->kernels->winner(w, (float)k, most, winner, self->grid->width);
    else if (k == 0)
        memcpy(most, w, (size_t)self->grid->width * sizeof *w);
}

static void keep_row(const struct wavelet *self, const struct full_frame_work *work, int part,
                     int k, int y, const float *w)
{
    const struct op_wavelet *op = &self->op->wavelet;
    size_t width = (size_t)self->grid->width, height = (size_t)self->grid->height;
    if (!work->analysis)
        return;
    self->energy[part * op->scales + k] +=
        self->kernels->energy(w, self->grid->filter[k].step, self->grid->width);
    float *planes = op_wavelet_planes(op, work->analysis);
    if (op->planes)
        memcpy(planes + ((size_t)k * height + (size_t)y) * width, w, width * sizeof *w);
}

static void finish_row(const struct wavelet *self, const struct scratch *scratch,
                       const struct full_frame_work *work, int row, int y)
{
    const struct op_wavelet *op = &self->op->wavelet;
    float *most = scratch->most + row * scratch->stride, gain = (float)op->gain;
    const float *winner = scratch->winner + row * scratch->stride;
    int width = self->grid->width;
    for (int x = 0; x < width && op->show == WAVELET_SHOW_SCALE; x++)
        most[x] = most[x] * gain < 0.5f ? 0 : winner[x] + 1;
    for (int x = 0; x < width && op->show == WAVELET_ABS; x++)
        most[x] = fabsf(most[x]);
    self->kernels->finish[work->depth > 8](most, op->show == WAVELET_SHOW_SCALE ? 1 : gain,
                                           op->show == WAVELET_SIGNED ? (float)op->high / 2 : 0,
                                           op->high, (uint8_t *)work->to + y * work->to_stride,
                                           width);
}

static void run_results(struct wavelet *self, const struct scratch *scratch,
                        const struct full_frame_work *work, int part)
{
    int first = part * ROWS, rows = self->grid->height - first, count = scales(self, work);
    rows = rows < ROWS ? rows : ROWS;
    memset(scratch->most, 0, 2 * ROWS * (size_t)scratch->stride * sizeof(float));
    memset(self->energy + part * self->op->wavelet.scales, 0,
           (size_t)self->op->wavelet.scales * sizeof(uint64_t));
    for (int k = 0; k < count; k++) {
        if (self->values[k].row)
            make_between(self, scratch, k, first, rows);
        else // over its own sums, which a row does not need any more when it is made
            make_values(self, scratch, k, first, rows, scratch->bent, scratch->stride);
        for (int y = 0; y < rows; y++) {
            const float *w = scratch->bent + y * scratch->stride;
            show_row(self, scratch, k, y, w);
            keep_row(self, work, part, k, first + y, w);
        }
    }
    for (int y = 0; y < rows && work->to; y++)
        finish_row(self, scratch, work, y, first + y);
}

// Energies of the full frame, part after part.
static void run_energies(const struct wavelet *self, const struct full_frame_work *work)
{
    int count = self->op->wavelet.scales;
    for (int k = 0; k < count; k++) {
        double samples = (double)self->grid->width * self->grid->height;
        float step = self->grid->filter[k].step;
        uint64_t sum = 0;
        for (int part = 0; part < parts_of(self->grid->height); part++)
            sum += self->energy[part * count + k];
        ((double *)work->analysis)[k] = (double)sum / step / step / samples;
    }
}

static void run_part(struct wavelet *self, const struct scratch *scratch,
                     const struct full_frame_work *work, int phase, int part)
{
    switch (phase) {
    case SAMPLES:
        run_samples(self, work, part);
        break;
    case CELLS:
        run_cells(self, scratch, part);
        break;
    case VALUES:
        run_values(self, scratch, part);
        break;
    case RESULTS:
        run_results(self, scratch, work, part);
        break;
    default:
        run_energies(self, work);
    }
}

static void run(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands)
{
    struct wavelet *self = (struct wavelet *)full_frame;
    int count = parts(self, work, phase), end = full_frame_band_row(count, band + 1, bands);
    for (int part = full_frame_band_row(count, band, bands); part < end; part++)
        run_part(self, &self->scratch[band], work, phase, part);
}

enum status wavelet_create(const struct full_frame_request *request, struct full_frame **full_frame)
{
    const struct op *op = request->op;
    struct wavelet *self = calloc(1, sizeof *self);
    *full_frame = NULL;
    if (!self)
        return STATUS_MEMORY;
    size_t scales = (size_t)op->wavelet.scales, parts = (size_t)parts_of(request->height);
    self->base = (struct full_frame){PHASES, run, destroy};
    self->op = op;
    self->kernels = &request->rows->wavelet;
    self->bands = request->bands;
    self->values = calloc(scales, sizeof *self->values);
    self->scratch = calloc((size_t)request->bands, sizeof *self->scratch);
    self->energy = calloc(scales * parts, sizeof *self->energy);
    *full_frame = &self->base;
    if (self->values && self->scratch && self->energy &&
        !wavelet_grid_create(op, request->width, request->height, &self->grid) && make_room(self))
        return STATUS_OK;
    destroy(full_frame);
    return STATUS_MEMORY;
}
