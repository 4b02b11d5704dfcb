#include "tests/conformance/tutorial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/reference/scalar.h"
#include "cpu/reference/scalar_op.h"
#include "plan/tutorial.h"
#include "stages/chain.h"
#include "tests/conformance/formats.h"
#include "tests/conformance/picture.h"
#include "tests/conformance/random.h"
#include "tests/conformance/size.h"
#include "tests/patterns.h"

// ---- a Gaussian, step by step ----

struct tutorial_case {
    int number, width, height;
    struct program program;
    struct picture_memory source, target;
    struct picture_memory scalar, square; // both references of the target
};

// The tutorial knows no pictures that lie upside down.
static void tutorial_picture_init(struct picture_memory *picture, const struct tutorial_case *test,
                                  uint64_t shape, struct backend *backend)
{
    picture_init(picture, &test->program.input, test->width, test->height, &shape, backend);
    struct image *image = &picture->image;
    if (image->stride[0] < 0) {
        image->data[0] += (test->height - 1) * image->stride[0];
        image->stride[0] = -image->stride[0];
    }
}

static bool lower_ladder(struct program *program, const char *text)
{
    static struct format gray;
    struct chain chain;
    struct chain_error error;
    gray = test_format(0).format;
    bool fine = !chain_parse(text, &noise_reader, &chain, &error) &&
                !program_init(program, &gray) && !chain_lower(&chain, program) &&
                !program_finish(program, NULL);
    chain_free(&chain);
    return fine;
}

// The chain of TUTORIAL_EDGES on R, G, B side by side.
static bool lower_edges(struct program *program)
{
    static struct format rgb;
    const struct format full = {.range = RANGE_FULL};
    struct chain chain;
    struct chain_error error;
    char text[96];
    snprintf(text, sizeof text, "brightness=%d,gray=mean,sobel=l1:border=zero,threshold=%d:%d",
             TUTORIAL_BRIGHTNESS, TUTORIAL_LOW, TUTORIAL_HIGH);
    rgb = format_planar(MODEL_RGB, 8, 0, 0, false, &full);
    rgb.planes = 1;
    for (int c = 0; c < 3; c++)
        rgb.component[c] = (struct component){.offset = c, .step = 3, .bytes = 1};
    bool fine = !chain_parse(text, &noise_reader, &chain, &error) && !program_init(program, &rgb) &&
                !chain_lower(&chain, program) && !program_finish(program, NULL);
    chain_free(&chain);
    return fine;
}

static void tutorial_prepare(struct tutorial_case *test, int number, bool large,
                             struct backend *backend)
{
    static const int sizes[] = {1, 2, 3, 31, 32, 33, 255, 257};
    uint64_t state = (uint64_t)number * 1000003 + 29, shape = random_next(&state);
    *test = (struct tutorial_case){.number = number,
                                   .width = large ? ugly_size(&state, true) : sizes[number / 8],
                                   .height = large ? ugly_size(&state, true) : sizes[number % 8]};
    if (!lower_ladder(&test->program, number % 3 ? "gaussian=2.5:8:zero" : "gaussian=0.9:3:zero")) {
        fprintf(stderr, "no program for the tutorial\n");
        exit(1);
    }
    tutorial_picture_init(&test->source, test, random_next(&state), backend);
    tutorial_picture_init(&test->target, test, shape, backend);
    tutorial_picture_init(&test->scalar, test, shape, backend);
    tutorial_picture_init(&test->square, test, shape, backend);
    picture_fill(&test->source, &state);
}

static void tutorial_finish(struct tutorial_case *test, struct backend *backend)
{
    picture_free(&test->source, backend);
    picture_free(&test->target, backend);
    picture_free(&test->scalar, backend);
    picture_free(&test->square, backend);
    program_free(&test->program);
}

