#include "pipeline/input/faults/simulate.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/avstring.h>
#include <libavutil/mathematics.h>
#include <libavutil/parseutils.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/meter.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/faults/recode.h"

static const int64_t look_ns = 20 * INT64_C(1000000), jump_us = 3600 * INT64_C(1000000);
// A step of a file's clock that is longer is a jump of its own.
static const int64_t max_step_us = 10 * INT64_C(1000000);
static const int64_t max_time_us = INT64_C(1000000000) * 1000000;
static const uint64_t seed_initial = 1;

enum { MAX_SIZE = 16384 };

enum fault {
    FAULT_LOSS,
    FAULT_CORRUPT,
    FAULT_SEED,
    FAULT_STALL,
    FAULT_CLOSE,
    FAULT_JUMP,
    FAULT_RESIZE,
    FAULTS
};

static const struct {
    const char *name, *takes;
} kinds[FAULTS] = {
    [FAULT_LOSS] = {"loss", "a share of the packets, 0% to 100%, as in loss=2%"},
    [FAULT_CORRUPT] = {"corrupt", "a share of the packets, 0% to 100%, as in corrupt=1%"},
    [FAULT_SEED] = {"seed", "a whole number, as in seed=7"},
    [FAULT_STALL] = {"stall", "how long and when, as in stall=8s@30s"},
    [FAULT_CLOSE] = {"close", "when, as in close@40s"},
    [FAULT_JUMP] = {"ts-jump", "when, and how far unless by an hour, as in ts-jump@60s or "
                               "ts-jump=-5s@60s"},
    [FAULT_RESIZE] = {"res-change", "when, and the size unless half of it, as in res-change@90s or "
                                    "res-change=640x360@90s"},
};

struct event {
    enum fault fault;
    int64_t at_us, length_us; // of a stall or jump
    int width, height;        // 0: half
    bool happened, logged;
};

struct simulate {
    atomic_int holders;
    // ---- set at creation, constant afterwards ----
    uint64_t seed;
    double share[2]; // of packets lost and corrupted
    bool given[FAULTS];
    int events;
    bool jumps, resizes;
    // ---- who takes packets; NULL before simulate_begin() ----
    struct recode *recode;
    const struct log *log;
    const char *name; // of the source
    uint64_t dice[2]; // for loss and corruption, so that neither changes the other
    AVPacket *held;   // of a file: read when a stall began that was interrupted; NULL: none
    // ---- guarded by lock ----
    pthread_mutex_t lock;
    struct event *event;
    bool began;                // a packet came
    int64_t clock_us;          // since then
    int64_t first_ns, last_us; // then, of a live source, and at the last packet of a file
    int64_t stalled_until_ns;  // nothing comes before
    int64_t offset_us;         // of all jumps
    struct simulate_figures figures;
};

// ---- the text ----

// Parse "2%".
static bool parse_share(const char *text, double *share)
{
    char *end;
    *share = strtod(text, &end) / 100;
    return end != text && !strcmp(end, "%") && *share >= 0 && *share <= 1;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    *seed = strtoull(text, &end, 10);
    return end != text && !*end && av_isdigit(*text);
}

static bool parse_time(const char *text, int64_t *us)
{
    return av_parse_time(us, text, 1) >= 0 && *us <= max_time_us && *us >= -max_time_us;
}

static bool parse_size(const char *text, int *width, int *height)
{
    return av_parse_video_size(width, height, text) >= 0 && *width > 1 && *height > 1 &&
           *width <= MAX_SIZE && *height <= MAX_SIZE;
}

// Parse the part between the name and the "@" of an event; NULL: there is none.
static bool parse_length(const char *value, struct event *event)
{
    switch (event->fault) {
    case FAULT_STALL:
        return value && parse_time(value, &event->length_us) && event->length_us > 0;
    case FAULT_JUMP:
        event->length_us = jump_us;
        return !value || (parse_time(value, &event->length_us) && event->length_us);
    case FAULT_RESIZE:
        return !value || parse_size(value, &event->width, &event->height);
    default:
        return !value;
    }
}

static bool parse_event(const char *value, const char *at, struct event *event)
{
    return at && parse_time(at, &event->at_us) && event->at_us >= 0 && parse_length(value, event);
}

