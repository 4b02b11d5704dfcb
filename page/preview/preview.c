#include "page/preview/preview.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "page/preview/preview_state.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/picture.h"
#include "pipeline/output/encoder.h"
#include "pipeline/output/http/http.h"

// ---- construction ----

static enum status start(struct preview *preview)
{
    preview->text = strdup("");
    enum status status = preview->text ? composer_create(&preview->composer) : STATUS_MEMORY;
    if (!status)
        status = filters_create(preview->request.config, preview->log, &preview->filters);
    if (status)
        return status;
    encoding_name(preview->codec_name, sizeof preview->codec_name);
    snprintf(preview->mime, sizeof preview->mime, "video/mp4; codecs=\"%s\"", preview->codec_name);
    preview->started = !pthread_create(&preview->thread, NULL, render_run, preview);
    return preview->started
               ? STATUS_OK
               : log_fail(preview->log, STATUS_FAILED, "no thread for the page's pictures");
}

enum status preview_create(const struct preview_request *request, struct preview **preview)
{
    assert(request->config && request->log);
    struct preview *made = *preview = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    made->log = request->log;
    monitor_init(&made->lock);
    enum status status = start(made);
    if (status)
        preview_destroy(preview);
    return status;
}

static void stop(struct preview *preview)
{
    monitor_lock(&preview->lock);
    preview->done = true;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
    if (preview->started)
        pthread_join(preview->thread, NULL);
}

void preview_destroy(struct preview **preview)
{
    if (!*preview)
        return;
    struct preview *old = *preview;
    stop(old);
    monitor_lock(&old->lock);
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        stream_unref_locked(&old->view[k].stream);
        chain_free(&old->view[k].other);
    }
    monitor_unlock(&old->lock);
    filters_destroy(&old->filters);
    composer_destroy(&old->composer);
    av_frame_free(&old->newest);
    chain_free(&old->chain);
    free(old->text);
    monitor_finish(&old->lock);
    free(old);
    *preview = NULL;
}

void preview_bind_http(struct preview *preview, struct http *http)
{
    monitor_lock(&preview->lock);
    preview->http = http;
    monitor_unlock(&preview->lock);
}

// ---- what comes in ----

// Read a chain, sharing the pictures that the preview's chain has.
static enum status read_chain(struct preview *preview, const char *text, struct chain *chain,
                              struct chain_error *error)
{
    struct chain present;
    monitor_lock(&preview->lock);
    enum status status = chain_copy(&preview->chain, &present);
    monitor_unlock(&preview->lock);
    if (status)
        return status;
    present.reader = &picture_reader; // an empty chain's, too
    const struct chain_source source = {.reader = &picture_reader, .others = &present, .count = 1};
    status = chain_parse_from(text, &source, chain, error);
    chain_free(&present);
    return status;
}

enum status preview_set_chain(struct preview *preview, const char *text)
{
    struct chain_error error = {0};
    struct chain chain, old;
    char *copy = strdup(text);
    enum status status = copy ? read_chain(preview, text, &chain, &error) : STATUS_MEMORY;
    if (status == STATUS_USAGE)
        chain_error_log(&error, text, preview->log);
    if (status) {
        free(copy);
        return status;
    }
    monitor_lock(&preview->lock);
    old = preview->chain;
    char *old_text = preview->text;
    preview->chain = chain;
    preview->text = copy;
    preview->chains++;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
    chain_free(&old);
    free(old_text);
    return STATUS_OK;
}

void preview_offer(struct preview *preview, const AVFrame *frame, const struct tap_frame *about)
{
    AVFrame *kept = av_frame_clone(frame);
    if (!kept)
        return;
    monitor_lock(&preview->lock);
    AVFrame *old = preview->newest;
    preview->newest = kept;
    preview->about = *about;
    preview->frames++;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
    av_frame_free(&old);
}

// ---- the newest frame ----

static void await_renderer_locked(struct preview *preview)
{
    preview->waits++;
    while (preview->busy)
        monitor_wait(&preview->lock);
    preview->waits--;
    monitor_notify(&preview->lock);
}

void preview_release(struct preview *preview)
{
    monitor_lock(&preview->lock);
    await_renderer_locked(preview);
    AVFrame *old = preview->newest;
    preview->newest = old ? compose_copy(old) : NULL;
    monitor_unlock(&preview->lock);
    av_frame_free(&old);
}

