// The renderer: the newest frame to the pictures that somebody looks at.
#include "page/preview_state.h"

#include <assert.h>
#include <libavutil/hwcontext.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/http/http.h"

static const int64_t ms_ns = 1000000;

// New frames are drawn 40 times a second at most; a stream is sent a picture twice a second, and a
// key frame once; for a viewer who comes at once, though not for each of many who come.
static const int64_t least_ns = 25 * INT64_C(1000000), repeat_ns = 500 * INT64_C(1000000),
                     key_ns = 1000 * INT64_C(1000000), join_ns = 10 * INT64_C(1000000);

// What one turn of the loop works on.
struct round {
    AVFrame *frame; // in the host's memory
    struct tap_frame about;
    int64_t frames, chains;
    struct chain chain;
    char *text;
    struct shot *shots;
    struct preview_watch watch;
    int64_t began_ns;
    int drawn, encoded;
};

// The pictures that a view shows, side by side.
struct parts {
    AVFrame *part[2];
    int count;
};

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

static enum status filter(struct preview *preview, const struct round *round,
                          const struct chain *chain, const char *text, int stage, AVFrame **out)
{
    const struct filters_chain what = {chain, text, stage};
    return filters_run(preview->filters, &what, round->frame, out);
}

static enum status make_before(const struct round *round, AVFrame **out)
{
    *out = av_frame_clone(round->frame);
    return *out ? STATUS_OK : STATUS_MEMORY;
}

static enum status make_difference(struct preview *preview, const struct round *round,
                                   const struct view *view, const struct chain *other, bool exact,
                                   AVFrame *after, AVFrame **out)
{
    AVFrame *with = NULL;
    enum status status = *view->other ? filter(preview, round, other, view->other, -1, &with)
                                      : make_before(round, &with);
    if (!status)
        status = composer_difference(preview->composer, after, with, exact, out);
    av_frame_free(&with);
    return status;
}

static void drop_parts(struct parts *parts)
{
    av_frame_free(&parts->part[0]);
    av_frame_free(&parts->part[1]);
}

// Make what a view shows. The caller drops the parts, also on failure.
static enum status make_parts(struct preview *preview, const struct round *round,
                              const struct view *view, const struct chain *other, bool exact,
                              struct parts *parts)
{
    AVFrame *after = NULL;
    enum status status = STATUS_OK;
    *parts = (struct parts){.count = view->kind == VIEW_SPLIT ? 2 : 1};
    if (view->kind != VIEW_AFTER && view->kind != VIEW_DIFFERENCE)
        status = make_before(round, &parts->part[0]);
    if (!status && view->kind != VIEW_BEFORE)
        status = filter(preview, round, &round->chain, round->text, view->stage, &after);
    if (!status && view->kind == VIEW_DIFFERENCE)
        status = make_difference(preview, round, view, other, exact, after, &parts->part[0]);
    else if (after)
        parts->part[parts->count - 1] = after, after = NULL;
    av_frame_free(&after);
    return status;
}

static enum status draw_parts(struct preview *preview, const struct parts *parts, bool exact,
                              AVFrame *to)
{
    int width = to->width / parts->count;
    enum status status = STATUS_OK;
    for (int k = 0; k < parts->count && !status; k++)
        status = composer_draw(preview->composer, parts->part[k], exact, to, k * width, width);
    return status;
}

// ---- streams ----

static void free_lane(struct preview *preview, struct lane *lane)
{
    encoding_destroy(&lane->encoding);
    av_frame_free(&lane->picture);
    chain_free(&lane->other);
    monitor_lock(&preview->lock);
    stream_unref_locked(&lane->stream);
    monitor_unlock(&preview->lock);
    *lane = (struct lane){0};
}

