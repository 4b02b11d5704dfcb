// Live sources: the age of frames, clocks that drift, and those of several connections.
#include "tests/unit.h"

#include <libavformat/avformat.h>
#include <stdlib.h>

#include "base/meter.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/input/live/drift.h"
#include "pipeline/input/live/live_clock.h"
#include "sluice/sluice.h"

enum { FRAME_US = 40000 };

static void note_frames(struct latency *latency, const int *shown, int count, int64_t first_ns)
{
    for (int k = 0; k < count; k++)
        latency_note_arrival(latency, shown[k] * FRAME_US, first_ns + INT64_C(1000) * k * FRAME_US);
}

static void what_gathers_at_the_beginning_is_given_time(void **state)
{
    (void)state;
    struct latency *latency;
    int shown[75];
    for (int k = 0; k < 75; k++)
        shown[k] = k;
    assert_int_equal(latency_create(0, &latency), STATUS_OK);
    assert_int_equal(latency_age_ns(latency, 0), 0);
    note_frames(latency, shown, 75, meter_now_ns() - INT64_C(3500000000));
    assert_true(latency_age_ns(latency, 0) >= 2500000000 &&
                latency_age_ns(latency, 0) < 3500000000);
    assert_true(latency_age_ns(latency, 49 * FRAME_US) < latency_age_ns(latency, 50 * FRAME_US));
    assert_true(latency_age_ns(latency, 50 * FRAME_US) >= 1500000000);
    latency_note_out(latency, 0); // it took so long all the same
    struct sluice_latency figures;
    latency_figures(latency, &figures);
    assert_true(figures.quantile[0] > 3.3);
    latency_destroy(&latency);
    assert_null(latency);
}

// A week of 25 frames a second by a clock that is fast, with jitter and bursts.
static void a_clock_that_drifts_is_followed(void **state)
{
    (void)state;
    enum { STEP_US = 40000 };
    struct drift drift = {0};
    unsigned seed = 1;
    double fast_us = 0;
    int64_t offset_us = 0, worst_us = 0;
    for (int64_t k = 0; k < 7 * 24 * 3600 * 25; k++) {
        fast_us += STEP_US * 50e-6;
        int64_t ahead_us = (int64_t)fast_us + offset_us;
        int64_t jitter_us = rand_r(&seed) % 80000 - (k % 500 < 10 ? 400000 : 40000);
        offset_us += drift_follow(&drift, ahead_us + jitter_us, STEP_US);
        worst_us = ahead_us > worst_us ? ahead_us : worst_us;
    }
    assert_true(fast_us > 30e6); // half a minute without
    assert_true(worst_us < 400000);
    drift = (struct drift){0};
    for (int k = 0; k < 100000; k++) // a recording that comes as fast as it can is left alone
        worst_us = drift_follow(&drift, INT64_C(600000000), STEP_US);
    assert_int_equal(worst_us, 0);
}

// Give the clock a packet of stream 0 at `ms` of its connection that came just now. Returns where
// the packet lies on the clock, in ms.
static int64_t stamp(struct live_clock *clock, int64_t ms)
{
    AVPacket *packet = av_packet_alloc();
    packet->pts = packet->dts = 90 * ms;
    packet->duration = 40 * 90;
    live_clock_stamp(clock, packet, meter_now_ns());
    int64_t at = packet->dts / 90;
    av_packet_free(&packet);
    return at;
}

// Connection after connection the clock goes on with the world's, wherever their own begin; a clock
// that jumps within one goes on where it was, and never back.
static void a_live_clock_goes_on_from_connection_to_connection(void **state)
{
    (void)state;
    static const AVInputFormat demuxer = {.name = "mpegts"};
    const struct log silent = {0};
    struct live_clock clock;
    AVFormatContext *format = avformat_alloc_context();
    format->iformat = &demuxer;
    avformat_new_stream(format, NULL)->time_base = (AVRational){1, 90000};
    assert_int_equal(live_clock_init(&clock, format, "a test", &silent), STATUS_OK);
    clock.watched = 0;
    assert_int_equal(live_clock_us(&clock, meter_now_ns()), AV_NOPTS_VALUE);
    live_clock_connect(&clock, meter_now_ns());
    assert_in_range(stamp(&clock, 5000), 0, 1);
    assert_int_equal(stamp(&clock, 5040), 40);
    assert_int_equal(stamp(&clock, 5080), 80);
    assert_in_range(stamp(&clock, 1000), 120, 160); // back: behind the last one's end
    assert_in_range(stamp(&clock, 1040), 160, 200);
    live_clock_connect(&clock, meter_now_ns() + 3000 * INT64_C(1000000)); // three seconds later
    assert_in_range(stamp(&clock, 1080), 3000, 3500);
    assert_in_range(stamp(&clock, 1120), 3040, 3540);
    live_clock_connect(&clock, meter_now_ns()); // never before what was given out
    assert_in_range(stamp(&clock, 0), 3080, 3580);
    live_clock_finish(&clock);
    avformat_free_context(format);
}

static void a_frame_waits_for_those_that_are_shown_before_it(void **state)
{
    (void)state;
    struct latency *latency;
    assert_int_equal(latency_create(0, &latency), STATUS_OK);
    note_frames(latency, (int[]){0, 4, 2, 1, 3, 5}, 6, meter_now_ns() - INT64_C(1500000000));
    int64_t age_ns[6];
    for (int k = 0; k < 6; k++)
        age_ns[k] = latency_age_ns(latency, k * FRAME_US) + 5000000; // the clock goes on
    const int arrival[] = {0, 3, 3, 4, 4, 5};
    for (int k = 1; k < 6; k++)
        assert_int_equal((age_ns[0] - age_ns[k] + 10000000) / 1000 / FRAME_US, arrival[k]);
    latency_destroy(&latency);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gathers_at_the_beginning_is_given_time),
        cmocka_unit_test(a_clock_that_drifts_is_followed),
        cmocka_unit_test(a_live_clock_goes_on_from_connection_to_connection),
        cmocka_unit_test(a_frame_waits_for_those_that_are_shown_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
