#include "pipeline/writer.h"

#include <libavutil/mathematics.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/backoff.h"
#include "pipeline/budget.h"
#include "pipeline/check.h"
#include "pipeline/compat.h"
#include "pipeline/file.h"
#include "pipeline/meter.h"
#include "pipeline/monitor.h"
#include "pipeline/mjpeg.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

enum { WAITING_MOST = 64, SKIPPING_MOST = 1024, HELD_MOST = 1024, NAMES_TRIED = 1000 };
static const int64_t second_ns = 1000 * INT64_C(1000000);
static const int64_t good_ns = 100 * INT64_C(1000000); // so long a connection is to stand

// From packet number `at` of the video on, counted from 0, other streams go in.
struct change {
    struct output_streams streams; // owned
    int64_t at;
    struct change *next;
};

struct writer {
    const struct log *log;
    const struct stop *stop;
    struct target target;
    AVDictionary *options;
    int64_t open_ns, stall_ns;
    int reconnects;

    // ---- set by writer_open() ----
    bool skips, must_connect, opened;
    int video;   // the filtered stream of the source
    bool *wants; // by stream of the source
    struct writer_watch watch;
    struct queue *queue;
    pthread_t thread;
    struct output_guard guard;

    // ---- of the thread that pushes video ----
    bool skipping;      // to the next key frame
    int64_t key_due_us; // where the next segment is to begin
    int64_t pushed;     // packets of video
    int64_t finish_ns;

    // ---- the writer's thread's ----
    struct output_streams streams; // owned
    struct output *output;         // NULL: a connection that does not stand, or a page
    struct mjpeg *page;
    bool awaits_key; // nothing is of use before
    int64_t popped;  // packets of video
    int64_t segment_due_us, origin_us;
    AVPacket *held[HELD_MOST]; // of other streams, until the video of their time tells the segment
    int helds;
    int64_t video_us;   // how far that is
    bool turns;         // the next segment is due, whatever the time
    char *segment_name; // of the last, without a number; NULL: there was none
    int segment_number;
    int attempts; // since a connection was good, the one that made it included
    unsigned seed;
    int64_t next_attempt_ns, lost_ns, connected_ns;
    int64_t closed_bytes;

    // ---- any thread's ----
    atomic_bool wants_key;
    _Atomic int64_t packets, skipped, bytes, files, connects;
    atomic_bool connected;
    atomic_int status; // enum status

    struct monitor lock;
    // ---- guarded by lock ----
    bool finishing, discarding, ended;
    struct change *next; // the oldest first; owned
};

static void drop_packet(void *packet_)
{
    AVPacket *packet = packet_;
    av_packet_free(&packet);
}

static bool is_video(const struct writer *writer, const AVPacket *packet)
{
    return packet->stream_index == writer->video;
}

// ---- what goes in, kept ----

static void forget_streams(struct output_streams *streams)
{
    avformat_free_context((AVFormatContext *)streams->from);
    avcodec_parameters_free((AVCodecParameters **)&streams->codec);
    av_frame_free((AVFrame **)&streams->first);
    *streams = (struct output_streams){0};
}

static enum status keep_streams(const struct output_streams *from, struct output_streams *kept)
{
    *kept = *from;
    AVCodecParameters *codec = avcodec_parameters_alloc();
    AVFrame *first = av_frame_alloc();
    kept->from = format_describe(from->from);
    kept->codec = codec;
    kept->first = first;
    if (kept->from && codec && first && avcodec_parameters_copy(codec, from->codec) >= 0 &&
        av_frame_copy_props(first, from->first) >= 0)
        return STATUS_OK;
    forget_streams(kept);
    return STATUS_MEMORY;
}

// ---- creation ----

enum status writer_create(const struct writer_request *request, const struct log *log,
                          const struct stop *stop, struct writer **writer)
{
    *writer = calloc(1, sizeof **writer);
    struct writer *made = *writer;
    if (!made)
        return STATUS_MEMORY;
    struct target_request target = {
        .name = request->name,
        .format = request->format,
        .overwrite = request->overwrite,
        .segment = request->segment,
    };
    made->log = log;
    made->stop = stop;
    made->open_ns = (int64_t)(request->open_timeout * (double)second_ns);
    made->stall_ns = (int64_t)(request->stall_timeout * (double)second_ns);
    made->reconnects = request->reconnects;
    made->seed = (unsigned)meter_now_ns();
    monitor_init(&made->lock);
    enum status status = target_init(&target, log, &made->target);
    if (!status && av_dict_copy(&made->options, request->options, 0) < 0)
        status = STATUS_MEMORY;
    if (status)
        writer_destroy(writer);
    return status;
}

