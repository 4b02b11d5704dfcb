// Jobs that begin in the caller, who pushes frames.
#include <sys/stat.h>

#include "base/meter.h"
#include "tests/ends.h"

// ---- pushed frames ----

static void pushed_frames_are_those_of_the_file(void **state)
{
    static const char *const chains[] = {"", "gaussian=2", "gray,sobel,stats"};
    (void)state;
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        struct ends ends;
        struct hashes raw, pushed;
        char name[160];
        snprintf(name, sizeof name, "hash:%s", path("pushed.txt"));
        filter_raw(chains[k], &raw);
        begin_config(&ends, chains[k]);
        ends.config.output.name = name;
        ends.config.push_clock = (struct sluice_rate){25, 1};
        ends.config.input_rate = (struct sluice_rate){25, 1};
        ends.config.push = &yuv420p;
        start(&ends);
        for (int n = 0; n < FRAMES; n++) {
            struct noise picture;
            make_picture(&picture, n);
            picture.frame.pts = n;
            assert_int_equal(sluice_job_push(ends.job, &picture.frame), SLUICE_STATUS_OK);
        }
        sluice_job_push_end(ends.job);
        assert_int_equal(join(&ends), SLUICE_STATUS_OK);
        finish(&ends);
        read_hashes(path("pushed.txt"), &pushed);
        assert_string_equal(pushed.base, raw.base);
        assert_memory_equal(pushed.pts, raw.pts, FRAMES * sizeof *raw.pts);
        assert_int_equal(pushed.count, FRAMES);
        for (int n = 0; n < FRAMES; n++)
            assert_string_equal(pushed.md5[n], raw.md5[n]);
    }
}

static void pushed_frames_are_encoded(void **state)
{
    struct ends ends;
    struct hashes raw, encoded;
    char name[160];
    (void)state;
    filter_raw("gaussian=1.4", &raw);
    begin_config(&ends, "gaussian=1.4");
    ends.config.output = (struct sluice_output){.name = path("out.mkv"), .encoder = "ffv1"};
    push_well(&ends);
    begin_config(&ends, "");
    ends.config.input = path("out.mkv");
    snprintf(name, sizeof name, "hash:%s", path("out.txt"));
    ends.config.output.name = name;
    run_well(&ends);
    read_hashes(path("out.txt"), &encoded);
    assert_int_equal(encoded.count, FRAMES);
    for (int n = 0; n < FRAMES; n++) {
        assert_string_equal(encoded.md5[n], raw.md5[n]);
        assert_int_equal(encoded.pts[n], 40 * n); // milliseconds
    }
}

static void both_ends_are_the_callers(void **state)
{
    struct ends ends;
    struct hashes raw;
    char records[160];
    (void)state;
    filter_raw("invert", &raw);
    snprintf(records, sizeof records, "invert,stats=%s", path("stats.txt"));
    begin_config(&ends, records);
    ends.config.take = take;
    ends.config.verify = 1;
    push_well(&ends);
    same_frames(&raw, &ends, 0);
    for (int n = 0; n < FRAMES; n++)
        assert_int_equal(ends.pts[0][n], 40000 * n);
    struct stat about;
    assert_int_equal(stat(path("stats.txt"), &about), 0);
    assert_true(about.st_size > FRAMES);
}

