// `sluice bench --ladder`: one Gaussian in the steps of a lesson, each checked, then timed.
#include "plan/ladder.h"
#include "stages/stage.h"
#include "stages/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/engine/config.h"
#include "base/meter.h"
#include "bench/bench.h"
#include "bench/subject.h"

enum { RUNS = 50, QUICK_RUNS = 5, QUICK_SHAPES = 2, MAX_SIDE = 65535, MAX_TIMES = 1000 };

// A run filters as many pictures as fill this, or one: a clock tells little of a few microseconds.
static const int64_t run_ns = 2000000;

static const char chain[] = "gaussian=2.5:8:border=zero";

// Who makes a rung, and what its speed is told of.
enum climber { CLIMBER_ONE, CLIMBER_ALL, CLIMBER_CUDA, CLIMBERS };

struct rung {
    int number;
    const char *name;
    enum climber climber;
    enum ladder_step step; // LADDER_STEPS: sluice's own
};

static const struct rung rungs[] = {
    {1, "CPU, one thread", CLIMBER_ONE, LADDER_PLAIN},
    {2, "CPU, all threads", CLIMBER_ALL, LADDER_PLAIN},
    {3, "CUDA, naive 2-D from global memory", CLIMBER_CUDA, LADDER_NAIVE},
    {4, "CUDA, 2-D in shared memory", CLIMBER_CUDA, LADDER_SHARED},
    {5, "CUDA, separable in shared memory", CLIMBER_CUDA, LADDER_SEPARABLE},
    {6, "CUDA, separable, coalesced and unrolled", CLIMBER_CUDA, LADDER_UNROLLED},
    {7, "sluice, CPU, one thread", CLIMBER_ONE, LADDER_STEPS},
    {7, "sluice, CPU, all threads", CLIMBER_ALL, LADDER_STEPS},
    {7, "sluice, CUDA", CLIMBER_CUDA, LADDER_STEPS},
};

enum { RUNGS = sizeof rungs / sizeof *rungs };

struct climb {
    const struct sluice_config *config;
    struct log log;
    struct backend *scalar, *backend[CLIMBERS]; // none for CLIMBER_CUDA: `absent` says why
    char absent[256], device[CLIMBERS][96];
    int runs;
    void (*row)(void *opaque, const struct sluice_ladder_row *row);
    void *opaque;
    // Of the size that is being climbed.
    const struct shape *shape;
    struct subject reference; // its target is what the steps are to make
    uint8_t *made, *square;   // the same in two dimensions; NULL where nobody needs it
    struct ladder_task task;  // from the reference's source into `made`
    double base[2];           // mean milliseconds of rungs 1 and 2
    struct sluice_ladder_row first;
};

// ---- one rung ----

// What is timed: a step, on one picture again and again, or sluice itself, which on the GPU gets
// many in turn, more than its cache holds.
struct runner {
    struct ladder *ladder; // NULL: `subject`
    enum ladder_step step;
    int times;
    struct subject subject;
};

static enum status ladder_create(const struct climb *climb, enum climber climber,
                                 struct ladder **ladder)
{
    struct backend *backend = climb->backend[climber];
    if (climber == CLIMBER_CUDA)
        return ladder_cuda_create(backend, &climb->task, ladder);
    return ladder_cpu_create(&climb->task, backend->parallel, &climb->log, ladder);
}

static struct subject_request subject_request_of(const struct climb *climb, struct backend *backend)
{
    return (struct subject_request){.backend = backend,
                                    .log = &climb->log,
                                    .chain = chain,
                                    .shape = climb->shape,
                                    .depth = 8,
                                    .still = true};
}

// One frame by sluice, into climb->made.
static enum status make_by_sluice(const struct climb *climb, struct backend *backend)
{
    struct subject subject;
    int64_t frames;
    const struct subject_request request = subject_request_of(climb, backend);
    enum status status = subject_init(&subject, &request);
    if (status)
        return status;
    status = subject_run(&subject, 0, &frames);
    memcpy(climb->made, subject.target[0].data[0], subject.bytes);
    subject_free(&subject);
    return status;
}

