#include "pipeline/input/live/live.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/avstring.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/stamps.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/live/connection.h"
#include "pipeline/input/live/live_clock.h"

static const int64_t second_ns = 1000 * INT64_C(1000000), look_ns = 50 * INT64_C(1000000);
// The reading thread shows that it tries to reconnect at least so often.
static const int64_t trying_ns = 5 * second_ns;
// A loss shows as one after so long: packets that came before it are dealt with by then.
static const int64_t settle_ns = 250 * INT64_C(1000000);
// A connection that stands so long is good: the next loss begins to count attempts anew.
static const int64_t good_ns = 100 * INT64_C(1000000);

enum { MAX_CLOSING = 8 };

struct live {
    struct live_request request;
    const struct log *log;
    char *url;
    AVDictionary *options;
    AVFormatContext *format;
    AVCodecParameters **codec; // of each of its streams, in the current connection
    int watched;
    struct stamps stamps;
    struct live_clock clock;
    struct connection *connection;           // NULL: lost
    struct connection *closing[MAX_CLOSING]; // cancelled, with threads that may still hang
    int *map; // of the connection's streams to those of `format`, -1: to none
    unsigned mapped;
    int64_t alive_ns; // when a packet of the watched stream came, or the connection was opened
    int attempts;     // since a connection was good
    int64_t back_ns;  // when it was last back
    unsigned seed;
    bool parting; // it was lost, which the reader does not know yet
    bool marks;   // the next packet of the watched stream is the first after a loss
    bool changed; // that stream's parameters are others than before
    // ---- any thread's ----
    _Atomic int64_t tried_ns; // when the reading thread last tried to have it back
    atomic_bool ends_at_loss;
    pthread_mutex_t lock; // what it guards changes together; its one writer reads without
    // ---- guarded by lock ----
    _Atomic int64_t losses, reconnects, lost_for_ns;
    _Atomic int64_t lost_since_ns; // 0: it is there
};

static bool is_over(const struct live *live)
{
    bool gone = live->ends_at_loss && live->lost_since_ns;
    return gone || live->request.is_over(live->request.opaque);
}

// ---- connections ----

// Log what its playlist named and was refused since the last call.
static void log_refusal(const struct live *live)
{
    char why[512];
    if (live->request.reach && reach_take_refusal(live->request.reach, why, sizeof why))
        log_print(live->log, LOG_ERROR, "%s %s", live->request.name, why);
}

static enum status start(struct live *live)
{
    struct connection_request request = {
        .url = live->url,
        .demuxer = live->request.demuxer,
        .options = live->options,
        .open_ns = (int64_t)(live->request.open_timeout * (double)second_ns),
        .stall_ns = (int64_t)(live->request.stall_timeout * (double)second_ns),
        .known = live->format,
        .simulate = live->request.simulate,
        .reach = live->request.reach,
        .max_pixels = live->request.max_pixels,
    };
    return connection_start(&request, &live->connection);
}

// Wait for the connection that was begun. A call that does not end by its own deadline gets a
// second more. STATUS_EOF: it could not be opened, *error says why. On success *format is the
// caller's.
static enum status await_open(struct live *live, AVFormatContext **format, int *error)
{
    int64_t late = meter_now_ns() + (int64_t)((live->request.open_timeout + 1) * (double)second_ns);
    enum connection_state state = CONNECTION_OPENING;
    while (state == CONNECTION_OPENING && !is_over(live) && meter_now_ns() < late) {
        live->tried_ns = meter_now_ns();
        state = connection_await(live->connection, live->tried_ns + look_ns);
    }
    *error = state == CONNECTION_OVER ? connection_error(live->connection) : AVERROR(ETIMEDOUT);
    *format = state == CONNECTION_OPENING ? NULL : connection_take_format(live->connection);
    return *format ? STATUS_OK : is_over(live) ? STATUS_STOPPED : STATUS_EOF;
}

static bool same_codec(const AVCodecParameters *a, const AVCodecParameters *b)
{
    return a->codec_id == b->codec_id && a->extradata_size == b->extradata_size &&
           (!a->extradata_size || !memcmp(a->extradata, b->extradata, (size_t)a->extradata_size));
}

// The stream of the first connection that corresponds to stream `k` of the new one: the one of its
// kind with as many of that kind before it; -1: none.
static int counterpart(const struct live *live, const AVFormatContext *format, unsigned k)
{
    enum AVMediaType type = format->streams[k]->codecpar->codec_type;
    int before = 0;
    for (unsigned n = 0; n < k; n++)
        before += format->streams[n]->codecpar->codec_type == type;
    for (unsigned n = 0; n < live->format->nb_streams; n++)
        if (live->format->streams[n]->codecpar->codec_type == type && before-- == 0)
            return (int)n;
    return -1;
}

