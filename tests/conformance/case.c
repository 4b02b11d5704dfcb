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

enum { SLOTS = 3, MANY_SLOTS = 9, OVERFLOWING = 1 }; // the slot whose samples exceed their depth

// Device memory, as the source's: targets of early rounds, whose slots are handed over to a stream and
// used again at once, and of the last, which is waited for. A slot's launches are made by a graph from
// the second time on that it has them, with new arguments from the third.
enum where { TARGET_HOST, TARGET_DEVICE, TARGET_IN_PLACE };
enum { ROUNDS = 4, STREAMS = 2, NO_WISH = 2 };

struct test_case {
    struct case_name name;
    char chain[1 << 17];
    int width, height;
    bool fields;
    bool
        on_device; // the source is given as device memory, which may be any that the device reaches
    bool together; // all slots are submitted in one call
    bool takes_streams; // work on the device is done on the callers' streams
    enum where where;
    bool shifted; // planes in device memory begin a byte late
    int slots;
    void *stream[STREAMS]; // of every other frame
    struct named_format format, wanted;
    bool convert;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    struct format tee_wanted[MAX_PICTURES];
    struct picture_memory source[MANY_SLOTS];
    struct picture_memory lent[MANY_SLOTS]; // its copy, which early rounds read on the host
    // Pictures that the program makes; the last round's are the targets on the host, too.
    struct picture_memory early[ROUNDS - 1][MANY_SLOTS][MAX_PICTURES];
    struct picture_memory target[MANY_SLOTS][MAX_PICTURES], expected[MANY_SLOTS][MAX_PICTURES];
    struct image tee[ROUNDS][MANY_SLOTS][MAX_PICTURES];
    void **analysis[MANY_SLOTS], **expected_analysis[MANY_SLOTS]; // NULL: not wanted
};

