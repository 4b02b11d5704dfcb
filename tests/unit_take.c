// Jobs that end in the caller, who takes filtered frames.
#include "tests/ends.h"

static void taken_frames_are_those_of_the_hashes(void **state)
{
    static const struct {
        const char *chain, *pixfmt, *wanted;
    } cases[] = {
        {"gaussian=2", NULL, "yuv420p"}, {"gray,sobel", NULL, "gray"},   {"", NULL, "yuv420p"},
        {"invert", "rgb24", "rgb24"},    {"gray", "yuv420p", "yuv420p"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct ends ends;
        struct hashes list;
        char name[160];
        snprintf(name, sizeof name, "hash:%s", path("both.txt"));
        const struct sluice_output more[2] = {{.name = name, .pixfmt = cases[k].pixfmt}};
        begin_config(&ends, cases[k].chain);
        read_raw(&ends);
        ends.config.take = take;
        ends.config.output.pixfmt = cases[k].pixfmt;
        ends.config.more_outputs = more;
        run_well(&ends);
        read_hashes(path("both.txt"), &list);
        assert_int_equal(list.count, FRAMES);
        same_frames(&list, &ends, 0);
        for (int n = 0; n < FRAMES; n++)
            assert_int_equal(ends.pts[0][n], 40000 * list.pts[n]);
        assert_string_equal(ends.pixfmt[0], cases[k].wanted);
        assert_int_equal(ends.width[0], WIDTH);
        assert_int_equal(ends.height[0], HEIGHT);
    }
}

static void tees_are_taken_by_number(void **state)
{
    struct ends ends;
    struct hashes whole, gray;
    (void)state;
    filter_raw("", &whole);
    filter_raw("gray", &gray);
    begin_config(&ends, "tee=take:,gray");
    read_raw(&ends);
    ends.config.take = take;
    run_well(&ends);
    same_frames(&gray, &ends, 0);
    same_frames(&whole, &ends, 1);
    assert_string_equal(ends.pixfmt[1], "yuv420p");
}

static void taken_pts_are_the_outputs(void **state)
{
    struct ends ends;
    (void)state;
    begin_config(&ends, "");
    read_raw(&ends);
    ends.config.take = take;
    ends.config.start = 0.2;
    ends.config.output.range = SLUICE_RANGE_FULL;
    create(&ends);
    assert_int_equal(sluice_job_run(ends.job), SLUICE_STATUS_OK);
    assert_int_equal(finish(&ends).frames_out, FRAMES - 5);
    assert_int_equal(ends.pts[0][0], 0);
    assert_int_equal(ends.range, SLUICE_RANGE_FULL);
}

static void end_of_a_taker(bool beside)
{
    const struct sluice_output more[2] = {{.name = "null:"}};
    struct ends ends;
    begin_config(&ends, "gray");
    read_raw(&ends);
    ends.config.take = take;
    ends.config.more_outputs = beside ? more : NULL;
    ends.end_after = 3;
    ends.answer = SLUICE_STATUS_END;
    create(&ends);
    assert_int_equal(sluice_job_run(ends.job), beside ? SLUICE_STATUS_OK : SLUICE_STATUS_STOPPED);
    struct sluice_ledger ledger = finish(&ends);
    assert_int_equal(ledger.frames_out, beside ? FRAMES : 3);
    assert_int_equal(ledger.frames_in, ledger.frames_out + ledger.dropped_stop);
    assert_int_equal(ends.taken[0], 3);
    assert_int_equal(ends.errors, 0);
}

static void takers_end_their_output(void **state)
{
    (void)state;
    end_of_a_taker(false);
    end_of_a_taker(true);
}

static void takers_fail(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        struct ends ends;
        begin_config(&ends, "gray");
        read_raw(&ends);
        ends.config.take = take;
        ends.end_after = 3;
        ends.answer = n ? SLUICE_STATUS_AGAIN : SLUICE_STATUS_DEVICE;
        create(&ends);
        assert_int_equal(sluice_job_run(ends.job), n ? SLUICE_STATUS_FAILED : SLUICE_STATUS_DEVICE);
        finish(&ends);
        assert_int_equal(ends.errors, 1);
        assert_non_null(strstr(ends.last, "frame 2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_frames_are_those_of_the_hashes),
        cmocka_unit_test(tees_are_taken_by_number),
        cmocka_unit_test(taken_pts_are_the_outputs),
        cmocka_unit_test(takers_end_their_output),
        cmocka_unit_test(takers_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
