// OP_WAVELET: places in scratch memory, tables in constant memory, arguments of kernels.
#include "kernels/full_frame/wavelet.cuh"

#include <stdlib.h>
#include <string.h>

#include "kernels/op_kernels.h"

// Zeros that tiles read beyond the cells.
enum { PAD_ROWS = 64, PAD_COLUMNS = WIDE + 64 };

// Blocks that fill a large GPU a few times over.
enum { BLOCKS_ENOUGH = 640 };

// ---- where things are ----

static struct reals take_plane(struct layout *layout, int columns, int rows)
{
    struct reals plane = {layout->floats, up(columns, PLACE), rows};
    layout->floats += (size_t)plane.stride * (size_t)rows;
    return plane;
}

static size_t take_table(struct layout *layout, size_t bytes)
{
    size_t place = layout->bytes;
    layout->bytes += (bytes + 255) / 256 * 256;
    return place;
}

// How many inner cells of a column are made at a time.
static int cells_together(int decimate)
{
    return decimate <= OWN_LINE_LOG ? OWN_CELLS : decimate <= LINE_LOG ? LINE_CELLS : 1;
}

static void lay_out_level(struct layout *layout, const struct wavelet_grid *grid, int number,
                          int *cells)
{
    const struct wavelet_level *from = &grid->level[number];
    struct level *level = &layout->level[number];
    int inner = from->y.inners;
    *level = {from->decimate, from->margin,  from->columns, from->rows,
              from->x.cells,  from->y.cells, *cells,        *cells + from->x.cells};
    *cells += from->x.cells + from->y.cells;
    // The first cell that the picture itself stands in lies at a multiple of four.
    size_t aside = number ? 0 : (size_t)(-from->margin & (VEC4 - 1));
    level->cells = take_plane(layout, level->cells_x + PAD_COLUMNS, level->cells_y + PAD_ROWS);
    level->cells.place += aside;
    if (!number) {
        layout->floats += VEC4;
        layout->floats = (layout->floats + PLACE - 1) / PLACE * PLACE;
        return;
    }
    level->inner = from->x.inner;
    level->inners = from->x.inners;
    level->lines = take_plane(layout, grid->width, level->cells_y);
    layout->rows += divided(level->cells.rows, WARPS) *
                    divided(level->cells.stride, cells_of_warp(level->decimate));
    int lines = divided(inner, cells_together(level->decimate)) + level->cells_y - inner;
    layout->lines += lines;
    layout->shared_lines += level->decimate <= OWN_LINE_LOG ? 0 : lines;
}

static void lay_out_filter(struct layout *layout, const struct wavelet_grid *grid, int number)
{
    struct filter *filter = &layout->filter[number];
    *filter = {grid->filter[number].level, grid->filter[number].radius};
    const struct level *level = &layout->level[filter->level];
    int *max_radius = filter->level ? &layout->coarse_radius : &layout->direct_radius;
    *max_radius = filter->radius > *max_radius ? filter->radius : *max_radius;
    if (!filter->level)
        return;
    filter->decimate = level->decimate;
    filter->values = take_plane(layout, up(level->columns, WIDE) + 64, level->rows + PAD_ROWS);
}

static int count_tiles(const struct layout *layout, int columns)
{
    int tiles = 0;
    for (int k = 0; k < layout->filters; k++) {
        const struct level *level = &layout->level[layout->filter[k].level];
        if (layout->filter[k].level)
            tiles += divided(level->columns, columns) * divided(level->rows, TILE_ROWS);
    }
    return tiles;
}

static void put_in_order(struct layout *layout)
{
    int count = 0;
    for (int l = 0; l < layout->levels; l++) {
        layout->level[l].first = count;
        for (int k = 0; k < layout->filters; k++)
            if (layout->filter[k].level == l)
                layout->order[count++] = k;
        layout->level[l].scales = count - layout->level[l].first;
    }
    layout->direct = layout->level[0].scales;
    layout->coarse = layout->filters - layout->direct;
}

static void lay_out_results(struct layout *layout, const struct op_wavelet *op)
{
    int bands = divided(layout->height, TILE_ROWS);
    bool is_wide = divided(layout->width, WIDE) * bands >= BLOCKS_ENOUGH;
    layout->direct_columns = is_wide ? WIDE : NARROW;
    layout->direct_blocks = divided(layout->width, layout->direct_columns) * bands;
    layout->tile_columns = count_tiles(layout, WIDE) >= BLOCKS_ENOUGH ? WIDE : NARROW;
    layout->tiles = count_tiles(layout, layout->tile_columns);
    layout->spline_blocks =
        divided(layout->width, SPLINE_COLUMNS) * divided(layout->height, SPLINE_ROWS);
    int rows = layout->direct ? layout->height : 0;
    layout->shown = take_plane(layout, up(layout->width, WIDE), rows);
    layout->winner =
        take_plane(layout, up(layout->width, WIDE), op->show == WAVELET_SHOW_SCALE ? rows : 0);
    layout->energy = layout->floats;
    layout->spline_sums = layout->spline_blocks * (SPLINE_COLUMNS / WARP);
    layout->floats +=
        2 * (size_t)(layout->direct_blocks + layout->spline_sums) * (size_t)layout->filters;
}

