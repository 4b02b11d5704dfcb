// `--jobs`: how many jobs measuring leads to, how many parts they make, where they run, how their
// threads are shared out.
#include "tests/unit.h"

#include <stdio.h>

#include "app/jobs/climb.h"
#include "app/jobs/division.h"
#include "app/jobs/place.h"

// ---- how many ----

// Climb where so many jobs reach `rate[jobs - 1]`; returns the best, and *windows.
static int climb_to(const double *rate, int most, int *windows)
{
    struct climb climb;
    climb_begin(&climb, most);
    for (*windows = 0; !climb.done; ++*windows)
        climb_step(&climb, rate[climb.jobs - 1]);
    return climb.jobs;
}

static void test_climb_finds_the_best(void **state)
{
    (void)state;
    static const struct {
        double rate[8];
        int most, best, windows;
    } cases[] = {
        {{100, 200, 300, 400, 500, 600, 700, 800}, 8, 8, 4},
        {{100, 190, 250, 330, 331, 332, 333, 334}, 8, 4, 6},
        {{100, 190, 250, 330, 400, 430, 380, 340}, 8, 6, 6},
        {{100, 190, 250, 330, 400, 500, 510, 505}, 8, 8, 4},
        {{100, 101, 300, 300, 300, 300, 300, 300}, 8, 1, 2},
        {{100, 90, 80, 70, 60, 50, 40, 30}, 8, 1, 2},
        {{100, 180}, 2, 2, 2},
        {{100, 180, 260}, 3, 3, 3},
        {{100}, 1, 1, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int windows, best = climb_to(cases[k].rate, cases[k].most, &windows);
        if (best != cases[k].best || windows != cases[k].windows)
            fail_msg("case %zu: %d jobs after %d windows", k, best, windows);
    }
}

static void test_climb_ends_on_large_machines(void **state)
{
    (void)state;
    double rate[512];
    int windows;
    for (int k = 0; k < 512; k++)
        rate[k] = k < 100 ? k + 1 : 100;
    int best = climb_to(rate, 512, &windows);
    assert_in_range(best, 100, 140);
    assert_in_range(windows, 8, CLIMB_MAX_WINDOWS);
}

static void test_climb_tells(void **state)
{
    (void)state;
    char text[256];
    struct climb climb;
    climb_begin(&climb, 4);
    climb_step(&climb, 100);
    climb_step(&climb, 101);
    assert_true(climb.done);
    climb_tell(&climb, text, sizeof text);
    assert_string_equal(text, "1 at once: 100 fps by 1, 101 fps by 2");
    climb_begin(&climb, 4);
    climb_step(&climb, 100);
    climb_end(&climb);
    climb_tell(&climb, text, sizeof text);
    assert_string_equal(text, "1 at once: 100 fps by 1; there was no time to measure 2");
    climb_begin(&climb, 4);
    climb_step(&climb, 100);
    climb_step(&climb, 200);
    climb_step(&climb, 300);
    climb_tell(&climb, text, sizeof text);
    assert_string_equal(text, "4 at once: 100 fps by 1, 200 fps by 2, 300 fps by 4, the most that "
                              "there is room for");
    climb_begin(&climb, 4);
    climb_end(&climb);
    climb_tell(&climb, text, sizeof text);
    assert_non_null(strstr(text, "before anything could be measured"));
}

// ---- how many parts ----

static void test_parts_by_the_length(void **state)
{
    (void)state;
    const double hour = 3600;
    static const struct {
        int jobs;
        double hours;
        int parts, parts_on_gpu;
    } cases[] = {
        {1, 0, 1, 1},      {7, 0, 7, 7},       {7, 0.01, 9, 7},  {7, 0.1, 28, 7},
        {7, 2, 28, 14},    {7, 3, 28, 21},     {7, 100, 28, 28}, {28, 2, 112, 28},
        {28, 30, 112, 56}, {256, 1, 900, 256}, {1, 0.05, 4, 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const double seconds = cases[k].hours * hour;
        if (division_parts(cases[k].jobs, seconds, false) != cases[k].parts ||
            division_parts(cases[k].jobs, seconds, true) != cases[k].parts_on_gpu)
            fail_msg("%d jobs, %g hours", cases[k].jobs, cases[k].hours);
    }
}

// ---- where ----

static void test_one_node_is_no_place(void **state)
{
    (void)state;
    const struct place_machine one = {.nodes = 1, .cores = {16}, .gpus = 2, .gpu_node = {0, 0}};
    for (int job = 0; job < 5; job++)
        assert_int_equal(place_of_job(&one, job), PLACE_NOWHERE);
}

static void test_nodes_in_turn(void **state)
{
    (void)state;
    const struct place_machine two = {.nodes = 2, .node = {0, 3}, .cores = {8, 8}};
    const int wanted[] = {0, 3, 0, 3, 0};
    for (int job = 0; job < 5; job++)
        assert_int_equal(place_of_job(&two, job), wanted[job]);
}

static void test_a_job_is_near_its_gpu(void **state)
{
    (void)state;
    const struct place_machine machine = {
        .nodes = 2, .node = {0, 1}, .cores = {8, 8}, .gpus = 3, .gpu_node = {1, 0, PLACE_NOWHERE}};
    const int wanted[] = {1, 0, PLACE_NOWHERE, 1, 0, PLACE_NOWHERE};
    for (int job = 0; job < 6; job++)
        assert_int_equal(place_of_job(&machine, job), wanted[job]);
}

static void test_threads_are_shared_out(void **state)
{
    (void)state;
    const struct place_machine machine = {.nodes = 2, .node = {0, 1}, .cores = {10, 6}};
    static const int wanted[][2] = {{1, 16}, {2, 8}, {3, 5}, {8, 2}, {16, 1}, {40, 1}};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        assert_int_equal(place_threads(&machine, wanted[k][0]), wanted[k][1]);
}

static void test_lists_of_the_system(void **state)
{
    (void)state;
    unsigned char set[16];
    assert_int_equal(place_read_list("0-3,8,10-11\n", set, 16), 7);
    for (int k = 0; k < 16; k++)
        assert_int_equal(set[k], k < 4 || k == 8 || k == 10 || k == 11);
    assert_int_equal(place_read_list("", set, 16), 0);
    assert_int_equal(place_read_list("\n", set, 16), 0);
    assert_int_equal(place_read_list("14-99", set, 16), 2);
}

static void test_visible_gpus(void **state)
{
    (void)state;
    assert_int_equal(place_physical_gpu(NULL, 2), 2);
    assert_int_equal(place_physical_gpu("4,6,7", 0), 4);
    assert_int_equal(place_physical_gpu("4,6,7", 2), 7);
    assert_int_equal(place_physical_gpu("4,6", 2), PLACE_NOWHERE);
    assert_int_equal(place_physical_gpu("GPU-8f2a", 0), PLACE_NOWHERE);
}

static void test_this_machine_can_be_read(void **state)
{
    (void)state;
    struct place_machine machine;
    const int gpu = 0;
    place_read(&gpu, 1, &machine);
    assert_in_range(machine.nodes, 1, PLACE_MAX_NODES);
    assert_true(machine.cores[0] > 0);
    place_bind(PLACE_NOWHERE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_climb_finds_the_best),
        cmocka_unit_test(test_climb_ends_on_large_machines),
        cmocka_unit_test(test_climb_tells),
        cmocka_unit_test(test_parts_by_the_length),
        cmocka_unit_test(test_one_node_is_no_place),
        cmocka_unit_test(test_nodes_in_turn),
        cmocka_unit_test(test_a_job_is_near_its_gpu),
        cmocka_unit_test(test_threads_are_shared_out),
        cmocka_unit_test(test_lists_of_the_system),
        cmocka_unit_test(test_visible_gpus),
        cmocka_unit_test(test_this_machine_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
