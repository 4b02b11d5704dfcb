#include "page/player/player.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <libavutil/cpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "page/player/player_internal.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/input/io/input_io.h"

static const double default_keep = 30, min_rate = 1.0 / 16, max_rate = 16;
static const int64_t default_bytes = 256 << 20;
// Times and steps beyond these are no different: the ends.
static const int64_t max_us = INT64_C(4000000000000000), max_frames = 1000000;
// The time that a seek may take before the next one ends it.
static const int64_t patience_ns = 300000000;

// ---- life ----

static void note_error(void *opaque, enum log_level level, const char *sentence)
{
    struct player *player = opaque;
    if (level != LOG_ERROR)
        return;
    monitor_lock(&player->lock);
    snprintf(player->error, sizeof player->error, "%s", sentence);
    monitor_unlock(&player->lock);
}

enum status player_create(const struct player_request *request, const struct log *log,
                          struct player **player)
{
    assert(request->show && log && request->keep >= 0 && request->keep_bytes >= 0);
    *player = calloc(1, sizeof **player);
    struct player *made = *player;
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    if (request->keep <= 0)
        made->request.keep = default_keep;
    if (!request->keep_bytes)
        made->request.keep_bytes = default_bytes;
    made->log = log;
    made->thread_log = (struct log){note_error, made};
    made->at_us = made->live_us = made->begin_us = made->end_us = AV_NOPTS_VALUE;
    made->rate = 1;
    monitor_init(&made->lock);
    made->started = !pthread_create(&made->thread, NULL, player_run, made);
    if (made->started)
        return STATUS_OK;
    player_destroy(player);
    log_print(log, LOG_ERROR, "the player's thread could not be started");
    return STATUS_FAILED;
}

static void forget(struct origin *origin)
{
    keep_destroy(&origin->keep);
    if (origin->described) {
        avformat_free_context(origin->described->format);
        free(origin->described->name);
        free(origin->described);
    }
    free(origin->name);
    free(origin->format);
    free(origin->pixfmt);
    free(origin->hosts);
    *origin = (struct origin){0};
}

void player_destroy(struct player **player)
{
    if (!*player)
        return;
    struct player *old = *player;
    monitor_lock(&old->lock);
    old->quit = true;
    old->stop = old->leave = true;
    monitor_notify(&old->lock);
    monitor_unlock(&old->lock);
    if (old->started)
        pthread_join(old->thread, NULL);
    forget(&old->origin);
    monitor_finish(&old->lock);
    free(old);
    *player = NULL;
}

// ---- a job ----

// True if the whole input can be read once more, with the same result.
static bool is_whole(const struct source *source)
{
    return source->io && !source->is_stdin && !source->simulate && input_io_size(source->io) >= 0;
}

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

static void describe_file(struct origin *origin, const struct sluice_config *config)
{
    origin->file = config_source(config);
    origin->file.name = origin->name = copy_text(origin->file.name);
    origin->file.format = origin->format = copy_text(origin->file.format);
    origin->file.pixfmt = origin->pixfmt = copy_text(origin->file.pixfmt);
    origin->file.playlist_hosts = origin->hosts = copy_text(origin->file.playlist_hosts);
}

static enum status describe_stream(struct origin *origin, const struct source *source,
                                   const struct log *log)
{
    struct source *made = origin->described = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->name = strdup(source->name);
    made->format = format_describe(source->format);
    made->video = source->video;
    return made->name && made->format ? STATUS_OK : STATUS_MEMORY;
}

static enum status create_keep(struct player *player, const struct source *source)
{
    struct origin *origin = &player->origin;
    const AVStream *video = source_video(source);
    double fps = origin->frame_rate;
    return keep_create(&(struct keep_request){.seconds = player->request.keep,
                                              .bytes = player->request.keep_bytes,
                                              .time_base = video->time_base,
                                              .frame_us = fps > 0 ? (int64_t)(1e6 / fps) : 0,
                                              .codec = video->codecpar},
                       &origin->keep);
}

// Make the thread let go of all that it has open.
static void close_and_wait(struct player *player)
{
    monitor_lock(&player->lock);
    player->wish = (struct wish){0};
    player->mode = PLAYER_IS_LIVE;
    player->joined = player->runs = false;
    player->ring = NULL;
    player->close = true;
    player->stop = player->leave = true;
    player->orders++;
    monitor_notify(&player->lock);
    while (player->close)
        monitor_wait(&player->lock);
    player->leave = false;
    monitor_unlock(&player->lock);
}

