#include "page/player.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "base/monitor.h"
#include "page/cursor.h"
#include "page/keep.h"
#include "page/reel.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/input/io/input_io.h"
#include "pipeline/input/source.h"

static const double default_keep = 30, min_rate = 1.0 / 16, max_rate = 16;
static const int64_t default_bytes = 256 << 20;
// A player that is so late does not catch up; a pause between two frames is no longer than this.
static const int64_t max_late_ns = 250000000, max_pause_us = 1000000;

// What is to be shown: orders that wait come down to a time, and frames on or back from there.
struct wish {
    bool seek, step;
    int64_t at_us;
    int64_t frames;
};

// What a job leaves for the thread to open: set while it has nothing open.
struct origin {
    struct source *described; // the stream, without packets
    struct keep *keep;        // NULL: a file
    struct source_request file;
    char *name, *format, *pixfmt, *hosts; // the file's request points at them
    bool repeatable;
    int64_t max_pixels;
    double frame_rate;
};

struct player {
    struct player_request request;
    const struct log *log;
    struct log thread_log; // into `error`
    pthread_t thread;
    bool started;
    atomic_bool stop;  // ends what the thread is decoding
    atomic_bool leave; // ... and its reading of a file, for good
    struct origin origin;
    struct monitor lock;
    // ---- guarded by lock ----
    bool quit, close, joined, runs; // `runs`: the job does
    bool stale;                     // it has gone live: what the cursor holds counts no more
    bool carrying;                  // the thread carries out a wish
    enum player_mode mode;
    struct wish wish;
    int orders; // given so far
    double rate;
    int64_t at_us, live_us;   // of the frame shown, and of the job's newest
    int64_t begin_us, end_us; // of a file
    char error[256];
    // ---- the thread's ----
    struct reel *reel;
    struct cursor *cursor;
    int64_t pace_ns, pace_us; // a frame of this time was due then
    int paced;                // ... by this order
};

// ---- the thread: carrying out ----

static void note_error(void *opaque, enum log_level level, const char *sentence)
{
    struct player *player = opaque;
    if (level != LOG_ERROR)
        return;
    monitor_lock(&player->lock);
    snprintf(player->error, sizeof player->error, "%s", sentence);
    monitor_unlock(&player->lock);
}

static void note_span(struct player *player)
{
    struct reel_span span;
    player->reel->measure(player->reel, &span);
    monitor_lock(&player->lock);
    player->begin_us = span.begin_us;
    player->end_us = span.end_us;
    monitor_unlock(&player->lock);
}

static enum status open_reel(struct player *player)
{
    const struct origin *origin = &player->origin;
    if (player->cursor)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (!player->reel && origin->keep)
        status = reel_of_keep(origin->keep, origin->described, &player->reel);
    else if (!player->reel)
        status = reel_of_file(&origin->file, &player->thread_log, &player->leave, &player->reel);
    if (status)
        return status;
    if (!origin->keep)
        note_span(player);
    return cursor_create(&(struct cursor_request){.reel = player->reel,
                                                  .repeatable = origin->repeatable,
                                                  .max_pixels = origin->max_pixels,
                                                  .log = &player->thread_log,
                                                  .stop = &player->stop},
                         &player->cursor);
}

// Show the cursor's frame, unless the player has gone live meanwhile. With the lock held.
static void show_locked(struct player *player)
{
    const AVFrame *frame = cursor_frame(player->cursor);
    if (!frame || player->mode == PLAYER_IS_LIVE)
        return;
    const struct tap_frame about = {.time_base = cursor_time_base(player->cursor),
                                    .pts_us = cursor_us(player->cursor),
                                    .software_pixel = frame->format};
    player->at_us = about.pts_us;
    player->request.show(player->request.opaque, frame, &about);
}

// Find the frame that is wished for.
static enum status find(struct player *player, const struct wish *wish)
{
    enum status status = open_reel(player);
    if (!status && (wish->seek || !cursor_frame(player->cursor)))
        status = cursor_go(player->cursor, wish->at_us);
    if (!status && wish->frames)
        status = cursor_step(player->cursor, (int)wish->frames);
    return status;
}

static const char *words_for(enum status status)
{
    return status == STATUS_EOF      ? "nothing of what was kept can be shown"
           : status == STATUS_MEMORY ? "out of memory"
                                     : "the frame could not be decoded";
}

