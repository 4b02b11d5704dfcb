// The last seconds once more: orders to the player, and the frames that it shows.
#include "tests/film.h"

#include <stdio.h>
#include <unistd.h>

#include "base/meter.h"
#include "base/monitor.h"
#include "page/player/player.h"
#include "pipeline/engine/tap.h"
#include "sluice/sluice.h"

// The frames that were shown.
struct screen {
    struct monitor lock;
    struct film film;
};

static void show(void *opaque, const AVFrame *frame, const struct tap_frame *shown)
{
    struct screen *screen = opaque;
    monitor_lock(&screen->lock);
    watch(&screen->film, frame, shown->time_base);
    assert_int_equal(shown->pts_us, screen->film.us[screen->film.count - 1]);
    monitor_unlock(&screen->lock);
}

// A player of a job, which is given the job's packets and frames by hand.
struct stage {
    struct screen screen;
    struct player *player;
    struct sluice_job *job;
    struct source *source;
    struct backend *backend;
    struct decoder *decoder;
    struct film film; // the whole file's
    int fed;
};

static void join(struct stage *stage, const char *name, const char *simulate)
{
    struct sluice_config config = {.size = sizeof config,
                                   .input = name,
                                   .output.name = "null:",
                                   .chain = "null",
                                   .simulate = simulate};
    sluice_job_destroy(&stage->job);
    assert_int_equal(sluice_job_create(&config, &stage->job), SLUICE_STATUS_OK);
    assert_int_equal(player_join(stage->player, stage->job, &config), STATUS_OK);
}

// `ring`: the player takes it for no file.
static struct stage *open_stage(const char *name, bool ring)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct source_request request = request_of(name, NULL);
    // Each of the codec's threads holds a frame, which the films do not have on many processors.
    struct decoder_request codec = {.max_pixels = MAX_PIXELS, .threads = 2, .frames_held = 1};
    monitor_init(&stage->screen.lock);
    struct player_request playing = {.keep = 2, .show = show, .opaque = &stage->screen};
    assert_int_equal(player_create(&playing, &silence, &stage->player), STATUS_OK);
    join(stage, name, ring ? "seed=1" : NULL);
    watch_file(name, NULL, 0, &stage->film, NULL, NULL);
    assert_int_equal(source_open(&request, &silence, &never, &stage->source), STATUS_OK);
    assert_int_equal(backend_scalar_create(&silence, &stage->backend), STATUS_OK);
    assert_int_equal(decoder_create(&codec, stage->source, stage->backend, &stage->decoder),
                     STATUS_OK);
    return stage;
}

static void close_stage(struct stage *stage)
{
    player_destroy(&stage->player);
    sluice_job_destroy(&stage->job);
    decoder_destroy(&stage->decoder);
    backend_destroy(&stage->backend);
    source_close(&stage->source);
    monitor_finish(&stage->screen.lock);
    free(stage);
}

static void feed_frame(struct stage *stage, AVFrame *frame)
{
    AVRational base = source_video(stage->source)->time_base;
    struct tap_frame shown = {.time_base = base,
                              .pts_us = av_rescale_q(frame->pts, base, AV_TIME_BASE_Q),
                              .software_pixel = frame->format};
    player_frame(stage->player, frame, &shown);
    stage->fed++;
}

// Go on with the job up to this frame.
static void feed(struct stage *stage, int frames)
{
    AVFrame *frame = av_frame_alloc();
    struct packet *packet = NULL;
    bool got = false;
    while (stage->fed < frames) {
        assert_int_equal(decoder_receive(stage->decoder, frame, &got), STATUS_OK);
        if (got) {
            feed_frame(stage, frame);
            av_frame_unref(frame);
            continue;
        }
        assert_int_equal(source_read(stage->source, &packet), STATUS_OK);
        if (packet->av->stream_index == stage->source->video) {
            player_packet(stage->player, packet);
            assert_int_equal(decoder_send(stage->decoder, packet), STATUS_OK);
        }
        packet_destroy(&packet);
    }
    av_frame_free(&frame);
}

