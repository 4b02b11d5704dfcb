// The renderer's thread: rounds, each of the newest frame there is.
#include "page/preview/render.h"

#include <libavutil/hwcontext.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"

static const int64_t ms_ns = 1000000;

// ---- single pictures ----

static bool is_gray(const struct parts *parts)
{
    return parts->count == 1 && parts->part[0]->format == AV_PIX_FMT_GRAY8;
}

static enum status draw_shot(struct preview *preview, const struct parts *parts, AVFrame **picture)
{
    bool gray = is_gray(parts);
    const AVFrame *first = parts->part[0];
    *picture = compose_frame(gray ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_RGB24,
                             first->width * parts->count, first->height);
    if (!*picture)
        return STATUS_MEMORY;
    (*picture)->color_range = AVCOL_RANGE_JPEG;
    (*picture)->colorspace = gray ? AVCOL_SPC_UNSPECIFIED : AVCOL_SPC_RGB;
    (*picture)->sample_aspect_ratio = first->sample_aspect_ratio;
    enum status status = parts_draw(preview, parts, true, *picture);
    if (status)
        av_frame_free(picture);
    return status;
}

static void serve_shot(struct preview *preview, struct round *round, struct shot *shot)
{
    struct parts parts;
    AVFrame *picture = NULL;
    enum status status = round->frame ? STATUS_OK : STATUS_FAILED;
    parts = (struct parts){0};
    if (!status)
        status = parts_make(preview, round, shot->view, shot->other, true, &parts);
    if (!status)
        status = draw_shot(preview, &parts, &picture);
    parts_drop(&parts);
    round->drawn += !status;
    monitor_lock(&preview->lock);
    shot->picture = picture;
    shot->status = status;
    shot->done = true;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
}

static void serve_watch(struct preview *preview, struct round *round)
{
    AVFrame *after = NULL;
    if (!round->watch.picture || !round->frame ||
        render_filter(preview, round, &round->chain, round->text, -1, &after))
        return;
    round->watch.picture(round->watch.opaque, after, round->about.pts_us);
    round->drawn++;
    av_frame_free(&after);
}

// ---- figures ----

// The histogram of the after-picture, if somebody saw that one; of moving pictures now and then.
static void count_luma(struct preview *preview, const struct round *round)
{
    AVFrame *after = NULL;
    uint32_t bins[256];
    const struct filters_chain what = {&round->chain, round->text, -1};
    if (!filters_has(preview->filters, &what) ||
        render_filter(preview, round, &round->chain, round->text, -1, &after))
        return;
    enum status status = composer_count(preview->composer, after, bins);
    monitor_lock(&preview->lock);
    if (!status)
        memcpy(preview->figures.histogram, bins, sizeof bins);
    monitor_unlock(&preview->lock);
    av_frame_free(&after);
}

static void count_round(struct preview *preview, const struct round *round)
{
    monitor_lock(&preview->lock);
    preview->figures.rendered += round->drawn;
    preview->figures.encoded += round->encoded;
    if (round->drawn)
        preview->figures.render_ms = (double)(meter_now_ns() - round->began_ns) / (double)ms_ns;
    monitor_unlock(&preview->lock);
}

// ---- rounds ----

// Replace a frame on the GPU by one in the host's memory.
static enum status fetch(struct preview *preview, struct round *round)
{
    AVFrame *here = av_frame_alloc();
    if (!here)
        return STATUS_MEMORY;
    if (av_hwframe_transfer_data(here, round->frame, 0) < 0 ||
        av_frame_copy_props(here, round->frame) < 0) {
        av_frame_free(&here);
        return STATUS_FAILED;
    }
    av_frame_free(&round->frame);
    round->frame = here;
    AVFrame *kept = av_frame_clone(here), *old = NULL;
    monitor_lock(&preview->lock);
    if (kept && preview->frames == round->frames)
        old = preview->newest, preview->newest = kept, kept = NULL;
    monitor_unlock(&preview->lock);
    av_frame_free(&kept);
    av_frame_free(&old);
    return STATUS_OK;
}

// The frame cannot be had: wait for another.
static void forget_frame(struct preview *preview, struct round *round)
{
    av_frame_free(&round->frame);
    monitor_lock(&preview->lock);
    if (preview->frames == round->frames)
        av_frame_free(&preview->newest);
    monitor_unlock(&preview->lock);
}

static bool wants_watch_locked(const struct preview *preview)
{
    return preview->watch.picture && preview->newest && preview->watched != preview->frames;
}

static int64_t due_locked(const struct preview *preview)
{
    int64_t due_ns = INT64_MAX;
    if ((preview->shots && preview->newest) || wants_watch_locked(preview))
        return 0;
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        int64_t lane_ns = lane_due_locked(preview, k);
        due_ns = lane_ns < due_ns ? lane_ns : due_ns;
    }
    return due_ns;
}

// Take what there is to be worked on. Shots stay their waiters'.
static void take_locked(struct preview *preview, struct round *round)
{
    *round = (struct round){.frames = preview->frames,
                            .chains = preview->chains,
                            .about = preview->about,
                            .began_ns = meter_now_ns()};
    if (preview->newest && !chain_copy(&preview->chain, &round->chain)) {
        round->frame = av_frame_clone(preview->newest);
        round->text = strdup(preview->text);
    }
    if (wants_watch_locked(preview)) {
        round->watch = preview->watch;
        if (preview->watch.missed && preview->watched)
            *preview->watch.missed += preview->frames - preview->watched - 1;
    }
    preview->watched = preview->frames;
    if (round->frame) {
        round->shots = preview->shots;
        preview->shots = NULL;
    }
    preview->busy = true;
}

// Wait until there is something to do. False: the end.
static bool await_round(struct preview *preview, struct round *round)
{
    monitor_lock(&preview->lock);
    int64_t due_ns = due_locked(preview);
    while (!preview->done && (preview->waits || due_ns > meter_now_ns())) {
        if (preview->waits || due_ns == INT64_MAX)
            monitor_wait(&preview->lock);
        else
            monitor_wait_until(&preview->lock, due_ns);
        due_ns = due_locked(preview);
    }
    bool goes_on = !preview->done;
    if (goes_on)
        take_locked(preview, round);
    monitor_unlock(&preview->lock);
    return goes_on;
}

static void finish_round(struct preview *preview, struct round *round)
{
    filters_next(preview->filters);
    av_frame_free(&round->frame);
    chain_free(&round->chain);
    free(round->text);
    monitor_lock(&preview->lock);
    preview->busy = false;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
}

static void serve_round(struct preview *preview, struct round *round)
{
    if (round->frame && round->frame->hw_frames_ctx && fetch(preview, round))
        forget_frame(preview, round);
    lanes_serve(preview, round);
    for (struct shot *shot = round->shots, *next; shot; shot = next) {
        next = shot->next; // who waits may be gone once it is done
        serve_shot(preview, round, shot);
    }
    serve_watch(preview, round);
    if (round->drawn)
        count_luma(preview, round);
    count_round(preview, round);
}

void *render_run(void *preview_)
{
    struct preview *preview = preview_;
    struct round round;
    while (await_round(preview, &round)) {
        serve_round(preview, &round);
        finish_round(preview, &round);
    }
    lanes_finish(preview);
    return NULL;
}
