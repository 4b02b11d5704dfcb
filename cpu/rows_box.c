// OP_BOX: sums of columns that slide down, and sums of those that slide along.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/row_level.h"

struct box_state {
    uint32_t *sum; // of columns, `apron` on both sides
    size_t apron;
    int row; // that `sum` is for; INT_MIN: none
};

static int window_rows(const struct row_pipeline *pipeline, const struct plan_step *step)
{
    (void)pipeline;
    return 2 * step->stencil->box.radius_y + 2;
}

static void make_row(struct row_pipeline *pipeline, int level, int y, void *to)
{
    const struct row_level *here = &pipeline->level[level];
    struct box_state *state = here->state;
    const struct op *op = here->step->stencil;
    int rx = op->box.radius_x, ry = op->box.radius_y, width = pipeline->width;
    uint32_t *sum = state->sum + state->apron;
    void (*slide)(const void *, const void *, uint32_t *, int) =
        pipeline->rows->box_slide[here->bytes - 1];
    if (state->row == y - 1) {
        const void *leaving = row_level_below(pipeline, level, y - ry - 1);
        slide(row_level_below(pipeline, level, y + ry), leaving, sum, width);
    } else {
        memset(sum, 0, (size_t)width * sizeof *sum);
        for (int v = y - ry; v <= y + ry; v++)
            slide(row_level_below(pipeline, level, v), NULL, sum, width);
    }
    state->row = y;
    row_extend_sums(sum, width, rx, rx, op->border,
                    (uint32_t)op->border_value * (uint32_t)(2 * ry + 1));
    pipeline->rows->box_finish[here->bytes - 1](
        sum, rx, (2 * (int64_t)rx + 1) * (2 * (int64_t)ry + 1), to, width);
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    for (int k = 0; k < count; k++)
        make_row(pipeline, level, y + k, to[k]);
}

static enum status init(struct row_pipeline *pipeline, int level)
{
    struct row_level *here = &pipeline->level[level];
    struct box_state *state = here->state = calloc(1, sizeof *state);
    if (!state)
        return STATUS_MEMORY;
    state->apron = row_aligned((size_t)here->step->stencil->box.radius_x);
    state->sum = row_alloc(((size_t)pipeline->columns + 2 * state->apron) * sizeof *state->sum);
    return state->sum ? STATUS_OK : STATUS_MEMORY;
}

static void restart(void *state)
{
    ((struct box_state *)state)->row = INT_MIN;
}

static void finish(void *state)
{
    free(((struct box_state *)state)->sum);
    free(state);
}

const struct row_family rows_box = {
    .window_rows = window_rows, .init = init, .finish = finish, .restart = restart, .make = make};