// Fields are filtered apart: as frames of half the height they give the same.
static void pushed_fields_stay_apart(void **state)
{
    static uint8_t whole[4 * WIDTH * HEIGHT], half[8 * WIDTH * HEIGHT / 2];
    const struct sluice_format frames = {.size = sizeof frames, "gray", WIDTH, HEIGHT};
    const struct sluice_format fields = {.size = sizeof fields, "gray", WIDTH, HEIGHT / 2};
    struct ends ends;
    struct noise picture;
    (void)state;
    begin_config(&ends, "gaussian=2");
    ends.config.take = take;
    ends.config.push = &frames;
    ends.kept = whole;
    start(&ends);
    for (int n = 0; n < 4; n++) {
        make_picture(&picture, n);
        picture.frame.interlaced = n == 1 || n == 2;
        assert_int_equal(sluice_job_push(ends.job, &picture.frame), SLUICE_STATUS_OK);
    }
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    finish(&ends);
    for (int n = 0; n < 4; n++)
        assert_int_equal(ends.interlaced[n], n == 1 || n == 2);
    begin_config(&ends, "gaussian=2");
    ends.config.take = take;
    ends.config.push = &fields;
    ends.kept = half;
    start(&ends);
    for (int n = 0; n < 8; n++) {
        make_picture(&picture, n / 2);
        picture.frame.data[0] += n % 2 * picture.frame.stride[0];
        picture.frame.stride[0] *= 2;
        picture.frame.pts = n;
        assert_int_equal(sluice_job_push(ends.job, &picture.frame), SLUICE_STATUS_OK);
    }
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    finish(&ends);
    for (int n = 0; n < 4; n++) {
        bool same = true;
        for (int y = 0; y < HEIGHT; y++)
            same &= !memcmp(whole + (n * HEIGHT + y) * WIDTH,
                            half + ((2 * n + y % 2) * HEIGHT / 2 + y / 2) * WIDTH, WIDTH);
        assert_int_equal(same, n == 1 || n == 2);
    }
}

static void upside_down_frames_are_pushed(void **state)
{
    struct ends ends;
    struct noise picture;
    struct hashes raw;
    (void)state;
    filter_raw("", &raw);
    begin_config(&ends, "");
    ends.config.take = take;
    ends.config.push = &yuv420p;
    start(&ends);
    for (int n = 0; n < 2; n++) { // the second is what the first is from below
        make_picture(&picture, 0);
        picture.frame.pts = n;
        for (int p = 0; n && p < 3; p++) {
            uint8_t flipped[sizeof picture.memory[0]];
            ptrdiff_t stride = picture.frame.stride[p];
            for (int y = 0; y < plane_height(p); y++)
                memcpy(flipped + (plane_height(p) - 1 - y) * stride, picture.memory[p] + y * stride,
                       (size_t)stride);
            memcpy(picture.memory[p], flipped, sizeof flipped);
            picture.frame.data[p] = picture.memory[p] + (plane_height(p) - 1) * stride;
            picture.frame.stride[p] = -stride;
        }
        assert_int_equal(sluice_job_push(ends.job, &picture.frame), SLUICE_STATUS_OK);
    }
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    finish(&ends);
    assert_string_equal(ends.md5[0][0], raw.md5[0]);
    assert_string_equal(ends.md5[0][1], raw.md5[0]);
}

static void refuse_push(struct ends *ends, const struct sluice_frame *frame, const char *word)
{
    ends->errors = 0;
    assert_int_equal(sluice_job_push(ends->job, frame), SLUICE_STATUS_USAGE);
    assert_int_equal(ends->errors, 1);
    if (!strstr(ends->last, word))
        fail_msg("'%s' lacks '%s'", ends->last, word);
}

static void wrong_frames_are_refused(void **state)
{
    struct ends ends;
    struct noise good;
    struct sluice_frame bad;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.take = take;
    start(&ends);
    assert_int_equal(push(&ends, 0), SLUICE_STATUS_OK);
    make_picture(&good, 1);
    bad = good.frame, bad.size = 0;
    refuse_push(&ends, &bad, "sizeof");
    bad = good.frame, bad.data[2] = NULL;
    refuse_push(&ends, &bad, "no plane 2");
    bad = good.frame, bad.stride[1] = WIDTH / 2 - 1;
    refuse_push(&ends, &bad, "stride of 34");
    bad = good.frame, bad.stride[0] = 1 - WIDTH;
    refuse_push(&ends, &bad, "stride of -69");
    bad = good.frame, bad.memory = SLUICE_MEMORY_DEVICE;
    refuse_push(&ends, &bad, "host memory");
    bad = good.frame, bad.pts = 0;
    refuse_push(&ends, &bad, "rise");
    bad = good.frame, bad.pts = INT64_MIN;
    refuse_push(&ends, &bad, "range");
    assert_int_equal(push(&ends, 1), SLUICE_STATUS_OK);
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    assert_int_equal(finish(&ends).frames_in, 2);
    assert_int_equal(ends.taken[0], 2);
}

