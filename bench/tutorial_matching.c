// Template matching in steps, compared with sluice on the CPU, which gives the scalar reference's
// scores to the bit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "bench/tutorial.h"
#include "pipeline/ffmpeg/check.h"
#include "stages/match.h"

// Its steps; the first is what speeds are told of. They are compared with sluice on the CPU, which
// gives the scalar reference's scores to the bit.
static const struct match_step {
    int number;
    const char *name;
    enum processor processor;
    enum tutorial_match_step method; // TUTORIAL_MATCH_STEPS: sluice's own
} match_steps[] = {
    {1, "CUDA, a thread a place, global memory", CUDA_GPU, TUTORIAL_MATCH_NAIVE},
    {2, "CUDA, 16x16 tiles in shared memory", CUDA_GPU, TUTORIAL_MATCH_TILES},
    {3, "sluice, CPU, all threads", ALL_THREADS, TUTORIAL_MATCH_STEPS},
    {3, "sluice, CUDA", CUDA_GPU, TUTORIAL_MATCH_STEPS},
};

// It has makers of its own, and climbs by itself.
static const struct lesson lesson = {.number = SLUICE_LESSON_MATCHING};

enum { MATCH_STEPS = sizeof match_steps / sizeof *match_steps };

struct matching {
    struct tutorial *tutorial;
    struct pattern pattern; // a part of the picture
    bool map;               // scores are drawn; else nothing is
    struct bench_case reference;
    uint8_t *made;
    double base; // mean milliseconds of the first step
};

static void lower_match(void *opaque, struct program *program)
{
    struct matching *self = opaque;
    struct pattern_set set = {.count = 1, .pattern = &self->pattern};
    const struct match match = {.patterns = &set,
                                .min = 0.9,
                                .max = 100,
                                .draw = self->map ? MATCH_DRAW_MAP : MATCH_DRAW_NONE};
    stage_match.lower(&match, program);
}

static struct bench_case_request match_request(struct matching *self, enum processor processor)
{
    struct bench_case_request request =
        tutorial_request(self->tutorial, self->tutorial->backend[processor]);
    request.lower = lower_match;
    request.opaque = self;
    return request;
}

// The score map by sluice, into `made`.
static enum status map_by_sluice(struct matching *self, enum processor processor)
{
    struct bench_case bench_case;
    int64_t frames;
    self->map = true;
    const struct bench_case_request request = match_request(self, processor);
    enum status status = bench_case_init(&bench_case, &request);
    if (status)
        return status;
    status = bench_case_run(&bench_case, 0, &frames);
    memcpy(self->made, bench_case.target[0].data[0], bench_case.target_bytes);
    bench_case_free(&bench_case);
    return status;
}

// A step or a bench_case, timed once it has made one map right.
struct match_runner {
    struct tutorial_match *maker;
    struct bench_case bench_case;
};

static enum status match_step_init(struct matching *self, const struct match_step *step,
                                   struct match_runner *runner)
{
    const struct tutorial *tutorial = self->tutorial;
    const struct op *op = &self->reference.program.op[self->reference.program.ops - 1];
    const struct tutorial_match_task task = {.pattern = op->match.templates,
                                             .source = self->reference.source[0].data[0],
                                             .target = self->made,
                                             .width = tutorial->shape->width,
                                             .height = tutorial->shape->height};
    enum status status = tutorial_match_create(tutorial->backend[CUDA_GPU], &task, &runner->maker);
    return status ? status : tutorial_match_make(runner->maker, step->method);
}

static enum status match_case_init(struct matching *self, const struct match_step *step,
                                   struct match_runner *runner)
{
    enum status status = map_by_sluice(self, step->processor);
    self->map = false;
    struct bench_case_request request = match_request(self, step->processor);
    request.resident = step->processor == CUDA_GPU;
    request.still = !request.resident;
    return status ? status : bench_case_init(&runner->bench_case, &request);
}

static enum status check_map(const struct matching *self, const struct match_step *step)
{
    if (!memcmp(self->made, self->reference.target[0].data[0], self->reference.target_bytes))
        return STATUS_OK;
    return log_fail(&self->tutorial->log, STATUS_FAILED,
                    "step %d of matching (%s) is wrong at %s: its scores are not those of the CPU",
                    step->number, step->name, self->tutorial->size);
}