static void describe(const struct test_case *test)
{
    static const char *const where[] = {"", ", to the device", ", in place"};
    printf("'%s' on %s%s%s, seed %u, %dx%d%s%s%s%s\n", test->chain, test->format.name,
           test->convert ? " to " : "", test->convert ? test->wanted.name : "", test->name.seed,
           test->width, test->height, test->fields ? ", by fields" : "",
           test->on_device ? ", on the device" : "", where[test->where],
           test->shifted ? ", a byte late" : "");
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

// True if pictures have bytes that mean nothing.
static bool has_fillers(const struct program *program, int width)
{
    bool has = false;
    size_t offset;
    for (int n = 0; n < program_pictures(program); n++) {
        const struct format *format = program_format(program, n);
        has |= format->filler || format_gap(format, 0, width, &offset);
    }
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
    if (backend->executor_create(backend, test->plan, test->width, test->height, test->slots,
                                 overlapped, &test->executor))
        fatal(test, "no executor");
}

// The memory of picture `n`, and again of what is expected there, alike.
static void make_target(struct test_case *test, struct picture_memory *target, int slot, int n,
                        uint64_t layout, struct backend *backend)
{
    const struct format *format = program_format(&test->program, n);
    if (test->where == TARGET_IN_PLACE && n == 0) {
        picture_init_in_place(target, format, &test->source[slot], backend);
        return;
    }
    picture_init(target, format, test->width, test->height, &layout, backend);
    if (test->shifted)
        picture_shift(target);
}

static void make_targets(struct test_case *test, int slot, int n, uint64_t layout,
                         struct backend *backend)
{
    make_target(test, &test->target[slot][n], slot, n, layout, backend);
    make_target(test, &test->expected[slot][n], slot, n, layout, backend);
    for (int round = 0; round < ROUNDS - 1 && test->where; round++)
        make_target(test, &test->early[round][slot][n], slot, n, layout, backend);
}

static bool lends(const struct test_case *test)
{
    return test->where && !test->on_device;
}

static void make_slot(struct test_case *test, int slot, struct backend *backend, uint64_t *state)
{
    int width = test->width, height = test->height;
    uint64_t layout[MAX_PICTURES];
    picture_init(&test->source[slot], &test->program.input, width, height, state, backend);
    if (test->shifted && test->on_device)
        picture_shift(&test->source[slot]);
    picture_fill(&test->source[slot], state);
    for (int n = 0; n < program_pictures(&test->program); n++)
        layout[n] = random_next(state);
    test->analysis[slot] = analyses_alloc(test, backend, true, state);
    test->expected_analysis[slot] = analyses_alloc(test, backend, false, state);
    // The scalar reference writes samples where a reference keeps bytes.
    if (slot == OVERFLOWING && !((test->on_device || test->where) && has_references(test)))
        picture_overflow(&test->source[slot], random_next(state));
    if (lends(test))
        picture_init_in_place(&test->lent[slot], &test->program.input, &test->source[slot],
                              backend);
    for (int n = 0; n < program_pictures(&test->program); n++)
        make_targets(test, slot, n, layout[n], backend);
}

// Whether sources, and targets, are in device memory: `wish` is 0 for targets in memory of their
// own, 1 for those in place of the source. Pictures of other planes than the source's
// cannot take its place.
static void place(struct test_case *test, const struct backend *backend, int wish, uint64_t *state)
{
    const struct picture_memory source = {
        .image = {.format = &test->program.input, .width = test->width, .height = test->height}};
    // Fillers and gaps that are taken over keep their bytes, the scalar reference writes its own.
    bool may = !has_fillers(&test->program, test->width) || !has_references(test);
    if (test->name.abroad) {
        test->on_device = backend->has_device_memory && may;
        test->shifted = !random_below(state, 4);
        return;
    }
    test->on_device = backend->has_device_memory && may && !random_below(state, 4);
    if (!test->executor->hand_over || !may || wish >= NO_WISH)
        return;
    bool fits = picture_fits(&test->program.output, &source);
    test->where = wish && fits ? TARGET_IN_PLACE : TARGET_DEVICE;
    test->on_device = test->where == TARGET_IN_PLACE || random_below(state, 2);
    test->shifted = !random_below(state, 4);
}

static void prepare(struct test_case *test, struct backend *backend)
{
    uint64_t state = draw_chain(test), placing = mix(state, "placing");
    test->convert = !random_below(&state, 3);
    test->wanted = random_format(&state);
    make_program(test, &state);
    const int slots[] = {1, SLOTS, SLOTS, MANY_SLOTS};
    int wish =
        backend->has_device_memory ? random_below(&placing, test->name.on_device ? 2 : 6) : NO_WISH;
    test->slots = wish < NO_WISH ? slots[random_below(&placing, 4)] : SLOTS;
    make_executor(test, random_below(&state, 2), backend);
    test->together = random_below(&state, 2);
    place(test, backend, wish, &placing);
    for (int k = 0; k < test->slots; k++)
        make_slot(test, k, backend, &state);
    test->fields = !has_full_frame(&test->program) && !random_below(&state, 4) && has_fields(test);
    bool own = test->on_device || test->where;
    test->takes_streams = random_below(&placing, 2);
    for (int k = 0; k < STREAMS && own && random_below(&placing, 4); k++)
        if (backend->stream_create(backend, &test->stream[k]))
            fatal(test, "no stream");
}

// Leave out, in a copy, the planes that the backend does not write.
static struct image wanted_planes(const struct test_case *test, int n, const struct image *image)
{
    struct image wanted = *image;
    for (int p = 0; p < FORMAT_PLANES && !test->where; p++)
        if (!plan_writes(test->plan, n, p, test->on_device))
            wanted.data[p] = NULL;
    return wanted;
}

static struct work describe_work(struct test_case *test, int slot, struct image *tee,
                                 const struct picture_memory *target)
{
    for (int n = 1; n < program_pictures(&test->program); n++)
        tee[n - 1] = wanted_planes(test, n, &target[n].image);
    return (struct work){.source = test->source[slot].image,
                         .target = wanted_planes(test, 0, &target[0].image),
                         .tee = tee,
                         .fields = test->fields};
}

// The same bytes of another memory.
static struct image moved(const struct picture_memory *from, const struct picture_memory *to)
{
    struct image image = from->image;
    for (int p = 0; p < image.format->planes; p++)
        image.data[p] = to->memory + (image.data[p] - from->memory);
    return image;
}

// Frame `frame` in a round.
static struct work round_work(struct test_case *test, int round, int frame)
{
    bool last = round == ROUNDS - 1;
    const struct picture_memory *target = last ? test->target[frame] : test->early[round][frame];
    struct work work = describe_work(test, frame, test->tee[round][frame], target);
    if (test->where == TARGET_IN_PLACE)
        work.source = moved(&test->source[frame], &target[0]);
    if (lends(test) && !last)
        work.source = test->lent[frame].image;
    work.source_on_device = test->on_device;
    work.source_abroad = test->on_device && test->name.abroad;
    work.target_on_device = test->where;
    work.source_stream_serves = test->on_device && test->where && test->takes_streams;
    work.source_stream = test->stream[frame % STREAMS];
    work.analysis = last ? test->analysis[frame] : NULL;
    return work;
}

// Slots have another frame in each round, and another company.
static void submit_round(struct test_case *test, int round)
{
    struct work work[MANY_SLOTS];
    bool together = test->together != (test->where && round == 0);
    for (int k = 0; k < test->slots; k++)
        work[k] = round_work(test, round, test->where ? (k + round) % test->slots : k);
    if (together && executor_submit_many_async(test->executor, 0, work, test->slots))
        fatal(test, "submit failed");
    for (int k = 0; k < test->slots && !together; k++)
        if (test->executor->submit_async(test->executor, k, &work[k]))
            fatal(test, "submit failed");
}

static void submit(struct test_case *test)
{
    for (int round = 0; round < ROUNDS - 1 && test->where; round++) {
        submit_round(test, round);
        for (int k = 0; k < test->slots; k++)
            if (test->executor->hand_over(test->executor, k, test->stream[k % STREAMS]))
                fatal(test, "hand_over failed");
    }
    for (int k = 0; k < test->slots && lends(test); k++) // they have been read
        memset(test->lent[k].memory, 0, test->lent[k].size);
    submit_round(test, ROUNDS - 1);
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

static void first_difference(const struct test_case *test, const struct picture_memory *got,
                             int slot, int n)
{
    const struct picture_memory *want = &test->expected[slot][n];
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

static bool picture_is_right(const struct test_case *test, const struct picture_memory *got,
                             int slot, int n)
{
    if (!memcmp(got->memory, test->expected[slot][n].memory, got->size))
        return true;
    describe(test);
    for (int round = 0; round < ROUNDS - 1; round++)
        if (got == &test->early[round][slot][n])
            printf("    handed over, round %d:\n", round);
    first_difference(test, got, slot, n);
    return false;
}

static bool early_are_right(const struct test_case *test, int slot, int n)
{
    for (int round = 0; round < ROUNDS - 1 && test->where; round++)
        if (!picture_is_right(test, &test->early[round][slot][n], slot, n))
            return false;
    return true;
}

// Print what is wrong with a slot's results, if anything is.
static bool slot_is_right(const struct test_case *test, int slot)
{
    int analysis = wrong_analysis(test, slot);
    for (int n = 0; n < program_pictures(&test->program); n++)
        if (!early_are_right(test, slot, n) ||
            !picture_is_right(test, &test->target[slot][n], slot, n))
            return false;
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
    if (lends(test))
        picture_free(&test->lent[slot], backend);
    for (int n = 0; n < program_pictures(&test->program); n++) {
        for (int round = 0; round < ROUNDS - 1 && test->where; round++)
            picture_free(&test->early[round][slot][n], backend);
        picture_free(&test->target[slot][n], backend);
        picture_free(&test->expected[slot][n], backend);
    }
    analyses_free(test, backend, test->analysis[slot]);
    analyses_free(test, backend, test->expected_analysis[slot]);
}

static void print_replay(const struct test_case *test, const struct backend *backend)
{
    const struct case_name *name = &test->name;
    printf("    replay: conformance --backend %s --seed %u%s%s", backend->name, name->seed,
           name->large ? " --large" : "",
           name->on_device ? " --on-device"
           : name->abroad  ? " --abroad"
                           : "");
    if (name->chain)
        printf(" --format %s --chain '%s'", name->format, name->chain);
    putchar('\n');
}

bool case_finish(struct test_case *test, struct backend *backend)
{
    bool equal = true;
    for (int k = 0; k < test->slots; k++)
        if (test->executor->wait(test->executor, k, NULL))
            fatal(test, "wait failed");
    for (int k = 0; k < test->slots; k++) {
        struct work work = describe_work(test, k, test->tee[0][k], test->expected[k]);
        work.analysis = test->expected_analysis[k];
        if (scalar_run(&test->program, &work))
            fatal(test, "scalar failed");
        equal = equal && slot_is_right(test, k);
        slot_free(test, k, backend);
    }
    if (!equal)
        print_replay(test, backend);
    executor_destroy(&test->executor);
    for (int k = 0; k < STREAMS; k++)
        if (test->stream[k])
            backend->stream_destroy(backend, &test->stream[k]);
    plan_destroy(&test->plan);
    program_free(&test->program);
    free(test);
    return equal;
}
