#include "pipeline/input/session.h"

#include <libavutil/avstring.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/input/devices.h"
#include "pipeline/input/learn.h"
#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"

enum { MAX_PACKETS = 1024 };
static const int64_t close_ns = 1000 * INT64_C(1000000);
static const int64_t nap_ns = 2 * INT64_C(1000000); // between looks at what cannot be waited for

// Two hold it: who started it, and its thread. The last one frees it.
struct session {
    atomic_int holders;
    atomic_bool left, gone;
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
    enum session_state state;
    AVFormatContext *description;
};

static void unref(struct session *session)
{
    if (atomic_fetch_sub(&session->holders, 1) > 1)
        return;
    avformat_free_context(session->description);
    avformat_free_context(session->known);
    queue_destroy(&session->packets);
    simulate_unref(&session->simulate);
    reach_unref(&session->reach);
    av_dict_free(&session->options);
    monitor_finish(&session->lock);
    free(session->url);
    free(session);
}

static int interrupted(void *session_)
{
    const struct session *session = session_;
    return session->left || meter_now_ns() > session->deadline_ns;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = nap_ns}, NULL);
}

// FFmpeg's question. While it learns of the streams of a camera it does nothing but ask.
static int interrupted_nap(void *session_)
{
    const struct session *session = session_;
    if (session->is_camera)
        nap();
    return interrupted(session_);
}

static void set_deadline(struct session *session, int64_t ns)
{
    session->deadline_ns = meter_now_ns() + ns;
}

// ---- the streams ----

// Whether the new connection announces what is known already.
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

static int open_connection(struct session *session)
{
    session->format = avformat_alloc_context();
    if (!session->format)
        return AVERROR(ENOMEM);
    session->format->interrupt_callback = (AVIOInterruptCB){interrupted_nap, session};
    if (session->is_camera) // a driver that stalls could not be turned away from
        session->format->flags |= AVFMT_FLAG_NONBLOCK;
    if (session->reach)
        reach_bind(session->reach, session->format, &session->options);
    set_deadline(session, session->open_ns);
    int error = simulate_open(session->simulate, &session->format->interrupt_callback);
    if (!error)
        error = open_format(&session->format, session->url, session->demuxer, &session->options);
    session->opened_ns = meter_now_ns();
    if (error >= 0 && !is_known(session->format, session->known))
        error = learn_streams(session->format, session->max_pixels);
    return error < 0 && interrupted(session) ? AVERROR(ETIMEDOUT) : error;
}

static void become(struct session *session, enum session_state state, AVFormatContext *description)
{
    monitor_lock(&session->lock);
    session->state = state;
    if (description)
        session->description = description;
    monitor_notify(&session->lock);
    monitor_unlock(&session->lock);
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

static int read_packets(struct session *session)
{
    for (;;) {
        struct packet *packet = packet_create();
        if (!packet)
            return AVERROR(ENOMEM);
        set_deadline(session, session->stall_ns);
        int error = simulate_read(session->simulate, session->format, -1, packet->av);
        // A parser gives out what it has before it says that the time is over. That was there when
        // the call began.
        bool late = interrupted(session);
        packet->arrived_ns = late ? session->deadline_ns - session->stall_ns : meter_now_ns();
        if (error == AVERROR(EAGAIN))
            nap();
        if (error >= 0 && session->is_camera)
            error = keep_packet(packet->av);
        enum status status = error < 0 ? STATUS_OK : queue_push(session->packets, &packet);
        packet_destroy(&packet);
        if (late || status)
            return AVERROR(ETIMEDOUT);
        if (error < 0 && error != AVERROR(EAGAIN))
            return error;
    }
}

static void *session_run(void *session_)
{
    struct session *session = session_;
    int error = open_connection(session);
    AVFormatContext *description = error < 0 ? NULL : format_describe(session->format);
    if (error >= 0 && !description)
        error = AVERROR(ENOMEM);
    if (error >= 0) {
        become(session, SESSION_OPEN, description);
        error = read_packets(session);
    }
    session->error = error;
    become(session, SESSION_OVER, NULL);
    queue_finish(session->packets);
    set_deadline(session, close_ns);
    avformat_close_input(&session->format);
    session->gone = true;
    unref(session);
    return NULL;
}

// ---- the other side ----

static enum status create(const struct session_request *request, struct session *session)
{
    monitor_init(&session->lock);
    session->url = strdup(request->url);
    session->demuxer = request->demuxer;
    session->is_camera = device_is_camera(request->demuxer);
    session->open_ns = request->open_ns;
    session->stall_ns = request->stall_ns;
    session->simulate = simulate_ref(request->simulate);
    session->reach = reach_ref(request->reach);
    session->max_pixels = request->max_pixels;
    session->known = request->known ? format_describe(request->known) : NULL;
    av_dict_copy(&session->options, request->options, 0);
    if (!session->url)
        return STATUS_MEMORY;
    enum status status = queue_create(MAX_PACKETS, 1, packet_drop, &session->packets);
    if (!status)
        queue_limit(session->packets, budget_packets, packet_weigh);
    return status;
}

enum status session_start(const struct session_request *request, struct session **session)
{
    *session = calloc(1, sizeof **session);
    struct session *made = *session;
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
        if (pthread_create(&thread, &detached, session_run, made)) {
            made->holders = 1;
            status = STATUS_FAILED;
        }
    }
    pthread_attr_destroy(&detached);
    if (status)
        session_close(session);
    return status;
}

enum session_state session_await(struct session *session, int64_t until_ns)
{
    bool in_time = true;
    monitor_lock(&session->lock);
    while (session->state == SESSION_OPENING && in_time)
        in_time = monitor_wait_until(&session->lock, until_ns);
    enum session_state state = session->state;
    monitor_unlock(&session->lock);
    return state;
}

int session_error(const struct session *session)
{
    return session->error;
}

int64_t session_opened_ns(const struct session *session)
{
    return session->opened_ns;
}

AVFormatContext *session_take_format(struct session *session)
{
    monitor_lock(&session->lock);
    AVFormatContext *taken = session->description;
    session->description = NULL;
    monitor_unlock(&session->lock);
    return taken;
}

enum status session_read(struct session *session, int64_t until_ns, struct packet **packet)
{
    return queue_pop_until(session->packets, packet, until_ns);
}

void session_cancel(struct session *session)
{
    session->left = true;
    if (session->packets)
        queue_cancel(session->packets);
}

bool session_is_gone(const struct session *session)
{
    return session->gone;
}

void session_close(struct session **session)
{
    if (!*session)
        return;
    session_cancel(*session);
    unref(*session);
    *session = NULL;
}
