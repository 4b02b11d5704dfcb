// OP_SEPARABLE: columns, then rows, on the picture's grid or a coarser one.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/row_level.h"

struct separable_state {
    struct row_taps taps_x, taps_y;
    int16_t *lines;        // of both
    const void **pointers; // to the rows that are filtered, and to as many again as are made
    int first;             // of the rows in t; INT_MIN: none
    int16_t *memory;       // of t
    int16_t *t[MAX_VERTICAL_ROWS]; // less the bias, as many as are made at once
    uint16_t *blurred;             // what sharpening starts from

    // ---- on a coarser grid ----
    bool coarse;
    struct row_window grid;        // c, 16 bits
    struct row_window coarse_rows; // u, two rows
    uint32_t *sum;
};

static bool is_coarse(const struct op_separable *f)
{
    return f->decimate_x || f->decimate_y;
}

static int window_rows(const struct row_pipeline *pipeline, const struct plan_step *step)
{
    const struct op_separable *f = &step->stencil->separable;
    return is_coarse(f) ? 2 << f->decimate_y : 2 * f->radius_y + pipeline->rows->vertical_rows;
}

// Rows that a vertical filter reads: of the window of the level below, or of the coarse grid.
typedef void row_source(struct row_pipeline *pipeline, int level, int first, int count,
                        const void **row);

// t of OP_SEPARABLE for row y of a plane of `columns`, not extended. Rows are made several at once.
static int16_t *column_row(struct row_pipeline *pipeline, int level, int y, row_source *source,
                           int columns)
{
    const struct row_level *here = &pipeline->level[level];
    const struct op_separable *f = &here->step->stencil->separable;
    struct separable_state *state = here->state;
    bool coarse = state->coarse;
    int count = pipeline->rows->vertical_rows, b = coarse ? 1 : here->bytes - 1;
    if (y >= state->first && y - count < state->first)
        return state->t[y - state->first];
    int needed = 2 * f->radius_y + count;
    source(pipeline, level, y - f->radius_y, needed, state->pointers);
    for (int k = 0; k < count; k++)
        state->pointers[needed + k] = state->pointers[needed - 1];
    if (!coarse && (!here->window.memory || (level == 1 && pipeline->parts.of_pixels)))
        row_level_peek(pipeline, here->step->stencil, y + f->radius_y + count, count,
                       state->pointers + needed);
    pipeline->rows->vertical[b](state->pointers, &state->taps_y,
                                coarse ? f->bits : f->bits - f->fraction, state->t, columns);
    state->first = y;
    return state->t[0];
}

static void make_separable(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    const struct op *op = here->step->stencil;
    const struct op_separable *f = &op->separable;
    const struct row_kernels *rows = pipeline->rows;
    struct separable_state *state = here->state;
    int b = here->bytes - 1, width = pipeline->width, depth = here->step->depth_in;
    int16_t *t = column_row(pipeline, level, y, row_level_window, width);
    row_parts_extend(pipeline, t, 2, f->radius_x, op->border,
                     (op->border_value << f->fraction) - state->taps_x.bias);
    if (!f->amount) {
        rows->horizontal[b](t, &state->taps_x, f->bits + f->fraction, to, width);
        return;
    }
    rows->horizontal[1](t, &state->taps_x, f->bits + f->fraction - (16 - depth), state->blurred,
                        width);
    rows->sharpen[b](state->blurred, f, depth, row_level_below(pipeline, level, y), to, width);
}

static int last_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d;
}

// Columns of the grid, from -radius_x to radius_x beyond the last one of the picture.
static int grid_columns(const struct row_pipeline *pipeline, const struct op_separable *f)
{
    return last_on_grid(pipeline->width, f->decimate_x) + 2 * f->radius_x + 1;
}

