#include "pipeline/output/mux_thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/hold.h"
#include "pipeline/output/transport/transport.h"

enum { MAX_WAITING = MUX_PACKETS_WAITING, MAX_SKIPPING = 1024 };
static const int64_t second_ns = 1000 * INT64_C(1000000);

// A change of the video's streams, from packet number `at` of the video on, counted from 0.
struct change {
    struct muxer_streams streams; // owned
    int64_t at;
    struct change *next;
};

struct mux_thread {
    const struct log *log;
    const struct stop *stop;
    struct destination destination;
    struct transport *transport;
    AVDictionary *options;

    // ---- set by mux_thread_open() ----
    bool skips, opened;
    struct mux_thread_watch watch;
    struct queue *queue;
    pthread_t thread;

    // ---- of the thread that pushes video ----
    bool skipping;  // up to the next key frame
    int64_t pushed; // packets of video
    int64_t finish_ns;

    // ---- the mux thread's, and set by mux_thread_open() ----
    int64_t popped;       // packets of video
    struct hold hold;     // of the other streams
    AVRational time_base; // of packets of video

    // ---- any thread's ----
    _Atomic int64_t packets, skipped, missing;
    atomic_int status; // enum status

    struct monitor lock;
    // ---- guarded by lock ----
    bool finishing, discarding, ended;
    bool cut;            // other streams end with the video
    struct change *next; // the oldest first; owned
};

// ---- creation ----

enum status mux_thread_create(const struct mux_thread_request *request, const struct log *log,
                              const struct stop *stop, struct mux_thread **mux)
{
    *mux = calloc(1, sizeof **mux);
    struct mux_thread *made = *mux;
    if (!made)
        return STATUS_MEMORY;
    struct transport_request transport = {
        .log = log,
        .stop = stop,
        .destination = &made->destination,
        .open_ns = (int64_t)(request->open_timeout * (double)second_ns),
        .stall_ns = (int64_t)(request->stall_timeout * (double)second_ns),
        .reconnects = request->reconnects,
    };
    made->log = log;
    made->stop = stop;
    monitor_init(&made->lock);
    enum status status = destination_init(&request->destination, log, &made->destination);
    if (!status)
        status = transport_create(&transport, &made->transport);
    if (status)
        mux_thread_destroy(mux);
    return status;
}

const struct destination *mux_thread_destination(const struct mux_thread *mux)
{
    return &mux->destination;
}

void mux_thread_set_options(struct mux_thread *mux, AVDictionary **options)
{
    assert(!mux->opened);
    av_dict_free(&mux->options);
    mux->options = *options;
    *options = NULL;
}

// ---- packets ----

// Take changes that begin with the next packet of video: another picture size.
static void take_change(struct mux_thread *mux)
{
    monitor_lock(&mux->lock);
    while (mux->next && mux->next->at <= mux->popped) {
        struct change *change = mux->next;
        mux->next = change->next;
        mux->time_base = change->streams.time_base;
        mux->transport->change(mux->transport, &change->streams);
        free(change);
    }
    monitor_unlock(&mux->lock);
}

static void note_skipped(struct mux_thread *mux)
{
    mux->skipped++;
    mux->missing += mux->destination.kind == DESTINATION_SEGMENTS;
}

// Skip a packet, because nothing can be written.
static void skip_packet(struct mux_thread *mux, const struct packet *packet)
{
    if (!transport_is_video(mux->transport, packet))
        return;
    take_change(mux);
    mux->popped++;
    note_skipped(mux);
}

static void skip_waiting(struct mux_thread *mux)
{
    struct packet *packet = NULL;
    while (!queue_pop_until(mux->queue, &packet, 0) && packet) {
        skip_packet(mux, packet);
        packet_destroy(&packet);
    }
}

static enum status write_packet(struct mux_thread *mux, struct packet *packet)
{
    int64_t begin_ns = meter_now_ns(), pts_us = packet->pts_us;
    bool video = transport_is_video(mux->transport, packet), written = false;
    enum status status = mux->transport->write(mux->transport, packet, &written);
    mux->popped += video;
    mux->packets += video && written;
    if (video && !written && !status)
        note_skipped(mux);
    if (mux->watch.wrote && written)
        mux->watch.wrote(mux->watch.opaque, video ? pts_us : AV_NOPTS_VALUE, begin_ns);
    return status;
}

// Write a packet that was held. The connection may have been lost meanwhile.
static enum status write_held(void *opaque, struct packet *packet)
{
    struct mux_thread *mux = opaque;
    return mux->transport->away ? STATUS_OK : write_packet(mux, packet);
}

static enum status write_video(struct mux_thread *mux, struct packet *packet)
{
    take_change(mux);
    hold_note_video(&mux->hold, packet, mux->time_base);
    enum status status = hold_release(&mux->hold, mux->hold.end_us, write_held, mux);
    if (!status && mux->transport->away)
        skip_packet(mux, packet);
    else if (!status)
        status = write_packet(mux, packet);
    return status;
}

