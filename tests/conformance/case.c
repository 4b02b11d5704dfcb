#include "tests/conformance/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/reference/scalar.h"
#include "stages/chain.h"
#include "tests/conformance/chains.h"
#include "tests/conformance/formats.h"
#include "tests/conformance/picture.h"
#include "tests/conformance/random.h"
#include "tests/conformance/size.h"
#include "tests/patterns.h"

enum { SLOTS = 3, OVERFLOWING = 1 }; // the slot whose samples are above their depth

struct test_case {
    struct case_name name;
    char chain[1 << 17];
    int width, height;
    bool fields;
    bool
        on_device; // the source is given as device memory, which may be any that the device reaches
    bool together; // all slots are submitted in one call
    void *stream;
    struct named_format format, wanted;
    bool convert;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    struct format tee_wanted[MAX_PICTURES];
    struct picture_memory source[SLOTS];
    // of each picture that the program makes
    struct picture_memory target[SLOTS][MAX_PICTURES], expected[SLOTS][MAX_PICTURES];
    struct image tee[SLOTS][MAX_PICTURES];
    void **analysis[SLOTS], **expected_analysis[SLOTS]; // NULL: not wanted
};

static void describe(const struct test_case *test)
{
    printf("'%s' on %s%s%s, seed %u, %dx%d%s%s\n", test->chain, test->format.name,
           test->convert ? " to " : "", test->convert ? test->wanted.name : "", test->name.seed,
           test->width, test->height, test->fields ? ", by fields" : "",
           test->on_device ? ", on the device" : "");
}

static void fatal(const struct test_case *test, const char *what)
{
    describe(test);
    printf("    %s\n", what);
    exit(1);
}

// ---- analysis ----

static size_t analysis_bytes(const struct test_case *test, int analysis)
{
    const struct op *op = &test->program.op[test->program.analysis[analysis]];
    struct program_plane grid = test->program.plane[op->source[0]];
    return op_analysis_bytes(op, subsampled(test->width, grid.shift_x),
                             subsampled(test->height, grid.shift_y));
}

// Memory with a guard behind it; of some analysis none, where `some`.
static void **analyses_alloc(const struct test_case *test, struct backend *backend, bool some,
                             uint64_t *state)
{
    void **analysis = calloc((size_t)test->program.analyses + 1, sizeof *analysis);
    for (int k = 0; analysis && k < test->program.analyses; k++) {
        if (some && !random_below(state, 4))
            continue;
        analysis[k] = backend->alloc(backend, analysis_bytes(test, k) + MARGIN);
        if (!analysis[k])
            fatal(test, "no memory for analysis");
        memset(analysis[k], GUARD, analysis_bytes(test, k) + MARGIN);
    }
    return analysis;
}

static void analyses_free(const struct test_case *test, struct backend *backend, void **analysis)
{
    for (int k = 0; k < test->program.analyses; k++)
        if (analysis[k])
            backend->free(backend, analysis[k], analysis_bytes(test, k) + MARGIN);
    free(analysis);
}

// Which analysis of a slot is wrong; -1: none.
static int wrong_analysis(const struct test_case *test, int slot)
{
    for (int k = 0; k < test->program.analyses; k++) {
        const uint8_t *got = test->analysis[slot][k], *want = test->expected_analysis[slot][k];
        size_t bytes = analysis_bytes(test, k);
        if (got && (memcmp(got, want, bytes) || memcmp(got + bytes, want + bytes, MARGIN)))
            return k;
    }
    return -1;
}

// Statistics leave what they look at as it is: let their results be used in its place.
static void use_results(struct program *program)
{
    for (int k = 0; k < program->ops; k++)
        for (int c = 0; c < FORMAT_COMPONENTS && op_is_full_frame(&program->op[k]); c++)
            if (program->op[k].kind == OP_STATISTICS &&
                program->picture.plane[c] == program->op[k].source[0])
                program->picture.plane[c] = program->op[k].result;
}

// Half of the tees in a format that is not their own.
static void choose_tees(struct test_case *test, uint64_t *state)
{
    for (int k = 0; k < test->program.tees; k++) {
        test->tee_wanted[k] = random_format(state).format;
        if (random_below(state, 2))
            program_choose_tee(&test->program, k, &test->tee_wanted[k]);
    }
}

static bool has_fields(const struct test_case *test)
{
    bool has = image_has_fields(&test->source[0].image);
    for (int n = 0; n < program_pictures(&test->program); n++)
        has = has && image_has_fields(&test->target[0][n].image);
    return has;
}

static bool has_fillers(const struct program *program)
{
    bool has = false;
    for (int n = 0; n < program_pictures(program); n++)
        has |= program_format(program, n)->filler;
    return has;
}