static enum status give(struct stage *stage, struct player_order order)
{
    char why[256] = "";
    enum status status = player_do(stage->player, &order, why, sizeof why);
    assert_int_equal(status == STATUS_OK, !*why);
    return status;
}

// Carry an order out.
static void carry_out(struct stage *stage, struct player_order order)
{
    assert_int_equal(give(stage, order), STATUS_OK);
    assert_true(player_await(stage->player, 20));
}

static struct player_state state_of(struct stage *stage)
{
    struct player_state now;
    player_state(stage->player, &now);
    assert_string_equal(now.error, "");
    return now;
}

// Frame `n` of the file is on the screen.
static void is_shown(struct stage *stage, int n)
{
    struct player_state now = state_of(stage);
    monitor_lock(&stage->screen.lock);
    const struct film *shown = &stage->screen.film;
    assert_true(shown->count > 0);
    assert_int_equal(shown->us[shown->count - 1], stage->film.us[n]);
    assert_int_equal(shown->hash[shown->count - 1], stage->film.hash[n]);
    monitor_unlock(&stage->screen.lock);
    assert_int_equal(now.at_us, stage->film.us[n]);
}

static int shown_so_far(struct stage *stage)
{
    monitor_lock(&stage->screen.lock);
    int count = stage->screen.film.count;
    monitor_unlock(&stage->screen.lock);
    return count;
}

static const struct player_order pause_order = {.action = PLAYER_PAUSE},
                                 live_order = {.action = PLAYER_LIVE};

static struct player_order seek_order(int64_t at_us)
{
    return (struct player_order){.action = PLAYER_SEEK, .at_us = at_us};
}

static struct player_order step_order(int frames)
{
    return (struct player_order){.action = PLAYER_STEP, .frames = frames};
}

static struct player_order play_order(double rate)
{
    return (struct player_order){.action = PLAYER_PLAY, .rate = rate};
}

static void paused_the_picture_stays_while_packets_go_on(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    feed(stage, 50);
    assert_int_equal(shown_so_far(stage), 50);
    is_shown(stage, 49);
    assert_false(player_holds(stage->player));
    carry_out(stage, pause_order);
    is_shown(stage, 49); // decoded once more
    int shown = shown_so_far(stage);
    feed(stage, 90);
    assert_int_equal(shown_so_far(stage), shown);
    struct player_state now = state_of(stage);
    assert_int_equal(now.mode, PLAYER_IS_PAUSED);
    assert_false(now.whole);
    assert_int_equal(now.begin_us, 0);
    assert_true(now.behind > 1.59 && now.behind < 1.61);
    carry_out(stage, step_order(-1));
    is_shown(stage, 48);
    carry_out(stage, step_order(15));
    is_shown(stage, 63);
    carry_out(stage, seek_order(333333));
    is_shown(stage, 8);
    carry_out(stage, step_order(-100));
    is_shown(stage, 0);
    carry_out(stage, seek_order(INT64_MAX));
    assert_true(state_of(stage).at_us >= stage->film.us[89]);
    carry_out(stage, seek_order(INT64_MIN + 1));
    is_shown(stage, 0);
    close_stage(stage);
}

static void live_again_frames_pass_and_packets_go(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    feed(stage, 50);
    carry_out(stage, pause_order);
    feed(stage, 90);
    carry_out(stage, live_order);
    feed(stage, 92);
    is_shown(stage, 91);
    struct player_state now = state_of(stage);
    assert_int_equal(now.mode, PLAYER_IS_LIVE);
    assert_true(now.begin_us >= 1000000); // the last two seconds again
    assert_true(now.bytes > 0);
    carry_out(stage, seek_order(0));
    is_shown(stage, frame_at(&stage->film, now.begin_us));
    give(stage, live_order);
    carry_out(stage, step_order(-1));                      // from what is live
    is_shown(stage, frame_at(&stage->film, now.begin_us)); // nothing was live between
    close_stage(stage);
}