// Row n of the grid: tents around picture row n D. Its window begins at grid column -radius_x.
static const void *coarse_row(struct row_pipeline *pipeline, int level, int n)
{
    const struct row_level *here = &pipeline->level[level];
    struct separable_state *state = here->state;
    const struct op *op = here->step->stencil;
    const struct op_separable *f = &op->separable;
    int columns = grid_columns(pipeline, f);
    struct row_window *grid = &state->grid;
    int slot = row_window_slot(grid, n), dy = 1 << f->decimate_y, width = pipeline->width;
    uint16_t *to = row_window_memory(grid, slot);
    if (grid->row[slot] == n)
        return to;
    grid->row[slot] = n;
    // Columns from (-radius_x - 1) D on, which tent_finish() reads, to beyond the last one's tent.
    int apron = (f->radius_x + 1) << f->decimate_x;
    int reach = ((columns + 1) << f->decimate_x) - apron;
    uint32_t *sum = state->sum + apron;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int b = 1 - dy; b < dy; b++)
        pipeline->rows->tent_add[here->bytes - 1](row_level_below(pipeline, level, n * dy + b),
                                                  (uint32_t)(dy - abs(b)), sum, width);
    uint32_t beyond = (uint32_t)op->border_value * (uint32_t)(dy * dy);
    row_extend_sums(sum, width, apron, reach - width, op->border, beyond);
    pipeline->rows->tent_finish(state->sum, f->decimate_x, f->fraction,
                                2 * (f->decimate_x + f->decimate_y), to, columns);
    return to;
}

static void coarse_rows(struct row_pipeline *pipeline, int level, int first, int count,
                        const void **row)
{
    for (int k = 0; k < count; k++)
        row[k] = coarse_row(pipeline, level, first + k);
}

// Row n of u, columns 0 to last_x.
static const uint16_t *blurred_row(struct row_pipeline *pipeline, int level, int n)
{
    const struct row_level *here = &pipeline->level[level];
    struct separable_state *state = here->state;
    const struct op_separable *f = &here->step->stencil->separable;
    struct row_window *blurred = &state->coarse_rows;
    int slot = row_window_slot(blurred, n);
    uint16_t *to = row_window_memory(blurred, slot);
    if (blurred->row[slot] == n)
        return to;
    blurred->row[slot] = n;
    const int16_t *t = column_row(pipeline, level, n, coarse_rows, grid_columns(pipeline, f));
    pipeline->rows->horizontal[1](t + f->radius_x, &state->taps_x, f->bits, to,
                                  last_on_grid(pipeline->width, f->decimate_x) + 1);
    return to;
}

static void make_coarse(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    struct separable_state *state = here->state;
    const struct op_separable *f = &here->step->stencil->separable;
    const struct row_kernels *rows = pipeline->rows;
    int n = y >> f->decimate_y, dy = 1 << f->decimate_y, fy = y & (dy - 1);
    int b = here->bytes - 1, width = pipeline->width, depth = here->step->depth_in;
    const uint16_t *above = blurred_row(pipeline, level, n);
    const uint16_t *below = fy ? blurred_row(pipeline, level, n + 1) : above;
    uint32_t *blended = state->sum;
    rows->blend(above, below, (uint32_t)(dy - fy), (uint32_t)fy, blended,
                last_on_grid(width, f->decimate_x) + 1);
    int shift = f->fraction + f->decimate_x + f->decimate_y;
    if (!f->amount) {
        rows->interpolate[b](blended, f->decimate_x, shift, to, width);
        return;
    }
    uint16_t *blurred = state->blurred;
    rows->interpolate[1](blended, f->decimate_x, shift - (16 - depth), blurred, width);
    rows->sharpen[b](blurred, f, depth, row_level_below(pipeline, level, y), to, width);
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    const struct separable_state *state = pipeline->level[level].state;
    for (int k = 0; k < count; k++)
        if (state->coarse)
            make_coarse(pipeline, level, y + k, to[k]);
        else
            make_separable(pipeline, level, y + k, to[k]);
}

// ---- construction ----

// Lay the taps out as a line, where they fit. Returns the end of its memory.
static int16_t *init_taps(struct row_taps *taps, const int32_t *tap, int radius, int bits, int bias,
                          int16_t *line)
{
    *taps = (struct row_taps){.tap = tap, .radius = radius, .bits = bits, .bias = bias};
    taps->sum = 1 << bits;
    line += ROW_TAPS_MARGIN;
    for (int k = -radius; k <= radius && bits <= 15; k++)
        line[radius + k] = (int16_t)tap[abs(k)];
    if (bits <= 15 && tap[0] <= INT16_MAX)
        taps->line = line;
    return line + 2 * radius + 1 + ROW_TAPS_MARGIN;
}