// End a lane's stream, so that its viewers come again.
static void end_lane(struct preview *preview, struct lane *lane)
{
    int k = (int)(lane - preview->lane);
    monitor_lock(&preview->lock);
    stream_end_locked(lane->stream);
    if (preview->view[k].stream == lane->stream)
        stream_unref_locked(&preview->view[k].stream);
    if (preview->http)
        http_wake(preview->http);
    monitor_unlock(&preview->lock);
    free_lane(preview, lane);
}

// The frame to draw the lane's next picture into: the last one's memory, if it is of the same kind.
// *changed says that it is of another.
static enum status prepare_picture(struct lane *lane, const struct round *round, int parts,
                                   bool *changed)
{
    AVFrame like = {0};
    int width, height;
    render_size(round->frame, parts, &width, &height);
    encoding_tag(stream_view(lane->stream)->codec, round->frame, &like);
    const AVFrame *old = lane->picture;
    *changed =
        old && (old->width != width * parts || old->height != height ||
                old->colorspace != like.colorspace ||
                old->color_primaries != like.color_primaries || old->color_trc != like.color_trc ||
                av_cmp_q(old->sample_aspect_ratio, like.sample_aspect_ratio));
    if (*changed || (old && av_frame_is_writable(lane->picture)))
        return STATUS_OK;
    av_frame_free(&lane->picture);
    lane->picture = compose_frame(like.format, width * parts, height);
    if (!lane->picture)
        return STATUS_MEMORY;
    encoding_tag(stream_view(lane->stream)->codec, round->frame, lane->picture);
    return STATUS_OK;
}

// Draw the lane's picture of the round's frame.
static enum status draw_lane(struct preview *preview, struct round *round, struct lane *lane,
                             bool *changed)
{
    const struct view *view = stream_view(lane->stream);
    struct parts parts;
    *changed = false;
    lane->frames = round->frames;
    lane->chains = round->chains;
    lane->drawn_ns = round->began_ns;
    enum status status = make_parts(preview, round, view, &lane->other, false, &parts);
    if (!status)
        status = prepare_picture(lane, round, parts.count, changed);
    if (!status && !*changed)
        status = draw_parts(preview, &parts, false, lane->picture);
    drop_parts(&parts);
    round->drawn += !status && !*changed;
    return status;
}

static enum status open_lane(struct preview *preview, struct lane *lane)
{
    const struct view *view = stream_view(lane->stream);
    char name[sizeof preview->codec_name];
    enum status status = encoding_create(view->codec, lane->picture, preview->log, &lane->encoding);
    if (status)
        return status;
    if (view->codec == VIEW_H264) {
        encoding_own_name(lane->encoding, name, sizeof name);
        if (strcmp(name, preview->codec_name))
            return fail(preview->log, STATUS_OUTPUT, "the page's stream is %s and was to be %s",
                        name, preview->codec_name);
    }
    struct chunk *head = encoding_take_head(lane->encoding);
    monitor_lock(&preview->lock);
    stream_head_locked(lane->stream, &head);
    monitor_unlock(&preview->lock);
    return STATUS_OK;
}

// How long the frame lasts that is made now, see stream.h.
static int64_t duration_of(const struct lane *lane, int64_t now_ns, bool moved)
{
    int64_t most = moved ? STREAM_LONGEST : STREAM_STILL;
    int64_t ticks = lane->encoded_ns ? (now_ns - lane->encoded_ns) / 1000 * STREAM_CLOCK / 1000000
                                     : STREAM_STILL;
    return ticks < 90 ? 90 : ticks > most ? most : ticks;
}

static enum status encode_lane(struct preview *preview, struct round *round, struct lane *lane,
                               bool moved, bool key)
{
    struct chunk *chunk;
    int64_t now_ns = meter_now_ns();
    enum status status = lane->encoding ? STATUS_OK : open_lane(preview, lane);
    if (status)
        return status;
    key |= now_ns - lane->key_ns > key_ns;
    status = encoding_frame(lane->encoding, lane->picture, duration_of(lane, now_ns, moved), key,
                            &chunk);
    if (status)
        return status;
    round->encoded++;
    lane->encoded_ns = now_ns;
    if (chunk->key)
        lane->key_ns = now_ns;
    monitor_lock(&preview->lock);
    stream_push_locked(lane->stream, &chunk);
    if (preview->http)
        http_wake(preview->http);
    monitor_unlock(&preview->lock);
    return STATUS_OK;
}