// Compare what was made with `wanted`, to the bit.
static enum status check(const struct climb *climb, const struct rung *rung, const uint8_t *wanted)
{
    size_t bytes = climb->reference.bytes, at = 0, width = (size_t)climb->shape->width;
    if (!memcmp(climb->made, wanted, bytes))
        return STATUS_OK;
    while (climb->made[at] == wanted[at])
        at++;
    return fail(&climb->log, STATUS_FAILED,
                "rung %d (%s) is wrong at %s: the sample in column %zu, row %zu is %d, and should "
                "be %d",
                rung->number, rung->name, climb->shape->name, at % width, at / width,
                climb->made[at], wanted[at]);
}

// How far what was made is from the scalar reference.
static int largest_difference(const struct climb *climb)
{
    const uint8_t *defined = climb->reference.target[0].data[0];
    int largest = 0;
    for (size_t k = 0; k < climb->reference.bytes; k++) {
        int difference = abs(climb->made[k] - defined[k]);
        largest = difference > largest ? difference : largest;
    }
    return largest;
}

// Create what is timed, once it has made one picture right.
static enum status runner_init(struct climb *climb, const struct rung *rung, struct runner *runner)
{
    struct backend *backend = climb->backend[rung->climber];
    *runner = (struct runner){.step = rung->step, .times = 1};
    memset(climb->made, 0, climb->reference.bytes);
    if (rung->step == LADDER_STEPS) {
        struct subject_request request = subject_request_of(climb, backend);
        request.resident = rung->climber == CLIMBER_CUDA;
        request.still = !request.resident;
        enum status status = make_by_sluice(climb, backend);
        return status ? status : subject_init(&runner->subject, &request);
    }
    enum status status = ladder_create(climb, rung->climber, &runner->ladder);
    return status ? status : runner->ladder->make(runner->ladder, rung->step);
}

static void runner_finish(struct runner *runner)
{
    ladder_destroy(&runner->ladder);
    subject_free(&runner->subject);
}

// One run; *ms a picture.
static enum status run(struct runner *runner, double *ms)
{
    int64_t begin = meter_now_ns(), pictures = runner->times;
    enum status status = runner->ladder
                             ? runner->ladder->repeat(runner->ladder, runner->step, runner->times)
                             : subject_run(&runner->subject, run_ns, &pictures);
    *ms = (double)(meter_now_ns() - begin) * 1e-6 / (double)pictures;
    return status;
}

// The first run warms up, the second says how many pictures fill the others.
static enum status run_all(const struct climb *climb, struct runner *runner, double ms[RUNS])
{
    enum status status = run(runner, &ms[0]);
    if (!status)
        status = run(runner, &ms[0]);
    double times = (double)run_ns * 1e-6 / ms[0];
    runner->times = times < 1 ? 1 : times > MAX_TIMES ? MAX_TIMES : (int)times;
    for (int k = 0; k < climb->runs && !status; k++)
        status = run(runner, &ms[k]);
    return status;
}

// ---- rows ----

static void tell(const struct climb *climb, struct sluice_ladder_row *row)
{
    row->over_one = climb->base[0] / row->mean;
    row->over_all = climb->base[1] / row->mean;
    climb->row(climb->opaque, row);
}

// The first row waits for the second, as it is held against that, too.
static void give_row(struct climb *climb, const struct rung *rung, double ms[RUNS], int off_by)
{
    struct spread spread = meter_spread(ms, climb->runs);
    struct sluice_ladder_row row = {.rung = rung->number,
                                    .name = rung->name,
                                    .size = climb->shape->name,
                                    .device = climb->device[rung->climber],
                                    .runs = climb->runs,
                                    .mean = spread.mean,
                                    .median = spread.median,
                                    .low = spread.low,
                                    .high = spread.high,
                                    .off_by = off_by};
    if (rung->number <= 2)
        climb->base[rung->number - 1] = row.mean;
    if (rung->number == 1) {
        climb->first = row;
        return;
    }
    if (rung->number == 2)
        tell(climb, &climb->first);
    tell(climb, &row);
}

