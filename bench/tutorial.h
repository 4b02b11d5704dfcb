// `sluice bench --ladder`: one Gaussian, and template matching, in the steps of a lesson, each
// checked, then timed. tutorial.c finds devices and runs both on every size.
#pragma once

#include "base/log.h"
#include "bench/bench.h"
#include "bench/bench_case.h"
#include "pipeline/engine/config.h"
#include "plan/tutorial.h"

enum { RUNS = 50, QUICK_RUNS = 5 };

// A run filters as many pictures as fill this, or one: a clock tells little of a few microseconds.
static const int64_t tutorial_run_ns = 2000000;

// Who makes a step.
enum processor { ONE_THREAD, ALL_THREADS, CUDA_GPU, PROCESSORS };

struct tutorial {
    const struct sluice_config *config;
    struct config_log log_target;
    struct log log;
    struct backend *scalar, *backend[PROCESSORS]; // none for CUDA_GPU: `absent` says why
    char absent[256], device[PROCESSORS][96];
    int runs;
    void (*row)(void *opaque, const struct sluice_tutorial_row *row);
    void *opaque;
    // ---- set for each size ----
    const struct shape *shape;
    struct bench_case reference;      // its target is what the steps are to make
    uint8_t *made, *square;           // the same in two dimensions; NULL where nobody needs it
    struct tutorial_task task;        // from the reference's source into `made`
    double base[2];                   // mean milliseconds of steps 1 and 2
    struct sluice_tutorial_row first; // waits for the second
};

// One picture after another, by sluice itself.
struct bench_case_request tutorial_request(const struct tutorial *tutorial,
                                           struct backend *backend);

// All steps at one size; rows are reported as they are known. STATUS_FAILED, with a sentence: a
// step is wrong.
enum status tutorial_gaussian(struct tutorial *tutorial, const struct shape *shape);
enum status tutorial_matching(struct tutorial *tutorial, const struct shape *shape);
