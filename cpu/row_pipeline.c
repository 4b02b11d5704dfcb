#include "cpu/row_pipeline.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "cpu/row_level.h"

static const struct row_family *const stencils[OP_KINDS] = {
    [OP_SEPARABLE] = &rows_separable,
    [OP_BOX] = &rows_box,
    [OP_CONVOLVE] = &rows_convolve,
    [OP_GRADIENT] = &rows_gradient,
};

void *row_scratch_alloc(const struct row_pipeline *pipeline)
{
    return row_alloc(row_scratch_stride(pipeline) * (size_t)pipeline->rows->rows_at_once);
}

// ---- levels ----

void row_level_peek(const struct row_pipeline *pipeline, const struct op *op, int first, int count,
                    const void **row)
{
    const struct component *at;
    struct operand source = pipeline->pass->source[0];
    const uint8_t *top = row_operand(pipeline, source, 0, &at);
    ptrdiff_t stride = row_operand(pipeline, source, 1, &at) - top;
    for (int k = 0; k < count; k++) {
        int y = first + k;
        if (y < 0 || y >= pipeline->height)
            y = border_index(op->border, y, pipeline->height);
        row[k] = y < 0 ? pipeline->constant_row : top + y * stride;
    }
}

// Row y as it lies in memory, or limited in `to` where a sample is above its depth.
static const void *peek_row(const struct row_pipeline *pipeline, int y, void *to)
{
    const struct component *at;
    const void *from = row_operand(pipeline, pipeline->pass->source[0], y, &at);
    uint16_t above = (uint16_t)~max_sample(pipeline->pass->load_depth);
    if (!pipeline->rows->any_bit(from, above, pipeline->width))
        return from;
    row_load(pipeline, 0, y, to, pipeline->width);
    return to;
}

// Make row v of the extended result of the level below and, within the picture, those of the
// `count` from it on that are best made with it.
static void fill_window(struct row_pipeline *pipeline, int level, int v, int count)
{
    struct row_level *here = &pipeline->level[level];
    struct row_window *window = &here->window;
    const struct op *op = here->step->stencil;
    int most = v >= 0 && v < pipeline->height ? min_int(count, pipeline->height - v) : 1;
    void *row[MAX_ROWS_AT_ONCE] = {NULL};
    count = min_int(most, pipeline->rows->rows_at_once);
    for (int k = 0; k < count; k++) {
        int slot = row_window_slot(window, v + k);
        row[k] = row_window_memory(window, slot);
        window->pointer[slot] = row[k];
        window->row[slot] = v + k;
    }
    int y = border_index(op->border, v, pipeline->height);
    if (y < 0) {
        row_fill(row[0], here->bytes, pipeline->width, op->border_value);
    } else if (here->peeks) {
        for (int k = 0; k < count; k++)
            window->pointer[row_window_slot(window, v + k)] = peek_row(pipeline, y + k, row[k]);
        return;
    } else {
        row_level_make(pipeline, level - 1, y, count, row);
    }
    for (int k = 0; k < count; k++)
        row_parts_extend(pipeline, row[k], here->bytes, window->reach, op->border,
                         op->border_value);
}

void row_level_window(struct row_pipeline *pipeline, int level, int first, int count,
                      const void **row)
{
    struct row_window *window = &pipeline->level[level].window;
    if (!window->memory) {
        row_level_peek(pipeline, pipeline->level[level].step->stencil, first, count, row);
        return;
    }
    int slot = row_window_slot(window, first);
    for (int k = 0; k < count; k++) {
        if (window->row[slot] != first + k)
            fill_window(pipeline, level, first + k, count - k);
        row[k] = window->pointer[slot];
        slot = slot + 1 == window->rows ? 0 : slot + 1;
    }
}

// ---- results ----

static void store_row(struct row_pipeline *pipeline, const void *row, int y)
{
    const struct plan_pass *pass = pipeline->pass;
    int bytes = sample_bytes(pass->grid.depth);
    if (pipeline->parts.of_pixels) {
        row_parts_store(pipeline, row, y);
        return;
    }
    for (int t = 0; t < pass->targets; t++) {
        const struct component *at;
        uint8_t *to = (uint8_t *)row_operand(pipeline, pass->target[t], y, &at);
        pipeline->rows->store[bytes - 1](row, at, to, pipeline->width);
    }
}