static void give_absence(const struct climb *climb, const struct rung *rung)
{
    climb->row(climb->opaque, &(struct sluice_ladder_row){.rung = rung->number,
                                                          .name = rung->name,
                                                          .size = climb->shape->name,
                                                          .device = "",
                                                          .absent = climb->absent});
}

static enum status climb_rung(struct climb *climb, const struct rung *rung)
{
    struct runner runner;
    double ms[RUNS];
    if (!climb->backend[rung->climber]) {
        give_absence(climb, rung);
        return STATUS_OK;
    }
    enum status status = runner_init(climb, rung, &runner);
    if (!status)
        status = check(climb, rung,
                       ladder_is_square(rung->step) ? climb->square
                                                    : climb->reference.target[0].data[0]);
    int off_by = status ? 0 : largest_difference(climb);
    if (!status)
        status = run_all(climb, &runner, ms);
    runner_finish(&runner);
    if (!status)
        give_row(climb, rung, ms, off_by);
    return status;
}

// ---- one size ----

// What the steps in two dimensions are to make.
static enum status make_square(struct climb *climb)
{
    struct ladder *ladder;
    enum status status = ladder_create(climb, CLIMBER_ALL, &ladder);
    if (status)
        return status;
    status = ladder->make(ladder, LADDER_SQUARE);
    climb->square = climb->made;
    climb->made = malloc(climb->reference.bytes);
    climb->task.target = climb->made;
    ladder_destroy(&ladder);
    return climb->made ? status : STATUS_MEMORY;
}

static enum status define(struct climb *climb)
{
    int64_t frames;
    enum status status = subject_run(&climb->reference, 0, &frames);
    climb->made = malloc(climb->reference.bytes);
    if (!climb->made)
        status = status_join(status, STATUS_MEMORY);
    climb->task = (struct ladder_task){.source = climb->reference.source[0].data[0],
                                       .target = climb->made,
                                       .source_stride = climb->shape->width,
                                       .target_stride = climb->shape->width,
                                       .width = climb->shape->width,
                                       .height = climb->shape->height};
    ladder_filter_init(&climb->task.filter, &climb->reference.program.op[0].separable);
    return status || !climb->backend[CLIMBER_CUDA] ? status : make_square(climb);
}

static enum status climb_shape(struct climb *climb, const struct shape *shape)
{
    climb->shape = shape;
    climb->base[0] = climb->base[1] = 0;
    const struct subject_request request = subject_request_of(climb, climb->scalar);
    enum status status = subject_init(&climb->reference, &request);
    if (status)
        return status;
    status = define(climb);
    for (int k = 0; k < RUNGS && !status; k++)
        status = climb_rung(climb, &rungs[k]);
    subject_free(&climb->reference);
    free(climb->made);
    free(climb->square);
    climb->made = climb->square = NULL;
    return status;
}

// ---- template matching ----

// Its rungs; the first is what speeds are told of. They are compared with sluice on the CPU, which
// gives the scalar reference's scores to the bit.
static const struct match_rung {
    int number;
    const char *name;
    enum climber climber;
    enum ladder_match_step step; // LADDER_MATCH_STEPS: sluice's own
} match_rungs[] = {
    {1, "CUDA, a thread a place, global memory", CLIMBER_CUDA, LADDER_MATCH_NAIVE},
    {2, "CUDA, 16x16 tiles in shared memory", CLIMBER_CUDA, LADDER_MATCH_TILES},
    {3, "sluice, CPU, all threads", CLIMBER_ALL, LADDER_MATCH_STEPS},
    {3, "sluice, CUDA", CLIMBER_CUDA, LADDER_MATCH_STEPS},
};

