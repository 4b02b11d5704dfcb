#include "pipeline/engine/threads/gap.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/compat.h"

static const int64_t behind_us = 1000000;

struct gap {
    enum gap_kind kind;
    AVRational time_base;
    int64_t interval; // between frames, in time_base
    AVFrame *last;    // written by others; empty: none yet
    int64_t end;      // the timestamp of the last frame, by whomever
};

enum status gap_create(enum gap_kind kind, AVRational time_base, AVRational rate, struct gap **gap)
{
    *gap = calloc(1, sizeof **gap);
    struct gap *made = *gap;
    if (!made)
        return STATUS_MEMORY;
    made->kind = kind;
    made->time_base = time_base;
    made->interval =
        av_rescale_q(1, rate.num > 0 ? av_inv_q(rate) : (AVRational){1, 25}, time_base);
    made->interval = made->interval > 0 ? made->interval : 1;
    made->last = av_frame_alloc();
    if (!made->last)
        gap_destroy(gap);
    return *gap ? STATUS_OK : STATUS_MEMORY;
}

void gap_destroy(struct gap **gap)
{
    if (!*gap)
        return;
    av_frame_free(&(*gap)->last);
    free(*gap);
    *gap = NULL;
}

enum status gap_note(struct gap *gap, const AVFrame *frame)
{
    assert(frame->buf[0] && frame->pts != AV_NOPTS_VALUE);
    av_frame_unref(gap->last);
    gap->end = frame->pts;
    return av_frame_ref(gap->last, frame) < 0 ? STATUS_MEMORY : STATUS_OK;
}

bool gap_covers(const struct gap *gap, const AVFrame *frame)
{
    return gap->last->buf[0] && frame->pts <= gap->end;
}

// A picture like the last one, but black.
static enum status make_black(const struct gap *gap, AVFrame *black)
{
    ptrdiff_t linesize[4];
    black->format = gap->last->format;
    black->width = gap->last->width;
    black->height = gap->last->height;
    if (av_frame_copy_props(black, gap->last) < 0 || av_frame_get_buffer(black, 0) < 0)
        return STATUS_MEMORY;
    for (int p = 0; p < 4; p++)
        linesize[p] = black->linesize[p];
    av_image_fill_black(black->data, linesize, black->format, black->color_range, black->width,
                        black->height);
    return STATUS_OK;
}

enum status gap_fill(struct gap *gap, int64_t clock_us, AVFrame **frame)
{
    *frame = NULL;
    int64_t due = av_rescale_q(clock_us - behind_us, AV_TIME_BASE_Q, gap->time_base);
    if (gap->kind == GAP_SKIP || !gap->last->buf[0] || gap->end + gap->interval > due)
        return STATUS_OK;
    AVFrame *made = av_frame_alloc();
    if (!made)
        return STATUS_MEMORY;
    enum status status = gap->kind == GAP_BLACK              ? make_black(gap, made)
                         : av_frame_ref(made, gap->last) < 0 ? STATUS_MEMORY
                                                             : STATUS_OK;
    if (status) {
        av_frame_free(&made);
        return status;
    }
    gap->end += gap->interval;
    made->pts = gap->end;
    frame_set_duration(made, gap->interval);
    *frame = made;
    return STATUS_OK;
}
