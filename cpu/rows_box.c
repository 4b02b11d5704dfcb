// OP_BOX: sums of columns that slide down, and sums of those that slide along.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/row_level.h"

struct box_state {
    // Sums of columns, `apron` on both sides: 32 bits, or 16 less BOX_BIAS.
    bool narrow;
    uint32_t *sum;
    int16_t *sum16;
    size_t apron;
    int row; // that they are for; INT_MIN: none
    uint8_t *zeros;
};

static int window_rows(const struct row_pipeline *pipeline, const struct plan_step *step)
{
    (void)pipeline;
    return 2 * step->stencil->box.radius_y + 2;
}

// Sums of the columns around row y, from those of the row before where these are known.
static void slide_sums(struct row_pipeline *pipeline, int level, int y)
{
    const struct row_level *here = &pipeline->level[level];
    struct box_state *state = here->state;
    int ry = here->step->stencil->box.radius_y, width = pipeline->width;
    uint32_t *sum = state->sum + state->apron;
    void (*slide)(const void *, const void *, uint32_t *, int) =
        pipeline->rows->box_slide[here->bytes - 1];
    if (state->row == y - 1) {
        const void *leaving = row_level_below(pipeline, level, y - ry - 1);
        slide(row_level_below(pipeline, level, y + ry), leaving, sum, width);
        return;
    }
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int v = y - ry; v <= y + ry; v++)
        slide(row_level_below(pipeline, level, v), NULL, sum, width);
}

static void slide_narrow(struct row_pipeline *pipeline, int level, int y)
{
    const struct row_level *here = &pipeline->level[level];
    const struct box_state *state = here->state;
    const struct row_kernels *rows = pipeline->rows;
    int ry = here->step->stencil->box.radius_y, width = pipeline->width;
    int16_t *sum = state->sum16 + state->apron;
    if (state->row == y - 1) {
        const void *leaving = row_level_below(pipeline, level, y - ry - 1);
        rows->box_slide_narrow(row_level_below(pipeline, level, y + ry), leaving, sum, width);
        return;
    }
    row_fill(sum, 2, width, -BOX_BIAS);
    for (int v = y - ry; v <= y + ry; v++)
        rows->box_slide_narrow(row_level_below(pipeline, level, v), state->zeros, sum, width);
}

static void make_row(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    struct box_state *state = here->state;
    const struct op *op = here->step->stencil;
    const struct row_kernels *rows = pipeline->rows;
    int rx = op->box.radius_x, side = 2 * op->box.radius_y + 1, width = pipeline->width;
    int64_t count = (2 * (int64_t)rx + 1) * side;
    if (state->narrow) {
        int16_t *sum = state->sum16 + state->apron;
        slide_narrow(pipeline, level, y);
        row_parts_extend(pipeline, sum, 2, rx, op->border, op->border_value * side - BOX_BIAS);
        rows->box_finish_narrow(sum, rx, (int)count, to, width);
    } else {
        uint32_t *sum = state->sum + state->apron;
        slide_sums(pipeline, level, y);
        row_parts_extend_sums(pipeline, sum, rx, op->border,
                              (uint32_t)op->border_value * (uint32_t)side);
        rows->box_finish[here->bytes - 1](sum, rx, count, to, width);
    }
    state->row = y;
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    for (int k = 0; k < count; k++)
        make_row(pipeline, level, y + k, to[k]);
}

// Sums of columns of bytes that fit 16 bits, and boxes whose means are exact in single precision.
static bool is_narrow(const struct row_pipeline *pipeline, const struct row_level *here)
{
    const struct op *op = here->step->stencil;
    int64_t side = 2 * (int64_t)op->box.radius_y + 1;
    return pipeline->rows->box_finish_narrow && here->bytes == 1 && side * 255 <= UINT16_MAX &&
           (2 * (int64_t)op->box.radius_x + 1) * side <= BOX_NARROW;
}

static enum status init(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    struct box_state *state = here->state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->narrow = is_narrow(pipeline, here);
    state->apron = row_aligned((size_t)here->step->stencil->box.radius_x + 1);
    size_t columns = (size_t)pipeline->columns + 2 * state->apron;
    if (!state->narrow) {
        state->sum = row_alloc(columns * sizeof *state->sum);
        return state->sum ? STATUS_OK : STATUS_MEMORY;
    }
    state->sum16 = row_alloc(columns * sizeof *state->sum16);
    state->zeros = row_alloc((size_t)pipeline->columns);
    return state->sum16 && state->zeros ? STATUS_OK : STATUS_MEMORY;
}

static void restart(void *state)
{
    ((struct box_state *)state)->row = INT_MIN;
}

static void finish(void *state_)
{
    struct box_state *state = state_;
    free(state->sum);
    free(state->sum16);
    free(state->zeros);
    free(state);
}

const struct row_family rows_box = {
    .window_rows = window_rows, .init = init, .finish = finish, .restart = restart, .make = make};