enum { MATCH_RUNGS = sizeof match_rungs / sizeof *match_rungs };

struct match_climb {
    struct climb *climb;
    struct pattern pattern; // a part of the picture
    bool map;               // of the scores; else nothing is drawn
    struct subject reference;
    uint8_t *made;
    char name[64]; // of the size, with what is done
    double base;   // mean milliseconds of the first rung
};

static void lower_match(void *opaque, struct program *program)
{
    struct match_climb *self = opaque;
    struct pattern_set set = {.count = 1, .pattern = &self->pattern};
    const struct stage *stage = stage_find("match", 5);
    const double value[STAGE_OPTIONS] = {NAN, 0.9, 100, self->map ? 2 : 1};
    const char *const text[STAGE_OPTIONS] = {NULL};
    program->patterns = &set;
    stage->lower(value, text, program);
    program->patterns = NULL;
}

static struct subject_request match_request(struct match_climb *self, enum climber climber)
{
    struct subject_request request = subject_request_of(self->climb, self->climb->backend[climber]);
    request.lower = lower_match;
    request.opaque = self;
    return request;
}

// The score map by sluice, into `made`.
static enum status map_by_sluice(struct match_climb *self, enum climber climber)
{
    struct subject subject;
    int64_t frames;
    self->map = true;
    const struct subject_request request = match_request(self, climber);
    enum status status = subject_init(&subject, &request);
    if (status)
        return status;
    status = subject_run(&subject, 0, &frames);
    memcpy(self->made, subject.target[0].data[0], subject.bytes);
    subject_free(&subject);
    return status;
}

// What is timed, once it has made one map right. Either a step or a subject.
struct match_runner {
    struct ladder_match *ladder;
    struct subject subject;
};

static enum status match_step_init(struct match_climb *self, const struct match_rung *rung,
                                   struct match_runner *runner)
{
    const struct climb *climb = self->climb;
    const struct op *op = &self->reference.program.op[self->reference.program.ops - 1];
    const struct ladder_match_task task = {.pattern = op->match.templates,
                                           .source = self->reference.source[0].data[0],
                                           .target = self->made,
                                           .width = climb->shape->width,
                                           .height = climb->shape->height};
    enum status status = ladder_match_create(climb->backend[CLIMBER_CUDA], &task, &runner->ladder);
    return status ? status : ladder_match_make(runner->ladder, rung->step);
}

static enum status match_subject_init(struct match_climb *self, const struct match_rung *rung,
                                      struct match_runner *runner)
{
    enum status status = map_by_sluice(self, rung->climber);
    self->map = false;
    struct subject_request request = match_request(self, rung->climber);
    request.resident = rung->climber == CLIMBER_CUDA;
    request.still = !request.resident;
    return status ? status : subject_init(&runner->subject, &request);
}

static enum status check_map(const struct match_climb *self, const struct match_rung *rung)
{
    if (!memcmp(self->made, self->reference.target[0].data[0], self->reference.bytes))
        return STATUS_OK;
    return fail(&self->climb->log, STATUS_FAILED,
                "step %d of matching (%s) is wrong at %s: its scores are not those of the CPU",
                rung->number, rung->name, self->name);
}

static enum status match_run(const struct match_rung *rung, struct match_runner *runner, double *ms)
{
    int64_t begin = meter_now_ns(), pictures = 1;
    enum status status = runner->ladder ? ladder_match_repeat(runner->ladder, rung->step, 1)
                                        : subject_run(&runner->subject, run_ns, &pictures);
    *ms = (double)(meter_now_ns() - begin) * 1e-6 / (double)pictures;
    return status;
}

