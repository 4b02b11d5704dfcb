// Lessons that are climbed in steps: each makes one picture right, and is timed then.
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "bench/tutorial.h"
#include "pipeline/ffmpeg/check.h"

enum { MAX_TIMES = 1000, LEAST_RUNS = 3 };

// ---- one step ----

// A step, on one picture again and again, or sluice itself, which on the GPU gets
// many in turn, more than its cache holds.
struct runner {
    struct step_maker *maker; // NULL: `bench_case`
    enum tutorial_step method;
    int times;
    struct bench_case bench_case;
};

static enum status tutorial_create(const struct tutorial *tutorial, enum processor processor,
                                   struct step_maker **maker)
{
    struct backend *backend = tutorial->backend[processor];
    if (processor == CUDA_GPU)
        return tutorial->task.edges ? edge_maker_create_cuda(backend, &tutorial->task, maker)
                                    : step_maker_create_cuda(backend, &tutorial->task, maker);
    return step_maker_create_cpu(&tutorial->task, backend->parallel, &tutorial->log, maker);
}

struct bench_case_request tutorial_request(const struct tutorial *tutorial, struct backend *backend)
{
    return (struct bench_case_request){.backend = backend,
                                       .log = &tutorial->log,
                                       .chain = tutorial->chain,
                                       .shape = tutorial->shape,
                                       .depth = 8,
                                       .rgb = tutorial->lesson->rgb,
                                       .still = true};
}

// One frame by sluice, into tutorial->made.
static enum status make_by_sluice(const struct tutorial *tutorial, struct backend *backend)
{
    struct bench_case bench_case;
    int64_t frames;
    const struct bench_case_request request = tutorial_request(tutorial, backend);
    enum status status = bench_case_init(&bench_case, &request);
    if (status)
        return status;
    status = bench_case_run(&bench_case, 0, &frames);
    memcpy(tutorial->made, bench_case.target[0].data[0], bench_case.target_bytes);
    bench_case_free(&bench_case);
    return status;
}

// Compare the made picture with `wanted`, to the bit.
static enum status check(const struct tutorial *tutorial, const struct lesson_step *step,
                         const uint8_t *wanted)
{
    size_t bytes = tutorial->reference.target_bytes, at = 0, width = (size_t)tutorial->shape->width;
    if (!memcmp(tutorial->made, wanted, bytes))
        return STATUS_OK;
    while (tutorial->made[at] == wanted[at])
        at++;
    return log_fail(
        &tutorial->log, STATUS_FAILED,
        "step %d (%s) is wrong at %s: the sample in column %zu, row %zu is %d, and should "
        "be %d",
        step->number, step->name, tutorial->size, at % width, at / width, tutorial->made[at],
        wanted[at]);
}

// The largest difference from the scalar reference.
static int largest_difference(const struct tutorial *tutorial)
{
    const uint8_t *defined = tutorial->reference.target[0].data[0];
    int largest = 0;
    for (size_t k = 0; k < tutorial->reference.target_bytes; k++) {
        int difference = abs(tutorial->made[k] - defined[k]);
        largest = difference > largest ? difference : largest;
    }
    return largest;
}

// Create the runner, once it has made one picture right.
static enum status runner_init(struct tutorial *tutorial, const struct lesson_step *step,
                               struct runner *runner)
{
    struct backend *backend = tutorial->backend[step->processor];
    *runner = (struct runner){.method = step->method, .times = 1};
    memset(tutorial->made, 0, tutorial->reference.target_bytes);
    if (step->method == TUTORIAL_STEPS) {
        struct bench_case_request request = tutorial_request(tutorial, backend);
        request.resident = step->processor == CUDA_GPU;
        request.still = !request.resident;
        enum status status = make_by_sluice(tutorial, backend);
        return status ? status : bench_case_init(&runner->bench_case, &request);
    }
    enum status status = tutorial_create(tutorial, step->processor, &runner->maker);
    return status ? status : runner->maker->make(runner->maker, step->method);
}

static void runner_finish(struct runner *runner)
{
    step_maker_destroy(&runner->maker);
    bench_case_free(&runner->bench_case);
}

// The times of a step: milliseconds a picture of each run; the process's time of all.
struct figures {
    double ms[RUNS];
    int runs;
    int64_t processor_ns, pictures;
};

// One more run.
static enum status run(struct runner *runner, struct figures *figures)
{
    int64_t begin = meter_now_ns(), process = meter_process_ns(), pictures = runner->times;
    enum status status = runner->maker
                             ? runner->maker->repeat(runner->maker, runner->method, runner->times)
                             : bench_case_run(&runner->bench_case, tutorial_run_ns, &pictures);
    figures->ms[figures->runs++] = (double)(meter_now_ns() - begin) * 1e-6 / (double)pictures;
    figures->processor_ns += meter_process_ns() - process;
    figures->pictures += pictures;
    return status;
}

// The first run warms up, the second says how many pictures fill the others. A lesson may have no
// patience with slow ones, of which there are fewer.
static enum status run_all(const struct tutorial *tutorial, struct runner *runner,
                           struct figures *figures)
{
    *figures = (struct figures){0};
    enum status status = run(runner, figures);
    if (!status)
        status = run(runner, figures);
    double times = (double)tutorial_run_ns * 1e-6 / figures->ms[figures->runs - 1];
    runner->times = times < 1 ? 1 : times > MAX_TIMES ? MAX_TIMES : (int)times;
    int64_t begin = meter_now_ns(), most = tutorial->lesson->most_ns;
    *figures = (struct figures){0};
    while (!status && figures->runs < tutorial->runs &&
           !(most && figures->runs >= LEAST_RUNS && meter_now_ns() - begin > most))
        status = run(runner, figures);
    return status;
}

