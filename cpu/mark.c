// OP_MARK: each band copies its rows and draws the parts of frames that lie there.
#include <stdlib.h>

#include "base/minmax.h"
#include "cpu/full_frame.h"

static void draw_row(const struct full_frame_work *work, struct match_box box, int line, int value,
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
            ((sample16 *)row)[x] = (uint16_t)value;
        else
            ((uint8_t *)row)[x] = (uint8_t)value;
    }
}

static void draw_frame(const struct full_frame_work *work, const struct op_found *found, int line,
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
static void run(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands)
{
    (void)full_frame, (void)phase;
    const struct op_matches *matches = work->reads;
    int top = full_frame_band_row(work->height, band, bands);
    int bottom = full_frame_band_row(work->height, band + 1, bands);
    for (int y = top; y < bottom; y++)
        full_frame_copy_row(work, y);
    for (int k = matches->count - 1; k >= 0; k--)
        draw_frame(work, &matches->found[k], matches->line, top, bottom);
}

static void destroy(struct full_frame **full_frame)
{
    free(*full_frame);
    *full_frame = NULL;
}

enum status mark_create(const struct full_frame_request *request, struct full_frame **full_frame)
{
    (void)request;
    *full_frame = calloc(1, sizeof **full_frame);
    if (!*full_frame)
        return STATUS_MEMORY;
    **full_frame = (struct full_frame){1, run, destroy};
    return STATUS_OK;
}
