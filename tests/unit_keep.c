// The last seconds as packets: which of them are kept.
#include "tests/unit.h"

#include <libavutil/avutil.h>

#include "page/player/keep.h"
#include "pipeline/ffmpeg/packet.h"

static const AVRational ms = {1, 1000};
static AVCodecParameters *about; // the packets' that are made here

static void put(struct keep *keep, int64_t at_ms, int size, bool key)
{
    struct packet *packet = packet_create();
    assert_int_equal(av_new_packet(packet->av, size), 0);
    packet->av->pts = packet->av->dts = at_ms;
    packet->av->duration = 100;
    packet->pts_us = at_ms * 1000;
    if (key)
        packet->av->flags |= AV_PKT_FLAG_KEY;
    keep_put(keep, packet);
    packet_destroy(&packet);
}

// Packets of 100 ms, every fifth a key frame.
static void put_many(struct keep *keep, int from, int count, int size)
{
    for (int k = from; k < from + count; k++)
        put(keep, 100 * (int64_t)k, size, k % 5 == 0);
}

static struct keep *make_keep(double seconds, int64_t bytes)
{
    struct keep *keep;
    assert_int_equal(keep_create(&(struct keep_request){seconds, bytes, ms, 100000, about}, &keep),
                     STATUS_OK);
    return keep;
}

static void is_kept(struct keep *keep, int64_t begin_ms, int64_t end_ms)
{
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(span.begin_us, begin_ms * 1000);
    assert_int_equal(span.end_us, end_ms * 1000);
}

static bool is_empty(struct keep *keep)
{
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(span.first == span.end, span.begin_us == AV_NOPTS_VALUE);
    return span.first == span.end;
}

static void the_last_seconds_are_kept_from_a_key_frame_on(void **state)
{
    (void)state;
    struct keep *keep = make_keep(2, 1 << 20);
    put_many(keep, 2, 3, 10);
    assert_true(is_empty(keep)); // no key frame yet
    put_many(keep, 5, 26, 10);
    is_kept(keep, 1000, 3100); // 500 goes when 1000 is two seconds old, not before
    struct packet *packet;
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(keep_read(keep, span.first, &packet), STATUS_OK);
    assert_true(packet->av->flags & AV_PKT_FLAG_KEY);
    packet_destroy(&packet);
    assert_int_equal(keep_read(keep, span.first - 1, &packet), STATUS_EOF);
    assert_int_equal(keep_read(keep, span.end, &packet), STATUS_EOF);
    keep_destroy(&keep);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    const int64_t most = 20000;
    struct keep *keep = make_keep(1000, most);
    struct keep_span span;
    for (int k = 0; k < 100; k++) {
        put(keep, 100 * (int64_t)k, 500, k % 5 == 0);
        keep_measure(keep, &span);
        assert_in_range(span.bytes, 1, most);
        assert_int_equal(span.begin_us % 500000, 0); // always a key frame's
    }
    assert_true(span.end - span.first > 10);
    keep_destroy(&keep);
}

static void a_group_that_is_too_large_is_dropped(void **state)
{
    (void)state;
    struct keep *keep = make_keep(1000, 20000);
    put(keep, 0, 10000, true);
    put(keep, 100, 5000, false);
    assert_false(is_empty(keep));
    put(keep, 200, 5000, false);
    assert_true(is_empty(keep));
    put(keep, 300, 10, false); // its beginning is missing
    assert_true(is_empty(keep));
    put(keep, 400, 10, true);
    is_kept(keep, 400, 500);
    keep_destroy(&keep);
}

static void a_long_group_is_kept_whole(void **state)
{
    (void)state;
    struct keep *keep = make_keep(1, 1 << 20);
    for (int k = 0; k < 100; k++)
        put(keep, 100 * (int64_t)k, 10, k == 0);
    is_kept(keep, 0, 10000);
    keep_destroy(&keep);
}

static void what_is_held_stays(void **state)
{
    (void)state;
    struct keep *keep = make_keep(2, 1 << 20);
    struct keep_span span;
    put_many(keep, 0, 20, 10);
    keep_hold(keep, true);
    put_many(keep, 20, 15, 10);
    is_kept(keep, 0, 3500); // it grows
    put_many(keep, 35, 100, 10);
    keep_measure(keep, &span);
    assert_int_equal(span.begin_us, 0);
    assert_in_range(span.end_us, 4000000, 4200000); // twice the bound
    assert_false(span.more);
    keep_hold(keep, false);
    is_kept(keep, 11500, 13500); // what came meanwhile
    put_many(keep, 135, 10, 10);
    is_kept(keep, 12500, 14500);
    keep_destroy(&keep);
}

static void bytes_are_bounded_while_it_is_held(void **state)
{
    (void)state;
    const int64_t most = 20000, packet = 1012;
    struct keep *keep = make_keep(1000, most);
    struct keep_span span;
    put_many(keep, 0, 20, 500);
    keep_hold(keep, true);
    keep_measure(keep, &span);
    int64_t begin_us = span.begin_us;
    for (int k = 20; k < 200; k++) {
        put(keep, 100 * (int64_t)k, 500, k % 5 == 0);
        keep_measure(keep, &span);
        assert_in_range(span.bytes, 1, 2 * most + packet);
        assert_int_equal(span.begin_us, begin_us);
    }
    assert_in_range(span.bytes, 3 * most / 2, 2 * most);
    keep_hold(keep, false);
    keep_measure(keep, &span);
    assert_in_range(span.bytes, 1, most);
    assert_int_equal(span.end_us, 20000000);
    keep_destroy(&keep);
}

static void a_clock_that_jumps_back_begins_anew(void **state)
{
    (void)state;
    struct keep *keep = make_keep(30, 1 << 20);
    put_many(keep, 1000, 20, 10);
    put_many(keep, 0, 10, 10);
    is_kept(keep, 0, 1000);
    keep_destroy(&keep);
}

static void key_frames_are_found_by_time(void **state)
{
    (void)state;
    struct keep *keep = make_keep(30, 1 << 20);
    put_many(keep, 0, 30, 10);
    assert_int_equal(keep_find(keep, 1499000, INT64_MAX), 10);
    assert_int_equal(keep_find(keep, 1500000, INT64_MAX), 15);
    assert_int_equal(keep_find(keep, 1500000, 15), 10); // an earlier one
    assert_int_equal(keep_find(keep, -5, INT64_MAX), 0);
    assert_int_equal(keep_find(keep, INT64_MAX, INT64_MAX), 25);
    assert_int_equal(keep_find(keep, 0, 0), -1);
    keep_destroy(&keep);
}

static int make_about(void **state)
{
    (void)state;
    about = avcodec_parameters_alloc();
    return about ? 0 : -1;
}

static int free_about(void **state)
{
    (void)state;
    avcodec_parameters_free(&about);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_seconds_are_kept_from_a_key_frame_on),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(a_group_that_is_too_large_is_dropped),
        cmocka_unit_test(a_long_group_is_kept_whole),
        cmocka_unit_test(what_is_held_stays),
        cmocka_unit_test(bytes_are_bounded_while_it_is_held),
        cmocka_unit_test(a_clock_that_jumps_back_begins_anew),
        cmocka_unit_test(key_frames_are_found_by_time),
    };
    return cmocka_run_group_tests(tests, make_about, free_about);
}