static bool has_full_frame(const struct program *program)
{
    for (int k = 0; k < program->ops; k++)
        if (op_is_full_frame(&program->op[k]))
            return true;
    return false;
}

// True if planes of the source go byte for byte from one device memory to another.
static bool has_references(const struct test_case *test)
{
    bool has = false;
    for (int n = 0; n < program_pictures(&test->program); n++)
        for (int p = 0; p < program_format(&test->program, n)->planes; p++)
            has |= test->plan->picture[n].plane[p].origin == PLANE_REFERENCE;
    return has;
}

// FNV-1a: what a name's letters add to the seed.
static uint64_t mix(uint64_t state, const char *text)
{
    for (; *text; text++)
        state = (state ^ (unsigned char)*text) * 0x100000001b3u;
    return state;
}

static void find_format(struct test_case *test)
{
    for (int k = 0; k < FORMATS; k++) {
        test->format = test_format(k);
        if (!strcmp(test->format.name, test->name.format))
            return;
    }
    printf("there is no format %s\n", test->name.format);
    exit(2);
}

static uint64_t draw_chain(struct test_case *test)
{
    const struct case_name *name = &test->name;
    uint64_t state = 0xcbf29ce484222325u + name->seed;
    FILE *to = fmemopen(test->chain, sizeof test->chain, "w");
    if (name->chain) {
        state = mix(mix(state, name->chain), name->format);
        find_format(test);
    } else {
        test->format = random_format(&state);
    }
    test->width = ugly_size(&state, name->large);
    test->height = ugly_size(&state, name->large);
    if (name->chain)
        chain_expand(&state, name->chain, test->width, test->height, to);
    else
        chain_draw(&state, to);
    fclose(to);
    return state;
}

static void make_program(struct test_case *test, uint64_t *state)
{
    struct chain chain;
    struct chain_error error;
    if (chain_parse(test->chain, &noise_reader, &chain, &error))
        fatal(test, error.message);
    if (program_init(&test->program, &test->format.format) || chain_lower(&chain, &test->program))
        fatal(test, "no program");
    if (!random_below(state, 3))
        use_results(&test->program);
    choose_tees(test, state);
    if (program_finish(&test->program, test->convert ? &test->wanted.format : NULL))
        fatal(test, "no program");
    chain_free(&chain);
}

static void make_executor(struct test_case *test, bool overlapped, struct backend *backend)
{
    if (plan_create(&test->program, backend->limits, &test->plan))
        fatal(test, "no plan");
    if (backend->executor_create(backend, test->plan, test->width, test->height, SLOTS, overlapped,
                                 &test->executor))
        fatal(test, "no executor");
}

static void make_slot(struct test_case *test, int slot, struct backend *backend, uint64_t *state)
{
    int width = test->width, height = test->height;
    picture_init(&test->source[slot], &test->program.input, width, height, state, backend);
    picture_fill(&test->source[slot], state);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        uint64_t layout = random_next(state), again = layout;
        const struct format *format = program_format(&test->program, n);
        picture_init(&test->target[slot][n], format, width, height, &layout, backend);
        picture_init(&test->expected[slot][n], format, width, height, &again, backend);
    }
    test->analysis[slot] = analyses_alloc(test, backend, true, state);
    test->expected_analysis[slot] = analyses_alloc(test, backend, false, state);
}

static void prepare(struct test_case *test, struct backend *backend)
{
    uint64_t state = draw_chain(test);
    test->convert = !random_below(&state, 3);
    test->wanted = random_format(&state);
    make_program(test, &state);
    make_executor(test, random_below(&state, 2), backend);
    test->together = random_below(&state, 2);
    for (int k = 0; k < SLOTS; k++)
        make_slot(test, k, backend, &state);
    test->fields = !has_full_frame(&test->program) && !random_below(&state, 4) && has_fields(test);
    // A filler that is taken over keeps its bytes, the scalar reference writes its own.
    test->on_device =
        backend->has_device_memory && !has_fillers(&test->program) && !random_below(&state, 4);
    if (test->on_device && backend->stream_create(backend, &test->stream))
        fatal(test, "no stream");
    // The scalar reference writes samples where a reference keeps bytes.
    if (!(test->on_device && has_references(test)))
        picture_overflow(&test->source[OVERFLOWING], random_next(&state));
}

// Leave out, in a copy, the planes that the backend does not write.
static struct image wanted_planes(const struct test_case *test, int n, const struct image *image)
{
    struct image wanted = *image;
    for (int p = 0; p < FORMAT_PLANES; p++)
        if (!plan_writes(test->plan, n, p, test->on_device))
            wanted.data[p] = NULL;
    return wanted;
}