static void lay_out(struct layout *layout, const struct op *op, int width, int height)
{
    struct wavelet_grid grid;
    int cells = 0;
    wavelet_grid_outline(op, width, height, &grid);
    *layout = {width, height, grid.filters, grid.levels};
    for (int k = 0; k < grid.levels; k++)
        lay_out_level(layout, &grid, k, &cells);
    for (int k = 0; k < grid.filters; k++)
        lay_out_filter(layout, &grid, k);
    put_in_order(layout);
    lay_out_results(layout, &op->wavelet);
    layout->level_table = take_table(layout, sizeof layout->level);
    layout->filter_table = take_table(layout, sizeof layout->filter);
    layout->order_table = take_table(layout, sizeof layout->order);
    layout->band_table = take_table(layout, (size_t)layout->coarse * sizeof(struct band));
    layout->line_table = take_table(layout, (size_t)layout->lines * sizeof(struct line));
    layout->tile_table = take_table(layout, (size_t)layout->tiles * sizeof(struct tile));
    layout->row_table = take_table(layout, (size_t)layout->rows * sizeof(struct tile));
    layout->cell_table = take_table(layout, (size_t)cells * sizeof(struct wavelet_cell));
    layout->tap_table = layout->bytes; // as many as the grid has, and the splines
}

// ---- tables ----

static void put_cells(struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    struct wavelet_cell *cell = (struct wavelet_cell *)(to + layout->cell_table);
    for (int k = 0; k < grid->levels; k++) {
        const struct wavelet_level *level = &grid->level[k];
        memcpy(cell + layout->level[k].cell_x, level->x.cell,
               (size_t)level->x.cells * sizeof *cell);
        memcpy(cell + layout->level[k].cell_y, level->y.cell,
               (size_t)level->y.cells * sizeof *cell);
    }
}

static struct line line_of(const struct layout *layout, const struct wavelet_grid *grid, int number,
                           int first, int count)
{
    const struct level *level = &layout->level[number];
    const struct wavelet_cell *cell = &grid->level[number].y.cell[first];
    return {cell->first,
            cell->count + ((count - 1) << level->decimate),
            count > 1 ? level->together : cell->tap,
            count,
            level->lines.place + (size_t)first * (size_t)level->lines.stride,
            level->lines.stride};
}

// Large cells first: they take longest.
static void put_lines(const struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    struct line *line = (struct line *)(to + layout->line_table);
    for (int k = grid->levels - 1; k > 0; k--) {
        const struct wavelet_level *level = &grid->level[k];
        int first = level->y.inner, inner = level->y.inners;
        for (int c = 0; c < level->y.cells; c++)
            if (!inner || c < first || c >= first + inner)
                *line++ = line_of(layout, grid, k, c, 1);
        int step = cells_together(level->decimate);
        for (int c = 0; c < inner; c += step)
            *line++ = line_of(layout, grid, k, first + c, inner - c < step ? inner - c : step);
    }
}

static void put_rows(const struct layout *layout, uint8_t *to)
{
    struct tile *tile = (struct tile *)(to + layout->row_table);
    for (int k = layout->levels - 1; k > 0; k--) {
        const struct reals *cells = &layout->level[k].cells;
        for (int y = 0; y < cells->rows; y += WARPS)
            for (int x = 0; x < cells->stride; x += cells_of_warp(layout->level[k].decimate))
                *tile++ = {k, x, y};
    }
}

static void put_tiles(const struct layout *layout, uint8_t *to)
{
    struct tile *tile = (struct tile *)(to + layout->tile_table);
    for (int n = layout->direct; n < layout->filters; n++) {
        int k = layout->order[n];
        const struct level *level = &layout->level[layout->filter[k].level];
        for (int y = 0; y < level->rows; y += TILE_ROWS)
            for (int x = 0; x < level->columns; x += layout->tile_columns)
                *tile++ = {k, x, y};
    }
}

static void put_bands(const struct layout *layout, uint8_t *to)
{
    struct band *band = (struct band *)(to + layout->band_table);
    for (int n = layout->direct; n < layout->filters; n++) {
        const struct filter *filter = &layout->filter[layout->order[n]];
        *band++ = {layout->order[n], filter->level, (unsigned)(filter->values.place / PLACE),
                   filter->step};
    }
}

