// The cost of sluice_filter_run() above the executor that filters: filter_overhead [RUNS]
//
// A frame of 64x64, gray, on the CPU: submitted to an executor and waited for, and by a filter with as
// many threads and frames in flight. Figures are microseconds a frame, of the fastest of RUNS times 2000 frames, as other work on the machine only adds.
#include <stdio.h>
#include <stdlib.h>

#include "base/meter.h"
#include "plan/backend.h"
#include "sluice/filter.h"
#include "stages/chain.h"

enum { SIDE = 64, FRAMES = 2000 };

static uint8_t from[SIDE * SIDE], to[SIDE * SIDE];

// A chain on an executor, as filters have it.
struct bare {
    struct chain chain;
    struct program program;
    struct plan *plan;
    struct backend *backend;
    struct executor *executor;
    struct work work;
    struct format gray;
};

static int bare_open(struct bare *bare, const char *chain, int threads, int slots)
{
    const struct log log = {0};
    const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};
    struct chain_error error;
    bare->gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    if (chain_parse(chain, NULL, &bare->chain, &error) ||
        program_init(&bare->program, &bare->gray) || chain_lower(&bare->chain, &bare->program) ||
        program_finish(&bare->program, NULL) || backend_cpu_create(threads, &log, &bare->backend) ||
        plan_create(&bare->program, bare->backend->limits, &bare->plan) ||
        bare->backend->executor_create(bare->backend, bare->plan, SIDE, SIDE, slots, slots > 1,
                                       &bare->executor))
        return 1;
    bare->work.source = (struct image){.format = &bare->program.input,
                                       .width = SIDE,
                                       .height = SIDE,
                                       .data = {from},
                                       .stride = {SIDE}};
    bare->work.target = bare->work.source;
    bare->work.target.format = &bare->program.output;
    bare->work.target.data[0] = to;
    bare->work.untimed = true;
    return 0;
}

static void bare_close(struct bare *bare)
{
    executor_destroy(&bare->executor);
    plan_destroy(&bare->plan);
    program_free(&bare->program);
    chain_free(&bare->chain);
    backend_destroy(&bare->backend);
}

static double time_bare(struct bare *bare)
{
    int64_t begin = meter_now_ns();
    for (int k = 0; k < FRAMES; k++) {
        bare->executor->submit_async(bare->executor, 0, &bare->work);
        bare->executor->wait(bare->executor, 0, NULL);
    }
    return (double)(meter_now_ns() - begin) / FRAMES * 1e-3;
}

static double time_filter(struct sluice_filter *filter)
{
    const struct sluice_frame in = {.size = sizeof in, .data = {from}, .stride = {SIDE}};
    const struct sluice_frame out = {.size = sizeof out, .data = {to}, .stride = {SIDE}};
    int64_t begin = meter_now_ns();
    for (int k = 0; k < FRAMES; k++)
        sluice_filter_run(filter, &in, &out, NULL);
    return (double)(meter_now_ns() - begin) / FRAMES * 1e-3;
}

// Runs alternate, so that both see the same machine.
static int measure(const char *chain, int threads, int slots, int runs)
{
    struct sluice_filter_config config = {
        .size = sizeof config,
        .chain = chain,
        .input = {.size = sizeof config.input, .pixfmt = "gray", .width = SIDE, .height = SIDE},
        .backend = SLUICE_BACKEND_CPU,
        .threads = threads,
        .frames_in_flight = slots,
    };
    struct bare bare = {0};
    struct sluice_filter *filter;
    double *us[2] = {calloc((size_t)runs, sizeof(double)), calloc((size_t)runs, sizeof(double))};
    if (!us[0] || !us[1] || bare_open(&bare, chain, threads, slots) ||
        sluice_filter_create(&config, &filter))
        return 1;
    time_bare(&bare), time_filter(filter);
    for (int k = 0; k < runs; k++) {
        us[0][k] = time_bare(&bare);
        us[1][k] = time_filter(filter);
    }
    double executor = meter_spread(us[0], runs).low, whole = meter_spread(us[1], runs).low;
    printf("%-32s %d thread%s %d in flight  executor %6.2f  filter %6.2f  above it %5.2f us\n",
           chain, threads, threads > 1 ? "s," : ", ", slots, executor, whole, whole - executor);
    bare_close(&bare);
    sluice_filter_destroy(&filter);
    free(us[0]);
    free(us[1]);
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 1 ? atoi(argv[1]) : 15, bad = 0;
    const char *const chains[] = {"null", "invert", "gray,gaussian=1.4,sobel"};
    for (int c = 0; c < 3 && runs > 0; c++) {
        bad |= measure(chains[c], 1, 1, runs);
        bad |= measure(chains[c], 2, 1, runs);
        bad |= measure(chains[c], 2, 3, runs);
    }
    return bad;
}