// Parse one item, cut at "=" and "@". `at` and `value` are NULL where there is none.
static bool parse_value(struct simulate *simulate, enum fault fault, const char *value,
                        const char *at)
{
    struct event event = {.fault = fault};
    if (fault == FAULT_SEED)
        return value && !at && parse_seed(value, &simulate->seed);
    if (fault == FAULT_LOSS || fault == FAULT_CORRUPT)
        return value && !at && parse_share(value, &simulate->share[fault]);
    if (!parse_event(value, at, &event))
        return false;
    simulate->jumps |= fault == FAULT_JUMP;
    simulate->resizes |= fault == FAULT_RESIZE;
    simulate->event[simulate->events++] = event;
    return true;
}

static enum fault find_fault(const char *name)
{
    int fault = 0;
    while (fault < FAULTS && strcmp(kinds[fault].name, name) != 0)
        fault++;
    return (enum fault)fault;
}

// Parse one item, which is cut up.
static enum status parse_item(struct simulate *simulate, char *item, const struct log *log)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s", item);
    char *at = strchr(item, '@');
    if (at)
        *at++ = 0;
    char *value = strchr(item, '=');
    if (value)
        *value++ = 0;
    enum fault fault = find_fault(item);
    if (fault == FAULTS)
        return log_fail(log, STATUS_USAGE,
                        "--simulate has '%s', which is no fault; there are loss, corrupt, stall, "
                        "close, ts-jump and res-change, and a seed",
                        whole);
    if (fault <= FAULT_SEED && simulate->given[fault])
        return log_fail(log, STATUS_USAGE, "--simulate has '%s', but '%s' was given already", whole,
                        kinds[fault].name);
    simulate->given[fault] = true;
    if (!parse_value(simulate, fault, value, at))
        return log_fail(log, STATUS_USAGE, "--simulate has '%s'; '%s' takes %s", whole,
                        kinds[fault].name, kinds[fault].takes);
    return STATUS_OK;
}

static enum status parse(struct simulate *simulate, const char *text, const struct log *log)
{
    char *copy = strdup(text), *rest = copy;
    simulate->event = calloc(strlen(text) + 1, sizeof *simulate->event);
    enum status status = copy && simulate->event ? STATUS_OK : STATUS_MEMORY;
    for (char *item; !status && (item = strsep(&rest, ","));)
        status = parse_item(simulate, item, log);
    free(copy);
    return status;
}

// ---- construction ----

enum status simulate_create(const char *text, const struct log *log, struct simulate **simulate)
{
    *simulate = NULL;
    if (!text)
        return STATUS_OK;
    struct simulate *made = *simulate = calloc(1, sizeof **simulate);
    if (!made)
        return STATUS_MEMORY;
    made->holders = 1;
    made->seed = seed_initial;
    made->last_us = AV_NOPTS_VALUE;
    pthread_mutex_init(&made->lock, NULL);
    enum status status = parse(made, text, log);
    for (int k = 0; k < 2; k++)
        made->dice[k] = made->seed * 2 + (uint64_t)k;
    if (status)
        simulate_unref(simulate);
    return status;
}

struct simulate *simulate_ref(struct simulate *simulate)
{
    if (simulate)
        simulate->holders++;
    return simulate;
}

void simulate_unref(struct simulate **simulate)
{
    struct simulate *old = *simulate;
    *simulate = NULL;
    if (!old || atomic_fetch_sub(&old->holders, 1) > 1)
        return;
    recode_destroy(&old->recode);
    av_packet_free(&old->held);
    pthread_mutex_destroy(&old->lock);
    free(old->event);
    free(old);
}

// ---- events ----

static int64_t to_us(int64_t at, AVRational base)
{
    return av_rescale_q(at, base, AV_TIME_BASE_Q);
}

// Advance the clock by a packet of a file's filtered stream. Its own jumps do not count.
static void run_clock_locked(struct simulate *simulate, const AVStream *stream,
                             const AVPacket *packet)
{
    int64_t key = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    int64_t duration = to_us(packet->duration, stream->time_base), step = duration;
    int64_t at = key == AV_NOPTS_VALUE ? AV_NOPTS_VALUE : to_us(key, stream->time_base);
    if (at != AV_NOPTS_VALUE && simulate->last_us != AV_NOPTS_VALUE)
        step = at - simulate->last_us;
    if (step < 0 || step > max_step_us)
        step = duration;
    if (simulate->began)
        simulate->clock_us += step;
    simulate->began = true;
    simulate->last_us = at;
}

static void note_packet(struct simulate *simulate, const AVFormatContext *format, int stream,
                        const AVPacket *packet)
{
    pthread_mutex_lock(&simulate->lock);
    if (stream >= 0 && packet->stream_index == stream)
        run_clock_locked(simulate, format->streams[stream], packet);
    if (stream < 0 && !simulate->began)
        simulate->first_ns = meter_now_ns();
    if (stream < 0)
        simulate->clock_us = (meter_now_ns() - simulate->first_ns) / 1000;
    simulate->began |= stream < 0;
    pthread_mutex_unlock(&simulate->lock);
}