// The taps that cells made together have for each row that any of them reads, and zeros for rows
// before and behind, as threads that make them alone take whole steps of rows.
static size_t together_of(const struct wavelet_level *level)
{
    size_t d = (size_t)1 << level->decimate, cells = (size_t)cells_together(level->decimate);
    return cells > 1 ? (2 * WARPS + 2 * WAVELET_REACH * d + 1 + (cells - 1) * d) * cells : 0;
}

static void put_together(const struct wavelet_level *level, const float *tap, float *to)
{
    int d = 1 << level->decimate, count = 2 * WAVELET_REACH * d + 1;
    int cells = cells_together(level->decimate);
    for (size_t n = 0; n < together_of(level); n++) {
        int k = (int)n / cells - WARPS - (int)n % cells * d;
        to[n] = k >= 0 && k < count ? tap[k] : 0;
    }
}

// Whether any of a warp's cells of a row has taps of its own, D being small enough for a lane each.
static bool is_edge(const struct wavelet_level *level, int x)
{
    const struct wavelet_axis *axis = &level->x;
    return level->decimate <= OWN_LOG && (x < axis->inner || x + WARP > axis->inner + axis->inners);
}

// The most taps of a warp's cells.
static int taps_of_warp(const struct wavelet_axis *axis, int x)
{
    int most = 0;
    for (int n = x; n < x + WARP && n < axis->cells; n++)
        most = axis->cell[n].count > most ? axis->cell[n].count : most;
    return most;
}

static size_t edges_of(const struct wavelet_level *level)
{
    size_t taps = 0;
    for (int x = 0; x < level->x.cells; x += WARP)
        if (is_edge(level, x))
            taps += (size_t)WARP * (size_t)taps_of_warp(&level->x, x);
    return taps;
}

// Taps of such cells, those of a warp's lanes side by side, as each lane's own would lie in another
// line of the cache. `cell` is the table's, which learns where they are. Returns the place behind.
static int put_edges(const struct wavelet_level *level, const float *tap, struct wavelet_cell *cell,
                     float *to, int place)
{
    for (int x = 0; x < level->x.cells; x += WARP) {
        if (!is_edge(level, x))
            continue;
        size_t taps = (size_t)WARP * (size_t)taps_of_warp(&level->x, x);
        memset(to + place, 0, taps * sizeof *to);
        for (int n = 0; n < WARP && x + n < level->x.cells; n++) {
            for (int k = 0; k < cell[x + n].count; k++)
                to[place + k * WARP + n] = tap[cell[x + n].tap + k];
            cell[x + n].tap = place + n;
        }
        place += (int)taps;
    }
    return place;
}

// Behind put_cells().
static void put_taps(struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    struct wavelet_cell *cell = (struct wavelet_cell *)(to + layout->cell_table);
    float *tap = (float *)(to + layout->tap_table);
    int place = grid->taps;
    memcpy(tap, grid->tap, (size_t)grid->taps * sizeof *tap);
    for (int k = 1; k < grid->levels; k++) {
        const struct wavelet_level *level = &grid->level[k];
        memcpy(tap + place, level->spline, WAVELET_SPLINE * (size_t)level->period * sizeof *tap);
        layout->level[k].spline = place;
        layout->level[k].period = level->period;
        place += WAVELET_SPLINE * level->period;
        layout->level[k].together = place + WARPS * cells_together(level->decimate);
        put_together(level, grid->tap + level->prefilter, tap + place);
        place += (int)together_of(level);
        place = put_edges(level, grid->tap, cell + layout->level[k].cell_x, tap, place);
    }
    for (int k = 0; k < grid->filters; k++) {
        layout->filter[k].smooth = grid->filter[k].smooth;
        layout->filter[k].bent = grid->filter[k].bent;
        layout->filter[k].step = grid->filter[k].step;
        layout->filter[k].spline = layout->level[layout->filter[k].level].spline;
        layout->filter[k].period = layout->level[layout->filter[k].level].period;
    }
}

static size_t tap_bytes(const struct wavelet_grid *grid)
{
    size_t taps = (size_t)grid->taps;
    for (int k = 1; k < grid->levels; k++)
        taps += WAVELET_SPLINE * (size_t)grid->level[k].period + together_of(&grid->level[k]) +
                edges_of(&grid->level[k]);
    return taps * sizeof(float);
}