enum status preview_newest(struct preview *preview, AVFrame **frame, char **chain)
{
    monitor_lock(&preview->lock);
    await_renderer_locked(preview);
    *frame = preview->newest ? compose_copy(preview->newest) : NULL;
    *chain = strdup(preview->text);
    bool none = !preview->newest;
    monitor_unlock(&preview->lock);
    if (*frame && *chain)
        return STATUS_OK;
    av_frame_free(frame);
    free(*chain);
    *chain = NULL;
    return none ? STATUS_EOF : STATUS_MEMORY;
}

void preview_watch(struct preview *preview, const struct preview_watch *watch)
{
    monitor_lock(&preview->lock);
    if (preview->watch.picture)
        await_renderer_locked(preview);
    preview->watch = watch ? *watch : (struct preview_watch){0};
    preview->watched = 0;
    monitor_notify(&preview->lock);
    monitor_unlock(&preview->lock);
}

void preview_figures(struct preview *preview, struct preview_figures *figures)
{
    monitor_lock(&preview->lock);
    *figures = preview->figures;
    figures->pts_us = AV_NOPTS_VALUE;
    if (preview->newest) {
        figures->width = preview->newest->width;
        figures->height = preview->newest->height;
        figures->pts_us = preview->about.pts_us;
    }
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        const struct stream *stream = preview->view[k].stream;
        figures->viewers += stream ? stream_viewers_locked(stream) : 0;
        figures->views += stream && stream_viewers_locked(stream);
    }
    monitor_unlock(&preview->lock);
}

// ---- streams ----

static bool is_same(const struct view *a, const struct view *b)
{
    return a->kind == b->kind && a->stage == b->stage && a->codec == b->codec &&
           !strcmp(a->other, b->other);
}

// A view without the members that do not change its picture.
static struct view simplify(const struct preview *preview, const struct view *view)
{
    struct view simple = {.kind = view->kind, .stage = view->stage, .codec = view->codec};
    if (simple.kind == VIEW_BEFORE || simple.stage < 0)
        simple.stage = -1;
    if (simple.kind == VIEW_DIFFERENCE || simple.kind == VIEW_SPLIT)
        snprintf(simple.other, sizeof simple.other, "%s", view->other);
    if (!*preview->codec_name)
        simple.codec = VIEW_MJPEG;
    return simple;
}

// The place of a view: its own, or one that nobody watches; -1: all are taken.
static int find_place_locked(const struct preview *preview, const struct view *view)
{
    int free = -1;
    for (int k = 0; k < PREVIEW_VIEWS; k++) {
        const struct stream *stream = preview->view[k].stream;
        bool ended = stream && stream_has_ended_locked(stream);
        if (stream && !ended && is_same(stream_view(stream), view))
            return k;
        if (!stream || ended || !stream_viewers_locked(stream))
            free = k;
    }
    return free;
}

static int count_viewers_locked(const struct preview *preview)
{
    int viewers = 0;
    for (int k = 0; k < PREVIEW_VIEWS; k++)
        if (preview->view[k].stream)
            viewers += stream_viewers_locked(preview->view[k].stream);
    return viewers;
}

// Begin to watch; the sentence says why not, and is NULL if so, or without memory. Takes *other.
static const char *join_locked(struct preview *preview, const struct view *view,
                               struct chain *other, struct http_stream **viewer)
{
    int k = find_place_locked(preview, view);
    if (!preview->newest)
        return "there is no picture yet";
    if (k < 0 || count_viewers_locked(preview) >= PREVIEW_VIEWERS)
        return k < 0 ? "as many different views as can be are watched already"
                     : "as many as can be are watching already";
    struct stream *stream = preview->view[k].stream;
    if (!stream || stream_has_ended_locked(stream) || !is_same(stream_view(stream), view)) {
        stream_unref_locked(&preview->view[k].stream);
        chain_free(&preview->view[k].other);
        if (stream_create(view, &preview->lock, &preview->view[k].stream))
            return NULL;
        preview->view[k].other = *other;
        *other = (struct chain){0};
    }
    *viewer = stream_join_locked(preview->view[k].stream);
    return NULL;
}