static void of_a_file_all_is_there(void **state)
{
    (void)state;
    struct stage *stage = open_stage("open.mkv", false);
    struct player_state now = state_of(stage);
    assert_true(now.whole);
    assert_int_equal(now.begin_us, 0);
    assert_in_range(now.end_us, 3900000, 4100000);
    assert_true(now.frame_rate > 24.9 && now.frame_rate < 25.1);
    carry_out(stage, seek_order(3700000));
    is_shown(stage, frame_at(&stage->film, 3700000));
    carry_out(stage, step_order(-10));
    is_shown(stage, frame_at(&stage->film, 3700000) - 10);
    carry_out(stage, seek_order(INT64_MAX));
    is_shown(stage, stage->film.count - 1);
    carry_out(stage, seek_order(INT64_MIN + 1));
    is_shown(stage, 0);
    carry_out(stage, step_order(INT32_MAX));
    is_shown(stage, stage->film.count - 1);
    assert_int_equal(state_of(stage).bytes, 0);
    close_stage(stage);
}

static void of_many_seeks_the_newest_counts(void **state)
{
    (void)state;
    struct stage *stage = open_stage("one.mp4", false);
    for (int k = 0; k < 1000; k++)
        give(stage, seek_order(k * 3999));
    assert_true(player_await(stage->player, 60));
    is_shown(stage, frame_at(&stage->film, 999 * 3999));
    assert_in_range(shown_so_far(stage), 1, 100);
    for (int k = 0; k < 30; k++)
        give(stage, step_order(-1));
    assert_true(player_await(stage->player, 60));
    is_shown(stage, frame_at(&stage->film, 999 * 3999) - 30);
    close_stage(stage);
}

static void seeks_go_on_while_packets_come(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    for (int n = 10; n < 95; n++) {
        feed(stage, n);
        give(stage, seek_order(n * INT64_C(11000)));
        if (n % 7 == 0)
            give(stage, step_order(2));
        if (n % 20 == 0)
            give(stage, live_order);
    }
    assert_true(player_await(stage->player, 60));
    is_shown(stage, frame_at(&stage->film, 94 * 11000));
    close_stage(stage);
}

static void await_mode(struct stage *stage, enum player_mode mode)
{
    for (int k = 0; k < 1000 && state_of(stage).mode != mode; k++)
        usleep(10000);
    assert_int_equal(state_of(stage).mode, mode);
}

static void a_file_plays_to_its_end(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", false);
    int last = stage->film.count - 1;
    carry_out(stage, seek_order(stage->film.us[last - 20]));
    int before = shown_so_far(stage);
    int64_t began_ns = meter_now_ns();
    give(stage, play_order(4));
    await_mode(stage, PLAYER_IS_PAUSED);
    assert_true(meter_now_ns() - began_ns > 190000000); // 20 frames of 40 ms, four times as fast
    is_shown(stage, last);
    assert_int_equal(shown_so_far(stage), before + 20);
    close_stage(stage);
}

static void who_catches_up_is_live(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    feed(stage, 60);
    carry_out(stage, seek_order(1500000));
    give(stage, play_order(8));
    await_mode(stage, PLAYER_IS_LIVE);
    assert_in_range(shown_so_far(stage), 61 + 10, 61 + 24);
    close_stage(stage);
}

static void what_is_kept_outlives_the_job(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    feed(stage, 80);
    player_leave(stage->player); // live
    sluice_job_destroy(&stage->job);
    assert_true(player_await(stage->player, 20));
    is_shown(stage, 79);
    assert_int_equal(state_of(stage).mode, PLAYER_IS_PAUSED);
    carry_out(stage, step_order(-30));
    is_shown(stage, 49);
    carry_out(stage, step_order(100));
    assert_true(state_of(stage).at_us > stage->film.us[78]);
    assert_int_equal(give(stage, live_order), STATUS_USAGE);
    give(stage, seek_order(2000000));
    give(stage, play_order(16));
    await_mode(stage, PLAYER_IS_PAUSED);
    join(stage, "open.mkv", "seed=1");
    assert_int_equal(give(stage, pause_order), STATUS_USAGE); // nothing of the job before
    assert_int_equal(state_of(stage).mode, PLAYER_IS_LIVE);
    close_stage(stage);
}

