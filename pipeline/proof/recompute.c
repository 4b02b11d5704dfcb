#include "pipeline/proof/recompute.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/filter.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/input/seek/pass.h"
#include "pipeline/input/seek/reel.h"
#include "pipeline/input/source.h"
#include "plan/backend.h"

struct recompute {
    struct recompute_request request;
    struct reel *reel; // NULL: there is a pass
    struct cursor *cursor;
    struct pass *pass; // NULL: times are sought
    AVFrame *passed;   // its last frame
    struct backend *backend;
    struct schedule schedule;
    struct filter *filter; // NULL: none yet
    enum AVPixelFormat candidates[2];
    struct sink_formats formats[MAX_PICTURES];
};

static const atomic_bool never;

// ---- life ----

static enum status open_cursor(struct recompute *recompute)
{
    const struct recompute_request *request = &recompute->request;
    enum status status =
        reel_of_file(&recompute->request.source, request->log, &never, &recompute->reel);
    if (status)
        return status;
    struct cursor_request cursor = {.reel = recompute->reel,
                                    .repeatable = true, // as parts are decoded
                                    .max_pixels = recompute->request.source.max_pixels,
                                    .log = request->log,
                                    .stop = &never};
    status = cursor_create(&cursor, &recompute->cursor);
    return status;
}

static enum status begin_pass(struct recompute *recompute)
{
    struct pass_request pass = {.source = &recompute->request.source,
                                .max_pixels = recompute->request.source.max_pixels,
                                .log = recompute->request.log,
                                .stop = &never};
    pass_destroy(&recompute->pass);
    return pass_create(&pass, &recompute->pass);
}

static enum status read_chain(struct recompute *recompute)
{
    struct sluice_config config = {.chain = recompute->request.chain};
    enum status status = config_schedule(&config, recompute->request.log, &recompute->schedule);
    if (status)
        return status;
    chain_truncate(recompute->schedule.chain, recompute->request.links);
    chain_mute(recompute->schedule.chain);
    return chain_load(recompute->schedule.chain, config_max_pixels(recompute->request.config),
                      recompute->request.log);
}

// The range of pictures that were noted: of those without a tag that which their format has then.
static enum sink_range noted_range(const struct recompute_request *request)
{
    const struct color_tags tags = {.range = request->range};
    struct format format;
    if (!pixel_describe(request->pixel, &tags, 1, 1, &format) || format.model == MODEL_RGB)
        return SINK_RANGE_ANY;
    return format.range == RANGE_FULL ? SINK_RANGE_FULL : SINK_RANGE_LIMITED;
}

static void choose_formats(struct recompute *recompute)
{
    const struct recompute_request *request = &recompute->request;
    struct sink_formats *formats = recompute->formats;
    formats->natural = request->pixel == AV_PIX_FMT_NONE;
    if (formats->natural)
        return;
    recompute->candidates[0] = request->pixel;
    recompute->candidates[1] = AV_PIX_FMT_NONE;
    formats->candidates = recompute->candidates;
    formats->asked = true;
    formats->asked_range = noted_range(request);
}

enum status recompute_create(const struct recompute_request *request, struct recompute **recompute)
{
    *recompute = NULL;
    if (request->config->backend == SLUICE_BACKEND_CUDA)
        return log_fail(request->log, STATUS_USAGE,
                        "--backend is cuda, and the CPU computes frames again: it takes cpu or "
                        "scalar here");
    *recompute = calloc(1, sizeof **recompute);
    if (!*recompute)
        return STATUS_MEMORY;
    (*recompute)->request = *request;
    bool scalar = request->config->backend == SLUICE_BACKEND_SCALAR;
    enum status status =
        scalar ? backend_scalar_create(request->log, &(*recompute)->backend)
               : backend_cpu_create(request->config->threads, request->log, &(*recompute)->backend);
    if (!status)
        status = read_chain(*recompute);
    (*recompute)->passed = av_frame_alloc();
    if (!status && !(*recompute)->passed)
        status = STATUS_MEMORY;
    if (!status)
        status = request->repeatable ? begin_pass(*recompute) : open_cursor(*recompute);
    choose_formats(*recompute);
    (*recompute)->request.chain = NULL;
    if (status)
        recompute_destroy(recompute);
    return status;
}