static struct tutorial_task tutorial_task_of(const struct tutorial_case *test,
                                             const struct picture_memory *target)
{
    const struct image *from = &test->source.image, *to = &target->image;
    struct tutorial_task task = {.source = from->data[0],
                                 .target = to->data[0],
                                 .source_stride = from->stride[0],
                                 .target_stride = to->stride[0],
                                 .width = test->width,
                                 .height = test->height};
    tutorial_filter_init(&task.filter, &test->program.op[0].separable);
    return task;
}

// The sum of a step in two dimensions with the taps as they are: 2^26 times a sample.
static double exact_square(const struct tutorial_task *task, int x, int y)
{
    int64_t sum = 0;
    for (int b = -TUTORIAL_RADIUS; b <= TUTORIAL_RADIUS; b++)
        for (int a = -TUTORIAL_RADIUS; a <= TUTORIAL_RADIUS; a++)
            if (x + a >= 0 && x + a < task->width && y + b >= 0 && y + b < task->height)
                sum += (int64_t)task->filter.tap[TUTORIAL_RADIUS + a] *
                       task->filter.tap[TUTORIAL_RADIUS + b] *
                       task->source[(y + b) * task->source_stride + x + a];
    return ldexp((double)sum, -26);
}

static int byte_at(const struct picture_memory *picture, int x, int y)
{
    return picture->image.data[0][y * picture->image.stride[0] + x];
}

static bool tutorial_fails(const struct tutorial_case *test, const char *step, int x, int y,
                           const char *what)
{
    printf("tutorial %d, %dx%d, %s: column %d, row %d %s\n", test->number, test->width,
           test->height, step, x, y, what);
    return false;
}

// The reference in two dimensions rounds the exact sums, but for what the rounding of its weights
// may add, and is within 1 of the scalar one.
static bool square_is_right(const struct tutorial_case *test, const struct tutorial_task *task)
{
    const double most = 0.5 + TUTORIAL_TAPS * TUTORIAL_TAPS * 255 / ldexp(2, TUTORIAL_SQUARE_BITS);
    for (int y = 0; y < test->height; y++)
        for (int x = 0; x < test->width; x++) {
            int value = byte_at(&test->square, x, y);
            if (fabs(value - exact_square(task, x, y)) > most)
                return tutorial_fails(test, "reference in 2-D", x, y, "is not the rounded sum");
            if (abs(value - byte_at(&test->scalar, x, y)) > 1)
                return tutorial_fails(test, "reference in 2-D", x, y, "is far from scalar");
        }
    return true;
}

static bool step_is_right(const struct tutorial_case *test, struct step_maker *maker,
                          enum tutorial_step step)
{
    static const char *const names[TUTORIAL_STEPS] = {"plain",  "2-D",       "naive",
                                                      "shared", "separable", "unrolled"};
    const struct picture_memory *wanted = tutorial_is_square(step) ? &test->square : &test->scalar;
    memset(test->target.memory, GUARD, test->target.size);
    if (maker->make(maker, step))
        return tutorial_fails(test, names[step], 0, 0, "could not be made");
    for (int y = 0; y < test->height; y++)
        for (int x = 0; x < test->width; x++)
            if (byte_at(&test->target, x, y) != byte_at(wanted, x, y))
                return tutorial_fails(test, names[step], x, y, "differs from its reference");
    if (memcmp(test->target.memory, wanted->memory, wanted->size))
        return tutorial_fails(test, names[step], test->width, test->height,
                              "or beside was written");
    return true;
}

// The plain steps make the reference in two dimensions, and are right themselves.
static int run_plain(const struct tutorial_case *test, int threads, const struct log *log)
{
    struct tutorial_task square = tutorial_task_of(test, &test->square),
                         task = tutorial_task_of(test, &test->target);
    struct step_maker *maker = NULL;
    int passed = 0;
    if (!step_maker_create_cpu(&square, 1, log, &maker) && !maker->make(maker, TUTORIAL_SQUARE))
        passed += square_is_right(test, &square);
    step_maker_destroy(&maker);
    if (!step_maker_create_cpu(&task, threads, log, &maker))
        passed += step_is_right(test, maker, TUTORIAL_PLAIN) &&
                  step_is_right(test, maker, TUTORIAL_SQUARE);
    step_maker_destroy(&maker);
    return passed;
}