static enum status write_other(struct mux_thread *mux, struct packet **packet)
{
    if (!hold_is_ahead(&mux->hold, *packet))
        return write_packet(mux, *packet);
    enum status status = hold_put(&mux->hold, packet);
    if (!status && hold_is_full(&mux->hold))
        status = hold_release(&mux->hold, mux->hold.end_us, write_held, mux);
    return status;
}

// ---- the thread ----

static enum status attempt(struct mux_thread *mux)
{
    bool stale = false;
    enum status status = mux->transport->attempt(mux->transport, &stale);
    if (stale)
        skip_waiting(mux);
    return status;
}

static enum status step(struct mux_thread *mux)
{
    const struct transport *transport = mux->transport;
    bool away = transport->away;
    struct packet *packet = NULL;
    enum status status =
        queue_pop_until(mux->queue, &packet, away ? transport->next_attempt_ns : INT64_MAX);
    if (status)
        return status;
    if (!packet)
        return attempt(mux);
    if (away) {
        hold_drop(&mux->hold);
        skip_packet(mux, packet);
    } else if (transport_is_video(transport, packet)) {
        status = write_video(mux, packet);
    } else {
        status = write_other(mux, &packet);
    }
    packet_destroy(&packet);
    return status;
}

// Write what is still held, unless the video ended before its source did, and finish.
static enum status finish(struct mux_thread *mux)
{
    int64_t until_us = mux->cut ? mux->hold.end_us : INT64_MAX;
    enum status status = hold_release(&mux->hold, until_us, write_held, mux);
    return status ? status : mux->transport->finish(mux->transport);
}

static bool await_verdict(struct mux_thread *mux)
{
    monitor_lock(&mux->lock);
    while (!mux->finishing && !mux->discarding)
        monitor_wait(&mux->lock);
    bool finish = mux->finishing;
    monitor_unlock(&mux->lock);
    return finish;
}

static void *run(void *opaque)
{
    struct mux_thread *mux = opaque;
    struct transport *transport = mux->transport;
    enum status status = STATUS_OK;
    while (!status)
        status = step(mux);
    if (status != STATUS_EOF || transport->ended)
        mux->status = (int)status; // for those who push
    skip_waiting(mux);
    queue_cancel(mux->queue);
    if (!status_is_failure(status) && await_verdict(mux) && status_is_failure(finish(mux)))
        status = STATUS_OUTPUT;
    transport_close(transport);
    monitor_lock(&mux->lock);
    if (status_is_failure(status))
        mux->status = (int)status;
    mux->ended = true;
    monitor_notify(&mux->lock);
    monitor_unlock(&mux->lock);
    return NULL;
}

enum status mux_thread_open(struct mux_thread *mux, const struct mux_thread_opening *opening)
{
    assert(!mux->opened && !mux->queue);
    mux->skips = opening->skips;
    mux->watch = opening->watch;
    enum status status =
        queue_create(mux->skips ? MAX_SKIPPING : MAX_WAITING, 1, packet_drop, &mux->queue);
    if (status)
        return status;
    queue_limit(mux->queue, budget_packets, packet_weigh);
    mux->time_base = opening->streams.time_base;
    hold_init(&mux->hold, &mux->transport->passthrough, opening->streams.frame_rate);
    mux->transport->request.options = mux->options;
    mux->transport->request.must_connect = opening->must_connect;
    status = mux->transport->open(mux->transport, &opening->streams);
    if (status)
        return status;
    mux->opened = !pthread_create(&mux->thread, NULL, run, mux);
    return mux->opened ? STATUS_OK
                       : log_fail(mux->log, STATUS_FAILED, "a thread could not be started");
}

// ---- the other side ----

const struct passthrough *mux_thread_passthrough(const struct mux_thread *mux)
{
    return &mux->transport->passthrough;
}

bool mux_thread_takes_key(struct mux_thread *mux, int64_t pts_us)
{
    struct transport *transport = mux->transport;
    bool due = transport->is_key_due && transport->is_key_due(transport, pts_us);
    return atomic_exchange(&transport->wants_key, false) || due;
}

bool mux_thread_is_idle(const struct mux_thread *mux)
{
    const struct transport *transport = mux->transport;
    return transport->is_idle && transport->is_idle(transport);
}

static enum status push_waiting(struct mux_thread *mux, struct packet **packet)
{
    return queue_push(mux->queue, packet);
}

static enum status push_skipping(struct mux_thread *mux, struct packet **packet, bool video)
{
    bool key = (*packet)->av->flags & AV_PKT_FLAG_KEY, taken = false;
    enum status status = STATUS_OK;
    if (video && key)
        mux->skipping = false;
    if (!video || !mux->skipping)
        status = queue_offer(mux->queue, packet, &taken);
    if (taken || status || !video)
        return status;
    if (!mux->skipping)
        mux->transport->wants_key = true;
    mux->skipping = true;
    mux->skipped++;
    return STATUS_OK;
}