static void refuse_config(const struct sluice_config *config, struct ends *ends, const char *word)
{
    ends->errors = 0;
    assert_int_equal(sluice_job_create(config, &ends->job), SLUICE_STATUS_USAGE);
    assert_null(ends->job);
    assert_int_equal(ends->errors, 1);
    if (!strstr(ends->last, word))
        fail_msg("'%s' lacks '%s'", ends->last, word);
}

static void wrong_configurations_are_refused(void **state)
{
    struct sluice_format wrong[] = {yuv420p, yuv420p, yuv420p, yuv420p, yuv420p};
    const char *const words[] = {"sizeof", "'cuda'", "''", "1x1 or more", "enumerators"};
    struct ends ends;
    (void)state;
    wrong[0].size = 0;
    wrong[1].pixfmt = "cuda";
    wrong[2].pixfmt = NULL;
    wrong[3].height = 0;
    wrong[4].matrix = (enum sluice_matrix)77;
    begin_config(&ends, "gray");
    ends.config.output.name = "null:";
    for (int k = 0; k < 5; k++) {
        ends.config.push = &wrong[k];
        refuse_config(&ends.config, &ends, words[k]);
    }
    ends.config.push = &yuv420p;
    ends.config.push_clock.num = -1;
    refuse_config(&ends.config, &ends, "push_clock");
    ends.config.push_clock.num = 0;
    ends.config.input = "in.mp4";
    refuse_config(&ends.config, &ends, "there is no input");
    ends.config.input = NULL;
    ends.config.take = take;
    refuse_config(&ends.config, &ends, "take:");
    ends.config.take = NULL;
    ends.config.output.name = "take:";
    refuse_config(&ends.config, &ends, "take:");
    read_raw(&ends);
    ends.config.push = NULL;
    ends.config.output.name = "null:";
    create(&ends);
    struct noise picture;
    make_picture(&picture, 0);
    refuse_push(&ends, &picture.frame, "push");
    sluice_job_destroy(&ends.job);
}

// ---- ends and stops ----

static void a_slow_taker_holds_up_who_pushes(void **state)
{
    struct ends ends;
    int most = 0;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.take = take;
    ends.config.ring = 2;
    ends.delay_us = 5000;
    start(&ends);
    for (int n = 0; n < 60; n++) {
        assert_int_equal(push(&ends, n), SLUICE_STATUS_OK);
        int under_way = n + 1 - ends.taken[0];
        most = under_way > most ? under_way : most;
    }
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    struct sluice_summary summary = {.size = sizeof summary};
    sluice_job_summary(ends.job, &summary);
    assert_non_null(strstr(summary.verdict, "the program that takes the frames"));
    finish(&ends);
    assert_int_equal(ends.taken[0], 60);
    assert_in_range(most, 3, 14);
}

// Push until the job takes no more. Returns what it says.
static enum sluice_status push_on(struct ends *ends)
{
    enum sluice_status status = SLUICE_STATUS_OK;
    int n = 0;
    for (; !status && n < MOST; n++)
        status = push(ends, n);
    assert_true(n < MOST);
    assert_int_equal(push(ends, n), status); // final
    return status;
}

// A stop that a taker asks for, by its answer, by a call, and by a call beside another output.
static void takers_stop_who_pushes(void **state)
{
    static const struct sluice_output more[2] = {{.name = "null:"}};
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct ends ends;
        begin_config(&ends, "gray");
        ends.config.push = &yuv420p;
        ends.config.take = take;
        ends.config.more_outputs = way == 2 ? more : NULL;
        ends.end_after = 5;
        ends.stops = way > 0;
        ends.answer = way ? SLUICE_STATUS_OK : SLUICE_STATUS_END;
        start(&ends);
        assert_int_equal(push_on(&ends), SLUICE_STATUS_STOPPED);
        assert_int_equal(join(&ends), SLUICE_STATUS_STOPPED);
        struct sluice_ledger ledger = finish(&ends);
        assert_int_equal(ledger.frames_in, ledger.frames_out + ledger.dropped_stop);
        assert_int_equal(ledger.frames_out, ends.taken[0]);
        assert_true(way ? ends.taken[0] >= 5 : ends.taken[0] == 5);
    }
}

