// When a GPU did what: the times of frames lie between their submission and the end of waiting for
// them, also when the clock that they are counted by has been set anew. Skipped where there is no GPU.
#include "tests/shots.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/meter.h"
#include "plan/plan.h"

enum { SLACK_NS = 1000000 };

static const struct log silent = {0};

// SLUICE_TEST_SECONDS says for how long frames go: clocks that go apart are seen after minutes.
static int64_t duration_ns(void)
{
    const char *seconds = getenv("SLUICE_TEST_SECONDS");
    return (seconds ? atoi(seconds) : 3) * (int64_t)1000000000;
}

static void assert_between(int64_t begin_ns, const struct work_span *span, int64_t end_ns)
{
    assert_in_range(span->begin_ns, begin_ns - SLACK_NS, end_ns);
    assert_in_range(span->end_ns, span->begin_ns - SLACK_NS, end_ns + SLACK_NS);
}

static void times_are_those_of_the_host(void **state)
{
    struct backend *gpu;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    struct shot *source = calloc(1, sizeof *source), *target = calloc(1, sizeof *target);
    char reason[256];
    (void)state;
    assert_true(source && target);
    if (backend_cuda_create(0, &silent, &gpu, reason, sizeof reason)) {
        print_message("no GPU, no times of one: %s\n", reason);
        free(source);
        free(target);
        skip();
    }
    lower("gaussian=2,threshold=20", &program);
    assert_int_equal(plan_create(&program, gpu->limits, &plan), STATUS_OK);
    assert_int_equal(gpu->executor_create(gpu, plan, WIDTH, HEIGHT, 2, true, &executor), STATUS_OK);
    const int64_t until_ns = meter_now_ns() + duration_ns();
    for (int k = 0; meter_now_ns() < until_ns; k++) {
        const struct work work = {.source = image_of(source), .target = image_of(target)};
        struct work_times times;
        int64_t begin_ns = meter_now_ns();
        assert_int_equal(executor->submit_async(executor, k % 2, &work), STATUS_OK);
        assert_int_equal(executor->wait(executor, k % 2, &times), STATUS_OK);
        int64_t end_ns = meter_now_ns();
        assert_between(begin_ns, &times.upload, end_ns);
        assert_between(times.upload.end_ns, &times.compute, end_ns);
        assert_between(times.compute.end_ns, &times.download, end_ns);
        usleep(1000);
    }
    executor_destroy(&executor);
    plan_destroy(&plan);
    program_free(&program);
    backend_destroy(&gpu);
    free(source);
    free(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_those_of_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