void recompute_destroy(struct recompute **recompute)
{
    if (!*recompute)
        return;
    filter_destroy(&(*recompute)->filter);
    av_frame_free(&(*recompute)->passed);
    pass_destroy(&(*recompute)->pass);
    cursor_destroy(&(*recompute)->cursor);
    reel_destroy(&(*recompute)->reel);
    schedule_free(&(*recompute)->schedule);
    backend_destroy(&(*recompute)->backend);
    free(*recompute);
    *recompute = NULL;
}

// ---- frames ----

// Make the filter for such frames, where there is none.
static enum status fit_filter(struct recompute *recompute, const AVFrame *frame)
{
    if (recompute->filter && filter_accepts(recompute->filter, frame))
        return STATUS_OK;
    filter_destroy(&recompute->filter);
    struct filter_request request = {.chain = recompute->schedule.chain,
                                     .formats = recompute->formats,
                                     .backend = recompute->backend,
                                     .slots = 1,
                                     .max_pixels = config_max_pixels(recompute->request.config),
                                     .software_pixel = AV_PIX_FMT_NONE,
                                     .log = recompute->request.log};
    return filter_create(&request, frame, &recompute->filter);
}

static enum status filter_one(struct recompute *recompute, const AVFrame *decoded, AVFrame **frame)
{
    enum status status = fit_filter(recompute, decoded);
    if (status)
        return status;
    AVFrame *in = av_frame_clone(decoded);
    *frame = av_frame_alloc();
    AVFrame *pictures[MAX_PICTURES] = {*frame};
    status = in && *frame ? filter_submit(recompute->filter, 0, in, pictures) : STATUS_MEMORY;
    if (!status)
        status = filter_wait(recompute->filter, 0, NULL);
    av_frame_free(&in);
    if (status)
        av_frame_free(frame);
    return status;
}

// Find the next frame of this pts in the pass, which is begun anew once.
static enum status find_in_pass(struct recompute *recompute, int64_t pts)
{
    bool anew = false;
    for (;;) {
        av_frame_unref(recompute->passed);
        enum status status = pass_next(recompute->pass, recompute->passed);
        if (!status && recompute->passed->pts == pts)
            return STATUS_OK;
        if (status == STATUS_EOF && !anew) {
            anew = true;
            status = begin_pass(recompute);
        }
        if (status)
            return status;
    }
}

enum status recompute_frame(struct recompute *recompute, int64_t pts, AVFrame **frame)
{
    *frame = NULL;
    if (recompute->pass) {
        enum status found = find_in_pass(recompute, pts);
        return found ? found : filter_one(recompute, recompute->passed, frame);
    }
    enum status status = recompute_go(recompute, pts);
    return status ? status : filter_one(recompute, cursor_frame(recompute->cursor), frame);
}

// ---- the source alone ----

enum status recompute_first(struct recompute *recompute, int64_t *at_us)
{
    enum status status = cursor_go(recompute->cursor, INT64_MIN / 2);
    if (!status)
        *at_us = cursor_us(recompute->cursor);
    return status;
}

enum status recompute_go(struct recompute *recompute, int64_t pts)
{
    AVRational base = cursor_time_base(recompute->cursor);
    enum status status = cursor_go(recompute->cursor, av_rescale_q(pts, base, AV_TIME_BASE_Q));
    const AVFrame *decoded = status ? NULL : cursor_frame(recompute->cursor);
    return !status && (!decoded || decoded->pts != pts) ? STATUS_EOF : status;
}

enum status recompute_peek(struct recompute *recompute, int64_t *at_us)
{
    return cursor_peek(recompute->cursor, at_us);
}
