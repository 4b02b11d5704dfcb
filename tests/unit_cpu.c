// The CPU's executor: frames are done, and right, whoever waits for them, and in whatever order.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/backend.h"
#include "stages/chain.h"
#include "tests/unit.h"

enum { SLOTS = 7, ROUNDS = 60, MOST = 480 };

static const struct log silent = {0};

// A chain on an executor, and frames of gray: `side` x `side` samples.
struct run {
    struct chain chain;
    struct program program;
    struct plan *plan;
    struct backend *backend;
    struct executor *executor;
    struct format gray;
    struct work work[SLOTS];
    uint8_t *source[SLOTS], *target[SLOTS], *wanted[SLOTS];
    size_t bytes;
    int slots;
};

static void plan_run(struct run *run, const char *chain, int threads)
{
    const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};
    struct chain_error error;
    run->gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    assert_int_equal(chain_parse(chain, NULL, &run->chain, &error), STATUS_OK);
    assert_int_equal(program_init(&run->program, &run->gray), STATUS_OK);
    assert_int_equal(chain_lower(&run->chain, &run->program), STATUS_OK);
    assert_int_equal(program_finish(&run->program, NULL), STATUS_OK);
    assert_int_equal(backend_cpu_create(threads, &silent, &run->backend), STATUS_OK);
    assert_int_equal(plan_create(&run->program, run->backend->limits, &run->plan), STATUS_OK);
}

static struct image plane(const struct format *format, uint8_t *data, int side)
{
    return (struct image){
        .format = format, .width = side, .height = side, .data = {data}, .stride = {side}};
}

// Wait for a frame, and for its times, if it has some; true if all went well.
static bool wait_for(struct run *run, int slot)
{
    struct work_times times = {0};
    bool timed = !run->work[slot].untimed;
    enum status status = run->executor->wait(run->executor, slot, timed ? &times : NULL);
    return !status && (!timed || (times.compute.begin_ns > 0 && times.compute.busy_ns > 0 &&
                                  times.compute.end_ns >= times.compute.begin_ns));
}

static void filter_one(struct run *run, int slot)
{
    assert_int_equal(run->executor->submit_async(run->executor, slot, &run->work[slot]), STATUS_OK);
    assert_true(wait_for(run, slot));
}

// Each slot's frame is filtered alone first: that is what it has to become.
static void run_init(struct run *run, const char *chain, int side, int threads, int slots,
                     bool in_flight)
{
    *run = (struct run){.slots = slots, .bytes = (size_t)side * (size_t)side};
    plan_run(run, chain, threads);
    assert_int_equal(run->backend->executor_create(run->backend, run->plan, side, side, slots,
                                                   in_flight, &run->executor),
                     STATUS_OK);
    for (int k = 0; k < slots; k++) {
        run->source[k] = malloc(run->bytes);
        run->target[k] = malloc(run->bytes);
        run->wanted[k] = malloc(run->bytes);
        assert_true(run->source[k] && run->target[k] && run->wanted[k]);
        for (size_t n = 0; n < run->bytes; n++)
            run->source[k][n] = (uint8_t)((n * 31 + n / 7 * (size_t)(k + 3)) >> 2);
        run->work[k].source = plane(&run->program.input, run->source[k], side);
        run->work[k].target = plane(&run->program.output, run->target[k], side);
        run->work[k].untimed = k % 2;
        filter_one(run, k);
        memcpy(run->wanted[k], run->target[k], run->bytes);
    }
}

static void run_finish(struct run *run)
{
    executor_destroy(&run->executor);
    plan_destroy(&run->plan);
    program_free(&run->program);
    chain_free(&run->chain);
    backend_destroy(&run->backend);
    for (int k = 0; k < run->slots; k++) {
        free(run->source[k]);
        free(run->target[k]);
        free(run->wanted[k]);
    }
}

static void submit_all(struct run *run)
{
    for (int k = 0; k < run->slots; k++) {
        memset(run->target[k], 0, run->bytes);
        assert_int_equal(run->executor->submit_async(run->executor, k, &run->work[k]), STATUS_OK);
    }
}

struct waiter {
    struct run *run;
    int first, step; // slots first, first - step, ... are waited for
    int failed;
};

static void *wait_for_some(void *waiter_)
{
    struct waiter *waiter = waiter_;
    struct run *run = waiter->run;
    for (int k = waiter->first; k >= 0; k -= waiter->step)
        waiter->failed += !wait_for(run, k) || memcmp(run->target[k], run->wanted[k], run->bytes);
    return NULL;
}

// Small frames and larger ones, in one phase and in several; a frame of which it is not known yet how
// long it takes is each executor's first.
static const struct {
    const char *chain;
    int side;
} cases[] = {{"invert", 16},
             {"gaussian=1.4,box=50,laplacian", 24},
             {"box=50,gaussian=20", 160},
             {"gaussian=20", MOST}};

static void each_frame_is_done(int waiters)
{
    for (int c = 0; c < (int)(sizeof cases / sizeof *cases); c++)
        for (int threads = 1; threads <= 3; threads++)
            for (int slots = waiters; slots <= SLOTS; slots += 2)
                for (int in_flight = 0; in_flight < 2; in_flight++) {
                    struct run run;
                    run_init(&run, cases[c].chain, cases[c].side, threads, slots, in_flight);
                    for (int round = 0; round < (cases[c].side > 100 ? 4 : ROUNDS); round++) {
                        struct waiter waiter[2] = {{&run, slots - 1, waiters, 0},
                                                   {&run, slots - 2, waiters, 0}};
                        pthread_t thread;
                        submit_all(&run);
                        if (waiters > 1)
                            assert_int_equal(
                                pthread_create(&thread, NULL, wait_for_some, &waiter[1]), 0);
                        wait_for_some(&waiter[0]);
                        if (waiters > 1)
                            pthread_join(thread, NULL);
                        if (waiter[0].failed + waiter[1].failed)
                            fail_msg("%s, %d threads, %d slots: %d frames", cases[c].chain, threads,
                                     slots, waiter[0].failed + waiter[1].failed);
                    }
                    run_finish(&run);
                }
}

static void the_last_frame_is_waited_for_first(void **state)
{
    (void)state;
    each_frame_is_done(1);
}

static void two_threads_wait(void **state)
{
    (void)state;
    each_frame_is_done(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_frame_is_waited_for_first),
        cmocka_unit_test(two_threads_wait),
    };
    alarm(240); // a frame that nobody takes is waited for for good
    return cmocka_run_group_tests(tests, NULL, NULL);
}
