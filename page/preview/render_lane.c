// Views that are watched: when each is drawn, and its stream.
#include "page/preview/render.h"

#include <string.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/http/http.h"

// New frames are drawn 40 times a second at most; a stream is sent a picture twice a second, and a
// key frame once; for a viewer who comes at once, though not for each of many who come.
static const int64_t least_ns = 25 * INT64_C(1000000), repeat_ns = 500 * INT64_C(1000000),
                     key_ns = 1000 * INT64_C(1000000), join_ns = 10 * INT64_C(1000000);

// ---- the end of a stream ----

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
static enum status prepare_picture(struct lane *lane, const struct round *round,
                                   const struct parts *made, bool *changed)
{
    AVFrame like = {0};
    int width, height, parts = made->count;
    render_size(made->part[0], parts, &width, &height);
    encoding_tag(stream_view(lane->stream)->codec, round->frame, &like);
    if (made->transposed)
        like.sample_aspect_ratio = av_inv_q(like.sample_aspect_ratio);
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
    lane->picture->sample_aspect_ratio = like.sample_aspect_ratio;
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
    enum status status = parts_make(preview, round, view, &lane->other, false, &parts);
    if (!status)
        status = prepare_picture(lane, round, &parts, changed);
    if (!status && !*changed)
        status = parts_draw(preview, &parts, false, lane->picture);
    parts_drop(&parts);
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
            return log_fail(preview->log, STATUS_OUTPUT, "the page's stream is %s and was to be %s",
                            name, preview->codec_name);
    }
    struct chunk *head = encoding_take_head(lane->encoding);
    monitor_lock(&preview->lock);
    stream_head_locked(lane->stream, &head);
    monitor_unlock(&preview->lock);
    return STATUS_OK;
}

// The duration of the frame that is made now, see stream.h.
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

int64_t lane_due_locked(const struct preview *preview, int k)
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

void lanes_serve(struct preview *preview, struct round *round)
{
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        monitor_lock(&preview->lock);
        bool due = lane_due_locked(preview, k) <= meter_now_ns();
        monitor_unlock(&preview->lock);
        if (due)
            serve_lane(preview, round, &preview->lane[k]);
    }
}

void lanes_finish(struct preview *preview)
{
    for (int k = 0; k < PREVIEW_VIEWS; k++)
        if (preview->lane[k].stream)
            end_lane(preview, &preview->lane[k]);
}
