#include "pipeline/output/writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/delivery.h"
#include "pipeline/output/hold.h"
#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"

enum { MAX_WAITING = 64, MAX_SKIPPING = 1024 };
static const int64_t second_ns = 1000 * INT64_C(1000000);

// From packet number `at` of the video on, counted from 0, other streams go in.
struct change {
    struct output_streams streams; // owned
    int64_t at;
    struct change *next;
};

struct writer {
    const struct log *log;
    const struct stop *stop;
    struct destination destination;
    struct delivery *delivery;
    AVDictionary *options;

    // ---- set by writer_open() ----
    bool skips, opened;
    struct writer_watch watch;
    struct queue *queue;
    pthread_t thread;

    // ---- of the thread that pushes video ----
    bool skipping;  // to the next key frame
    int64_t pushed; // packets of video
    int64_t finish_ns;

    // ---- the writer's thread's, and set by writer_open() ----
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

static void drop_packet(void *packet_)
{
    AVPacket *packet = packet_;
    av_packet_free(&packet);
}

// ---- creation ----

enum status writer_create(const struct writer_request *request, const struct log *log,
                          const struct stop *stop, struct writer **writer)
{
    *writer = calloc(1, sizeof **writer);
    struct writer *made = *writer;
    if (!made)
        return STATUS_MEMORY;
    struct destination_request destination = {
        .name = request->name,
        .format = request->format,
        .overwrite = request->overwrite,
        .segment = request->segment,
        .conflicts = request->conflicts,
    };
    struct delivery_request delivery = {
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
    enum status status = destination_init(&destination, log, &made->destination);
    if (!status)
        status = delivery_create(&delivery, &made->delivery);
    if (!status && av_dict_copy(&made->options, request->options, 0) < 0)
        status = STATUS_MEMORY;
    if (status)
        writer_destroy(writer);
    return status;
}

const struct destination *writer_destination(const struct writer *writer)
{
    return &writer->destination;
}

void writer_set_options(struct writer *writer, AVDictionary **options)
{
    av_dict_free(&writer->options);
    writer->options = *options;
    *options = NULL;
}

// ---- packets ----

// What the next packet of video is the first of: another picture size.
static void take_change(struct writer *writer)
{
    monitor_lock(&writer->lock);
    while (writer->next && writer->next->at <= writer->popped) {
        struct change *change = writer->next;
        writer->next = change->next;
        writer->time_base = change->streams.time_base;
        writer->delivery->change(writer->delivery, &change->streams);
        free(change);
    }
    monitor_unlock(&writer->lock);
}

static void note_skipped(struct writer *writer)
{
    writer->skipped++;
    writer->missing += writer->destination.kind == DESTINATION_SEGMENTS;
}

// A packet that comes while nothing can be written.
static void skip_packet(struct writer *writer, const AVPacket *packet)
{
    if (!delivery_is_video(writer->delivery, packet))
        return;
    take_change(writer);
    writer->popped++;
    note_skipped(writer);
}

static void skip_waiting(struct writer *writer)
{
    AVPacket *packet = NULL;
    while (!queue_pop_until(writer->queue, &packet, 0) && packet) {
        skip_packet(writer, packet);
        av_packet_free(&packet);
    }
}

static enum status write_packet(struct writer *writer, AVPacket *packet)
{
    int64_t begin_ns = meter_now_ns(), pts_us = packet->pos;
    bool video = delivery_is_video(writer->delivery, packet), written = false;
    enum status status = writer->delivery->write(writer->delivery, packet, &written);
    writer->popped += video;
    writer->packets += video && written;
    if (video && !written && !status)
        note_skipped(writer);
    if (writer->watch.wrote && written)
        writer->watch.wrote(writer->watch.opaque, video ? pts_us : AV_NOPTS_VALUE, begin_ns);
    return status;
}

// A packet that was held. The connection may have gone meanwhile.
static enum status write_held(void *writer_, AVPacket *packet)
{
    struct writer *writer = writer_;
    return writer->delivery->away ? STATUS_OK : write_packet(writer, packet);
}

static enum status write_video(struct writer *writer, AVPacket *packet)
{
    take_change(writer);
    hold_note_video(&writer->hold, packet, writer->time_base);
    enum status status = hold_release(&writer->hold, writer->hold.end_us, write_held, writer);
    if (!status && writer->delivery->away)
        skip_packet(writer, packet);
    else if (!status)
        status = write_packet(writer, packet);
    return status;
}

static enum status write_other(struct writer *writer, AVPacket **packet)
{
    if (!hold_is_ahead(&writer->hold, *packet))
        return write_packet(writer, *packet);
    enum status status = hold_put(&writer->hold, packet);
    if (!status && hold_is_full(&writer->hold))
        status = hold_release(&writer->hold, writer->hold.end_us, write_held, writer);
    return status;
}

// ---- the thread ----

static enum status attempt(struct writer *writer)
{
    bool stale = false;
    enum status status = writer->delivery->attempt(writer->delivery, &stale);
    if (stale)
        skip_waiting(writer);
    return status;
}

static enum status step(struct writer *writer)
{
    const struct delivery *delivery = writer->delivery;
    bool away = delivery->away;
    AVPacket *packet = NULL;
    enum status status =
        queue_pop_until(writer->queue, &packet, away ? delivery->next_attempt_ns : INT64_MAX);
    if (status)
        return status;
    if (!packet)
        return attempt(writer);
    if (away) {
        hold_drop(&writer->hold);
        skip_packet(writer, packet);
    } else if (delivery_is_video(delivery, packet)) {
        status = write_video(writer, packet);
    } else {
        status = write_other(writer, &packet);
    }
    av_packet_free(&packet);
    return status;
}

// What is still held goes in, unless the video ended before its source did.
static enum status finish(struct writer *writer)
{
    int64_t until_us = writer->cut ? writer->hold.end_us : INT64_MAX;
    enum status status = hold_release(&writer->hold, until_us, write_held, writer);
    return status ? status : writer->delivery->finish(writer->delivery);
}

static bool await_verdict(struct writer *writer)
{
    monitor_lock(&writer->lock);
    while (!writer->finishing && !writer->discarding)
        monitor_wait(&writer->lock);
    bool finish = writer->finishing;
    monitor_unlock(&writer->lock);
    return finish;
}

static void *run(void *writer_)
{
    struct writer *writer = writer_;
    struct delivery *delivery = writer->delivery;
    enum status status = STATUS_OK;
    while (!status)
        status = step(writer);
    if (status != STATUS_EOF || delivery->ended)
        writer->status = (int)status; // for those who push
    skip_waiting(writer);
    queue_cancel(writer->queue);
    if (!status_is_failure(status) && await_verdict(writer) && status_is_failure(finish(writer)))
        status = STATUS_OUTPUT;
    delivery_close(delivery);
    monitor_lock(&writer->lock);
    if (status_is_failure(status))
        writer->status = (int)status;
    writer->ended = true;
    monitor_notify(&writer->lock);
    monitor_unlock(&writer->lock);
    return NULL;
}

enum status writer_open(struct writer *writer, const struct writer_opening *opening)
{
    writer->skips = opening->skips;
    writer->watch = opening->watch;
    enum status status =
        queue_create(writer->skips ? MAX_SKIPPING : MAX_WAITING, 1, drop_packet, &writer->queue);
    if (status)
        return status;
    queue_limit(writer->queue, budget_packets, budget_of_packet);
    writer->time_base = opening->streams.time_base;
    status = hold_init(&writer->hold, opening->streams.from, opening->streams.frame_rate);
    if (status)
        return status;
    writer->delivery->request.options = writer->options;
    writer->delivery->request.must_connect = opening->must_connect;
    status = writer->delivery->open(writer->delivery, &opening->streams);
    if (status)
        return status;
    writer->opened = !pthread_create(&writer->thread, NULL, run, writer);
    return writer->opened ? STATUS_OK
                          : fail(writer->log, STATUS_FAILED, "a thread could not be started");
}

// ---- the other side ----

bool writer_wants(const struct writer *writer, int stream)
{
    return writer->delivery->wants[stream];
}

bool writer_takes_key(struct writer *writer, int64_t pts_us)
{
    struct delivery *delivery = writer->delivery;
    bool due = delivery->is_key_due && delivery->is_key_due(delivery, pts_us);
    return atomic_exchange(&delivery->wants_key, false) || due;
}

bool writer_is_idle(const struct writer *writer)
{
    const struct delivery *delivery = writer->delivery;
    return delivery->is_idle && delivery->is_idle(delivery);
}

static enum status push_waiting(struct writer *writer, AVPacket **packet)
{
    return queue_push(writer->queue, packet);
}

static enum status push_skipping(struct writer *writer, AVPacket **packet, bool video)
{
    bool key = (*packet)->flags & AV_PKT_FLAG_KEY, taken = false;
    enum status status = STATUS_OK;
    if (video && key)
        writer->skipping = false;
    if (!video || !writer->skipping)
        status = queue_offer(writer->queue, packet, &taken);
    if (taken || status || !video)
        return status;
    if (!writer->skipping)
        writer->delivery->wants_key = true;
    writer->skipping = true;
    writer->skipped++;
    return STATUS_OK;
}

enum status writer_push(struct writer *writer, const AVPacket *packet)
{
    bool video = delivery_is_video(writer->delivery, packet);
    if (writer->status)
        return (enum status)writer->status;
    AVPacket *copy = av_packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    enum status status =
        writer->skips ? push_skipping(writer, &copy, video) : push_waiting(writer, &copy);
    if (video && !copy)
        writer->pushed++;
    av_packet_free(&copy);
    if (status == STATUS_EOF)
        return writer->status ? (enum status)writer->status : STATUS_STOPPED;
    return status;
}

static void free_change(struct change *change)
{
    if (change)
        output_streams_free(&change->streams);
    free(change);
}

enum status writer_change(struct writer *writer, const struct output_streams *streams)
{
    struct change *change = calloc(1, sizeof *change), **last = &writer->next;
    enum status status = change ? output_streams_copy(streams, &change->streams) : STATUS_MEMORY;
    if (status) {
        free_change(change);
        return status;
    }
    change->at = writer->pushed;
    monitor_lock(&writer->lock);
    while (*last)
        last = &(*last)->next;
    *last = change;
    monitor_unlock(&writer->lock);
    return STATUS_OK;
}

void writer_cancel(struct writer *writer)
{
    if (writer->queue)
        queue_close(writer->queue);
}

// Wait for the thread's end until `until_ns`.
static bool await_end(struct writer *writer, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&writer->lock);
    while (!writer->ended && in_time)
        in_time = monitor_wait_until(&writer->lock, until_ns);
    bool ended = writer->ended;
    monitor_unlock(&writer->lock);
    return ended;
}

static void decide(struct writer *writer, bool finish)
{
    monitor_lock(&writer->lock);
    *(finish ? &writer->finishing : &writer->discarding) = true;
    monitor_notify(&writer->lock);
    monitor_unlock(&writer->lock);
    queue_close(writer->queue);
}

void writer_finish(struct writer *writer, bool cut)
{
    monitor_lock(&writer->lock);
    writer->cut = cut;
    monitor_unlock(&writer->lock);
    writer->finish_ns = meter_now_ns();
    if (!writer->delivery->connected) // nobody is there to part from
        writer->delivery->guard.over = destination_is_live(&writer->destination);
    decide(writer, true);
}

void writer_discard(struct writer *writer)
{
    writer->finish_ns = meter_now_ns();
    writer->delivery->guard.over = true;
    decide(writer, false);
}

// Nobody ever watched: no output came of it.
static bool is_unheard(const struct writer *writer)
{
    return writer->destination.kind == DESTINATION_ADDRESS && !writer->delivery->connects &&
           !status_is_failure((enum status)writer->status);
}

// Until when connections are waited for: a second, but of several that are joined one after the
// other not more than a stop has.
static int64_t patience_end_ns(const struct writer *writer)
{
    const struct stop *stop = writer->stop;
    int64_t until_ns = writer->finish_ns + second_ns;
    if (!destination_is_live(&writer->destination))
        return INT64_MAX;
    if (!stop || !stop->asked)
        return until_ns;
    int64_t late_ns = stop->at_ns + stop_flush_ns, least_ns = writer->finish_ns + second_ns / 10;
    late_ns = late_ns > least_ns ? late_ns : least_ns;
    return until_ns < late_ns ? until_ns : late_ns;
}

enum status writer_join(struct writer *writer)
{
    if (!await_end(writer, patience_end_ns(writer))) {
        writer->delivery->guard.over = true; // what waits gives up, except the look-up of a name
        await_end(writer, meter_now_ns() + second_ns / 4);
    }
    if (is_unheard(writer) && !writer->discarding)
        writer->status =
            fail(writer->log, STATUS_OUTPUT, "%s was never reached", writer->destination.shown);
    enum status status = (enum status)writer->status;
    return status_is_failure(status) ? status : STATUS_OK;
}

void writer_destroy(struct writer **writer)
{
    struct writer *old = *writer;
    if (!old)
        return;
    if (old->opened) {
        decide(old, false);
        old->delivery->guard.over = true;
        pthread_join(old->thread, NULL);
    }
    delivery_destroy(&old->delivery);
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
    *writer = NULL;
}

void writer_figures(const struct writer *writer, struct writer_figures *figures)
{
    const struct delivery *delivery = writer->delivery;
    *figures = (struct writer_figures){
        .packets = writer->packets - delivery->unsafe - delivery->lost,
        .skipped = writer->skipped + delivery->lost,
        .missing = writer->missing + delivery->lost,
        .bytes = delivery->bytes,
        .files = delivery->files,
        .connects = delivery->connects,
        .connected = delivery->connected,
        .status = (enum status)writer->status,
    };
}
