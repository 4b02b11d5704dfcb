// Damaged times of single packets, and those that are right.
#include <libavutil/avutil.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/stamps.h"
#include "tests/unit.h"

enum { FRAME = 40, MAX = 64 };

static const AVRational milliseconds = {1, 1000};

// A run of packets, as they come and as they go on.
struct run {
    struct stamps stamps;
    int64_t dts[MAX], pts[MAX];
    int count, duration;
};

static void note(struct run *run, struct packet *packet)
{
    run->dts[run->count] = packet->av->dts;
    run->pts[run->count++] = packet->av->pts;
    packet_destroy(&packet);
}

// A packet with these times, in ms, which comes at another.
static void put_at(struct run *run, int64_t dts, int64_t pts, int64_t arrived_ms)
{
    struct packet *packet = packet_create();
    assert_non_null(packet);
    packet->av->dts = dts;
    packet->av->pts = pts;
    packet->av->duration = run->duration;
    packet->arrived_ns = arrived_ms * 1000000;
    assert_int_equal(stamps_put(&run->stamps, 0, milliseconds, &packet), STATUS_OK);
    for (; packet; packet = stamps_take(&run->stamps))
        note(run, packet);
}

static void put(struct run *run, int64_t time)
{
    put_at(run, time, time, 0);
}

static void end(struct run *run)
{
    for (struct packet *packet; (packet = stamps_end(&run->stamps));)
        note(run, packet);
    stamps_finish(&run->stamps);
}

// Ten frames, of which the sixth has this time: all must go on evenly.
static void mends_one_time(void **state)
{
    (void)state;
    static const int64_t wrong[] = {201 - 5000, 0, 60, 310, 700, 5200, 3600000};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct run run = {.duration = FRAME};
        for (int n = 0; n < 10; n++)
            put(&run, n == 5 ? wrong[k] : n * FRAME);
        assert_int_equal(run.count, 10);
        end(&run);
        for (int n = 0; n < 10; n++) {
            assert_int_equal(run.dts[n], n * FRAME);
            assert_int_equal(run.pts[n], n * FRAME);
        }
    }
}

// Two in a row, and the last but one.
static void mends_times_near_others(void **state)
{
    (void)state;
    struct run run = {.duration = FRAME};
    for (int n = 0; n < 12; n++)
        put(&run, n == 5 ? 9000 : n == 6 ? 3000 : n == 10 ? 70000 : n * FRAME);
    end(&run);
    for (int n = 0; n < 12; n++)
        assert_int_equal(run.dts[n], n * FRAME);
}

// Times that are out of line and right: they wait, and go on as they are.
static void keeps_jumps_and_pauses(void **state)
{
    (void)state;
    static const int64_t by[] = {-3600000, -150, 150, 3000, 3600000};
    for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
        struct run run = {.duration = FRAME};
        for (int n = 0; n < 10; n++) {
            put(&run, n * FRAME + (n >= 5 ? by[k] : 0));
            assert_int_equal(run.count, n == 5 ? 5 : n + 1);
        }
        end(&run);
        for (int n = 0; n < 10; n++)
            assert_int_equal(run.dts[n], n * FRAME + (n >= 5 ? by[k] : 0));
    }
}

// Packets last as long as `duration` says, or not; a step may be any. Their times are right.
static void keeps_times_of_packets_with_wrong_durations(void **state)
{
    (void)state;
    static const int64_t times[][8] = {{0, 40, 80, 120, 160, 200, 240, 280},
                                       {0, 1000, 1040, 1080, 4000, 4040, 9000, 9001}};
    static const int durations[] = {0, 1, 40, 500, 5000};
    for (int row = 0; row < 2; row++)
        for (size_t k = 0; k < sizeof durations / sizeof *durations; k++) {
            struct run run = {.duration = durations[k]};
            for (int n = 0; n < 8; n++)
                put(&run, times[row][n]);
            end(&run);
            assert_int_equal(run.count, 8);
            assert_memory_equal(run.dts, times[row], sizeof times[row]);
        }
}