static int run_cuda(const struct tutorial_case *test, struct backend *backend)
{
    struct tutorial_task task = tutorial_task_of(test, &test->target);
    struct step_maker *maker;
    int passed = 0;
    if (step_maker_create_cuda(backend, &task, &maker))
        return 0;
    for (enum tutorial_step step = TUTORIAL_NAIVE; step < TUTORIAL_STEPS; step++)
        passed += step_is_right(test, maker, step);
    step_maker_destroy(&maker);
    return passed;
}

// ---- the edge filter, a stage after another ----

static enum status run_edges(const struct tutorial_task *task, struct backend *backend, int threads,
                             const struct log *log)
{
    struct step_maker *maker = NULL;
    enum status status = backend ? edge_maker_create_cuda(backend, task, &maker)
                                 : step_maker_create_cpu(task, threads, log, &maker);
    if (!status)
        status = maker->make(maker, TUTORIAL_EDGES);
    step_maker_destroy(&maker);
    return status;
}

// True if the step makes what the scalar reference does, in rows with gaps, and writes no gap.
static bool edges_are_right(int number, bool large, struct backend *backend, int threads,
                            const struct log *log)
{
    uint64_t state = (uint64_t)number + 7;
    const int width = 1 + random_below(&state, large ? 1999 : 70),
              height = 1 + random_below(&state, large ? 999 : 50), gap = number % 5;
    const size_t stride = (size_t)(width + gap), bytes = stride * (size_t)height;
    struct program program;
    uint8_t *source = malloc(3 * bytes), *made = malloc(bytes), *wanted = malloc(bytes);
    bool right = source && made && wanted && lower_edges(&program);
    for (size_t k = 0; right && k < 3 * bytes; k++)
        source[k] = (uint8_t)random_below(&state, number % 2 ? 256 : 40);
    if (right) {
        memset(made, GUARD, bytes);
        memset(wanted, GUARD, bytes);
        const struct work work = {
            .source = {&program.input, width, height, {source}, {3 * (ptrdiff_t)stride}},
            .target = {&program.output, width, height, {wanted}, {(ptrdiff_t)stride}}};
        const struct tutorial_task task = {.edges = true,
                                           .source = source,
                                           .target = made,
                                           .source_stride = 3 * (ptrdiff_t)stride,
                                           .target_stride = (ptrdiff_t)stride,
                                           .width = width,
                                           .height = height};
        right = !scalar_run(&program, &work) && !run_edges(&task, backend, threads, log) &&
                !memcmp(made, wanted, bytes);
        program_free(&program);
    }
    free(source);
    free(made);
    free(wanted);
    if (!right)
        printf("FAILED tutorial %d, edges, %dx%d, %s\n", number, width, height,
               backend ? "CUDA" : "CPU");
    return right;
}

static void run_all_edges(const struct tutorial_settings *settings, struct backend *backend,
                          int *passed, int *failed)
{
    const int threads = settings->threads > 0 ? settings->threads : 1;
    struct backend *const makers[] = {NULL, backend}; // the CPU's, and the GPU's
    for (int k = 0; k < (settings->large ? 2 : 40); k++)
        for (int m = 0; m < (backend->has_device_memory ? 2 : 1); m++)
            ++*(edges_are_right(k, settings->large, makers[m], threads, settings->log) ? passed
                                                                                       : failed);
}

// ---- the steps of template matching ----

enum { MATCH_TUTORIAL_WIDTH = 75, MATCH_TUTORIAL_HEIGHT = 53 };