static void give_match_row(struct match_climb *self, const struct match_rung *rung, double *ms,
                           int runs)
{
    struct spread spread = meter_spread(ms, runs);
    if (rung->number == 1)
        self->base = spread.mean;
    self->climb->row(self->climb->opaque,
                     &(struct sluice_ladder_row){.rung = rung->number,
                                                 .name = rung->name,
                                                 .size = self->name,
                                                 .device = self->climb->device[rung->climber],
                                                 .matching = true,
                                                 .runs = runs,
                                                 .mean = spread.mean,
                                                 .median = spread.median,
                                                 .low = spread.low,
                                                 .high = spread.high,
                                                 .over_one = self->base / spread.mean});
}

static void give_match_absence(const struct match_climb *self, const struct match_rung *rung)
{
    self->climb->row(self->climb->opaque,
                     &(struct sluice_ladder_row){.rung = rung->number,
                                                 .name = rung->name,
                                                 .size = self->name,
                                                 .device = "",
                                                 .matching = true,
                                                 .absent = self->climb->absent});
}

static enum status climb_match_rung(struct match_climb *self, const struct match_rung *rung)
{
    struct match_runner runner = {0};
    double ms[RUNS];
    if (!self->climb->backend[rung->climber]) {
        give_match_absence(self, rung);
        return STATUS_OK;
    }
    enum status status = rung->step == LADDER_MATCH_STEPS ? match_subject_init(self, rung, &runner)
                                                          : match_step_init(self, rung, &runner);
    if (!status)
        status = check_map(self, rung);
    for (int k = -1; k < self->climb->runs && !status; k++) // the first warms up
        status = match_run(rung, &runner, &ms[k < 0 ? 0 : k]);
    ladder_match_destroy(&runner.ladder);
    subject_free(&runner.subject);
    if (!status)
        give_match_row(self, rung, ms, self->climb->runs);
    return status;
}

// The template is cut from the middle of the noise that all pictures hold.
static enum status cut_pattern(struct match_climb *self)
{
    const struct image *source = &self->reference.source[0];
    struct pattern *t = &self->pattern;
    for (int y = 0; y < t->height; y++)
        memcpy(t->sample + y * t->width,
               source->data[0] + (source->height / 2 + y - t->height / 2) * source->stride[0] +
                   source->width / 2 - t->width / 2,
               (size_t)t->width);
    subject_free(&self->reference);
    return STATUS_OK;
}

static enum status define_match(struct match_climb *self)
{
    const struct climb *climb = self->climb;
    const struct subject_request plain = subject_request_of(climb, climb->backend[CLIMBER_ALL]);
    enum status status = subject_init(&self->reference, &plain);
    if (!status)
        status = cut_pattern(self);
    self->map = true;
    const struct subject_request request = match_request(self, CLIMBER_ALL);
    int64_t frames;
    if (!status)
        status = subject_init(&self->reference, &request);
    if (!status)
        status = subject_run(&self->reference, 0, &frames);
    self->made = status ? NULL : malloc(self->reference.bytes);
    return status || self->made ? status : STATUS_MEMORY;
}

static enum status climb_matching(struct climb *climb, const struct shape *shape)
{
    static char name[] = "noise";
    uint8_t sample[LADDER_MATCH_SIDE * LADDER_MATCH_SIDE];
    int side = LADDER_MATCH_SIDE;
    if (shape->width < side || shape->height < side)
        return STATUS_OK;
    struct match_climb self = {.climb = climb, .pattern = {name, side, side, sample, NULL}};
    climb->shape = shape;
    snprintf(self.name, sizeof self.name, "%.31s, template %dx%d", shape->name, side, side);
    enum status status = define_match(&self);
    for (int k = 0; k < MATCH_RUNGS && !status; k++)
        status = climb_match_rung(&self, &match_rungs[k]);
    subject_free(&self.reference);
    free(self.made);
    return status;
}

// ---- the whole ----