// Note what the thread needs of the job. A file is read again as a whole, unless its clock jumps,
// as it can in MPEG-TS: then what was kept of it is all there is.
static enum status describe(struct player *player, const struct source *source,
                            const struct sluice_config *config)
{
    struct origin *origin = &player->origin;
    AVRational rate = av_guess_frame_rate(source->format, source_video(source), NULL);
    bool whole = is_whole(source);
    origin->frame_rate = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
    origin->read = source;
    origin->repeatable = config->repeatable;
    origin->max_pixels = config_max_pixels(config);
    if (whole)
        describe_file(origin, config);
    if (whole && !origin->name)
        return STATUS_MEMORY;
    enum status status = describe_stream(origin, source, &player->thread_log);
    if (status || (whole && !(source->format->iformat->flags & AVFMT_TS_DISCONT)))
        return status;
    return create_keep(player, source);
}

static void begin_locked(struct player *player, const struct source *source)
{
    const AVStream *video = source_video(source);
    bool late = video->start_time != AV_NOPTS_VALUE;
    player->joined = player->runs = true;
    player->at_us = player->live_us = player->begin_us = player->end_us = AV_NOPTS_VALUE;
    *player->error = '\0';
    if (!player->origin.name) {
        player->ring = player->origin.keep;
        return;
    }
    player->begin_us = late ? av_rescale_q(video->start_time, video->time_base, AV_TIME_BASE_Q) : 0;
    player->end_us = player->begin_us + (int64_t)(source_seconds(source) * AV_TIME_BASE);
}

enum status player_join(struct player *player, const struct sluice_job *job,
                        const struct sluice_config *config)
{
    close_and_wait(player);
    forget(&player->origin);
    enum status status = describe(player, job->source, config);
    if (status) {
        forget(&player->origin);
        return status;
    }
    monitor_lock(&player->lock);
    begin_locked(player, job->source);
    monitor_unlock(&player->lock);
    return STATUS_OK;
}

int64_t player_memory(const struct player *player)
{
    const struct origin *origin = &player->origin;
    if (!origin->described)
        return 0;
    const AVCodecParameters *codec = source_video(origin->described)->codecpar;
    const int64_t bytes_of_pixel = 4;
    int64_t picture = (int64_t)codec->width * codec->height * bytes_of_pixel;
    return (origin->keep ? 2 * player->request.keep_bytes : 0) + cursor_cache + 2 * picture +
           budget_of_decoder(av_cpu_count(), picture);
}

// ---- orders ----

// Choose between the file and what was kept of it: once the clock has jumped, and the source has
// taken that out, the file knows other times than the job.
static void choose_locked(struct player *player)
{
    const struct origin *origin = &player->origin;
    bool kept = player->joined && origin->keep && (!origin->name || origin->jumps);
    struct keep *ring = kept ? origin->keep : NULL;
    if (player->mode != PLAYER_IS_LIVE || ring == player->ring)
        return;
    player->ring = ring;
    player->close = true;
    monitor_notify(&player->lock);
}

static void measure_locked(struct player *player, struct keep_span *span)
{
    choose_locked(player);
    *span = (struct keep_span){.begin_us = player->begin_us, .end_us = player->end_us};
    if (player->ring)
        keep_measure(player->ring, span);
}

static bool has_something_locked(struct player *player)
{
    struct keep_span span;
    measure_locked(player, &span);
    return player->joined && (!player->ring || span.first < span.end);
}

// Hold, from live: the thread decodes the frame that is shown, so that the next order finds it.
static void hold_locked(struct player *player, enum player_mode mode)
{
    struct keep_span span;
    if (player->mode == PLAYER_IS_LIVE) {
        measure_locked(player, &span);
        if (player->ring)
            keep_hold(player->ring, true);
        bool shown = player->at_us != AV_NOPTS_VALUE;
        player->wish = (struct wish){.seek = true, .at_us = shown ? player->at_us : span.begin_us};
        if (player->wish.at_us == AV_NOPTS_VALUE)
            player->wish.at_us = 0;
    }
    player->mode = mode;
}

void player_leave(struct player *player)
{
    monitor_lock(&player->lock);
    player->runs = false;
    if (player->joined && player->origin.keep)
        keep_finish(player->origin.keep);
    if (player->mode == PLAYER_IS_LIVE && has_something_locked(player) && player->ring) {
        hold_locked(player, PLAYER_IS_PAUSED);
        player->orders++;
    }
    monitor_notify(&player->lock);
    monitor_unlock(&player->lock);
}

static int64_t bounded(int64_t value, int64_t most)
{
    return value > most ? most : value < -most ? -most : value;
}

// Seek. What was sought before is shown on the way, unless that takes long.
static void seek_locked(struct player *player, int64_t at_us)
{
    bool plays = player->mode == PLAYER_IS_PLAYING;
    if (player->carrying && meter_now_ns() - player->carrying_ns > patience_ns)
        player->stop = true;
    hold_locked(player, plays ? PLAYER_IS_PLAYING : PLAYER_IS_PAUSED);
    player->wish = (struct wish){.seek = true, .at_us = bounded(at_us, max_us)};
}