const struct target *writer_target(const struct writer *writer)
{
    return &writer->target;
}

void writer_set_options(struct writer *writer, AVDictionary **options)
{
    av_dict_free(&writer->options);
    writer->options = *options;
    *options = NULL;
}

// ---- outputs: the one file, the next segment, the next connection ----

static enum status begin_output(struct writer *writer, const char *name,
                                const struct output_streams *streams)
{
    AVDictionary *options = NULL;
    if (av_dict_copy(&options, writer->options, 0) < 0)
        return STATUS_MEMORY;
    writer->guard.deadline_ns =
        target_is_live(&writer->target) ? meter_now_ns() + writer->open_ns : 0;
    enum status status = output_create(&writer->target, name, writer->log, writer->stop,
                                       &writer->guard, &writer->output);
    if (!status)
        status = output_add_streams(writer->output, streams);
    if (!status)
        status = output_begin(writer->output, &options);
    av_dict_free(&options);
    writer->streams.again = true;
    return status;
}

static void note_size(struct writer *writer)
{
    writer->bytes = writer->closed_bytes + (writer->output ? output_size(writer->output) : 0);
}

// The current output is done, one way or the other.
static void close_output(struct writer *writer)
{
    if (writer->output)
        writer->closed_bytes += output_size(writer->output);
    output_destroy(&writer->output);
    note_size(writer);
}

// The first name that is free: of a file that may be replaced, too, but of none of this writer's.
static enum status name_segment(struct writer *writer, int64_t wall_s, int64_t media_us,
                                char **name)
{
    static const struct log silent = {0};
    char *plain = target_segment_name(&writer->target, wall_s, media_us, 0);
    bool again = plain && writer->segment_name && !strcmp(plain, writer->segment_name);
    int number = again ? writer->segment_number + 1 : 0, last = number + NAMES_TRIED;
    free(writer->segment_name);
    writer->segment_name = plain;
    *name = NULL;
    if (plain)
        target_make_folders(&writer->target, plain);
    do {
        free(*name);
        *name = target_segment_name(&writer->target, wall_s, media_us, number);
    } while (*name && file_check(*name, writer->target.overwrite, &silent) && ++number < last);
    writer->segment_number = number;
    return *name && plain ? STATUS_OK : STATUS_MEMORY;
}

static enum status begin_segment(struct writer *writer, const struct output_streams *streams,
                                 int64_t pts_us)
{
    int64_t wall_s = streams->live ? (int64_t)time(NULL) : -1;
    char *name = NULL;
    enum status status = name_segment(writer, wall_s, pts_us - writer->origin_us, &name);
    if (!status)
        status = begin_output(writer, name, streams);
    writer->files++;
    free(name);
    return status;
}

// The packet, a key frame, begins the next segment; its time is the segment's zero.
static enum status next_segment(struct writer *writer, int64_t pts_us)
{
    enum status status = output_finish(writer->output);
    close_output(writer);
    writer->turns = false;
    while (writer->segment_due_us <= pts_us)
        writer->segment_due_us += writer->target.segment_us;
    writer->streams.shift = pts_us;
    return status ? status : begin_segment(writer, &writer->streams, pts_us);
}

// ---- connections ----

static void say_lost(struct writer *writer, const char *why)
{
    log_print(writer->log, LOG_WARNING,
              writer->connects ? "%s is lost (%s); it is connected again"
                               : "%s is not reached (%s); it is tried again",
              writer->target.shown, why);
    writer->lost_ns = meter_now_ns();
}

static void say_connected(struct writer *writer)
{
    if (writer->lost_ns)
        log_print(writer->log, LOG_WARNING, "%s is %s after %.1f s", writer->target.shown,
                  writer->connects ? "back" : "reached",
                  (double)(meter_now_ns() - writer->lost_ns) / (double)second_ns);
    writer->lost_ns = 0;
}

static bool has_given_up(const struct writer *writer)
{
    return writer->reconnects >= 0 && writer->attempts > writer->reconnects;
}

static bool is_last_attempt(const struct writer *writer)
{
    return writer->target.kind == TARGET_DISPLAY || (!writer->connects && writer->must_connect) ||
           has_given_up(writer);
}

// The output is closed, and the next attempt comes in time: at once, and then more and more slowly.
static void await_next_attempt(struct writer *writer)
{
    writer->next_attempt_ns = meter_now_ns() + backoff_ns(writer->attempts - 1, &writer->seed);
    close_output(writer);
}

