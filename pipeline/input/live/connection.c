#include "pipeline/input/live/connection.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/input/devices/devices.h"
#include "pipeline/input/io/probe.h"

enum { MAX_PACKETS = 1024 };
static const int64_t close_ns = 1000 * INT64_C(1000000);
static const int64_t nap_ns = 2 * INT64_C(1000000); // between looks at what cannot be waited for

// Counted: its owner and its thread hold it, and the last one frees it.
struct connection {
    atomic_int holders;
    atomic_bool cancelled, gone;
    atomic_int error;
    _Atomic int64_t opened_ns;
    _Atomic int64_t deadline_ns; // of the call that the thread is in
    struct queue *packets;
    char *url;
    const AVInputFormat *demuxer;
    bool is_camera;
    AVDictionary *options;
    int64_t open_ns, stall_ns;
    AVFormatContext *known;
    struct simulate *simulate;
    struct reach *reach;
    int64_t max_pixels;
    AVFormatContext *format; // the thread's
    struct monitor lock;
    // ---- guarded by lock ----
    enum connection_state state;
    AVFormatContext *description;
};

static void unref(struct connection *connection)
{
    if (atomic_fetch_sub(&connection->holders, 1) > 1)
        return;
    avformat_free_context(connection->description);
    avformat_free_context(connection->known);
    queue_destroy(&connection->packets);
    simulate_unref(&connection->simulate);
    reach_unref(&connection->reach);
    av_dict_free(&connection->options);
    monitor_finish(&connection->lock);
    free(connection->url);
    free(connection);
}

static int interrupted(void *connection_)
{
    const struct connection *connection = connection_;
    return connection->cancelled || meter_now_ns() > connection->deadline_ns;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
}

// FFmpeg's interrupt callback. While it probes the streams of a camera it does nothing but ask.
static int interrupted_nap(void *connection_)
{
    const struct connection *connection = connection_;
    if (connection->is_camera)
        nap();
    return interrupted(connection_);
}

static void set_deadline(struct connection *connection, int64_t ns)
{
    connection->deadline_ns = meter_now_ns() + ns;
}

// ---- the streams ----

// True if the new connection announces what is known already.
static bool is_known(const AVFormatContext *format, const AVFormatContext *known)
{
    if (!known || format->nb_streams != known->nb_streams)
        return false;
    for (unsigned k = 0; k < format->nb_streams; k++) {
        const AVCodecParameters *a = format->streams[k]->codecpar;
        const AVCodecParameters *b = known->streams[k]->codecpar;
        if (a->codec_type != b->codec_type || a->codec_id != b->codec_id)
            return false;
    }
    return true;
}

// ---- the thread ----

static int open_connection(struct connection *connection)
{
    connection->format = avformat_alloc_context();
    if (!connection->format)
        return AVERROR(ENOMEM);
    connection->format->interrupt_callback = (AVIOInterruptCB){interrupted_nap, connection};
    if (connection->is_camera) // a driver that stalls cannot be interrupted
        connection->format->flags |= AVFMT_FLAG_NONBLOCK;
    int error = connection->reach
                    ? reach_bind(connection->reach, connection->format, &connection->options)
                    : 0;
    set_deadline(connection, connection->open_ns);
    if (error >= 0)
        error = simulate_open(connection->simulate, &connection->format->interrupt_callback);
    if (!error)
        error = open_format(&connection->format, connection->url, connection->demuxer,
                            &connection->options);
    connection->opened_ns = meter_now_ns();
    if (error >= 0 && !is_known(connection->format, connection->known))
        error = probe_streams(connection->format, connection->max_pixels);
    return error < 0 && interrupted(connection) ? AVERROR(ETIMEDOUT) : error;
}

static void become(struct connection *connection, enum connection_state state,
                   AVFormatContext *description)
{
    monitor_lock(&connection->lock);
    connection->state = state;
    if (description)
        connection->description = description;
    monitor_notify(&connection->lock);
    monitor_unlock(&connection->lock);
}

// Copy a packet whose bytes go when the connection is closed: its frames are filtered later.
static int keep_packet(AVPacket *packet)
{
    AVPacket *copy = av_packet_alloc();
    int error = copy ? av_new_packet(copy, packet->size) : AVERROR(ENOMEM);
    if (error >= 0 && packet->size)
        memcpy(copy->data, packet->data, (size_t)packet->size);
    if (error >= 0)
        error = av_packet_copy_props(copy, packet);
    if (error >= 0) {
        av_packet_unref(packet);
        av_packet_move_ref(packet, copy);
    }
    av_packet_free(&copy);
    return error;
}