static enum status match_run(const struct match_step *step, struct match_runner *runner, double *ms)
{
    int64_t begin = meter_now_ns(), pictures = 1;
    enum status status = runner->maker
                             ? tutorial_match_repeat(runner->maker, step->method, 1)
                             : bench_case_run(&runner->bench_case, tutorial_run_ns, &pictures);
    *ms = (double)(meter_now_ns() - begin) * 1e-6 / (double)pictures;
    return status;
}

static void give_match_row(struct matching *self, const struct match_step *step, double *ms,
                           int runs)
{
    struct spread spread = meter_spread(ms, runs);
    if (step->number == 1)
        self->base = spread.mean;
    self->tutorial->row(
        self->tutorial->opaque,
        &(struct sluice_tutorial_row){.step = step->number,
                                      .name = step->name,
                                      .size = self->tutorial->size,
                                      .device = self->tutorial->device[step->processor],
                                      .lesson = SLUICE_LESSON_MATCHING,
                                      .runs = runs,
                                      .mean = spread.mean,
                                      .median = spread.median,
                                      .low = spread.low,
                                      .high = spread.high,
                                      .over_one = self->base / spread.mean});
}

static void give_match_absence(const struct matching *self, const struct match_step *step)
{
    self->tutorial->row(self->tutorial->opaque,
                        &(struct sluice_tutorial_row){.step = step->number,
                                                      .name = step->name,
                                                      .size = self->tutorial->size,
                                                      .device = "",
                                                      .lesson = SLUICE_LESSON_MATCHING,
                                                      .absent = self->tutorial->absent});
}

static enum status run_match_step(struct matching *self, const struct match_step *step)
{
    struct match_runner runner = {0};
    double ms[RUNS];
    if (!self->tutorial->backend[step->processor]) {
        give_match_absence(self, step);
        return STATUS_OK;
    }
    enum status status = step->method == TUTORIAL_MATCH_STEPS
                             ? match_case_init(self, step, &runner)
                             : match_step_init(self, step, &runner);
    if (!status)
        status = check_map(self, step);
    for (int k = -1; k < self->tutorial->runs && !status; k++) // the first warms up
        status = match_run(step, &runner, &ms[k < 0 ? 0 : k]);
    tutorial_match_destroy(&runner.maker);
    bench_case_free(&runner.bench_case);
    if (!status)
        give_match_row(self, step, ms, self->tutorial->runs);
    return status;
}

// The template is cut from the middle of the noise that all pictures hold.
static enum status cut_pattern(struct matching *self)
{
    const struct image *source = &self->reference.source[0];
    struct pattern *t = &self->pattern;
    for (int y = 0; y < t->height; y++)
        memcpy(t->sample + y * t->width,
               source->data[0] + (source->height / 2 + y - t->height / 2) * source->stride[0] +
                   source->width / 2 - t->width / 2,
               (size_t)t->width);
    bench_case_free(&self->reference);
    return STATUS_OK;
}

static enum status make_match_reference(struct matching *self)
{
    const struct tutorial *tutorial = self->tutorial;
    const struct bench_case_request plain =
        tutorial_request(tutorial, tutorial->backend[ALL_THREADS]);
    enum status status = bench_case_init(&self->reference, &plain);
    if (!status)
        status = cut_pattern(self);
    self->map = true;
    const struct bench_case_request request = match_request(self, ALL_THREADS);
    int64_t frames;
    if (!status)
        status = bench_case_init(&self->reference, &request);
    if (!status)
        status = bench_case_run(&self->reference, 0, &frames);
    self->made = status ? NULL : malloc(self->reference.target_bytes);
    return status || self->made ? status : STATUS_MEMORY;
}

enum status tutorial_matching(struct tutorial *tutorial, const struct shape *shape)
{
    static char name[] = "noise";
    uint8_t sample[TUTORIAL_MATCH_SIDE * TUTORIAL_MATCH_SIDE];
    int side = TUTORIAL_MATCH_SIDE;
    if (shape->width < side || shape->height < side)
        return STATUS_OK;
    struct matching self = {.tutorial = tutorial, .pattern = {name, side, side, sample, NULL}};
    tutorial->lesson = &lesson;
    tutorial->shape = shape;
    tutorial->article = (struct sluice_article){0};
    snprintf(tutorial->chain, sizeof tutorial->chain, "null");
    snprintf(tutorial->size, sizeof tutorial->size, "%.31s, template %dx%d", shape->name, side,
             side);
    enum status status = make_match_reference(&self);
    for (int k = 0; k < MATCH_STEPS && !status; k++)
        status = run_match_step(&self, &match_steps[k]);
    bench_case_free(&self.reference);
    free(self.made);
    return status;
}