static void a_slow_taker_is_stopped(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.take = take;
    ends.config.ring = 16;
    ends.delay_us = 400000;
    start(&ends);
    for (int n = 0; n < 16; n++)
        assert_int_equal(push(&ends, n), SLUICE_STATUS_OK);
    int64_t began_ns = meter_now_ns();
    sluice_job_stop(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_STOPPED);
    assert_true(meter_now_ns() - began_ns < 2500 * INT64_C(1000000));
    struct sluice_ledger ledger = finish(&ends);
    assert_int_equal(ledger.frames_out, ends.taken[0]);
    assert_int_equal(ledger.frames_in, ledger.frames_out + ledger.dropped_stop);
}

static void failures_reach_who_pushes(void **state)
{
    static const char *const outputs[] = {"/dev/full", "take:"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct ends ends;
        begin_config(&ends, "gray");
        ends.config.push = &yuv420p;
        ends.config.output.name = outputs[k];
        ends.config.output.format = k ? NULL : "rawvideo";
        ends.config.take = k ? take : NULL;
        ends.end_after = 4;
        ends.answer = SLUICE_STATUS_OUTPUT;
        start(&ends);
        assert_int_equal(push_on(&ends), SLUICE_STATUS_OUTPUT);
        assert_int_equal(join(&ends), SLUICE_STATUS_OUTPUT);
        assert_int_equal(ends.errors, 1);
        finish(&ends);
    }
}

static void preroll_failures_reach_who_pushes(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.max_pixels = 100;
    ends.config.output.name = "null:";
    assert_int_equal(sluice_job_create(&ends.config, &ends.job), SLUICE_STATUS_INPUT);
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.output = (struct sluice_output){.name = path("out.avi"), .encoder = "h263"};
    start(&ends);
    assert_int_equal(push_on(&ends), SLUICE_STATUS_OUTPUT);
    assert_int_equal(join(&ends), SLUICE_STATUS_OUTPUT);
    finish(&ends);
}

static void limits_end_the_stream(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.take = take;
    ends.config.start = 0.1;
    ends.config.frames = 4;
    start(&ends);
    assert_int_equal(push_on(&ends), SLUICE_STATUS_END);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    struct sluice_ledger ledger = finish(&ends);
    assert_int_equal(ledger.frames_out, 4);
    assert_int_equal(ledger.dropped_range, 3);
    assert_int_equal(ends.pts[0][0], 20000); // 120 ms, less 100
}

static void nothing_has_to_end(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.output.name = "null:";
    create(&ends); // never run
    assert_int_equal(push(&ends, 0), SLUICE_STATUS_OK);
    assert_int_equal(push(&ends, 1), SLUICE_STATUS_OK);
    sluice_job_destroy(&ends.job);
    start(&ends); // stopped, and not a single frame
    sluice_job_stop(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_STOPPED);
    finish(&ends);
    start(&ends); // ended with no frame
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_INPUT);
    assert_non_null(strstr(ends.last, "no frame was pushed"));
    finish(&ends);
}

static void live_frames_keep_their_pace(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.live = true;
    ends.config.take = take;
    int64_t began_ns = meter_now_ns();
    push_well(&ends);
    assert_true(meter_now_ns() - began_ns > (FRAMES - 1) * 40 * INT64_C(1000000));
    assert_int_equal(ends.taken[0], FRAMES);
}

// Behind a taker that is slower than their pace.
static void live_frames_that_wait_too_long_are_dropped(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "gray");
    ends.config.live = true;
    ends.config.max_latency = 0.2;
    ends.config.push = &yuv420p;
    ends.config.take = take;
    ends.delay_us = 100000;
    start(&ends);
    for (int n = 0; n < 80; n++)
        assert_int_equal(push(&ends, n), SLUICE_STATUS_OK);
    sluice_job_push_end(ends.job);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    struct sluice_ledger ledger = finish(&ends);
    assert_true(ledger.dropped_late > 0);
    assert_int_equal(ledger.frames_in, ledger.frames_out + ledger.dropped_late);
    assert_int_equal(ledger.frames_in + ledger.packets_skipped, 80);
    assert_int_equal(ledger.frames_out, ends.taken[0]);
}