// Read the chain of a difference. False: the answer says that it is none.
static bool read_other(struct preview *preview, const struct view *view, struct chain *other,
                       struct http_answer *answer)
{
    struct chain_error error = {0};
    *other = (struct chain){0};
    enum status status = *view->other ? read_chain(preview, view->other, other, &error) : STATUS_OK;
    if (status == STATUS_USAGE)
        http_say_error(answer, 400, error.message);
    return !status;
}

void preview_answer_stream(struct preview *preview, const struct view *view,
                           struct http_answer *answer)
{
    struct view simple = simplify(preview, view);
    struct http_stream *viewer = NULL;
    struct chain other;
    if (!read_other(preview, &simple, &other, answer))
        return;
    monitor_lock(&preview->lock);
    const char *why = join_locked(preview, &simple, &other, &viewer);
    monitor_unlock(&preview->lock);
    chain_free(&other);
    if (why) {
        http_say_error(answer, 503, why);
        return;
    }
    answer->type =
        simple.codec == VIEW_H264 ? preview->mime : "multipart/x-mixed-replace; boundary=sluice";
    answer->stream = viewer;
}

// ---- single pictures ----

static enum status open_png(const AVFrame *picture, const struct log *log, struct encoder **encoder)
{
    const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
    const struct encoder_video video = {
        .frame = picture, .time_base = {1, 25}, .rate = {25, 1}, .still = true};
    AVDictionary *options = NULL;
    if (!codec)
        return log_fail(log, STATUS_OUTPUT, "this FFmpeg has no encoder for PNG");
    enum status status = STATUS_MEMORY; // level 3: six times as fast as 6, a tenth larger
    if (av_dict_set(&options, "compression_level", "3", 0) >= 0 &&
        av_dict_set(&options, "pred", "up", 0) >= 0)
        status = encoder_create(codec, &video, &options, log, encoder);
    av_dict_free(&options);
    return status;
}

static enum status take_png(struct encoder *encoder, AVPacket *packet, char **png, size_t *size)
{
    bool got = false;
    enum status status = encoder_receive(encoder, packet, &got);
    if (status || !got)
        return status ? status : STATUS_FAILED;
    *size = (size_t)packet->size;
    *png = malloc(*size);
    if (!*png)
        return STATUS_MEMORY;
    memcpy(*png, packet->data, *size);
    return STATUS_OK;
}

static enum status encode_png(AVFrame *picture, const struct log *log, char **png, size_t *size)
{
    struct encoder *encoder = NULL;
    AVPacket *packet = av_packet_alloc();
    bool sent;
    enum status status = packet ? open_png(picture, log, &encoder) : STATUS_MEMORY;
    picture->pts = 0;
    if (!status)
        status = encoder_send(encoder, picture, &sent);
    if (!status)
        status = encoder_send(encoder, NULL, &sent);
    if (!status)
        status = take_png(encoder, packet, png, size);
    encoder_destroy(&encoder);
    av_packet_free(&packet);
    return status;
}

// Take a shot that nobody took out of the list.
static void withdraw_locked(struct preview *preview, struct shot *shot)
{
    struct shot **at = &preview->shots;
    while (*at && *at != shot)
        at = &(*at)->next;
    if (*at)
        *at = shot->next;
    else // the renderer is at it
        while (!shot->done)
            monitor_wait(&preview->lock);
}

static void await_shot(struct preview *preview, struct shot *shot)
{
    int64_t until_ns = meter_now_ns() + INT64_C(2000000000);
    bool in_time = true;
    monitor_lock(&preview->lock);
    shot->next = preview->shots;
    preview->shots = shot;
    monitor_notify(&preview->lock);
    while (!shot->done && in_time)
        in_time = monitor_wait_until(&preview->lock, until_ns);
    if (!shot->done)
        withdraw_locked(preview, shot);
    monitor_unlock(&preview->lock);
}

enum status preview_picture(struct preview *preview, const struct view *view, char **png,
                            size_t *size)
{
    struct chain_error error = {0};
    struct chain other = {0};
    struct view simple = simplify(preview, view);
    *png = NULL;
    *size = 0;
    enum status status =
        *simple.other ? read_chain(preview, simple.other, &other, &error) : STATUS_OK;
    if (status)
        return status;
    struct shot shot = {.view = &simple, .other = &other, .status = STATUS_EOF};
    await_shot(preview, &shot);
    status = shot.status;
    if (!status)
        status = encode_png(shot.picture, preview->log, png, size);
    av_frame_free(&shot.picture);
    chain_free(&other);
    return status;
}