static enum status attempt_failed(struct writer *writer)
{
    const char *why = output_error(writer->output);
    enum status status = STATUS_OK;
    if (writer->guard.over)
        status = STATUS_EOF;
    else if (is_last_attempt(writer))
        status =
            fail(writer->log, STATUS_OUTPUT, "%s is not reached: %s", writer->target.shown, why);
    else if (!writer->lost_ns)
        say_lost(writer, why);
    else
        log_print(writer->log, LOG_DEBUG, "%s is not reached (attempt %d): %s",
                  writer->target.shown, writer->attempts, why);
    await_next_attempt(writer);
    return status;
}

// A packet that comes while there is no connection.
static void leave_out(struct writer *writer, const AVPacket *packet)
{
    writer->skipped += is_video(writer, packet);
}

// What has waited for a connection is old by now.
static void leave_out_waiting(struct writer *writer)
{
    AVPacket *packet = NULL;
    while (!queue_pop_until(writer->queue, &packet, 0) && packet) {
        leave_out(writer, packet);
        av_packet_free(&packet);
    }
}

// Try to have a connection that can be written to.
static enum status attempt(struct writer *writer)
{
    writer->attempts++;
    enum status status = begin_output(writer, writer->target.name, &writer->streams);
    if (status == STATUS_EOF)
        return attempt_failed(writer);
    if (status)
        return status;
    if (writer->lost_ns)
        leave_out_waiting(writer);
    say_connected(writer);
    writer->connects++;
    writer->connected = true;
    writer->connected_ns = meter_now_ns();
    writer->awaits_key = true;
    writer->wants_key = true;
    return STATUS_OK;
}

// A call on the output said that it is gone. A server that takes connections and ends them at once
// is not there.
static enum status lost(struct writer *writer)
{
    bool window = writer->target.kind == TARGET_DISPLAY;
    const char *why = output_error(writer->output);
    enum status status = STATUS_OK;
    if (meter_now_ns() - writer->connected_ns > good_ns)
        writer->attempts = 1;
    if (window && !writer->packets) // the muxer says so only now
        status =
            fail(writer->log, STATUS_OUTPUT, "%s no window could be opened", writer->target.shown);
    else if (window || writer->guard.over)
        status = STATUS_EOF;
    else if (has_given_up(writer))
        status = fail(writer->log, STATUS_OUTPUT, "%s is lost: %s", writer->target.shown, why);
    else
        say_lost(writer, why);
    writer->connected = false;
    await_next_attempt(writer);
    return status;
}

// ---- packets ----

// What the packet is the first of: another picture size.
static void take_change(struct writer *writer)
{
    monitor_lock(&writer->lock);
    while (writer->next && writer->next->at <= writer->popped) {
        struct change *change = writer->next;
        writer->next = change->next;
        forget_streams(&writer->streams);
        writer->streams = change->streams;
        free(change);
        writer->turns = true;
    }
    monitor_unlock(&writer->lock);
}

static int64_t time_of(const struct writer *writer, const AVPacket *packet)
{
    const AVStream *stream = writer->streams.from->streams[packet->stream_index];
    int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    return time == AV_NOPTS_VALUE ? INT64_MIN
                                  : av_rescale_q(time, stream->time_base, AV_TIME_BASE_Q);
}

// Write what has been held and comes before `until_us`.
static enum status write_held(struct writer *writer, int64_t until_us)
{
    enum status status = STATUS_OK;
    int kept = 0;
    for (int k = 0; k < writer->helds; k++) {
        AVPacket *packet = writer->held[k];
        if (status || time_of(writer, packet) >= until_us) {
            writer->held[kept++] = packet;
            continue;
        }
        status = output_write(writer->output, packet, packet->stream_index);
        av_packet_free(&packet);
    }
    writer->helds = kept;
    return status;
}

// Encoders keep pictures back, so that sound comes long before its video.
static enum status hold(struct writer *writer, const AVPacket *packet)
{
    AVPacket *copy = av_packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    enum status status = writer->helds == HELD_MOST ? write_held(writer, INT64_MAX) : STATUS_OK;
    writer->held[writer->helds++] = copy;
    return status ? status : write_held(writer, writer->video_us);
}

static enum status turn_segment(struct writer *writer, const AVPacket *packet)
{
    int64_t pts_us = packet->pos;
    take_change(writer);
    bool due =
        packet->flags & AV_PKT_FLAG_KEY && (writer->turns || pts_us >= writer->segment_due_us);
    writer->video_us = pts_us > writer->video_us ? pts_us : writer->video_us;
    enum status status = write_held(writer, writer->video_us);
    return due && !status ? next_segment(writer, pts_us) : status;
}