// Carry out what is wished for. With the lock held, which is let go meanwhile.
static void carry_out_locked(struct player *player)
{
    struct wish wish = player->wish;
    if (!wish.seek)
        wish.at_us = player->at_us;
    player->wish = (struct wish){0};
    player->carrying = true;
    player->stop = false;
    *player->error = '\0';
    monitor_unlock(&player->lock);
    enum status status = find(player, &wish);
    monitor_lock(&player->lock);
    player->carrying = false;
    if (!status)
        show_locked(player);
    else if (status != STATUS_STOPPED && !*player->error)
        snprintf(player->error, sizeof player->error, "%s", words_for(status));
    if (status && status != STATUS_STOPPED && player->mode == PLAYER_IS_PLAYING)
        player->mode = PLAYER_IS_PAUSED;
    monitor_notify(&player->lock);
}

// ---- the thread: playing ----

// When the next frame is due: the pace begins with each order, and anew where it was not kept.
static int64_t due_ns(struct player *player, int64_t next_us, double rate)
{
    int64_t here_us = cursor_us(player->cursor), now_ns = meter_now_ns();
    bool gap = next_us - here_us > max_pause_us || next_us < here_us;
    if (player->paced != player->orders || gap) {
        player->paced = player->orders;
        player->pace_ns = now_ns;
        player->pace_us = gap ? next_us - max_pause_us : here_us;
    }
    int64_t due = player->pace_ns + (int64_t)((double)(next_us - player->pace_us) * 1000 / rate);
    if (due < now_ns - max_late_ns)
        player->paced = player->orders - 1;
    return due;
}

static void go_live_locked(struct player *player)
{
    player->wish = (struct wish){0};
    player->stop = player->stale = true;
    player->mode = PLAYER_IS_LIVE;
    if (player->origin.keep)
        keep_hold(player->origin.keep, false);
}

// The end of what is there: live where the job goes on, else paused at the last frame. With the lock
// held.
static void end_playing_locked(struct player *player, enum status status)
{
    bool live = status == STATUS_EOF && player->runs && player->origin.keep;
    player->mode = PLAYER_IS_PAUSED;
    if (live)
        go_live_locked(player);
    monitor_notify(&player->lock);
}

// Play one frame on, when it is due, unless an order comes first. With the lock held, which is let
// go meanwhile.
static void play_locked(struct player *player)
{
    int orders = player->orders;
    int64_t next_us = 0;
    player->stop = false;
    monitor_unlock(&player->lock);
    enum status status = cursor_peek(player->cursor, &next_us);
    monitor_lock(&player->lock);
    if (orders != player->orders || player->quit || player->close)
        return;
    if (status) {
        end_playing_locked(player, status);
        return;
    }
    int64_t due = due_ns(player, next_us, player->rate);
    while (orders == player->orders && !player->quit && !player->close && meter_now_ns() < due)
        monitor_wait_until(&player->lock, due);
    if (orders != player->orders || player->quit || player->close)
        return;
    cursor_step(player->cursor, 1);
    show_locked(player);
}

// ---- the thread ----

// Let go of what is open: all of it, or of the frames and the decoder. With the lock held, which is
// let go meanwhile.
static void let_go_locked(struct player *player)
{
    bool all = player->close;
    player->stale = false;
    monitor_unlock(&player->lock);
    cursor_destroy(&player->cursor);
    if (all)
        reel_destroy(&player->reel);
    monitor_lock(&player->lock);
    player->close &= !all;
    monitor_notify(&player->lock);
}

static void run_locked(struct player *player)
{
    bool wished = player->wish.seek || player->wish.step;
    bool ready = player->cursor && cursor_frame(player->cursor);
    if (player->close || player->stale) {
        let_go_locked(player);
    } else if (wished) {
        carry_out_locked(player);
    } else if (player->mode == PLAYER_IS_PLAYING && ready) {
        play_locked(player);
    } else {
        monitor_wait(&player->lock);
    }
}

static void *run(void *player_)
{
    struct player *player = player_;
    monitor_lock(&player->lock);
    while (!player->quit)
        run_locked(player);
    monitor_unlock(&player->lock);
    cursor_destroy(&player->cursor);
    reel_destroy(&player->reel);
    return NULL;
}