static struct work describe_work(struct test_case *test, int slot,
                                 const struct picture_memory *target)
{
    for (int n = 1; n < program_pictures(&test->program); n++)
        test->tee[slot][n - 1] = wanted_planes(test, n, &target[n].image);
    return (struct work){.source = test->source[slot].image,
                         .target = wanted_planes(test, 0, &target[0].image),
                         .tee = test->tee[slot],
                         .fields = test->fields};
}

static void submit(struct test_case *test)
{
    struct work work[SLOTS];
    for (int k = 0; k < SLOTS; k++) {
        work[k] = describe_work(test, k, test->target[k]);
        work[k].source_on_device = test->on_device;
        work[k].source_stream = test->stream;
        work[k].analysis = test->analysis[k];
    }
    if (test->together && executor_submit_many_async(test->executor, 0, work, SLOTS))
        fatal(test, "submit failed");
    for (int k = 0; k < SLOTS && !test->together; k++)
        if (test->executor->submit_async(test->executor, k, &work[k]))
            fatal(test, "submit failed");
}

struct test_case *case_submit(const struct case_name *name, struct backend *backend)
{
    struct test_case *test = calloc(1, sizeof *test);
    if (!test) {
        printf("out of memory\n");
        exit(1);
    }
    test->name = *name;
    prepare(test, backend);
    submit(test);
    return test;
}

static void first_difference(const struct test_case *test, int slot, int n)
{
    const struct picture_memory *got = &test->target[slot][n], *want = &test->expected[slot][n];
    size_t at = 0;
    while (got->memory[at] == want->memory[at])
        at++;
    printf("    slot %d, picture %d: ", slot, n);
    for (int p = 0; p < got->image.format->planes; p++) {
        ptrdiff_t stride = got->image.stride[p];
        int rows = format_rows(got->image.format, p, test->height);
        const uint8_t *begin =
            stride < 0 ? got->image.data[p] + (rows - 1) * stride : got->image.data[p];
        size_t size = (size_t)labs(stride) * (size_t)rows;
        if (got->memory + at >= begin && got->memory + at < begin + size) {
            size_t offset = (size_t)(got->memory + at - begin);
            size_t row = offset / (size_t)labs(stride);
            printf("plane %d, row %zu, byte %zu of %zu: ", p,
                   stride < 0 ? (size_t)rows - 1 - row : row, offset % (size_t)labs(stride),
                   format_row_bytes(got->image.format, p, test->width));
        }
    }
    printf("got %d, scalar says %d\n", got->memory[at], want->memory[at]);
}

// Print what is wrong with a slot's results, if anything is.
static bool slot_is_right(const struct test_case *test, int slot)
{
    int analysis = wrong_analysis(test, slot);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        const struct picture_memory *got = &test->target[slot][n];
        if (!memcmp(got->memory, test->expected[slot][n].memory, got->size))
            continue;
        describe(test);
        first_difference(test, slot, n);
        return false;
    }
    if (analysis >= 0) {
        describe(test);
        printf("    slot %d: analysis %d, of %s, differs\n", slot, analysis,
               op_name(&test->program.op[test->program.analysis[analysis]]));
    }
    return analysis < 0;
}

static void slot_free(struct test_case *test, int slot, struct backend *backend)
{
    picture_free(&test->source[slot], backend);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        picture_free(&test->target[slot][n], backend);
        picture_free(&test->expected[slot][n], backend);
    }
    analyses_free(test, backend, test->analysis[slot]);
    analyses_free(test, backend, test->expected_analysis[slot]);
}

static void print_replay(const struct test_case *test, const struct backend *backend)
{
    const struct case_name *name = &test->name;
    printf("    replay: conformance --backend %s --seed %u%s", backend->name, name->seed,
           name->large ? " --large" : "");
    if (name->chain)
        printf(" --format %s --chain '%s'", name->format, name->chain);
    putchar('\n');
}

bool case_finish(struct test_case *test, struct backend *backend)
{
    bool equal = true;
    for (int k = 0; k < SLOTS; k++) {
        if (test->executor->wait(test->executor, k, NULL))
            fatal(test, "wait failed");
        struct work work = describe_work(test, k, test->expected[k]);
        work.analysis = test->expected_analysis[k];
        if (scalar_run(&test->program, &work))
            fatal(test, "scalar failed");
        equal = equal && slot_is_right(test, k);
        slot_free(test, k, backend);
    }
    if (!equal)
        print_replay(test, backend);
    executor_destroy(&test->executor);
    if (test->stream)
        backend->stream_destroy(backend, &test->stream);
    plan_destroy(&test->plan);
    program_free(&test->program);
    free(test);
    return equal;
}