static enum status write_output(struct writer *writer, AVPacket *packet)
{
    enum status status = STATUS_OK;
    bool segments = writer->target.kind == TARGET_SEGMENTS, video = is_video(writer, packet);
    if (segments && !video)
        return hold(writer, packet);
    if (segments)
        status = turn_segment(writer, packet);
    if (target_is_live(&writer->target))
        writer->guard.deadline_ns = meter_now_ns() + writer->stall_ns;
    if (!status)
        status = output_write(writer->output, packet, packet->stream_index);
    note_size(writer);
    return status == STATUS_EOF ? lost(writer) : status;
}

static enum status write_packet(struct writer *writer, AVPacket *packet)
{
    int64_t begin_ns = meter_now_ns(), pts_us = packet->pos;
    bool video = is_video(writer, packet), key = packet->flags & AV_PKT_FLAG_KEY;
    if (writer->awaits_key && video && key)
        writer->awaits_key = false;
    if (writer->awaits_key) {
        writer->skipped += video;
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    if (writer->page)
        status = mjpeg_show(writer->page, packet);
    else
        status = write_output(writer, packet);
    writer->popped += video;
    bool written = !status && (writer->output || writer->page); // and not lost with its connection
    writer->packets += video && written;
    writer->skipped += video && !written && !status;
    if (writer->watch.wrote && written)
        writer->watch.wrote(writer->watch.opaque, video ? pts_us : AV_NOPTS_VALUE, begin_ns);
    return status;
}

// ---- the thread ----

static enum status step(struct writer *writer)
{
    bool away = target_is_live(&writer->target) && !writer->output && !writer->page;
    AVPacket *packet = NULL;
    enum status status =
        queue_pop_until(writer->queue, &packet, away ? writer->next_attempt_ns : INT64_MAX);
    if (status)
        return status;
    if (!packet)
        return attempt(writer);
    if (away)
        leave_out(writer, packet);
    else
        status = write_packet(writer, packet);
    av_packet_free(&packet);
    return status;
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

static enum status end(struct writer *writer)
{
    enum status status = STATUS_OK;
    if (writer->output && target_is_live(&writer->target))
        writer->guard.deadline_ns = meter_now_ns() + second_ns;
    if (writer->output)
        status = write_held(writer, INT64_MAX);
    if (writer->output && !status)
        status = output_finish(writer->output);
    return status == STATUS_EOF ? STATUS_OK : status; // a server that has gone misses the goodbye
}

static void *run(void *writer_)
{
    struct writer *writer = writer_;
    enum status status = STATUS_OK;
    while (!status)
        status = step(writer);
    if (status != STATUS_EOF || writer->target.kind == TARGET_DISPLAY)
        writer->status = (int)status; // for those who push
    leave_out_waiting(writer);
    queue_abandon(writer->queue);
    if (!status_is_failure(status) && await_verdict(writer) && status_is_failure(end(writer)))
        status = STATUS_OUTPUT;
    close_output(writer);
    monitor_lock(&writer->lock);
    if (status_is_failure(status))
        writer->status = (int)status;
    writer->ended = true;
    monitor_tell(&writer->lock);
    monitor_unlock(&writer->lock);
    return NULL;
}

// Of an address, what it would take is found out before it is reached.
static enum status open_address(struct writer *writer)
{
    enum status status = output_create(&writer->target, writer->target.name, writer->log,
                                       writer->stop, &writer->guard, &writer->output);
    return status ? status : output_add_streams(writer->output, &writer->streams);
}

// An address that is taken already is an output that cannot be written.
static enum status open_page(struct writer *writer)
{
    enum status status = mjpeg_create(writer->target.name, writer->log, &writer->page);
    if (!status)
        log_print(writer->log, LOG_INFO, "the picture is at %s", mjpeg_url(writer->page));
    return status == STATUS_FAILED ? STATUS_OUTPUT : status;
}

static enum status open_target(struct writer *writer, const struct output_streams *streams)
{
    switch (writer->target.kind) {
    case TARGET_FILE:
        return begin_output(writer, writer->target.name, streams);
    case TARGET_SEGMENTS:
        return begin_segment(writer, &writer->streams, streams->shift);
    case TARGET_PAGE:
        return open_page(writer);
    default:
        return open_address(writer);
    }
}

static enum status note_wants(struct writer *writer)
{
    unsigned streams = writer->streams.from->nb_streams;
    writer->wants = calloc(streams, sizeof *writer->wants);
    for (unsigned k = 0; k < streams && writer->wants && writer->output; k++)
        writer->wants[k] = output_wants(writer->output, (int)k);
    writer->streams.again = true;
    if (target_is_live(&writer->target))
        output_destroy(&writer->output); // until it is reached
    return writer->wants ? STATUS_OK : STATUS_MEMORY;
}

enum status writer_open(struct writer *writer, const struct writer_opening *opening)
{
    const struct output_streams *streams = &opening->streams;
    int64_t pts_us = streams->shift;
    writer->skips = opening->skips;
    writer->must_connect = opening->must_connect;
    writer->watch = opening->watch;
    writer->video = streams->video;
    writer->origin_us = pts_us;
    writer->video_us = INT64_MIN;
    writer->key_due_us = writer->segment_due_us = pts_us + writer->target.segment_us;
    enum status status =
        queue_create(writer->skips ? SKIPPING_MOST : WAITING_MOST, 1, drop_packet, &writer->queue);
    if (!status)
        status = keep_streams(streams, &writer->streams);
    if (status)
        return status;
    queue_limit(writer->queue, budget_packets, budget_of_packet);
    status = open_target(writer, streams);
    if (!status)
        status = note_wants(writer);
    if (status)
        return status;
    writer->opened = !pthread_create(&writer->thread, NULL, run, writer);
    return writer->opened ? STATUS_OK
                          : fail(writer->log, STATUS_FAILED, "a thread could not be started");
}

// ---- the other side ----

bool writer_wants(const struct writer *writer, int stream)
{
    return writer->wants[stream];
}

bool writer_takes_key(struct writer *writer, int64_t pts_us)
{
    bool due = writer->target.kind == TARGET_SEGMENTS && pts_us >= writer->key_due_us;
    while (due && writer->key_due_us <= pts_us)
        writer->key_due_us += writer->target.segment_us;
    return atomic_exchange(&writer->wants_key, false) || due;
}

bool writer_is_idle(const struct writer *writer)
{
    return writer->page && !mjpeg_watchers(writer->page);
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
        writer->wants_key = true;
    writer->skipping = true;
    writer->skipped++;
    return STATUS_OK;
}

enum status writer_push(struct writer *writer, const AVPacket *packet)
{
    bool video = is_video(writer, packet);
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

enum status writer_change(struct writer *writer, const struct output_streams *streams)
{
    struct change *change = calloc(1, sizeof *change), **last = &writer->next;
    enum status status = change ? keep_streams(streams, &change->streams) : STATUS_MEMORY;
    if (status) {
        free(change);
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

void writer_hurry(struct writer *writer)
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
    monitor_tell(&writer->lock);
    monitor_unlock(&writer->lock);
    queue_close(writer->queue);
}

void writer_finish(struct writer *writer)
{
    writer->finish_ns = meter_now_ns();
    if (!writer->connected) // nobody is there to part from
        writer->guard.over = target_is_live(&writer->target);
    decide(writer, true);
}

// Nobody ever watched: no output came of it.
static bool is_unheard(const struct writer *writer)
{
    return writer->target.kind == TARGET_ADDRESS && !writer->connects &&
           !status_is_failure((enum status)writer->status);
}

// Until when connections are waited for: a second, but of several that are joined one after the
// other not more than a stop has.
static int64_t patience_end_ns(const struct writer *writer)
{
    const struct stop *stop = writer->stop;
    int64_t until_ns = writer->finish_ns + second_ns;
    if (!target_is_live(&writer->target))
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
        writer->guard.over = true; // what waits gives up, except the look-up of a name
        await_end(writer, meter_now_ns() + second_ns / 4);
    }
    if (is_unheard(writer))
        writer->status =
            fail(writer->log, STATUS_OUTPUT, "%s was never reached", writer->target.shown);
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
        old->guard.over = true;
        pthread_join(old->thread, NULL);
    }
    for (int k = 0; k < old->helds; k++)
        av_packet_free(&old->held[k]);
    output_destroy(&old->output);
    mjpeg_destroy(&old->page);
    queue_destroy(&old->queue);
    forget_streams(&old->streams);
    while (old->next) {
        struct change *change = old->next;
        old->next = change->next;
        forget_streams(&change->streams);
        free(change);
    }
    av_dict_free(&old->options);
    target_finish(&old->target);
    monitor_finish(&old->lock);
    free(old->wants);
    free(old->segment_name);
    free(old);
    *writer = NULL;
}

void writer_figures(const struct writer *writer, struct writer_figures *figures)
{
    *figures = (struct writer_figures){
        .packets = writer->packets,
        .skipped = writer->skipped,
        .bytes = writer->bytes,
        .files = writer->files,
        .connects = writer->connects,
        .connected = writer->connected,
        .status = (enum status)writer->status,
    };
}