static enum status find_gpu(struct climb *climb)
{
    const struct sluice_config *config = climb->config;
    snprintf(climb->absent, sizeof climb->absent, "the CPU was asked for");
    if (config->backend == SLUICE_BACKEND_CPU)
        return STATUS_OK;
    struct devices devices;
    enum status status = config_devices(config->device, &climb->log, &devices);
    if (!status && (devices.all || devices.count > 1))
        status = fail(&climb->log, STATUS_USAGE,
                      "--device is '%s'; the ladder is climbed on one GPU, as --device 0",
                      config->device);
    if (status)
        return status;
    status = backend_cuda_create(devices.device[0], &climb->log, &climb->backend[CLIMBER_CUDA],
                                 climb->absent, sizeof climb->absent);
    if (status == STATUS_DEVICE && config->backend == SLUICE_BACKEND_CUDA)
        return fail(&climb->log, status, "the GPU was asked for and cannot be used: %s",
                    climb->absent);
    return status == STATUS_DEVICE ? STATUS_OK : status;
}

static void name_devices(struct climb *climb)
{
    const struct backend *gpu = climb->backend[CLIMBER_CUDA];
    int threads = climb->backend[CLIMBER_ALL]->parallel;
    snprintf(climb->device[CLIMBER_ONE], sizeof *climb->device, "1 thread");
    snprintf(climb->device[CLIMBER_ALL], sizeof *climb->device, "%d thread%s", threads,
             threads == 1 ? "" : "s");
    if (gpu)
        snprintf(climb->device[CLIMBER_CUDA], sizeof *climb->device, "%s", gpu->description);
}

static enum status find_devices(struct climb *climb)
{
    enum status status = find_gpu(climb);
    if (!status)
        status = backend_scalar_create(&climb->log, &climb->scalar);
    if (!status)
        status = backend_cpu_create(1, &climb->log, &climb->backend[CLIMBER_ONE]);
    if (!status)
        status =
            backend_cpu_create(climb->config->threads, &climb->log, &climb->backend[CLIMBER_ALL]);
    if (!status)
        name_devices(climb);
    return status;
}

static enum status check_config(const struct climb *climb, struct shape *own)
{
    const struct sluice_config *config = climb->config;
    const char *what = config->input                              ? "an input"
                       : config->chain                            ? "--filter"
                       : config->input_pixfmt                     ? "--pix-fmt"
                       : config->backend == SLUICE_BACKEND_SCALAR ? "--backend scalar"
                                                                  : NULL;
    if (what)
        return fail(&climb->log, STATUS_USAGE,
                    "--ladder and %s do not go together: it has one filter, on 8-bit gray noise, "
                    "by the CPU and the GPU",
                    what);
    enum status status = config->input_width ? shape_init(config->input_width, config->input_height,
                                                          &climb->log, own)
                                             : STATUS_OK;
    if (!status && (own->width > MAX_SIDE || own->height > MAX_SIDE))
        return fail(&climb->log, STATUS_USAGE, "--size is %s; the ladder's sides go up to %d",
                    own->name, MAX_SIDE);
    return status;
}

enum sluice_status sluice_ladder(const struct sluice_config *config, bool quick,
                                 void (*row)(void *opaque, const struct sluice_ladder_row *row),
                                 void *opaque)
{
    struct climb climb = {
        .config = config,
        .log = {(void (*)(void *, enum log_level, const char *))config->log, config->opaque},
        .runs = quick ? QUICK_RUNS : RUNS,
        .row = row,
        .opaque = opaque,
    };
    struct shape own = {0};
    enum status status = check_config(&climb, &own);
    if (!status)
        status = find_devices(&climb);
    const struct shape *shapes = *own.name ? &own : usual_shapes;
    int count = *own.name ? 1 : quick ? QUICK_SHAPES : SHAPES;
    for (int k = 0; k < count && !status; k++)
        status = climb_shape(&climb, &shapes[k]);
    for (int k = 0; k < count && !status; k++)
        status = climb_matching(&climb, &shapes[k]);
    for (int k = 0; k < CLIMBERS; k++)
        backend_destroy(&climb.backend[k]);
    backend_destroy(&climb.scalar);
    return (enum sluice_status)status;
}