// ---- rows ----

// Every row of a lesson at one size begins so.
static struct sluice_tutorial_row begin_row(const struct tutorial *tutorial,
                                            const struct lesson_step *step)
{
    return (struct sluice_tutorial_row){.lesson = tutorial->lesson->number,
                                        .step = step->number,
                                        .name = step->name,
                                        .size = tutorial->size,
                                        .device = tutorial->device[step->processor],
                                        .article = tutorial->article};
}

static void report(const struct tutorial *tutorial, struct sluice_tutorial_row *row)
{
    row->over_one = tutorial->base[0] / row->mean;
    row->over_all = tutorial->lesson->over_all ? tutorial->base[1] / row->mean : 0;
    tutorial->row(tutorial->opaque, row);
}

// The first row waits for the second where it is held against that, too.
static void give_row(struct tutorial *tutorial, const struct lesson_step *step,
                     struct figures *figures, int off_by)
{
    struct spread spread = meter_spread(figures->ms, figures->runs);
    struct sluice_tutorial_row row = begin_row(tutorial, step);
    row.runs = figures->runs;
    row.processor = (double)figures->processor_ns * 1e-6 / (double)figures->pictures;
    row.mean = spread.mean;
    row.median = spread.median;
    row.low = spread.low;
    row.high = spread.high;
    row.off_by = off_by;
    bool over_all = tutorial->lesson->over_all;
    if (step->number <= 1 + over_all)
        tutorial->base[step->number - 1] = row.mean;
    if (step->number == 1 && over_all) {
        tutorial->first = row;
        return;
    }
    if (step->number == 2 && over_all)
        report(tutorial, &tutorial->first);
    report(tutorial, &row);
}

static void give_absence(const struct tutorial *tutorial, const struct lesson_step *step)
{
    struct sluice_tutorial_row row = begin_row(tutorial, step);
    row.device = "";
    row.absent = tutorial->absent;
    tutorial->row(tutorial->opaque, &row);
}

static enum status run_step(struct tutorial *tutorial, const struct lesson_step *step)
{
    struct runner runner;
    struct figures figures;
    if (!tutorial->backend[step->processor]) {
        give_absence(tutorial, step);
        return STATUS_OK;
    }
    enum status status = runner_init(tutorial, step, &runner);
    if (!status)
        status = check(tutorial, step,
                       tutorial_is_square(step->method) ? tutorial->square
                                                        : tutorial->reference.target[0].data[0]);
    int off_by = status ? 0 : largest_difference(tutorial);
    if (!status)
        status = run_all(tutorial, &runner, &figures);
    runner_finish(&runner);
    if (!status)
        give_row(tutorial, step, &figures, off_by);
    return status;
}

// ---- one size ----

// The picture that the steps in two dimensions are to make.
static enum status make_square(struct tutorial *tutorial)
{
    struct step_maker *maker;
    enum status status = tutorial_create(tutorial, ALL_THREADS, &maker);
    if (status)
        return status;
    status = maker->make(maker, TUTORIAL_SQUARE);
    tutorial->square = tutorial->made;
    tutorial->made = malloc(tutorial->reference.target_bytes);
    tutorial->task.target = tutorial->made;
    step_maker_destroy(&maker);
    return tutorial->made ? status : STATUS_MEMORY;
}

static void init_task(struct tutorial *tutorial)
{
    const struct shape *shape = tutorial->shape;
    tutorial->task =
        (struct tutorial_task){.edges = tutorial->lesson->rgb,
                               .source = tutorial->reference.source[0].data[0],
                               .target = tutorial->made,
                               .source_stride = tutorial->reference.source[0].stride[0],
                               .target_stride = shape->width,
                               .width = shape->width,
                               .height = shape->height};
    if (tutorial->lesson->two_references)
        tutorial_filter_init(&tutorial->task.filter, &tutorial->reference.program.op[0].separable);
}

static enum status make_reference(struct tutorial *tutorial)
{
    int64_t frames;
    enum status status = bench_case_run(&tutorial->reference, 0, &frames);
    tutorial->made = malloc(tutorial->reference.target_bytes);
    if (!tutorial->made)
        status = status_join(status, STATUS_MEMORY);
    init_task(tutorial);
    bool square = tutorial->lesson->two_references && tutorial->backend[CUDA_GPU];
    return status || !square ? status : make_square(tutorial);
}

enum status tutorial_climb(struct tutorial *tutorial, const struct lesson *lesson,
                           const struct shape *shape)
{
    tutorial->lesson = lesson;
    tutorial->shape = shape;
    tutorial->base[0] = tutorial->base[1] = 0;
    const struct bench_case_request request =
        tutorial_request(tutorial, tutorial->backend[REFERENCE]);
    enum status status = bench_case_init(&tutorial->reference, &request);
    if (status)
        return status;
    status = make_reference(tutorial);
    for (int k = 0; k < lesson->steps && !status; k++)
        status = run_step(tutorial, &lesson->step[k]);
    bench_case_free(&tutorial->reference);
    free(tutorial->made);
    free(tutorial->square);
    tutorial->made = tutorial->square = NULL;
    return status;
}