// Map the streams of the new connection to those of the first. STATUS_EOF: the watched one is not
// among them.
static enum status adopt(struct live *live, const AVFormatContext *format)
{
    bool watched = false;
    free(live->map);
    live->map = calloc(format->nb_streams + 1, sizeof *live->map);
    if (!live->map)
        return STATUS_MEMORY;
    live->mapped = format->nb_streams;
    for (unsigned k = 0; k < format->nb_streams; k++) {
        const AVStream *from = format->streams[k];
        int n = live->map[k] = counterpart(live, format, k);
        if (n < 0)
            continue;
        // Audio goes on as it was or not at all: nobody decodes it.
        bool same = same_codec(live->codec[n], from->codecpar);
        bool copied = from->codecpar->codec_type != AVMEDIA_TYPE_VIDEO;
        if (copied && live->codec[n]->codec_id != from->codecpar->codec_id)
            live->map[k] = -1;
        else if (avcodec_parameters_copy(live->codec[n], from->codecpar) < 0)
            return STATUS_MEMORY;
        live_clock_set_base(&live->clock, n, from->time_base);
        watched |= n == live->watched;
        live->changed |= n == live->watched && !same;
    }
    return watched ? STATUS_OK : STATUS_EOF;
}

static void note_connected(struct live *live)
{
    live->alive_ns = meter_now_ns();
    live_clock_connect(&live->clock, connection_opened_ns(live->connection));
}

// Cancelled connections whose threads hang in a call that cannot be interrupted, as in a camera's
// driver: there may be MAX_CLOSING. Returns a free place among them, or NULL.
static struct connection **closing_slot(struct live *live)
{
    for (int k = 0; k < MAX_CLOSING; k++) {
        if (live->closing[k] && connection_is_gone(live->closing[k]))
            connection_close(&live->closing[k]);
        if (!live->closing[k])
            return &live->closing[k];
    }
    return NULL;
}

static void close_connection(struct live *live)
{
    struct connection **place = closing_slot(live); // there is, or it would not have been tried
    assert(live->connection && place);
    connection_cancel(live->connection);
    *place = live->connection;
    live->connection = NULL;
}

// Close the connection and log a loss. A connection that gave no picture, or not for long, counts
// as an attempt.
static void log_lost(struct live *live, const char *why)
{
    close_connection(live);
    if (live->lost_since_ns) {
        log_print(live->log, LOG_DEBUG, "%s is not back (attempt %d): %s", live->request.name,
                  live->attempts, why);
        return;
    }
    log_print(live->log, LOG_WARNING, "%s is lost: %s%s", live->request.name, why,
              live->request.reconnects >= 0 && !live->ends_at_loss ? "; connecting again" : "");
    if (meter_now_ns() - live->back_ns > good_ns)
        live->attempts = 0;
    pthread_mutex_lock(&live->lock);
    live->losses++;
    live->lost_since_ns = meter_now_ns();
    pthread_mutex_unlock(&live->lock);
    live->parting = live->marks = true;
}

// True if nothing of the watched stream came by `ns` for as long as that may take.
static bool is_stalled(const struct live *live, int64_t ns)
{
    return ns - live->alive_ns >= (int64_t)(live->request.stall_timeout * (double)second_ns);
}

static void log_stalled(struct live *live)
{
    char words[64];
    snprintf(words, sizeof words, "no picture for %g s", live->request.stall_timeout);
    log_lost(live, words);
}

// Log a loss by the connection's error. It has the same limit for its calls: whichever of the two
// threads notices a stall first, it is logged alike.
static void log_lost_by_error(struct live *live, int error)
{
    char words[AV_ERROR_MAX_STRING_SIZE] = "it ended";
    if (error == AVERROR(ETIMEDOUT) && is_stalled(live, meter_now_ns())) {
        log_stalled(live);
        return;
    }
    if (error != AVERROR_EOF)
        av_strerror(error, words, sizeof words);
    log_lost(live, words);
}

static enum status rest(struct live *live, int64_t ns)
{
    int64_t until = meter_now_ns() + ns;
    while (!is_over(live) && meter_now_ns() < until) {
        live->tried_ns = meter_now_ns();
        int64_t left = until - live->tried_ns;
        int64_t nap = left < look_ns ? left : look_ns;
        nanosleep(&(struct timespec){.tv_nsec = nap > 0 ? nap : 0}, NULL);
    }
    return is_over(live) ? STATUS_STOPPED : STATUS_OK;
}

