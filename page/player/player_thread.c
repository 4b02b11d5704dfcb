// The player's thread: what is wished for is found and shown, and played on.
#include "page/player/player_internal.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <stdio.h>
#include <string.h>

#include "base/meter.h"
#include "pipeline/engine/threads/tap.h"

// A player that is so late does not catch up; a pause between two frames is no longer than this.
static const int64_t max_late_ns = 250000000, max_pause_us = 1000000;

// ---- carrying out ----

static void note_span(struct player *player)
{
    struct reel_span span;
    player->reel->measure(player->reel, &span);
    monitor_lock(&player->lock);
    player->begin_us = span.begin_us;
    player->end_us = span.end_us;
    monitor_unlock(&player->lock);
}

static enum status open_reel(struct player *player, struct keep *ring)
{
    const struct origin *origin = &player->origin;
    if (player->cursor)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (!player->reel && ring)
        status = reel_of_keep(ring, origin->described, &player->reel);
    else if (!player->reel)
        status = reel_of_file(&origin->file, &player->thread_log, &player->leave, &player->reel);
    if (status)
        return status;
    if (!ring)
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
                                    .software_pixel = frame->format,
                                    .rotation = player->rotation};
    player->at_us = about.pts_us;
    player->request.show(player->request.opaque, frame, &about);
}

// Find the frame that is wished for.
static enum status find(struct player *player, const struct wish *wish, struct keep *ring)
{
    enum status status = open_reel(player, ring);
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
    struct keep *ring = player->ring;
    if (!wish.seek)
        wish.at_us = player->at_us;
    player->wish = (struct wish){0};
    player->carrying = true;
    player->carrying_ns = meter_now_ns();
    player->stop = false;
    *player->error = '\0';
    monitor_unlock(&player->lock);
    enum status status = find(player, &wish, ring);
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

// The time at which the next frame is due: the pace begins with each order, and anew where it was
// not kept.
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

void player_go_live_locked(struct player *player)
{
    player->wish = (struct wish){0};
    player->stop = player->stale = true;
    player->mode = PLAYER_IS_LIVE;
    if (player->ring)
        keep_hold(player->ring, false);
}

// The end of what is there: live where the job goes on, else paused at the last frame. With the
// lock held.
static void end_playing_locked(struct player *player, enum status status)
{
    bool live = status == STATUS_EOF && player->runs && player->ring;
    player->mode = PLAYER_IS_PAUSED;
    if (live)
        player_go_live_locked(player);
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

void *player_run(void *player_)
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