static void obey_locked(struct player *player, const struct player_order *order)
{
    switch (order->action) {
    case PLAYER_LIVE:
        player_go_live_locked(player);
        break;
    case PLAYER_PAUSE:
        hold_locked(player, PLAYER_IS_PAUSED);
        break;
    case PLAYER_PLAY:
        hold_locked(player, PLAYER_IS_PLAYING);
        player->rate = order->rate > 0 ? order->rate : 1;
        break;
    case PLAYER_SEEK:
        seek_locked(player, order->at_us);
        break;
    case PLAYER_STEP:
        hold_locked(player, PLAYER_IS_PAUSED);
        player->wish.step = true;
        player->wish.frames =
            bounded(player->wish.frames + (order->frames ? order->frames : 1), max_frames);
        break;
    }
    player->orders++;
    *player->error = '\0';
}

static enum status refuse(char *why, size_t size, const char *sentence)
{
    snprintf(why, size, "%s", sentence);
    return STATUS_USAGE;
}

static enum status check_locked(struct player *player, const struct player_order *order, char *why,
                                size_t size)
{
    if (order->action == PLAYER_LIVE)
        return player->runs ? STATUS_OK : refuse(why, size, "no job is running");
    if (!player->joined)
        return refuse(why, size, "no job has been here yet");
    if (!has_something_locked(player))
        return refuse(why, size,
                      "nothing is kept: no key frame has come yet, or what follows one is larger "
                      "than what may be kept");
    if (order->action == PLAYER_PLAY && order->rate != 0 &&
        !(order->rate >= min_rate && order->rate <= max_rate))
        return refuse(why, size, "the rate is from 1/16 to 16");
    if (order->action == PLAYER_SEEK && order->at_us == AV_NOPTS_VALUE)
        return refuse(why, size, "the time to seek is missing");
    return STATUS_OK;
}

enum status player_do(struct player *player, const struct player_order *order, char *why,
                      size_t size)
{
    monitor_lock(&player->lock);
    enum status status = check_locked(player, order, why, size);
    if (!status)
        obey_locked(player, order);
    monitor_notify(&player->lock);
    monitor_unlock(&player->lock);
    return status;
}

// ---- the tap ----

void player_packet(struct player *player, const struct packet *packet)
{
    struct origin *origin = &player->origin;
    if (origin->keep)
        keep_put(origin->keep, packet);
    if (origin->name && origin->read->clock.offset_us)
        origin->jumps = true;
}

void player_frame(struct player *player, const AVFrame *frame, const struct tap_frame *about)
{
    monitor_lock(&player->lock);
    player->live_us = about->pts_us;
    player->rotation = about->rotation;
    if (player->mode == PLAYER_IS_LIVE) {
        player->at_us = about->pts_us;
        player->request.show(player->request.opaque, frame, about);
    }
    monitor_unlock(&player->lock);
}

// ---- state ----

static double behind_locked(const struct player *player)
{
    bool known = player->at_us != AV_NOPTS_VALUE && player->live_us != AV_NOPTS_VALUE;
    bool live = player->mode == PLAYER_IS_LIVE;
    return known && !live ? (double)(player->live_us - player->at_us) / AV_TIME_BASE : 0;
}

static bool is_busy_locked(const struct player *player)
{
    return player->carrying || player->wish.seek || player->wish.step;
}

void player_state(struct player *player, struct player_state *state)
{
    struct keep_span span;
    monitor_lock(&player->lock);
    measure_locked(player, &span);
    *state = (struct player_state){.mode = player->mode,
                                   .whole = player->joined && !player->ring,
                                   .busy = is_busy_locked(player),
                                   .at_us = player->at_us,
                                   .begin_us = span.begin_us,
                                   .end_us = span.end_us,
                                   .frame_rate = player->joined ? player->origin.frame_rate : 0,
                                   .rate = player->rate,
                                   .bytes = span.bytes,
                                   .behind = behind_locked(player)};
    memcpy(state->error, player->error, sizeof state->error);
    monitor_unlock(&player->lock);
}

bool player_holds(struct player *player)
{
    monitor_lock(&player->lock);
    bool holds = player->mode != PLAYER_IS_LIVE;
    monitor_unlock(&player->lock);
    return holds;
}

bool player_await(struct player *player, double seconds)
{
    int64_t until_ns = meter_now_ns() + (int64_t)(seconds * 1e9);
    monitor_lock(&player->lock);
    while (is_busy_locked(player) && monitor_wait_until(&player->lock, until_ns))
        ;
    bool done = !is_busy_locked(player);
    monitor_unlock(&player->lock);
    return done;
}
