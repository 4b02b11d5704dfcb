// Attacked: the fast CPU backend. The bytes are a format, a size of 1 to 80 samples a side, a chain
// of one to four stages with their options, strides, and the bytes of the picture: samples above
// their depth among them. Of most inputs the size is taken for one of up to 20: the reference is slow.
//
// Must hold: every byte of each picture, of the memory around them and of the analysis is the same
// as the scalar backend's; time stays within some seconds.
#include <stdlib.h>
#include <string.h>

#include "plan/backend.h"
#include "plan/op_info.h"
#include "plan/plan.h"
#include "stages/chain.h"
#include "tests/conformance/formats.h"
#include "tests/conformance/picture.h"
#include "tests/conformance/random.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/fuzz.h"

enum {
    MAX_SIDE = 80,
    SMALL_SIDE = 20,
    LARGE = 64,
    SMALL_PRODUCTS = 20000,
    LARGE_PRODUCTS = 2000000,
    MAX_ANALYSES = 64,
    MAX_CHAIN = 1 << 14
};

static const struct log silent;

// What both backends make of one picture.
struct result {
    struct picture_memory picture[MAX_PICTURES];
    void *analysis[MAX_ANALYSES];
};

struct trial {
    char chain[MAX_CHAIN];
    struct named_format format, wanted;
    bool converts, fields;
    int width, height;
    uint64_t layout;
    struct program program;
    struct plan *plan; // says which planes are written
    struct picture_memory source;
    struct result scalar, cpu;
};

// The samples' bytes: those that are left, again and again; none: a pattern that is hard on
// arithmetic.
static void fill_source(struct trial *trial, struct fuzz_bytes *bytes, uint64_t *state)
{
    const struct image *image = &trial->source.image;
    picture_fill(&trial->source, state);
    if (!bytes->left) {
        picture_overflow(&trial->source, random_next(state));
        return;
    }
    size_t n = 0;
    for (int p = 0; p < image->format->planes; p++)
        for (int y = 0; y < format_rows(image->format, p, image->height); y++)
            for (size_t x = 0; x < format_row_bytes(image->format, p, image->width); x++)
                image->data[p][y * image->stride[p] + (ptrdiff_t)x] = bytes->at[n++ % bytes->left];
}

// About as many products as the reference makes for each sample, which needs no more than that.
static int64_t products_of(const struct program *program)
{
    int64_t products = 1;
    for (int k = 0; k < program->ops; k++) {
        if (op_info(&program->op[k])->family != OP_FAMILY_STENCIL)
            continue;
        struct op_reach reach = op_reach(&program->op[k]);
        int64_t columns = reach.left + 1 + reach.right, rows = reach.above + 1 + reach.below;
        products += program->op[k].kind == OP_SEPARABLE ? columns + rows : columns * rows;
    }
    return products;
}

// False: the bytes stand for no program. Pictures have `most` samples a side, or fewer rows where
// the program is costly.
static bool draw_program(struct trial *trial, struct fuzz_bytes *bytes, int most)
{
    struct chain chain;
    struct chain_error error;
    trial->format = test_format(fuzz_below(bytes, FORMATS));
    trial->wanted = test_format(fuzz_below(bytes, FORMATS));
    trial->converts = fuzz_below(bytes, 4) == 3;
    trial->width = 1 + fuzz_below(bytes, MAX_SIDE) % most;
    trial->height = 1 + fuzz_below(bytes, MAX_SIDE) % most;
    trial->layout = (uint64_t)fuzz_below(bytes, 65536);
    FILE *to = fmemopen(trial->chain, sizeof trial->chain, "w");
    FUZZ_REQUIRE(to);
    draw_chain(bytes, to);
    fclose(to);
    if (chain_parse(trial->chain, &fuzz_reader, &chain, &error))
        return false;
    bool fine = !chain_load(&chain, 0, &silent) &&
                !program_init(&trial->program, &trial->format.format) &&
                !chain_lower(&chain, &trial->program) &&
                !program_finish(&trial->program, trial->converts ? &trial->wanted.format : NULL) &&
                trial->program.analyses <= MAX_ANALYSES;
    chain_free(&chain);
    int64_t products = most < MAX_SIDE ? SMALL_PRODUCTS : LARGE_PRODUCTS;
    while (fine && trial->height > 1 &&
           trial->width * trial->height * products_of(&trial->program) > products)
        trial->height /= 2;
    return fine;
}

static size_t analysis_bytes(const struct trial *trial, int k)
{
    return program_analysis_bytes(&trial->program, k, trial->width, trial->height);
}

static void make_result(const struct trial *trial, struct result *result, struct backend *backend)
{
    for (int n = 0; n < program_pictures(&trial->program); n++) {
        uint64_t layout = trial->layout + (uint64_t)n;
        picture_init(&result->picture[n], program_format(&trial->program, n), trial->width,
                     trial->height, &layout, backend);
    }
    for (int k = 0; k < trial->program.analyses; k++) {
        result->analysis[k] = malloc(analysis_bytes(trial, k) + 1);
        FUZZ_REQUIRE(result->analysis[k]);
        memset(result->analysis[k], GUARD, analysis_bytes(trial, k));
    }
}