// Try once to reconnect. STATUS_EOF: not this time.
static enum status attempt(struct live *live)
{
    int error = 0;
    enum status status = rest(live, backoff_ns(live->attempts, &live->seed));
    live->attempts++;
    if (!status && !closing_slot(live)) {
        log_print(live->log, LOG_DEBUG, "%s: %d connections hang, no other is tried",
                  live->request.name, MAX_CLOSING);
        return STATUS_EOF;
    }
    if (!status)
        status = start(live);
    if (status)
        return status;
    AVFormatContext *format;
    status = await_open(live, &format, &error);
    if (!status)
        status = adopt(live, format);
    avformat_free_context(format);
    if (status) {
        char words[AV_ERROR_MAX_STRING_SIZE] = "it has other streams than before";
        if (error && error != AVERROR_EOF)
            av_strerror(error, words, sizeof words);
        log_print(live->log, LOG_DEBUG, "%s is not back (attempt %d): %s", live->request.name,
                  live->attempts, words);
        close_connection(live);
        return status;
    }
    note_connected(live);
    return STATUS_OK;
}

static enum status reconnect(struct live *live)
{
    enum status status = STATUS_EOF;
    while (status == STATUS_EOF) {
        if (live->attempts >= backoff_max_attempts(live->request.reconnects)) {
            if (live->request.reconnects > 0)
                log_print(live->log, LOG_WARNING, "%s did not come back in %d attempts",
                          live->request.name, live->attempts);
            return STATUS_EOF;
        }
        status = attempt(live);
    }
    return status;
}

// ---- packets ----

// Note a packet of the watched stream: the source is back, if it was lost.
static void note_back(struct live *live, int64_t came_ns)
{
    int64_t since = live->lost_since_ns;
    if (came_ns > live->alive_ns)
        live->alive_ns = came_ns;
    if (!since)
        return;
    pthread_mutex_lock(&live->lock);
    int64_t now = meter_now_ns();
    live->lost_for_ns += now - since;
    live->lost_since_ns = 0;
    live->reconnects++;
    live->back_ns = now;
    pthread_mutex_unlock(&live->lock);
    log_print(live->log, LOG_INFO, "%s is back after %.1f s", live->request.name,
              (double)(now - since) / (double)second_ns);
}

static enum status mark_restart(struct live *live, struct packet *packet)
{
    const AVCodecParameters *codec = live->changed ? live->codec[live->watched] : NULL;
    live->marks = live->changed = false;
    return packet_set_restart(packet, codec);
}

// A restart without data, for the decoder to give out what it has.
static enum status give_parting(struct live *live, struct packet **packet)
{
    *packet = packet_create();
    if (!*packet)
        return STATUS_MEMORY;
    (*packet)->arrived_ns = meter_now_ns();
    (*packet)->av->stream_index = live->watched;
    live->parting = false;
    return packet_set_restart(*packet, NULL);
}

// Make a packet of the connection one of the first connection's streams, with its time mended if that is damaged.
// *packet is NULL behind it where there is no such stream, or where no packet goes on yet.
static enum status adapt(struct live *live, struct packet **packet)
{
    AVPacket *av = (*packet)->av;
    int n = av->stream_index < (int)live->mapped ? live->map[av->stream_index] : -1;
    if (n < 0) {
        packet_destroy(packet);
        return STATUS_OK;
    }
    av->stream_index = n;
    if (n == live->watched)
        note_back(live, (*packet)->arrived_ns);
    if (live->clock.untimed || !stamps_are_for(live->format->streams[n]->codecpar))
        return STATUS_OK;
    return stamps_put(&live->stamps, (unsigned)n, live->clock.track[n].base, packet);
}

// Put a packet at its time of the clock. Packets that waited when the connection was lost are no restart.
static enum status stamp(struct live *live, struct packet **packet)
{
    AVPacket *av = (*packet)->av;
    live_clock_stamp(&live->clock, av, (*packet)->arrived_ns);
    if (av->stream_index != live->watched || !live->marks || !live->connection)
        return STATUS_OK;
    enum status status = mark_restart(live, *packet);
    if (status)
        packet_destroy(packet);
    return status;
}

enum status live_read(struct live *live, struct packet **packet)
{
    assert(live->watched >= 0);
    *packet = NULL;
    while (!is_over(live)) {
        live->tried_ns = meter_now_ns();
        *packet = live->connection ? stamps_take(&live->stamps) : stamps_end(&live->stamps);
        if (*packet)
            return stamp(live, packet);
        if (live->parting)
            return give_parting(live, packet);
        enum status status = live->connection ? STATUS_OK : reconnect(live);
        struct packet *next = NULL;
        if (!status)
            status = connection_read(live->connection, meter_now_ns() + look_ns, &next);
        simulate_log(live->request.simulate);
        log_refusal(live);
        if (status == STATUS_EOF && live->connection) {
            log_lost_by_error(live, connection_error(live->connection));
            continue;
        }
        if (status)
            return status;
        // A stall is a matter of when packets came; reading them late is no fault of the source.
        int64_t came_ns = next ? next->arrived_ns : meter_now_ns();
        if (next)
            status = adapt(live, &next);
        if (is_stalled(live, came_ns))
            log_stalled(live);
        if (next && !status)
            status = stamp(live, &next);
        if (status)
            packet_destroy(&next);
        *packet = next;
        if (next || status)
            return status;
    }
    return STATUS_STOPPED;
}

