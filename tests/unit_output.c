// The way of packets into an output: which muxer wants what, which streams go along, what is held.
#include "tests/unit.h"

#include <libavcodec/packet.h>
#include <libavformat/avformat.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/output/hold.h"
#include "pipeline/output/muxer/muxer.h"
#include "pipeline/output/muxer/muxer_quirks.h"
#include "pipeline/output/muxer/passthrough.h"

// ---- muxer quirks ----

static const struct muxer_quirks *quirks_of(const char *name)
{
    const AVOutputFormat *container = av_guess_format(name, NULL, NULL);
    assert_non_null(container);
    return muxer_quirks_of(container);
}

// A row is found by its containers' names, and a container has one row only.
static void each_container_has_the_quirks_of_its_row(void **state)
{
    (void)state;
    assert_true(quirks_of("mp4")->fragments && quirks_of("mov")->rotation);
    assert_ptr_equal(quirks_of("ipod"), quirks_of("mp4"));
    assert_true(quirks_of("matroska")->attachments && !quirks_of("webm")->attachments);
    assert_true(quirks_of("webm")->header_decides && !quirks_of("webm")->bare_aac);
    assert_true(quirks_of("mpegts")->mpegts_names && quirks_of("hls")->mpegts_names);
    assert_true(quirks_of("hls")->numbers_segments && !quirks_of("dash")->numbers_segments);
    assert_string_equal(quirks_of("hls")->segment_time, "hls_time");
    assert_string_equal(quirks_of("dash")->segment_time, "seg_duration");
    assert_true(quirks_of("image2")->images && quirks_of("image2")->one_stream);
    assert_true(quirks_of("mjpeg")->one_stream && !quirks_of("mjpeg")->images);
    assert_true(quirks_of("avi")->counts_frames && quirks_of("yuv4mpegpipe")->formats != NULL);
    assert_false(quirks_of("gif")->counts_frames || quirks_of("gif")->one_stream);
    assert_null(quirks_of("nut")->option[0].key);
}

// libavformat leaves options alone that no muxer has: a name mistyped would do nothing, and say
// nothing.
static void muxers_have_the_options_of_their_rows(void **state)
{
    (void)state;
    void *at = NULL;
    int options = 0;
    for (const AVOutputFormat *container; (container = av_muxer_iterate(&at));) {
        const struct muxer_quirks *quirks = muxer_quirks_of(container);
        const int count = sizeof quirks->option / sizeof *quirks->option;
        for (int k = 0; k < count && quirks->option[k].key; k++, options++)
            assert_true(muxer_has_option(container, quirks->option[k].key));
        if (quirks->segment_time)
            assert_true(muxer_has_option(container, quirks->segment_time));
        if (quirks->fragments)
            assert_true(muxer_has_option(container, "movflags"));
    }
    assert_in_range(options, 14, 30); // 8 of MP4's family, 2 of Matroska's, 3 of HLS, and others
}

// ---- passthrough ----

// A packet of stream 0, of `size` bytes.
static struct packet *sound_at(int64_t ms, int size)
{
    struct packet *packet = packet_create();
    assert_int_equal(av_new_packet(packet->av, size), 0);
    packet->av->pts = packet->av->dts = ms;
    return packet;
}

// A source of one stream that goes along, in milliseconds, and one that is filtered.
static void two_streams(struct passthrough *passthrough)
{
    AVFormatContext *from = avformat_alloc_context();
    avformat_new_stream(from, NULL)->time_base = (AVRational){1, 1000};
    avformat_new_stream(from, NULL)->time_base = (AVRational){1, 25};
    assert_int_equal(passthrough_init(passthrough, from, 1), STATUS_OK);
    avformat_free_context(from);
}