// True if `operand` has rows of `width` samples without a gap between them.
static bool is_seamless(const struct row_pipeline *pipeline, struct operand operand, int bytes)
{
    const struct component *at;
    return row_operand(pipeline, operand, 1, &at) - row_operand(pipeline, operand, 0, &at) ==
           (ptrdiff_t)pipeline->width * bytes;
}

// A pointwise step from memory to memory, where rows follow each other: `rows` of them are made as
// one. What comes with a row takes a quarter of the time at 1920 columns, half of it at 480.
static bool makes_long_rows(const struct row_pipeline *pipeline, int rows)
{
    const struct plan_pass *pass = pipeline->pass;
    const struct component *at;
    return pipeline->levels == 2 && pipeline->direct && !pipeline->level[1].step->stencil &&
           is_seamless(pipeline, pass->source[0], pipeline->level[0].bytes) &&
           is_seamless(pipeline, pass->target[0], pipeline->level[1].bytes) &&
           (int64_t)pipeline->width * rows <= INT_MAX / 4 &&
           row_operand(pipeline, pass->source[0], 0, &at) !=
               row_operand(pipeline, pass->target[0], 0, &at);
}

void row_pipeline_run(struct row_pipeline *pipeline, const struct row_memory *memory, int first,
                      int last)
{
    const struct plan_pass *pass = pipeline->pass;
    pipeline->memory = memory;
    row_parts_resize(pipeline, memory->source->width);
    pipeline->height = subsampled(memory->source->height, pass->grid.shift_y);
    assert(pipeline->width <= pipeline->columns && first >= 0 && last <= pipeline->height);
    for (int k = 0; k < pipeline->levels; k++) {
        struct row_level *here = &pipeline->level[k];
        row_window_restart(&here->window);
        if (here->family->restart)
            here->family->restart(here->state);
    }
    if (pipeline->in_place && makes_long_rows(pipeline, last - first)) {
        const struct component *at;
        void *row = (void *)row_operand(pipeline, pass->target[0], first, &at);
        pipeline->width *= last - first;
        row_level_make(pipeline, 1, first, 1, &row);
        return;
    }
    // Without a stencil rows cost so little that they are best written one by one.
    int most = pass->halo_y > 0 ? pipeline->rows->rows_at_once : 1;
    for (int y = first; y < last; y += most) {
        const struct component *at;
        int count = min_int(most, last - y);
        void *row[MAX_ROWS_AT_ONCE];
        for (int k = 0; k < count; k++)
            row[k] = pipeline->in_place ? (void *)row_operand(pipeline, pass->target[0], y + k, &at)
                                        : row_scratch(pipeline, pipeline->spare, k);
        row_level_make(pipeline, pipeline->levels - 1, y, count, row);
        for (int k = 0; k < count && !pipeline->in_place; k++)
            store_row(pipeline, row[k], y + k);
    }
}

// ---- construction ----

bool row_pipeline_joins(const struct plan_step *stencil)
{
    const struct op *op = stencil->stencil;
    bool coarse =
        op->kind == OP_SEPARABLE && (op->separable.decimate_x || op->separable.decimate_y);
    return !coarse && !stencil->transform;
}

// The window of a stencil, which holds rows or only points at them.
static enum status init_window(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    const struct row_family *family = here->family;
    int reach = family->reads_along ? op_radius_x(here->step->stencil) : 0;
    bool direct = level == 1 && pipeline->direct && reach == 0;
    bool points = direct && !pipeline->loose;
    here->peeks = direct && pipeline->loose;
    return row_window_init(&here->window, family->window_rows(pipeline, here->step),
                           pipeline->columns, here->bytes, reach,
                           points ? WINDOW_POINTS : pipeline->windows);
}

static enum status init_family(struct row_pipeline *pipeline, int level)
{
    const struct row_family *family = pipeline->level[level].family;
    return family->init ? family->init(pipeline, level) : STATUS_OK;
}