enum status mux_thread_push(struct mux_thread *mux, const struct packet *packet)
{
    assert(mux->opened);
    assert((unsigned)packet->av->stream_index < mux->transport->passthrough.streams);
    bool video = transport_is_video(mux->transport, packet);
    if (mux->status)
        return (enum status)mux->status;
    struct packet *copy = packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    enum status status = mux->skips ? push_skipping(mux, &copy, video) : push_waiting(mux, &copy);
    if (video && !copy)
        mux->pushed++;
    packet_destroy(&copy);
    if (status == STATUS_EOF)
        return mux->status ? (enum status)mux->status : STATUS_STOPPED;
    return status;
}

static void free_change(struct change *change)
{
    if (change)
        muxer_streams_free(&change->streams);
    free(change);
}

enum status mux_thread_change(struct mux_thread *mux, const struct muxer_streams *streams)
{
    assert(mux->destination.kind == DESTINATION_SEGMENTS);
    struct change *change = calloc(1, sizeof *change), **last = &mux->next;
    enum status status = change ? muxer_streams_copy(streams, &change->streams) : STATUS_MEMORY;
    if (status) {
        free_change(change);
        return status;
    }
    change->at = mux->pushed;
    monitor_lock(&mux->lock);
    while (*last)
        last = &(*last)->next;
    *last = change;
    monitor_unlock(&mux->lock);
    return STATUS_OK;
}

void mux_thread_cancel(struct mux_thread *mux)
{
    if (mux->queue)
        queue_close(mux->queue);
}

// Wait for the thread's end until `until_ns`.
static bool await_end(struct mux_thread *mux, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&mux->lock);
    while (!mux->ended && in_time)
        in_time = monitor_wait_until(&mux->lock, until_ns);
    bool ended = mux->ended;
    monitor_unlock(&mux->lock);
    return ended;
}

static void decide(struct mux_thread *mux, bool finish)
{
    monitor_lock(&mux->lock);
    *(finish ? &mux->finishing : &mux->discarding) = true;
    monitor_notify(&mux->lock);
    monitor_unlock(&mux->lock);
    queue_close(mux->queue);
}

void mux_thread_finish(struct mux_thread *mux, bool cut)
{
    assert(!mux->finish_ns);
    monitor_lock(&mux->lock);
    mux->cut = cut;
    monitor_unlock(&mux->lock);
    mux->finish_ns = meter_now_ns();
    if (!mux->transport->connected) // there is no connection to close
        mux->transport->guard.over = destination_is_live(&mux->destination);
    decide(mux, true);
}

void mux_thread_discard(struct mux_thread *mux)
{
    assert(!mux->finish_ns);
    mux->finish_ns = meter_now_ns();
    mux->transport->guard.over = true;
    decide(mux, false);
}

// True if an address was never reached.
static bool is_unheard(const struct mux_thread *mux)
{
    return mux->destination.kind == DESTINATION_ADDRESS && !mux->transport->connects &&
           !status_is_failure((enum status)mux->status);
}

// The deadline for closing connections: a second, but several that are joined one after the other
// have no more than a stop has.
static int64_t patience_end_ns(const struct mux_thread *mux)
{
    const struct stop *stop = mux->stop;
    int64_t until_ns = mux->finish_ns + second_ns;
    if (!destination_is_live(&mux->destination))
        return INT64_MAX;
    if (!stop || !stop->asked)
        return until_ns;
    int64_t late_ns = stop->at_ns + stop_flush_ns, least_ns = mux->finish_ns + second_ns / 10;
    late_ns = late_ns > least_ns ? late_ns : least_ns;
    return until_ns < late_ns ? until_ns : late_ns;
}

enum status mux_thread_join(struct mux_thread *mux)
{
    if (!await_end(mux, patience_end_ns(mux))) {
        mux->transport->guard.over = true; // blocking calls end, except the look-up of a name
        await_end(mux, meter_now_ns() + second_ns / 4);
    }
    if (is_unheard(mux) && !mux->discarding)
        mux->status =
            log_fail(mux->log, STATUS_OUTPUT, "%s was never reached", mux->destination.shown);
    enum status status = (enum status)mux->status;
    return status_is_failure(status) ? status : STATUS_OK;
}

void mux_thread_destroy(struct mux_thread **mux)
{
    struct mux_thread *old = *mux;
    if (!old)
        return;
    if (old->opened) {
        decide(old, false);
        old->transport->guard.over = true;
        pthread_join(old->thread, NULL);
    }
    transport_destroy(&old->transport);
    hold_finish(&old->hold);
    queue_destroy(&old->queue);
    while (old->next) {
        struct change *change = old->next;
        old->next = change->next;
        free_change(change);
    }
    av_dict_free(&old->options);
    destination_finish(&old->destination);
    monitor_finish(&old->lock);
    free(old);
    *mux = NULL;
}

void mux_thread_figures(const struct mux_thread *mux, struct mux_thread_figures *figures)
{
    const struct transport *transport = mux->transport;
    *figures = (struct mux_thread_figures){
        .packets = mux->packets - transport->unsafe - transport->lost,
        .skipped = mux->skipped + transport->lost,
        .missing = mux->missing + transport->lost,
        .bytes = transport->bytes,
        .files = transport->files,
        .connects = transport->connects,
        .connected = transport->connected,
        .status = (enum status)mux->status,
    };
}