// Both score maps are of one picture and one template, of random sizes.
static bool match_step_is_right(int number, struct backend *backend, enum tutorial_match_step step)
{
    static const char *const names[] = {"match naive", "match tiles"};
    static uint16_t samples[MATCH_TUTORIAL_HEIGHT * MATCH_TUTORIAL_WIDTH], map[sizeof samples / 2];
    static uint8_t bytes[sizeof samples / 2], made[sizeof samples / 2];
    uint64_t state = (uint64_t)number + 1;
    struct plane from = {32 + random_below(&state, MATCH_TUTORIAL_WIDTH - 31),
                         32 + random_below(&state, MATCH_TUTORIAL_HEIGHT - 31), samples};
    struct plane to = {from.width, from.height, map};
    int side = number % 3 ? 2 + random_below(&state, 31) : 32, count = from.width * from.height;
    for (int k = 0; k < count; k++)
        bytes[k] = (uint8_t)(samples[k] = (uint16_t)random_below(&state, number % 2 ? 256 : 3));
    struct op_template pattern = {.width = side, .height = side, .sample = bytes};
    int64_t squares = 0;
    for (int k = 0; k < side * side; k++) {
        int value = bytes[k] - MATCH_BIAS;
        pattern.sum += value;
        squares += value * value;
    }
    pattern.count = side * side;
    pattern.norm = sqrt(match_difference(pattern.count, squares, pattern.sum, pattern.sum));
    if (!(pattern.norm > 0))
        return true;
    struct op op = {.kind = OP_MATCH,
                    .match = {&pattern, 1, .least = 0.9f, .most = 1, .map = true, .white = 255}};
    struct op_matches *matches = malloc(match_analysis_bytes(&op.match));
    struct scalar_work work = {
        .op = &op, .from = &from, .to = &to, .depth = 8, .analysis = matches};
    struct tutorial_match_task task = {&pattern, bytes, made, from.width, from.height};
    struct tutorial_match *maker = NULL;
    bool right = matches && !match_scalar(&work) &&
                 !tutorial_match_create(backend, &task, &maker) &&
                 !tutorial_match_make(maker, step);
    for (int k = 0; k < count && right; k++)
        right = made[k] == map[k];
    tutorial_match_destroy(&maker);
    free(matches);
    if (!right)
        printf("FAILED tutorial %d, %s, %dx%d\n", number, names[step], from.width, from.height);
    return right;
}

static void run_match(struct backend *backend, int *passed, int *failed)
{
    for (int k = 0; k < 30; k++)
        for (int step = 0; step < TUTORIAL_MATCH_STEPS; step++)
            ++*(match_step_is_right(k, backend, (enum tutorial_match_step)step) ? passed : failed);
}

// All sizes with all others, or a few large ones.
static void run_filter(const struct tutorial_settings *settings, struct backend *backend,
                       int *passed, int *failed)
{
    const int cases = settings->large ? 2 : 64, plain = 2, cuda = TUTORIAL_STEPS - TUTORIAL_NAIVE;
    for (int k = 0; k < cases; k++) {
        struct tutorial_case test;
        tutorial_prepare(&test, k, settings->large, backend);
        int right = 0, tried = plain;
        if (!scalar_run(&test.program,
                        &(struct work){.source = test.source.image, .target = test.scalar.image}))
            right = run_plain(&test, settings->threads > 0 ? settings->threads : 1, settings->log);
        if (backend->has_device_memory) {
            right += run_cuda(&test, backend);
            tried += cuda;
        }
        *passed += right;
        *failed += tried - right;
        tutorial_finish(&test, backend);
    }
}

void tutorial_run(const struct tutorial_settings *settings, struct backend *backend, int *passed,
                  int *failed)
{
    run_filter(settings, backend, passed, failed);
    run_all_edges(settings, backend, passed, failed);
    if (backend->has_device_memory)
        run_match(backend, passed, failed);
}