// All tables, at `to`, which may be NULL. Returns their bytes; 0: there is no memory.
static size_t put_tables(const struct op *op, int width, int height, void *to)
{
    struct layout *layout = (struct layout *)malloc(sizeof *layout);
    struct wavelet_grid *grid = NULL;
    size_t bytes = 0;
    if (layout && !wavelet_grid_create(op, width, height, &grid)) {
        lay_out(layout, op, width, height);
        bytes = layout->bytes + tap_bytes(grid);
    }
    if (bytes && to) {
        put_cells(layout, grid, (uint8_t *)to);
        put_rows(layout, (uint8_t *)to);
        put_tiles(layout, (uint8_t *)to);
        put_taps(layout, grid, (uint8_t *)to);
        put_lines(layout, grid, (uint8_t *)to);
        put_bands(layout, (uint8_t *)to);
        memcpy((uint8_t *)to + layout->level_table, layout->level, sizeof layout->level);
        memcpy((uint8_t *)to + layout->filter_table, layout->filter, sizeof layout->filter);
        memcpy((uint8_t *)to + layout->order_table, layout->order, sizeof layout->order);
    }
    wavelet_grid_destroy(&grid);
    free(layout);
    return bytes;
}

static size_t wavelet_scratch(const struct op_use *use)
{
    struct layout layout;
    lay_out(&layout, use->op, use->width, use->height);
    return layout.floats * sizeof(float);
}

// ---- a frame ----

// All scales that have a grid, or the first of all alone, if it is one of them.
static void choose_bands(struct wavelet *w, const struct layout *layout, const struct band *band)
{
    w->band = band;
    w->bands = w->limit == 1 ? 0 : layout->coarse;
    for (int n = 0; n < layout->coarse; n++)
        if (w->limit == 1 && layout->order[layout->direct + n] == 0) {
            w->band = band + n;
            w->bands = 1;
        }
}

static struct wavelet kernel_arguments(const struct full_frame *frame, const struct layout *layout)
{
    const struct op_wavelet *op = &frame->op->wavelet;
    const uint8_t *tables = (const uint8_t *)frame->constants;
    float *scratch = (float *)frame->scratch;
    bool one = op->show == WAVELET_ABS || op->show == WAVELET_SIGNED;
    struct wavelet w = {};
    w.level = (const struct level *)(tables + layout->level_table);
    w.filter = (const struct filter *)(tables + layout->filter_table);
    w.order = (const int *)(tables + layout->order_table);
    w.line = (const struct line *)(tables + layout->line_table);
    w.tile = (const struct tile *)(tables + layout->tile_table);
    w.row = (const struct tile *)(tables + layout->row_table);
    w.cell = (const struct wavelet_cell *)(tables + layout->cell_table);
    w.tap = (const float *)(tables + layout->tap_table);
    w.scratch = scratch;
    w.width = layout->width;
    w.height = layout->height;
    w.filters = layout->filters;
    w.levels = layout->levels;
    w.lines = layout->lines;
    w.shared_lines = layout->shared_lines;
    w.limit = one && !frame->analysis_is_wanted ? 1 : layout->filters;
    choose_bands(&w, layout, (const struct band *)(tables + layout->band_table));
    w.direct_radius = layout->direct_radius;
    w.coarse_radius = layout->coarse_radius;
    w.shown = layout->shown;
    w.winner = layout->winner;
    w.energy = (unsigned long long *)(scratch + layout->energy);
    w.spline_energy = w.energy + (size_t)layout->direct_blocks * layout->filters;
    w.from = frame->from;
    w.from_stride = frame->from_stride;
    w.max = max_sample(frame->depth);
    w.black = (float)op->black;
    w.is_whole = op->black >= 0 && op->black < 65536 && op->black == (double)(int)op->black;
    w.to = frame->to;
    w.to_stride = frame->to_stride;
    w.gain = (float)op->gain;
    w.middle = op->show == WAVELET_SIGNED ? (float)op->high / 2 : 0;
    w.high = op->high;
    w.analysis = frame->analysis_is_wanted ? (double *)frame->analysis : NULL;
    w.bytes = frame->depth > 8 ? 2 : 1;
    w.run = wavelet_cells_run(layout);
    return w;
}

static cudaError_t wavelet_async(const struct full_frame *frame, cudaStream_t stream)
{
    if (!frame->constants)
        return cudaErrorMemoryAllocation;
    struct layout layout;
    lay_out(&layout, frame->op, frame->width, frame->height);
    struct wavelet w = kernel_arguments(frame, &layout);
    cudaError_t error = wavelet_cells_async(&w, &layout, stream);
    return error ? error : wavelet_bands_async(&w, &layout, &frame->op->wavelet, stream);
}

static void wavelet_constants(const struct op_use *use, struct constants *memory,
                              struct op_constants *to)
{
    void *host = NULL;
    size_t bytes = put_tables(use->op, use->width, use->height, NULL);
    if (bytes)
        to->full_frame = constants_take(memory, bytes, &host);
    if (bytes && host)
        put_tables(use->op, use->width, use->height, host);
}

const struct op_kernels wavelet_kernels = {
    .kind = OP_WAVELET,
    .constants = wavelet_constants,
    .scratch = wavelet_scratch,
    .full_frame_async = wavelet_async,
    .launches = true,
};