static void free_result(const struct trial *trial, struct result *result, struct backend *backend)
{
    for (int n = 0; n < program_pictures(&trial->program); n++)
        picture_free(&result->picture[n], backend);
    for (int k = 0; k < trial->program.analyses; k++)
        free(result->analysis[k]);
}

static bool has_fields(const struct trial *trial)
{
    bool has = image_has_fields(&trial->source.image);
    for (int k = 0; k < trial->program.ops; k++)
        has = has && !op_is_full_frame(&trial->program.op[k]);
    for (int n = 0; n < program_pictures(&trial->program); n++)
        has = has && image_has_fields(&trial->scalar.picture[n].image);
    return has;
}

// The picture without the planes that backends do not write.
static struct image wanted_planes(const struct trial *trial, int n, const struct image *image)
{
    struct image wanted = *image;
    for (int p = 0; p < FORMAT_PLANES; p++)
        if (!plan_writes(trial->plan, n, p, false))
            wanted.data[p] = NULL;
    return wanted;
}

static void run(struct trial *trial, struct result *result, struct backend *backend,
                bool frames_in_flight)
{
    struct plan *plan;
    struct executor *executor;
    struct image tee[MAX_PICTURES];
    for (int n = 1; n < program_pictures(&trial->program); n++)
        tee[n - 1] = wanted_planes(trial, n, &result->picture[n].image);
    struct work work = {.source = trial->source.image,
                        .target = wanted_planes(trial, 0, &result->picture[0].image),
                        .tee = tee,
                        .fields = trial->fields,
                        .analysis = result->analysis};
    FUZZ_REQUIRE(!plan_create(&trial->program, backend->limits, &plan));
    FUZZ_REQUIRE(!backend->executor_create(backend, plan, trial->width, trial->height, 1,
                                           frames_in_flight, &executor));
    FUZZ_REQUIRE(!executor->submit_async(executor, 0, &work));
    FUZZ_REQUIRE(!executor->wait(executor, 0, NULL));
    executor_destroy(&executor);
    plan_destroy(&plan);
}

static void refuse(const struct trial *trial, const char *what, int number)
{
    struct image_difference first = {0};
    if (*what == 'p')
        image_compare(&trial->cpu.picture[number].image, &trial->scalar.picture[number].image,
                      &first);
    fprintf(stderr,
            "%s %d differs from scalar's: '%s' on %s%s%s, %dx%d%s; plane %d, row %d, byte %zu, "
            "got %d, want %d\n",
            what, number, trial->chain, trial->format.name, trial->converts ? " to " : "",
            trial->converts ? trial->wanted.name : "", trial->width, trial->height,
            trial->fields ? ", by fields" : "", first.plane, first.row, first.byte, first.got,
            first.want);
    abort();
}

static void compare(const struct trial *trial)
{
    for (int n = 0; n < program_pictures(&trial->program); n++)
        if (memcmp(trial->scalar.picture[n].memory, trial->cpu.picture[n].memory,
                   trial->scalar.picture[n].size) != 0)
            refuse(trial, "picture", n);
    for (int k = 0; k < trial->program.analyses; k++)
        if (memcmp(trial->scalar.analysis[k], trial->cpu.analysis[k], analysis_bytes(trial, k)) !=
            0)
            refuse(trial, "analysis", k);
}

static void try_program(struct trial *trial, struct fuzz_bytes *bytes, struct backend *scalar,
                        struct backend *cpu)
{
    uint64_t state = trial->layout + 1;
    bool fields = fuzz_below(bytes, 4) == 3, in_flight = fuzz_below(bytes, 2);
    picture_init(&trial->source, &trial->program.input, trial->width, trial->height, &state, cpu);
    fill_source(trial, bytes, &state);
    FUZZ_REQUIRE(!plan_create(&trial->program, cpu->limits, &trial->plan));
    make_result(trial, &trial->scalar, cpu);
    make_result(trial, &trial->cpu, cpu);
    trial->fields = fields && has_fields(trial);
    run(trial, &trial->scalar, scalar, false);
    run(trial, &trial->cpu, cpu, in_flight);
    compare(trial);
    free_result(trial, &trial->scalar, cpu);
    free_result(trial, &trial->cpu, cpu);
    plan_destroy(&trial->plan);
    picture_free(&trial->source, cpu);
}

static void try_bytes(struct fuzz_bytes bytes, int most, struct backend *scalar,
                      struct backend *const cpu[2])
{
    static struct trial trial;
    memset(&trial, 0, sizeof trial);
    int threads = fuzz_below(&bytes, 2);
    if (draw_program(&trial, &bytes, most))
        try_program(&trial, &bytes, scalar, cpu[threads]);
    program_free(&trial.program);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct backend *scalar, *cpu[2];
    bool large = !fuzz_share(data, size, LARGE);
    if (!scalar) {
        FUZZ_REQUIRE(!backend_scalar_create(&silent, &scalar));
        FUZZ_REQUIRE(!backend_cpu_create(1, &silent, &cpu[0]));
        FUZZ_REQUIRE(!backend_cpu_create(3, &silent, &cpu[1]));
    }
    if (large || fuzz_replays)
        try_bytes((struct fuzz_bytes){data, size}, MAX_SIDE, scalar, cpu);
    if (!large || fuzz_replays)
        try_bytes((struct fuzz_bytes){data, size}, SMALL_SIDE, scalar, cpu);
    return 0;
}