// A damaged time before its stream's others, at one frame a second; and any number, in any unit.
static void mends_times_of_rare_packets(void **state)
{
    (void)state;
    static const int64_t wrong[] = {-5000, 500, 90000, INT64_MAX / 2, INT64_MIN + 2};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct run run = {.duration = FRAME};
        for (int n = 0; n < 8; n++)
            put(&run, n == 5 ? wrong[k] : n * 1000);
        end(&run);
        for (int n = 0; n < 8; n++)
            assert_int_equal(run.dts[n], n * 1000);
    }
}

// Where as much time has passed nothing waits; nor where packets come late, or all at once.
static void waits_for_nothing_that_is_in_line(void **state)
{
    (void)state;
    struct run run = {.duration = FRAME};
    for (int n = 0; n < 10; n++) {
        put_at(&run, n * FRAME + (n >= 5 ? 3000 : 0), n * FRAME, n * FRAME + (n >= 5 ? 3050 : 0));
        assert_int_equal(run.count, n + 1);
    }
    for (int n = 10; n < 20; n++) {
        put_at(&run, n * FRAME + 3000, n * FRAME, n < 15 ? 3400 : 9000);
        assert_int_equal(run.count, n + 1);
    }
    end(&run);
}

// One frame a second, of which packets say that they last 40 ms, and which come in their own time but unevenly.
static void waits_for_nothing_of_a_slow_stream(void **state)
{
    (void)state;
    struct run run = {.duration = FRAME};
    for (int n = 0; n < 10; n++) {
        put_at(&run, n * 1000, n * 1000, n * 1000 + (n % 2 ? 0 : 300));
        assert_int_equal(run.count,
                         n == 1 ? 1 : n + 1); // the second cannot be known to be slow
    }
    end(&run);
}

// The pts of a frame is two later than its dts, or none.
static void mends_what_is_damaged(void **state)
{
    (void)state;
    static const struct {
        int64_t dts, pts, mended;
    } wrong[] = {
        {9000, 5 * FRAME + 80, 5 * FRAME + 80}, // dts alone
        {9000, 9080, 5 * FRAME + 80},           // both alike
        {9000, 5000, AV_NOPTS_VALUE},           // each by itself
        {9000, AV_NOPTS_VALUE, AV_NOPTS_VALUE}, // there was none
        {-9000, -9000, 5 * FRAME},              // a frame that nothing refers to
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        struct run run = {.duration = FRAME};
        for (int n = 0; n < 10; n++)
            put_at(&run, n == 5 ? wrong[k].dts : n * FRAME, n == 5 ? wrong[k].pts : n * FRAME + 80,
                   0);
        end(&run);
        for (int n = 0; n < 10; n++) {
            assert_int_equal(run.dts[n], n * FRAME);
            assert_int_equal(run.pts[n], n == 5 ? wrong[k].mended : n * FRAME + 80);
        }
    }
}

// A packet that waits goes on before one without a time, and at the end.
static void gives_all_out(void **state)
{
    (void)state;
    struct run run = {.duration = FRAME};
    put(&run, 0);
    put(&run, 5000);
    assert_int_equal(run.count, 1);
    put(&run, AV_NOPTS_VALUE);
    assert_int_equal(run.count, 3);
    put(&run, 19000);
    assert_int_equal(run.count, 3);
    end(&run);
    assert_int_equal(run.count, 4);
    static const int64_t times[] = {0, 5000, AV_NOPTS_VALUE, 19000};
    for (int n = 0; n < 4; n++)
        assert_int_equal(run.dts[n], times[n]);
    put(&run, 7);
    put(&run, 19000);
    stamps_finish(&run.stamps); // frees what waits
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mends_one_time),
        cmocka_unit_test(mends_times_near_others),
        cmocka_unit_test(keeps_jumps_and_pauses),
        cmocka_unit_test(keeps_times_of_packets_with_wrong_durations),
        cmocka_unit_test(mends_times_of_rare_packets),
        cmocka_unit_test(waits_for_nothing_that_is_in_line),
        cmocka_unit_test(waits_for_nothing_of_a_slow_stream),
        cmocka_unit_test(mends_what_is_damaged),
        cmocka_unit_test(gives_all_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