static void count_locked(struct simulate *simulate, enum fault fault)
{
    struct simulate_figures *figures = &simulate->figures;
    figures->stalls += fault == FAULT_STALL;
    figures->closes += fault == FAULT_CLOSE;
    figures->ts_jumps += fault == FAULT_JUMP;
    figures->res_changes += fault == FAULT_RESIZE;
}

// Take the next event that is due, of the connection's or of the packets' kind; false: none.
static bool take_event(struct simulate *simulate, bool of_packets, struct event *event)
{
    bool due = false;
    pthread_mutex_lock(&simulate->lock);
    for (int k = 0; k < simulate->events && !due; k++) {
        struct event *next = &simulate->event[k];
        due = !next->happened && (next->fault == FAULT_RESIZE) == of_packets && simulate->began &&
              next->at_us <= simulate->clock_us;
        if (!due)
            continue;
        next->happened = true;
        count_locked(simulate, next->fault);
        *event = *next;
        if (next->fault == FAULT_STALL)
            simulate->stalled_until_ns = meter_now_ns() + 1000 * next->length_us;
        if (next->fault == FAULT_JUMP)
            simulate->offset_us += next->length_us;
    }
    pthread_mutex_unlock(&simulate->lock);
    return due;
}

static bool is_stalled(struct simulate *simulate)
{
    pthread_mutex_lock(&simulate->lock);
    bool stalled = meter_now_ns() < simulate->stalled_until_ns;
    pthread_mutex_unlock(&simulate->lock);
    return stalled;
}

static void describe(const struct event *event, char *words, size_t size)
{
    double length = (double)event->length_us / AV_TIME_BASE;
    if (event->fault == FAULT_STALL)
        snprintf(words, size, "nothing comes for %g s", length);
    else if (event->fault == FAULT_CLOSE)
        snprintf(words, size, "the other side ends it");
    else if (event->fault == FAULT_JUMP)
        snprintf(words, size, "the clock jumps by %g s", length);
    else if (event->width)
        snprintf(words, size, "the size changes to %dx%d", event->width, event->height);
    else
        snprintf(words, size, "the size changes to half");
}

void simulate_log(struct simulate *simulate)
{
    for (int k = 0; simulate && simulate->log && k < simulate->events; k++) {
        pthread_mutex_lock(&simulate->lock);
        struct event event = simulate->event[k];
        simulate->event[k].logged = event.happened;
        pthread_mutex_unlock(&simulate->lock);
        if (!event.happened || event.logged)
            continue;
        char words[64];
        describe(&event, words, sizeof words);
        log_print(simulate->log, LOG_INFO, "simulated, %g s into %s: %s",
                  (double)event.at_us / AV_TIME_BASE, simulate->name, words);
    }
}

// ---- connections ----

int simulate_open(struct simulate *simulate, const AVIOInterruptCB *interrupt)
{
    while (simulate && is_stalled(simulate)) {
        if (interrupt->callback && interrupt->callback(interrupt->opaque))
            return AVERROR_EXIT;
        nanosleep(&(struct timespec){.tv_nsec = look_ns}, NULL);
    }
    return 0;
}

// Let the events happen that are due.
static int befall(struct simulate *simulate, bool live, const AVIOInterruptCB *interrupt)
{
    struct event event;
    int error = 0;
    while (!error && take_event(simulate, false, &event)) {
        if (!live)
            simulate_log(simulate);
        if (event.fault == FAULT_STALL)
            error = simulate_open(simulate, interrupt);
        if (event.fault == FAULT_CLOSE)
            error = live ? AVERROR_EOF : AVERROR(EIO);
    }
    return error;
}

static void shift(struct simulate *simulate, AVRational base, AVPacket *packet)
{
    pthread_mutex_lock(&simulate->lock);
    int64_t offset = av_rescale_q(simulate->offset_us, AV_TIME_BASE_Q, base);
    pthread_mutex_unlock(&simulate->lock);
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts += offset;
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts += offset;
}

// Read the next packet, or the one that a stall held back.
static int read_next(struct simulate *simulate, AVFormatContext *format, int stream,
                     AVPacket *packet)
{
    if (simulate->held) {
        int error = simulate_open(simulate, &format->interrupt_callback);
        if (error >= 0) {
            av_packet_move_ref(packet, simulate->held);
            av_packet_free(&simulate->held);
        }
        return error;
    }
    int error = av_read_frame(format, packet);
    if (error >= 0)
        note_packet(simulate, format, stream, packet);
    return error;
}

