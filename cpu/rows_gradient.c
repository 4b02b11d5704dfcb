// OP_GRADIENT.
#include "cpu/row_level.h"

static int window_rows(const struct row_pipeline *pipeline, const struct plan_step *step)
{
    (void)step;
    return 2 + pipeline->rows->rows_at_once;
}

static void make_ranges(struct row_pipeline *pipeline, int level, const struct point *ranges, int y,
                        int count, void *const *to)
{
    const struct row_level *here = &pipeline->level[level];
    const void *row[2 + MAX_ROWS_AT_ONCE];
    row_level_window(pipeline, level, y - 1, 2 + count, row);
    pipeline->rows->gradient[here->bytes - 1](row, &here->step->stencil->gradient, ranges, to,
                                              count, pipeline->width);
}

static void make(struct row_pipeline *pipeline, int level, int y, int count, void *const *to)
{
    make_ranges(pipeline, level, NULL, y, count, to);
}

const struct row_family rows_gradient = {
    .reads_along = true, .window_rows = window_rows, .make = make, .make_ranges = make_ranges};