static void changes_come_while_frames_are_pushed(void **state)
{
    struct ends ends;
    struct hashes before, after;
    (void)state;
    filter_raw("gray", &before);
    filter_raw("gray,invert", &after);
    begin_config(&ends, "gray");
    const struct sluice_change changes[2] = {{.pts_us = 200000, .chain = "gray,invert"}};
    ends.config.changes = changes;
    ends.config.take = take;
    push_well(&ends);
    for (int n = 0; n < FRAMES; n++)
        assert_string_equal(ends.md5[0][n], (n < 5 ? &before : &after)->md5[n]);
}

// The record of so many frames, and the mean of its first figure.
static double mean_of_record(const struct sluice_job *job, int index, int frames, bool file)
{
    struct sluice_record record = {.size = sizeof record};
    struct sluice_figure figure = {.size = sizeof figure};
    assert_int_equal(sluice_job_record(job, index, &record), SLUICE_STATUS_OK);
    assert_string_equal(record.stage, "stats");
    assert_int_equal(record.file != NULL, file);
    assert_int_equal(record.frames, frames);
    assert_int_equal(sluice_job_figure(job, index, 0, &figure), SLUICE_STATUS_OK);
    assert_int_equal(figure.frames, frames);
    return figure.sum[0] / (double)frames;
}

static void records_without_a_file_come_and_go(void **state)
{
    struct ends ends;
    char first[160], last[200];
    struct stat about;
    (void)state;
    snprintf(first, sizeof first, "gray,stats=%s", path("records.txt"));
    snprintf(last, sizeof last, "gray,stats,invert,stats=%s,stats", path("records.txt"));
    const struct sluice_change changes[4] = {{.pts_us = 80000, .chain = last},
                                             {.pts_us = 200000, .chain = first},
                                             {.pts_us = 320000, .chain = last}};
    begin_config(&ends, first);
    ends.config.changes = changes;
    ends.config.push = &yuv420p;
    ends.config.output.name = "null:";
    start(&ends);
    push_all(&ends);
    assert_int_equal(join(&ends), SLUICE_STATUS_OK);
    double whole = mean_of_record(ends.job, 0, FRAMES, true);
    double before = mean_of_record(ends.job, 1, 7, false);
    double behind = mean_of_record(ends.job, 2, 7, false);
    assert_true(whole > 100 && whole < 155 && before > 100 && before < 155);
    assert_true(before + behind > 254.99 && before + behind < 255.01); // invert is between them
    assert_int_equal(sluice_job_record(ends.job, 3, &(struct sluice_record){.size = 64}),
                     SLUICE_STATUS_END);
    finish(&ends);
    assert_int_equal(stat(path("records.txt"), &about), 0);
    begin_config(&ends, "gray");
    ends.config.push = &yuv420p;
    ends.config.output.name = "null:";
    char why[256];
    create(&ends);
    assert_int_equal(sluice_job_set_chain(ends.job, first, why, sizeof why), SLUICE_STATUS_USAGE);
    assert_non_null(strstr(why, "cannot be added while a job runs, as it writes a file"));
    assert_int_equal(sluice_job_set_chain(ends.job, "gray,stats", why, sizeof why),
                     SLUICE_STATUS_OK);
    sluice_job_destroy(&ends.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_frames_are_those_of_the_file),
        cmocka_unit_test(pushed_frames_are_encoded),
        cmocka_unit_test(both_ends_are_the_callers),
        cmocka_unit_test(pushed_fields_stay_apart),
        cmocka_unit_test(upside_down_frames_are_pushed),
        cmocka_unit_test(wrong_frames_are_refused),
        cmocka_unit_test(wrong_configurations_are_refused),
        cmocka_unit_test(a_slow_taker_holds_up_who_pushes),
        cmocka_unit_test(takers_stop_who_pushes),
        cmocka_unit_test(a_slow_taker_is_stopped),
        cmocka_unit_test(failures_reach_who_pushes),
        cmocka_unit_test(preroll_failures_reach_who_pushes),
        cmocka_unit_test(limits_end_the_stream),
        cmocka_unit_test(nothing_has_to_end),
        cmocka_unit_test(live_frames_keep_their_pace),
        cmocka_unit_test(live_frames_that_wait_too_long_are_dropped),
        cmocka_unit_test(changes_come_while_frames_are_pushed),
        cmocka_unit_test(records_without_a_file_come_and_go),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
