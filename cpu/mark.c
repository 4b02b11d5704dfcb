// OP_MARK: each band copies its rows and draws the parts of frames that lie there.
#include <stdlib.h>

#include "base/minmax.h"
#include "cpu/whole.h"

static void draw_row(const struct whole_work *work, struct match_box box, int line, int value,
                     int y)
{
    const struct op_mark *f = &work->op->mark;
    int first = max_int((box.left - line) >> f->shift_x, 0);
    int end = min_int(((box.right + line - 1) >> f->shift_x) + 1, work->width);
    void *row = (uint8_t *)work->to + y * work->to_stride;
    for (int x = first; x < end; x++) {
        if (!match_is_framed(box, line, x, y, f->shift_x, f->shift_y))
            continue;
        if (work->depth > 8)
            ((uint16_t *)row)[x] = (uint16_t)value;
        else
            ((uint8_t *)row)[x] = (uint8_t)value;
    }
}

static void draw_frame(const struct whole_work *work, const struct op_found *found, int line,
                       int top, int bottom)
{
    const struct op_mark *f = &work->op->mark;
    const struct op_template *t = &f->templates[found->number];
    struct match_box box = match_box_of(found, t->width, t->height);
    int first = max_int((box.top - line) >> f->shift_y, top);
    int end = min_int(((box.bottom + line - 1) >> f->shift_y) + 1, bottom);
    for (int y = first; y < end; y++)
        draw_row(work, box, line, f->value[found->number], y);
}

// The best is drawn last, on top.
static void run(struct whole *whole, const struct whole_work *work, int phase, int band, int bands)
{
    (void)whole, (void)phase;
    const struct op_matches *matches = work->reads;
    int top = whole_band_row(work->height, band, bands);
    int bottom = whole_band_row(work->height, band + 1, bands);
    for (int y = top; y < bottom; y++)
        whole_copy_row(work, y);
    for (int k = matches->count - 1; k >= 0; k--)
        draw_frame(work, &matches->found[k], matches->line, top, bottom);
}

static void destroy(struct whole **whole)
{
    free(*whole);
    *whole = NULL;
}

enum status mark_create(const struct whole_request *request, struct whole **whole)
{
    (void)request;
    *whole = calloc(1, sizeof **whole);
    if (!*whole)
        return STATUS_MEMORY;
    **whole = (struct whole){1, run, destroy};
    return STATUS_OK;
}
