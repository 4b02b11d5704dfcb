#include "pipeline/engine/threads/latency.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "sluice/sluice.h"

enum { ARRIVALS = 1024, REORDERED = 32, BUCKETS = 512, BUCKETS_PER_OCTAVE = 16, LIMITS = 13 };
_Static_assert((int)LIMITS <= (int)SLUICE_LATENCY_LIMITS,
               "the public struct has room for all limits");

// Packets within two seconds of the first may be one second older.
static const int64_t opening_ns = INT64_C(2000000000), grace_ns = INT64_C(1000000000);

struct arrival {
    int64_t pts_us, ns; // ns 0: none
};

// Nothing new was shown for so long, and for what frames may take: the picture is frozen.
static const int64_t frozen_ns = INT64_C(500000000);

struct latency {
    int64_t limit_ns;         // constant
    _Atomic int64_t shown_ns; // when a frame was last shown; 0: none was. The encode thread's
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct arrival arrival[ARRIVALS]; // a ring, the newest before `next`
    unsigned next;
    int64_t first_ns;        // when the first arrived; 0: none has
    int64_t bucket[BUCKETS]; // frames whose time was below 2^(k / BUCKETS_PER_OCTAVE) microseconds
    int64_t within[LIMITS];  // frames whose time was not above the limit
    int64_t frames, ns;      // all, and their times together
};

static const double limits[LIMITS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,  0.5,    1,     2.5,  5,     10};

enum status latency_create(int64_t limit_ns, struct latency **latency)
{
    assert(limit_ns >= 0);
    *latency = calloc(1, sizeof **latency);
    if (!*latency)
        return STATUS_MEMORY;
    (*latency)->limit_ns = limit_ns;
    pthread_mutex_init(&(*latency)->lock, NULL);
    return STATUS_OK;
}

void latency_destroy(struct latency **latency)
{
    if (!*latency)
        return;
    pthread_mutex_destroy(&(*latency)->lock);
    free(*latency);
    *latency = NULL;
}

int64_t latency_limit_ns(const struct latency *latency)
{
    return latency->limit_ns;
}

// Packets that are shown later than this one wait for it.
static void delay_later_locked(struct latency *latency, int64_t pts_us, int64_t arrived_ns)
{
    for (unsigned k = 1; k <= REORDERED; k++) {
        struct arrival *arrival = &latency->arrival[(latency->next - k) % ARRIVALS];
        if (arrival->ns && arrival->pts_us > pts_us)
            arrival->ns = arrived_ns;
    }
}

void latency_note_arrival(struct latency *latency, int64_t pts_us, int64_t arrived_ns)
{
    pthread_mutex_lock(&latency->lock);
    if (!latency->first_ns)
        latency->first_ns = arrived_ns;
    delay_later_locked(latency, pts_us, arrived_ns);
    latency->arrival[latency->next++ % ARRIVALS] = (struct arrival){pts_us, arrived_ns};
    pthread_mutex_unlock(&latency->lock);
}

// Timestamps were rounded to other time bases on the way.
static const struct arrival *find_locked(const struct latency *latency, int64_t pts_us)
{
    for (unsigned k = 1; k <= ARRIVALS; k++) {
        const struct arrival *arrival = &latency->arrival[(latency->next - k) % ARRIVALS];
        if (!arrival->ns)
            return NULL;
        if (llabs(arrival->pts_us - pts_us) <= 1000)
            return arrival;
    }
    return NULL;
}

int64_t latency_age_ns(struct latency *latency, int64_t pts_us)
{
    pthread_mutex_lock(&latency->lock);
    const struct arrival *arrival = find_locked(latency, pts_us);
    int64_t age = arrival ? meter_now_ns() - arrival->ns : 0;
    if (arrival && arrival->ns - latency->first_ns < opening_ns)
        age = age > grace_ns ? age - grace_ns : 0;
    pthread_mutex_unlock(&latency->lock);
    return age;
}

void latency_note_shown(struct latency *latency)
{
    latency->shown_ns = meter_now_ns();
}

bool latency_frame_is_late(struct latency *latency, const AVFrame *frame, AVRational time_base,
                           int64_t ahead_ns)
{
    assert(frame->pts != AV_NOPTS_VALUE && ahead_ns >= 0);
    if (!latency || !latency->limit_ns || !latency->shown_ns)
        return false;
    if (meter_now_ns() - latency->shown_ns > frozen_ns + latency->limit_ns)
        return false;
    return latency_age_ns(latency, av_rescale_q(frame->pts, time_base, AV_TIME_BASE_Q)) >
           latency->limit_ns - ahead_ns;
}

void latency_note_out(struct latency *latency, int64_t pts_us)
{
    pthread_mutex_lock(&latency->lock);
    const struct arrival *arrival = find_locked(latency, pts_us);
    if (arrival) {
        int64_t age = meter_now_ns() - arrival->ns;
        int k = (int)(log2((double)age * 1e-3 + 1) * BUCKETS_PER_OCTAVE);
        latency->bucket[k < BUCKETS ? k : BUCKETS - 1]++;
        latency->frames++;
        latency->ns += age;
        for (k = 0; k < LIMITS; k++)
            latency->within[k] += (double)age * 1e-9 <= limits[k];
    }
    pthread_mutex_unlock(&latency->lock);
}

static double quantile_s_locked(const struct latency *latency, double share)
{
    double wanted = share * (double)latency->frames;
    int64_t seen = 0;
    int k = 0;
    for (; k < BUCKETS && latency->frames; k++)
        if ((double)(seen += latency->bucket[k]) >= wanted)
            break;
    return latency->frames ? exp2((k + 0.5) / BUCKETS_PER_OCTAVE) * 1e-6 : 0;
}

void latency_figures(struct latency *latency, struct sluice_latency *figures)
{
    static const double shares[3] = {0.5, 0.95, 0.99};
    figures->limits = LIMITS;
    memcpy(figures->limit, limits, sizeof limits);
    pthread_mutex_lock(&latency->lock);
    memcpy(figures->within, latency->within, sizeof latency->within);
    figures->frames = latency->frames;
    figures->seconds = (double)latency->ns * 1e-9;
    for (int k = 0; k < 3; k++)
        figures->quantile[k] = quantile_s_locked(latency, shares[k]);
    pthread_mutex_unlock(&latency->lock);
}