// Outputs beside each other: a stream goes along where any of them takes it.
static void passthrough_is_what_any_output_accepts(void **state)
{
    (void)state;
    struct passthrough none = {0}, all = {0}, first, second;
    two_streams(&first);
    two_streams(&second);
    second.accepted[0] = true;
    assert_true(passthrough_is_empty(&none));
    assert_false(passthrough_accepts(&none, 0));
    assert_int_equal(passthrough_join(&all, &first), STATUS_OK);
    assert_true(passthrough_is_empty(&all));
    assert_int_equal(passthrough_join(&all, &none), STATUS_OK); // one that takes frames only
    assert_int_equal(passthrough_join(&all, &second), STATUS_OK);
    assert_true(passthrough_accepts(&all, 0));
    assert_false(passthrough_accepts(&all, 1));
    assert_false(passthrough_accepts(&all, 2)); // one that came up later
    assert_false(passthrough_is_empty(&all));
    assert_false(passthrough_accepts(&first, 0)); // not its own
    passthrough_finish(&first);
    passthrough_finish(&second);
    passthrough_finish(&all);
    passthrough_finish(&none);
}

static void passthrough_has_the_source_s_clock(void **state)
{
    (void)state;
    struct passthrough clock;
    struct packet *packet = sound_at(40, 1);
    two_streams(&clock);
    packet->av->pts = 80;
    assert_int_equal(passthrough_pts_us(&clock, packet), 80000);
    assert_int_equal(passthrough_dts_us(&clock, packet), 40000);
    packet->av->pts = AV_NOPTS_VALUE;
    assert_int_equal(passthrough_pts_us(&clock, packet), 40000);
    packet->av->dts = AV_NOPTS_VALUE;
    assert_true(passthrough_pts_us(&clock, packet) == AV_NOPTS_VALUE);
    packet->av->pts = 25;
    packet->av->stream_index = 1;
    assert_int_equal(passthrough_dts_us(&clock, packet), 1000000);
    packet_destroy(&packet);
    passthrough_finish(&clock);
}

// ---- hold ----

static enum status note_time(void *last_, struct packet *packet)
{
    int64_t *last = last_;
    assert_true(packet->av->dts > *last); // in order
    *last = packet->av->dts;
    return STATUS_OK;
}

// Sound of the pictures that came is given out, and no more, though a reordered
// picture comes later.
static void sound_is_held_until_its_picture_comes(void **state)
{
    (void)state;
    struct hold hold;
    struct passthrough clock;
    two_streams(&clock);
    hold_init(&hold, &clock, (AVRational){25, 1});
    struct packet *video = packet_create();
    int64_t last = -1;
    for (int64_t ms = 0; ms < 500; ms += 20) {
        struct packet *sound = sound_at(ms, 10);
        assert_true(hold_is_ahead(&hold, sound));
        assert_int_equal(hold_put(&hold, &sound), STATUS_OK);
        assert_null(sound);
    }
    const int64_t shown_us[] = {0, 160000, 80000}, until_ms[] = {20, 180, 180};
    for (int k = 0; k < 3; k++) {
        video->pts_us = shown_us[k];
        hold_note_video(&hold, video, (AVRational){1, 25});
        assert_int_equal(hold_release(&hold, hold.end_us, note_time, &last), STATUS_OK);
        assert_int_equal(last, until_ms[k]);
    }
    assert_int_equal(hold_drop(&hold), 15);
    struct packet *late = sound_at(150, 10), *large = sound_at(900, (int)budget_packets);
    assert_false(hold_is_ahead(&hold, late));
    assert_int_equal(hold_put(&hold, &large), STATUS_OK);
    assert_true(hold_is_full(&hold));
    assert_int_equal(hold_release(&hold, hold.end_us, note_time, &last), STATUS_OK);
    assert_int_equal(last, 900); // memory comes first
    packet_destroy(&late);
    packet_destroy(&video);
    hold_finish(&hold);
    passthrough_finish(&clock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_container_has_the_quirks_of_its_row),
        cmocka_unit_test(muxers_have_the_options_of_their_rows),
        cmocka_unit_test(passthrough_is_what_any_output_accepts),
        cmocka_unit_test(passthrough_has_the_source_s_clock),
        cmocka_unit_test(sound_is_held_until_its_picture_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