static void see_packet(void *stage, const struct packet *packet)
{
    player_packet(((struct stage *)stage)->player, packet);
}

static void see_frame(void *stage, const AVFrame *frame, const struct tap_frame *seen)
{
    player_frame(((struct stage *)stage)->player, frame, seen);
}

// Times of a file whose clock has jumped are those of the job, which took the jump out.
static void of_a_file_that_was_joined_the_last_seconds_are_there(void **state)
{
    (void)state;
    struct stage *stage = open_stage("joined.ts", false);
    int last = stage->film.count - 1;
    assert_true(stage->film.us[last] - stage->film.us[0] > 7000000);
    assert_true(state_of(stage).whole);
    job_tap(stage->job, &(struct tap){.opaque = stage, .packet = see_packet, .frame = see_frame});
    assert_int_equal(sluice_job_run(stage->job), SLUICE_STATUS_OK);
    carry_out(stage, pause_order);
    is_shown(stage, last);
    assert_false(state_of(stage).whole);
    carry_out(stage, step_order(-40));
    is_shown(stage, last - 40);
    close_stage(stage);
}

static void orders_are_checked(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", true);
    assert_int_equal(give(stage, pause_order), STATUS_USAGE); // nothing kept
    feed(stage, 30);
    assert_int_equal(give(stage, play_order(100)), STATUS_USAGE);
    assert_int_equal(give(stage, play_order(-1)), STATUS_USAGE);
    assert_int_equal(give(stage, seek_order(AV_NOPTS_VALUE)), STATUS_USAGE);
    assert_false(player_holds(stage->player));
    close_stage(stage);
}

static void a_file_that_has_gone_is_said(void **state)
{
    (void)state;
    struct stage *stage = open_stage("b.mp4", false);
    struct player_state now;
    rename("b.mp4", "elsewhere.mp4");
    give(stage, seek_order(1000000));
    assert_true(player_await(stage->player, 20));
    player_state(stage->player, &now);
    assert_non_null(strstr(now.error, "b.mp4"));
    rename("elsewhere.mp4", "b.mp4");
    carry_out(stage, seek_order(1000000));
    is_shown(stage, 25);
    close_stage(stage);
}

static int make_films(void **state)
{
    static char folder[] = "/tmp/unit_player.XXXXXX";
    *state = folder;
    av_log_set_level(AV_LOG_QUIET);
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    return system(SOURCE X264 "-g 25 one.ts && cat one.ts one.ts > joined.ts") ||
           system(SOURCE X264 "-g 12 -bf 3 b.mp4") || system(SOURCE X264 "-g 1000 -bf 2 one.mp4") ||
           system(SOURCE X264 "-x264-params keyint=12:open-gop=1:bframes=3:b-adapt=0 open.mkv");
}

static int remove_films(void **state)
{
    unlink("b.mp4");
    unlink("one.mp4");
    unlink("one.ts");
    unlink("joined.ts");
    unlink("open.mkv");
    return chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paused_the_picture_stays_while_packets_go_on),
        cmocka_unit_test(live_again_frames_pass_and_packets_go),
        cmocka_unit_test(of_a_file_all_is_there),
        cmocka_unit_test(of_many_seeks_the_newest_counts),
        cmocka_unit_test(seeks_go_on_while_packets_come),
        cmocka_unit_test(a_file_plays_to_its_end),
        cmocka_unit_test(who_catches_up_is_live),
        cmocka_unit_test(what_is_kept_outlives_the_job),
        cmocka_unit_test(of_a_file_that_was_joined_the_last_seconds_are_there),
        cmocka_unit_test(orders_are_checked),
        cmocka_unit_test(a_file_that_has_gone_is_said),
    };
    return cmocka_run_group_tests(tests, make_films, remove_films);
}