int simulate_read(struct simulate *simulate, AVFormatContext *format, int stream, AVPacket *packet)
{
    assert(stream < (int)format->nb_streams);
    int error =
        simulate ? read_next(simulate, format, stream, packet) : av_read_frame(format, packet);
    if (!simulate || error < 0)
        return error;
    error = befall(simulate, stream < 0, &format->interrupt_callback);
    if (error == AVERROR_EXIT && stream >= 0 && (simulate->held = av_packet_alloc()))
        av_packet_move_ref(simulate->held, packet);
    if (error < 0)
        av_packet_unref(packet);
    else
        shift(simulate, format->streams[packet->stream_index]->time_base, packet);
    return error;
}

// ---- packets ----

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014; the
// constants are Vigna's, prng.di.unimi.it/splitmix64.c).
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool is_hit(struct simulate *simulate, enum fault fault)
{
    double at = (double)(next_random(&simulate->dice[fault]) >> 11) * 0x1p-53;
    return at < simulate->share[fault];
}

enum status simulate_begin(struct simulate *simulate, const AVStream *video, const char *name,
                           const struct log *log)
{
    if (!simulate)
        return STATUS_OK;
    if (simulate->share[FAULT_CORRUPT] > 0 &&
        video->codecpar->codec_id == AV_CODEC_ID_WRAPPED_AVFRAME)
        return log_fail(log, STATUS_USAGE,
                        "--simulate corrupt changes bytes of packets; %s gives pictures in memory, "
                        "without any",
                        name);
    simulate->log = log;
    simulate->name = name;
    return recode_create(video, simulate->resizes, log, &simulate->recode);
}

enum status simulate_send(struct simulate *simulate, struct packet **packet)
{
    assert(simulate->recode); // after simulate_begin()
    struct event event;
    while (*packet && recode_may_resize(simulate->recode, (*packet)->av) &&
           take_event(simulate, true, &event)) {
        recode_resize(simulate->recode, event.width, event.height);
        simulate_log(simulate);
    }
    return recode_send(simulate->recode, packet);
}

// Change a byte in 256, at least one.
static enum status corrupt(struct simulate *simulate, AVPacket *packet)
{
    if (av_packet_make_writable(packet) < 0)
        return STATUS_MEMORY;
    for (int left = packet->size / 256; left >= 0; left--) {
        uint64_t random = next_random(&simulate->dice[FAULT_CORRUPT]);
        packet->data[(random >> 8) % (uint64_t)packet->size] ^= (uint8_t)(1 + random % 255);
    }
    return STATUS_OK;
}

static void count_packet(struct simulate *simulate, enum fault fault)
{
    pthread_mutex_lock(&simulate->lock);
    simulate->figures.lost += fault == FAULT_LOSS;
    simulate->figures.corrupted += fault == FAULT_CORRUPT;
    pthread_mutex_unlock(&simulate->lock);
}

// Lose or corrupt a packet by the rates; *packet is NULL if it is lost. A restart has to come:
// nothing else would reach the decoder.
static enum status hit(struct simulate *simulate, struct packet **packet)
{
    bool lost = is_hit(simulate, FAULT_LOSS) && !(*packet)->restart;
    bool corrupted = is_hit(simulate, FAULT_CORRUPT);
    if (lost) {
        count_packet(simulate, FAULT_LOSS);
        packet_destroy(packet);
    } else if (corrupted) {
        count_packet(simulate, FAULT_CORRUPT);
        return corrupt(simulate, (*packet)->av);
    }
    return STATUS_OK;
}

enum status simulate_receive(struct simulate *simulate, struct packet **packet)
{
    assert(simulate->recode);
    enum status status;
    do {
        status = recode_receive(simulate->recode, packet);
        if (status || !*packet || !(*packet)->av->size)
            return status;
        status = hit(simulate, packet);
    } while (!status && !*packet);
    return status;
}

// ---- any thread ----

bool simulate_jumps(const struct simulate *simulate)
{
    return simulate && simulate->jumps;
}

void simulate_figures(struct simulate *simulate, struct simulate_figures *figures)
{
    *figures = (struct simulate_figures){0};
    if (!simulate)
        return;
    pthread_mutex_lock(&simulate->lock);
    *figures = simulate->figures;
    pthread_mutex_unlock(&simulate->lock);
}