// When the lane has to be looked at. With the lock held.
static int64_t lane_due_locked(const struct preview *preview, int k)
{
    const struct lane *lane = &preview->lane[k];
    const struct stream *stream = preview->view[k].stream;
    if (stream != lane->stream || (stream && !stream_viewers_locked(stream)))
        return 0;
    if (!stream || !preview->newest)
        return INT64_MAX;
    if (lane->chains != preview->chains)
        return 0;
    int64_t due_ns = lane->encoded_ns + repeat_ns, drawn_ns = lane->drawn_ns + least_ns;
    if (!lane->picture)
        due_ns = INT64_MAX;
    else if (stream_wants_key_locked(stream))
        due_ns = lane->encoded_ns + join_ns;
    if (lane->frames != preview->frames && drawn_ns < due_ns)
        due_ns = drawn_ns;
    return due_ns;
}

// Nobody watches there any more.
static void retire_locked(struct preview *preview, int k)
{
    stream_unref_locked(&preview->view[k].stream);
    chain_free(&preview->view[k].other);
}

// Give the lane the stream that its place has now. False: nobody watches there.
static bool adopt(struct preview *preview, struct lane *lane, bool *key)
{
    int k = (int)(lane - preview->lane);
    monitor_lock(&preview->lock);
    if (preview->view[k].stream && !stream_viewers_locked(preview->view[k].stream))
        retire_locked(preview, k);
    bool same = preview->view[k].stream == lane->stream;
    monitor_unlock(&preview->lock);
    if (!same && lane->stream)
        free_lane(preview, lane);
    monitor_lock(&preview->lock);
    if (!lane->stream && preview->view[k].stream) {
        lane->stream = stream_ref_locked(preview->view[k].stream);
        lane->other = preview->view[k].other;
        preview->view[k].other = (struct chain){0};
    }
    *key = lane->stream && stream_wants_key_locked(lane->stream);
    monitor_unlock(&preview->lock);
    return lane->stream;
}

static void serve_lane(struct preview *preview, struct round *round, struct lane *lane)
{
    bool key, changed = false;
    if (!adopt(preview, lane, &key) || !round->frame)
        return;
    bool moved = lane->frames != round->frames;
    bool stale = moved || lane->chains != round->chains;
    if (stale && draw_lane(preview, round, lane, &changed) && !lane->picture)
        return;
    if (changed || (lane->picture && encode_lane(preview, round, lane, moved, key)))
        end_lane(preview, lane);
}

static void serve_lanes(struct preview *preview, struct round *round)
{
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        monitor_lock(&preview->lock);
        bool due = lane_due_locked(preview, k) <= meter_now_ns();
        monitor_unlock(&preview->lock);
        if (due)
            serve_lane(preview, round, &preview->lane[k]);
    }
}

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
    enum status status = draw_parts(preview, parts, true, *picture);
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
        status = make_parts(preview, round, shot->view, shot->other, true, &parts);
    if (!status)
        status = draw_shot(preview, &parts, &picture);
    drop_parts(&parts);
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
        filter(preview, round, &round->chain, round->text, -1, &after))
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
        filter(preview, round, &round->chain, round->text, -1, &after))
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
    if (wants_watch_locked(preview))
        round->watch = preview->watch;
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
    while (!preview->done && due_ns > meter_now_ns()) {
        if (due_ns == INT64_MAX)
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
    serve_lanes(preview, round);
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
    for (int k = 0; k < PREVIEW_VIEWS; k++)
        if (preview->lane[k].stream)
            end_lane(preview, &preview->lane[k]);
    return NULL;
}