static enum status init_step(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    here->step = &pipeline->pass->step[level - 1];
    here->bytes = sample_bytes(here->step->depth_out);
    const struct op *op = here->step->stencil;
    here->family = op ? stencils[op->kind] : &rows_pointwise;
    assert(here->family);
    if (op && init_window(pipeline, level))
        return STATUS_MEMORY;
    return init_family(pipeline, level);
}

static enum status init_levels(struct row_pipeline *pipeline)
{
    struct row_level *load = &pipeline->level[0];
    load->bytes = sample_bytes(pipeline->pass->load_depth);
    load->family = pipeline->pass->mix ? &rows_mix : &rows_load;
    enum status status = init_family(pipeline, 0);
    for (int k = 1; k < pipeline->levels && !status; k++)
        status = init_step(pipeline, k);
    return status;
}

// A row of the border value of the first stencil, for windows that only point.
static enum status init_constant_row(struct row_pipeline *pipeline)
{
    const struct plan_step *step = pipeline->levels > 1 ? pipeline->level[1].step : NULL;
    void *row = row_alloc((size_t)pipeline->columns * 2);
    if (!row)
        return STATUS_MEMORY;
    if (step && step->stencil)
        row_fill(row, sample_bytes(step->depth_in), pipeline->columns, step->stencil->border_value);
    pipeline->constant_row = row;
    return STATUS_OK;
}

static enum status create(const struct plan *plan, const struct plan_pass *pass, int width,
                          const struct row_kernels *rows, enum row_window_use windows,
                          struct row_pipeline **pipeline)
{
    assert(!pass->full_frame && width > 0);
    struct row_pipeline *made = *pipeline = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->plan = plan;
    made->pass = pass;
    made->rows = rows;
    made->windows = windows;
    made->picture_columns = width;
    made->levels = pass->steps + 1;
    enum status status = row_parts_init(made);
    bool of_pixels = made->parts.of_pixels;
    made->direct =
        !of_pixels && !pass->mix && plan_is_plain(plan, pass->source[0], pass->load_depth);
    made->loose = row_is_loose(made, pass->source[0]);
    made->in_place =
        !of_pixels && pass->targets == 1 && plan_is_plain(plan, pass->target[0], pass->grid.depth);
    made->level = calloc((size_t)made->levels, sizeof *made->level);
    made->spare = row_scratch_alloc(made);
    if (!status && made->level && made->spare && !init_levels(made) && !init_constant_row(made))
        return STATUS_OK;
    row_pipeline_destroy(pipeline);
    return STATUS_MEMORY;
}

enum status row_pipeline_create(const struct plan *plan, const struct plan_pass *pass, int width,
                                const struct row_kernels *rows, struct row_pipeline **pipeline)
{
    return create(plan, pass, width, rows, WINDOW_HOLDS, pipeline);
}

enum status row_pipeline_measure(const struct plan *plan, const struct plan_pass *pass, int width,
                                 const struct row_kernels *rows, size_t *bytes)
{
    struct row_pipeline *measured;
    enum status status = create(plan, pass, width, rows, WINDOW_MEASURES, &measured);
    *bytes = status ? 0 : row_pipeline_bytes(measured);
    row_pipeline_destroy(&measured);
    return status;
}

void row_pipeline_destroy(struct row_pipeline **pipeline)
{
    struct row_pipeline *old = *pipeline;
    if (!old)
        return;
    for (int k = 0; old->level && k < old->levels; k++) {
        struct row_level *level = &old->level[k];
        row_window_finish(&level->window);
        if (level->state)
            level->family->finish(level->state);
    }
    row_parts_finish(&old->parts);
    free(old->level);
    free(old->spare);
    free((void *)old->constant_row);
    free(old);
    *pipeline = NULL;
}

size_t row_pipeline_bytes(const struct row_pipeline *pipeline)
{
    size_t bytes = sizeof *pipeline;
    for (int k = 0; k < pipeline->levels; k++) {
        const struct row_level *here = &pipeline->level[k];
        bytes += row_window_bytes(&here->window);
        if (here->family->bytes)
            bytes += here->family->bytes(pipeline, here->state);
    }
    return bytes;
}