// ---- life ----

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
    made->started = !pthread_create(&made->thread, NULL, run, made);
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
    old->quit = old->stop = old->leave = true;
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

// Whether the whole input can be read once more, with the same result.
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
    player->close = player->stop = player->leave = true;
    player->orders++;
    monitor_notify(&player->lock);
    while (player->close)
        monitor_wait(&player->lock);
    player->leave = false;
    monitor_unlock(&player->lock);
}

enum status player_join(struct player *player, const struct sluice_job *job,
                        const struct sluice_config *config)
{
    const struct source *source = job->source;
    struct origin *origin = &player->origin;
    AVStream *video = source_video(source);
    AVRational rate = av_guess_frame_rate(source->format, video, NULL);
    bool whole = is_whole(source);
    close_and_wait(player);
    forget(origin);
    origin->frame_rate = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
    origin->repeatable = config->repeatable;
    origin->max_pixels = config_max_pixels(config);
    if (whole)
        describe_file(origin, config);
    enum status status = describe_stream(origin, source, &player->thread_log);
    if (!status && !whole)
        status = create_keep(player, source);
    if (status) {
        forget(origin);
        return status;
    }
    int64_t begin_us = video->start_time == AV_NOPTS_VALUE
                           ? 0
                           : av_rescale_q(video->start_time, video->time_base, AV_TIME_BASE_Q);
    monitor_lock(&player->lock);
    player->joined = player->runs = true;
    player->at_us = player->live_us = player->begin_us = player->end_us = AV_NOPTS_VALUE;
    if (whole) {
        player->begin_us = begin_us;
        player->end_us = begin_us + (int64_t)(source_seconds(source) * AV_TIME_BASE);
    }
    *player->error = '\0';
    monitor_unlock(&player->lock);
    return STATUS_OK;
}

// ---- orders ----

static void measure_locked(struct player *player, struct keep_span *span)
{
    *span = (struct keep_span){.begin_us = player->begin_us, .end_us = player->end_us};
    if (player->joined && player->origin.keep)
        keep_measure(player->origin.keep, span);
}

static bool has_something_locked(struct player *player)
{
    struct keep_span span;
    measure_locked(player, &span);
    return player->joined && (!player->origin.keep || span.first < span.end);
}

// Hold, from live: the thread decodes the frame that is shown, so that the next order finds it.
static void hold_locked(struct player *player, enum player_mode mode)
{
    struct keep_span span;
    if (player->mode == PLAYER_IS_LIVE) {
        if (player->origin.keep)
            keep_hold(player->origin.keep, true);
        measure_locked(player, &span);
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
    if (player->mode == PLAYER_IS_LIVE && has_something_locked(player)) {
        hold_locked(player, PLAYER_IS_PAUSED);
        player->orders++;
    }
    monitor_notify(&player->lock);
    monitor_unlock(&player->lock);
}

static int64_t bounded(int64_t frames)
{
    const int64_t most = 1000000;
    return frames > most ? most : frames < -most ? -most : frames;
}

static void obey_locked(struct player *player, const struct player_order *order)
{
    bool plays = player->mode == PLAYER_IS_PLAYING;
    switch (order->action) {
    case PLAYER_LIVE:
        go_live_locked(player);
        break;
    case PLAYER_PAUSE:
        hold_locked(player, PLAYER_IS_PAUSED);
        break;
    case PLAYER_PLAY:
        hold_locked(player, PLAYER_IS_PLAYING);
        player->rate = order->rate > 0 ? order->rate : 1;
        break;
    case PLAYER_SEEK:
        hold_locked(player, plays ? PLAYER_IS_PLAYING : PLAYER_IS_PAUSED);
        player->wish = (struct wish){.seek = true, .at_us = order->at_us};
        break;
    case PLAYER_STEP:
        hold_locked(player, PLAYER_IS_PAUSED);
        player->wish.step = true;
        player->wish.frames = bounded(player->wish.frames + (order->frames ? order->frames : 1));
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
    if (player->origin.keep)
        keep_put(player->origin.keep, packet);
}

void player_frame(struct player *player, const AVFrame *frame, const struct tap_frame *about)
{
    monitor_lock(&player->lock);
    player->live_us = about->pts_us;
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
                                   .whole = player->joined && !player->origin.keep,
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