// `columns` of t, with `apron` samples on both sides and room for kernels that read whole vectors.
static enum status init_columns(struct row_pipeline *pipeline, const struct row_level *here,
                                int columns, size_t apron)
{
    const struct op_separable *f = &here->step->stencil->separable;
    struct separable_state *state = here->state;
    size_t taps = 2 * (size_t)(f->radius_x + f->radius_y + 1 + 2 * ROW_TAPS_MARGIN);
    size_t stride = row_aligned(((size_t)columns + 2 * apron + 1) * sizeof(int16_t));
    int rows = pipeline->rows->vertical_rows;
    state->lines = row_alloc(taps * sizeof(int16_t));
    state->blurred = row_alloc((size_t)pipeline->columns * sizeof(uint16_t));
    state->memory = row_alloc(stride * (size_t)rows);
    if (!state->lines || !state->blurred || !state->memory)
        return STATUS_MEMORY;
    for (int k = 0; k < rows; k++)
        state->t[k] = (int16_t *)((uint8_t *)state->memory + (size_t)k * stride) + apron;
    int bias = state->coarse || here->step->depth_in + f->fraction > 14 ? 32768 : 0;
    int16_t *rest = init_taps(&state->taps_x, f->tap_x, f->radius_x, f->bits, bias, state->lines);
    init_taps(&state->taps_y, f->tap_y, f->radius_y, f->bits, bias, rest);
    return STATUS_OK;
}

static enum status init_separable(struct row_pipeline *pipeline, const struct row_level *here)
{
    const struct op_separable *f = &here->step->stencil->separable;
    return init_columns(pipeline, here, pipeline->columns, row_aligned((size_t)f->radius_x));
}

static enum status init_coarse(struct row_pipeline *pipeline, const struct row_level *here)
{
    struct separable_state *state = here->state;
    const struct op_separable *f = &here->step->stencil->separable;
    int columns = last_on_grid(pipeline->columns, f->decimate_x) + 2 * f->radius_x + 1;
    size_t sums = ((size_t)columns + 2) << f->decimate_x;
    if (sums < (size_t)pipeline->columns)
        sums = (size_t)pipeline->columns;
    sums += (size_t)(f->radius_x + 1) << f->decimate_x;
    state->sum = row_alloc(sums * sizeof *state->sum);
    if (!state->sum)
        return STATUS_MEMORY;
    int rows = 2 * f->radius_y + pipeline->rows->vertical_rows;
    enum status status = row_window_init(&state->grid, rows, columns, 2, 0, pipeline->windows);
    if (!status)
        status = row_window_init(&state->coarse_rows, 2, columns, 2, 0, pipeline->windows);
    return status ? status : init_columns(pipeline, here, columns, 0);
}

static enum status init(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    const struct op_separable *f = &here->step->stencil->separable;
    size_t pointers = 2 * (size_t)(f->radius_y + pipeline->rows->vertical_rows);
    struct separable_state *state = here->state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->coarse = is_coarse(f);
    state->pointers = malloc(pointers * sizeof *state->pointers);
    if (!state->pointers)
        return STATUS_MEMORY;
    return state->coarse ? init_coarse(pipeline, here) : init_separable(pipeline, here);
}

static void restart(void *state_)
{
    struct separable_state *state = state_;
    state->first = INT_MIN;
    row_window_restart(&state->grid);
    row_window_restart(&state->coarse_rows);
}

static void finish(void *state_)
{
    struct separable_state *state = state_;
    row_window_finish(&state->grid);
    row_window_finish(&state->coarse_rows);
    free(state->lines);
    free(state->pointers);
    free(state->memory);
    free(state->blurred);
    free(state->sum);
    free(state);
}

static size_t bytes(const struct row_pipeline *pipeline, const void *state_)
{
    const struct separable_state *state = state_;
    (void)pipeline;
    return row_window_bytes(&state->grid) + row_window_bytes(&state->coarse_rows);
}

const struct row_family rows_separable = {.window_rows = window_rows,
                                          .init = init,
                                          .finish = finish,
                                          .restart = restart,
                                          .make = make,
                                          .bytes = bytes};
