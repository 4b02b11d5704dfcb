// `sluice bench --ladder`: filters in the steps of lessons, each checked, then timed. tutorial.c
// finds devices and runs all lessons on every size; a lesson is a file, and those whose steps are
// makers or sluice itself are climbed by tutorial_steps.c.
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
enum processor { REFERENCE, ONE_THREAD, ALL_THREADS, CUDA_GPU, PROCESSORS };

struct lesson_step {
    int number;
    const char *name;
    enum processor processor;
    enum tutorial_step method; // TUTORIAL_STEPS: sluice's own
};

// A lesson is climbed from step 1, against which the others are held.
struct lesson {
    enum sluice_lesson number;
    const struct lesson_step *step;
    int steps;
    bool rgb;            // sources are in colour
    bool two_references; // those of plan/tutorial.h
    bool over_all;       // step 2 is step 1 by all threads, and others are held against both
    int64_t most_ns;     // begin no run of a step after so long, if there were some; 0: all runs
};

struct tutorial {
    const struct sluice_config *config;
    struct config_log log_target;
    struct log log;
    struct backend *backend[PROCESSORS]; // none for CUDA_GPU: `absent` says why
    char absent[256], device[PROCESSORS][96];
    int runs;
    void (*row)(void *opaque, const struct sluice_tutorial_row *row);
    void *opaque;
    // ---- set for each size ----
    const struct lesson *lesson;
    const struct shape *shape;
    char size[64], chain[96];         // as rows name it; what sluice runs
    struct sluice_article article;    // of this size
    struct bench_case reference;      // its target is what the steps are to make
    uint8_t *made, *square;           // the same in two dimensions; NULL where nobody needs it
    struct tutorial_task task;        // from the reference's source into `made`
    double base[2];                   // mean milliseconds of steps 1 and 2
    struct sluice_tutorial_row first; // waits for the second
};

// One picture after another, by sluice itself.
struct bench_case_request tutorial_request(const struct tutorial *tutorial,
                                           struct backend *backend);

// All steps of a lesson at one size, whose name, chain and article are set; rows are reported as
// they are known. STATUS_FAILED, with a sentence: a step is wrong.
enum status tutorial_climb(struct tutorial *tutorial, const struct lesson *lesson,
                           const struct shape *shape);

// The lessons at one size.
enum status tutorial_gaussian(struct tutorial *tutorial, const struct shape *shape);
enum status tutorial_matching(struct tutorial *tutorial, const struct shape *shape);
enum status tutorial_edges(struct tutorial *tutorial, const struct shape *shape);

// All its scales, `own` (optional) being the size instead of those that the lesson has.
enum status tutorial_wavelet(struct tutorial *tutorial, const struct shape *own, bool quick);
