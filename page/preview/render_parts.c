// Pictures of views: the frame, what filters make of it, how the two differ; turned as players do.
#include "page/preview/render.h"

#include <math.h>

#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/output/converter.h"

// ---- sizes ----

void render_size(const AVFrame *frame, int parts, int *width, int *height)
{
    const double most = 8192 * 256.0 * 0.97; // samples of H.264's level 4
    double w = frame->width, h = frame->height, scale = 1;
    if (w > PREVIEW_WIDTH)
        scale = PREVIEW_WIDTH / w;
    if (w * h * scale * scale * parts > most)
        scale = sqrt(most / (w * h * parts));
    *width = (int)(w * scale) & ~1;
    *height = (int)(h * scale) & ~1;
    *width = *width < 16 ? 16 : *width;
    *height = *height < 16 ? 16 : *height > 4096 ? 4096 : *height;
}

// ---- pictures ----

enum status render_filter(struct preview *preview, const struct round *round,
                          const struct chain *chain, const char *text, int stage, AVFrame **out)
{
    const struct filters_chain what = {chain, text, stage};
    return filters_run(preview->filters, &what, round->frame, out);
}

// The frame itself, in a format that can be drawn.
static enum status make_before(struct preview *preview, const struct round *round, AVFrame **out)
{
    static const struct chain empty = {0};
    if (!compose_takes(round->frame->format))
        return render_filter(preview, round, &empty, "", -1, out);
    *out = av_frame_clone(round->frame);
    return *out ? STATUS_OK : STATUS_MEMORY;
}

// The picture beside which "after" is shown.
static enum status make_other(struct preview *preview, const struct round *round,
                              const struct view *view, const struct chain *other, AVFrame **out)
{
    return *view->other ? render_filter(preview, round, other, view->other, -1, out)
                        : make_before(preview, round, out);
}

static enum status make_difference(struct preview *preview, const struct round *round,
                                   const struct view *view, const struct chain *other, bool exact,
                                   AVFrame *after, AVFrame **out)
{
    AVFrame *with = NULL;
    enum status status = make_other(preview, round, view, other, &with);
    if (!status)
        status = composer_difference(preview->composer, after, with, exact, out);
    av_frame_free(&with);
    return status;
}

void parts_drop(struct parts *parts)
{
    av_frame_free(&parts->part[0]);
    av_frame_free(&parts->part[1]);
}

// True if frames of this pixel format can be turned.
static bool can_turn(const AVFrame *frame, struct rotation rotation)
{
    struct color_tags tags = color_tags_of(frame);
    struct format format;
    if (!pixel_describe(frame->format, &tags, 1, 1, &format))
        return false;
    format = format_rotated(&format, rotation);
    return pixel_find(&format) != AV_PIX_FMT_NONE;
}

// Turn the parts as players show the video: filters see it as it is stored. What cannot be turned
// is shown as it is, all parts alike.
static enum status turn(struct parts *parts, struct rotation rotation)
{
    const struct converter converter = {.rotation = rotation};
    enum status status = STATUS_OK;
    for (int k = 0; k < parts->count; k++)
        if (!can_turn(parts->part[k], rotation))
            return STATUS_OK;
    parts->transposed = rotation.transpose;
    for (int k = 0; k < parts->count && !status; k++) {
        AVFrame *turned = av_frame_alloc();
        status = turned ? converter_rotate(&converter, parts->part[k], turned) : STATUS_MEMORY;
        av_frame_free(status ? &turned : &parts->part[k]);
        if (!status)
            parts->part[k] = turned;
    }
    return status;
}

enum status parts_make(struct preview *preview, const struct round *round, const struct view *view,
                       const struct chain *other, bool exact, struct parts *parts)
{
    AVFrame *after = NULL;
    enum status status = STATUS_OK;
    *parts = (struct parts){.count = view->kind == VIEW_SPLIT ? 2 : 1};
    if (view->kind == VIEW_BEFORE)
        status = make_before(preview, round, &parts->part[0]);
    if (view->kind == VIEW_SPLIT)
        status = make_other(preview, round, view, other, &parts->part[0]);
    if (!status && view->kind != VIEW_BEFORE)
        status = render_filter(preview, round, &round->chain, round->text, view->stage, &after);
    if (!status && view->kind == VIEW_DIFFERENCE)
        status = make_difference(preview, round, view, other, exact, after, &parts->part[0]);
    else if (after)
        parts->part[parts->count - 1] = after, after = NULL;
    av_frame_free(&after);
    if (!status && !rotation_is_none(round->about.rotation))
        status = turn(parts, round->about.rotation);
    return status;
}

enum status parts_draw(struct preview *preview, const struct parts *parts, bool exact, AVFrame *to)
{
    int width = to->width / parts->count;
    enum status status = STATUS_OK;
    for (int k = 0; k < parts->count && !status; k++)
        status = composer_draw(preview->composer, parts->part[k], exact, to, k * width, width);
    return status;
}