// Read one packet and hand it over. AVERROR(EAGAIN): there is none yet, and *packet is kept.
static int read_packet(struct connection *connection, struct packet **packet)
{
    set_deadline(connection, connection->stall_ns);
    int error = simulate_read(connection->simulate, connection->format, -1, (*packet)->av);
    // A parser gives out what it holds before the call fails for lateness. That was there when the
    // call began.
    bool late = interrupted(connection);
    (*packet)->arrived_ns = late ? connection->deadline_ns - connection->stall_ns : meter_now_ns();
    if (error == AVERROR(EAGAIN))
        nap();
    if (error >= 0 && connection->is_camera)
        error = keep_packet((*packet)->av);
    enum status status = error < 0 ? STATUS_OK : queue_push(connection->packets, packet);
    return late || status ? AVERROR(ETIMEDOUT) : error;
}

static int read_packets(struct connection *connection)
{
    struct packet *packet = NULL;
    int error = 0;
    while (error >= 0 || error == AVERROR(EAGAIN)) {
        if (!packet)
            packet = packet_create();
        error = packet ? read_packet(connection, &packet) : AVERROR(ENOMEM);
    }
    packet_destroy(&packet);
    return error;
}

static void *connection_run(void *connection_)
{
    struct connection *connection = connection_;
    int error = open_connection(connection);
    AVFormatContext *description = error < 0 ? NULL : format_describe(connection->format);
    if (error >= 0 && !description)
        error = AVERROR(ENOMEM);
    if (error >= 0) {
        become(connection, CONNECTION_OPEN, description);
        error = read_packets(connection);
    }
    connection->error = error;
    become(connection, CONNECTION_OVER, NULL);
    queue_finish(connection->packets);
    set_deadline(connection, close_ns);
    avformat_close_input(&connection->format);
    connection->gone = true;
    unref(connection);
    return NULL;
}

// ---- the other side ----

static enum status create(const struct connection_request *request, struct connection *connection)
{
    monitor_init(&connection->lock);
    connection->url = strdup(request->url);
    connection->demuxer = request->demuxer;
    connection->is_camera = device_is_camera(request->demuxer);
    connection->open_ns = request->open_ns;
    connection->stall_ns = request->stall_ns;
    connection->simulate = simulate_ref(request->simulate);
    connection->reach = reach_ref(request->reach);
    connection->max_pixels = request->max_pixels;
    connection->known = request->known ? format_describe(request->known) : NULL;
    if (!connection->url || av_dict_copy(&connection->options, request->options, 0) < 0)
        return STATUS_MEMORY;
    enum status status = queue_create(MAX_PACKETS, 1, packet_drop, &connection->packets);
    if (!status)
        queue_limit(connection->packets, budget_packets, packet_weigh);
    return status;
}

enum status connection_start(const struct connection_request *request,
                             struct connection **connection)
{
    assert(request->url && request->open_ns >= 0 && request->stall_ns >= 0);
    *connection = calloc(1, sizeof **connection);
    struct connection *made = *connection;
    if (!made)
        return STATUS_MEMORY;
    made->holders = 1;
    enum status status = create(request, made);
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (!status) {
        made->holders = 2;
        if (pthread_create(&thread, &detached, connection_run, made)) {
            made->holders = 1;
            status = STATUS_FAILED;
        }
    }
    pthread_attr_destroy(&detached);
    if (status)
        connection_close(connection);
    return status;
}

enum connection_state connection_await(struct connection *connection, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&connection->lock);
    while (connection->state == CONNECTION_OPENING && in_time)
        in_time = monitor_wait_until(&connection->lock, until_ns);
    enum connection_state state = connection->state;
    monitor_unlock(&connection->lock);
    return state;
}

int connection_error(const struct connection *connection)
{
    return connection->error;
}

int64_t connection_opened_ns(const struct connection *connection)
{
    return connection->opened_ns;
}

AVFormatContext *connection_take_format(struct connection *connection)
{
    monitor_lock(&connection->lock);
    AVFormatContext *taken = connection->description;
    connection->description = NULL;
    monitor_unlock(&connection->lock);
    return taken;
}

enum status connection_read(struct connection *connection, int64_t until_ns, struct packet **packet)
{
    return queue_pop_until(connection->packets, packet, until_ns);
}

void connection_cancel(struct connection *connection)
{
    connection->cancelled = true;
    if (connection->packets)
        queue_cancel(connection->packets);
}

bool connection_is_gone(const struct connection *connection)
{
    return connection->gone;
}

void connection_close(struct connection **connection)
{
    if (!*connection)
        return;
    connection_cancel(*connection);
    unref(*connection);
    *connection = NULL;
}