void live_end_at_loss(struct live *live)
{
    live->ends_at_loss = true;
}

// ---- construction ----

// Keep the streams of the first connection: those that follow are compared with them.
static enum status keep_streams(struct live *live)
{
    unsigned count = live->format->nb_streams;
    live->codec = calloc(count + 1, sizeof *live->codec);
    live->map = calloc(count + 1, sizeof *live->map);
    if (!live->codec || !live->map)
        return STATUS_MEMORY;
    live->mapped = count;
    for (unsigned k = 0; k < count; k++) {
        live->codec[k] = avcodec_parameters_alloc();
        live->map[k] = (int)k;
        if (!live->codec[k] ||
            avcodec_parameters_copy(live->codec[k], live->format->streams[k]->codecpar) < 0)
            return STATUS_MEMORY;
    }
    return live_clock_init(&live->clock, live->format, live->request.name, live->log);
}

// Log why the first connection was not established. Returns STATUS_INPUT.
static enum status fail_to_open(struct live *live, int error)
{
    const struct live_request *request = &live->request;
    char host[256];
    const char *trouble =
        error == AVERROR(EIO) ? url_host_trouble(request->url, host, sizeof host) : NULL;
    if (trouble)
        return log_fail(live->log, STATUS_INPUT, "%s cannot be opened: the host %s %s",
                        request->name, host, trouble);
    return check_failed(live->log, STATUS_INPUT, error, "%s cannot be opened%s", request->name,
                        error == AVERROR(EIO) ? reach_doubt(request->reach) : "");
}

enum status live_open(const struct live_request *request, const struct log *log, struct live **live)
{
    assert(request->url && request->name && request->is_over);
    int error = 0;
    *live = calloc(1, sizeof **live);
    struct live *made = *live;
    if (!made)
        return STATUS_MEMORY;
    pthread_mutex_init(&made->lock, NULL);
    made->request = *request;
    made->log = log;
    made->url = strdup(request->url);
    made->request.name = strdup(request->name);
    reach_ref(request->reach);
    made->watched = -1;
    made->seed = (unsigned)meter_now_ns();
    bool whole =
        made->url && made->request.name && av_dict_copy(&made->options, request->options, 0) >= 0;
    enum status status = whole ? start(made) : STATUS_MEMORY;
    if (!status)
        status = await_open(made, &made->format, &error);
    log_refusal(made);
    if (status == STATUS_EOF)
        status = fail_to_open(made, error);
    if (!status)
        status = keep_streams(made);
    if (status)
        live_close(live);
    else
        note_connected(made);
    return status;
}

void live_close(struct live **live)
{
    if (!*live)
        return;
    struct live *old = *live;
    connection_close(&old->connection);
    for (int k = 0; k < MAX_CLOSING; k++)
        connection_close(&old->closing[k]);
    for (unsigned k = 0; old->codec && k < old->format->nb_streams; k++)
        avcodec_parameters_free(&old->codec[k]);
    stamps_finish(&old->stamps);
    live_clock_finish(&old->clock);
    avformat_free_context(old->format);
    av_dict_free(&old->options);
    free(old->codec);
    free(old->map);
    free(old->url);
    free((char *)old->request.name);
    reach_unref(&old->request.reach);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *live = NULL;
}

void live_set_log(struct live *live, const struct log *log)
{
    live->log = live->clock.log = log;
}

const AVFormatContext *live_format(const struct live *live)
{
    return live->format;
}

void live_watch(struct live *live, int stream)
{
    assert(stream >= 0 && stream < (int)live->format->nb_streams);
    live->watched = live->clock.watched = stream;
}

void live_figures(const struct live *live, struct live_figures *figures)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&live->lock;
    pthread_mutex_lock(lock);
    int64_t since = live->lost_since_ns, now = meter_now_ns();
    *figures = (struct live_figures){
        .losses = live->losses,
        .reconnects = live->reconnects,
        .lost_us = (live->lost_for_ns + (since ? now - since : 0)) / 1000,
        .lost = since && now - since > settle_ns,
        .connecting = since && now - live->tried_ns < trying_ns,
        .clock_us = live_clock_us(&live->clock, now),
    };
    pthread_mutex_unlock(lock);
}
