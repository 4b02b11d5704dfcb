// Filter so many frames and say nothing: what test_budget.py counts the instructions of.
//
//   budget CHAIN WIDTH HEIGHT FRAMES [rgb24 | rgba]
//                                        8-bit gray, or RGB side by side; one worker, one frame at a time
//   budget                               the compiler that the kernels came of, as "gcc-12"
//
// FRAMES may be 0: everything is prepared and nothing filtered.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/backend.h"
#include "stages/chain.h"
#include "tests/patterns.h"

static void print_message(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

static void require(enum status status)
{
    if (status) {
        fprintf(stderr, "budget: stopped by status %d\n", status);
        exit(1);
    }
}

// Gray, or RGB of `step` bytes a pixel.
static struct format format_of(int step)
{
    const struct format full = {.range = RANGE_FULL, .kr = 0.299, .kb = 0.114};
    struct format format =
        format_planar(step == 1 ? MODEL_GRAY : MODEL_RGB, 8, 0, 0, step == 4, &full);
    if (step > 1)
        format.planes = 1;
    for (int c = 0; step > 1 && c < step; c++)
        format.component[c] = (struct component){.offset = c, .step = step, .bytes = 1};
    return format;
}

static void plan_chain(const char *text, int step, const struct log *log, struct backend *backend,
                       struct program *program, struct plan **plan)
{
    const struct format from = format_of(step);
    struct chain chain;
    require(chain_parse_logged(text, &noise_reader, log, &chain));
    require(program_init(program, &from));
    require(chain_lower(&chain, program));
    require(program_finish(program, NULL));
    require(plan_create(program, backend->limits, plan));
    chain_free(&chain);
}

// Noise: nothing that a branch could profit from.
static struct image make_image(struct backend *backend, const struct format *format, int width,
                               int height)
{
    size_t stride = format_row_bytes(format, 0, width), bytes = stride * (size_t)height;
    uint8_t *memory = backend->alloc(backend, bytes);
    require(memory ? STATUS_OK : STATUS_MEMORY);
    uint32_t state = 1;
    for (size_t k = 0; k < bytes; k++) {
        state = state * 1664525 + 1013904223;
        memory[k] = (uint8_t)(state >> 24);
    }
    return (struct image){.format = format,
                          .width = width,
                          .height = height,
                          .data = {memory},
                          .stride = {(ptrdiff_t)stride}};
}

static void free_image(struct backend *backend, struct image *image)
{
    size_t stride = format_row_bytes(image->format, 0, image->width);
    backend->free(backend, image->data[0], stride * (size_t)image->height);
}

static void filter(const char *text, int step, int width, int height, int frames)
{
    struct log log = {print_message, NULL};
    struct backend *backend;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    require(backend_cpu_create(1, &log, &backend));
    plan_chain(text, step, &log, backend, &program, &plan);
    require(backend->executor_create(backend, plan, width, height, 1, true, &executor));
    struct work work = {.source = make_image(backend, &program.input, width, height),
                        .target = make_image(backend, &program.output, width, height)};
    struct image tee[MAX_PICTURES];
    for (int n = 1; n < program_pictures(&program); n++)
        tee[n - 1] = make_image(backend, program_format(&program, n), width, height);
    struct statistics found[MAX_PICTURES]; // the analysis data that is measured here
    void *analysis[MAX_PICTURES];
    require(program.analyses <= MAX_PICTURES ? STATUS_OK : STATUS_USAGE);
    for (int k = 0; k < program.analyses; k++)
        analysis[k] = &found[k];
    work.tee = tee;
    work.analysis = analysis;
    for (int k = 0; k < frames; k++) {
        require(executor->submit_async(executor, 0, &work));
        require(executor->wait(executor, 0, NULL));
    }
    executor_destroy(&executor);
    free_image(backend, &work.source);
    free_image(backend, &work.target);
    for (int n = 1; n < program_pictures(&program); n++)
        free_image(backend, &tee[n - 1]);
    plan_destroy(&plan);
    program_free(&program);
    backend_destroy(&backend);
}

int main(int argc, char **argv)
{
#ifdef __clang__
    const char *compiler = "clang";
    int version = __clang_major__;
#else
    const char *compiler = "gcc";
    int version = __GNUC__;
#endif
    if (argc == 1) {
        printf("%s-%d\n", compiler, version);
        return 0;
    }
    int step = argc < 6 ? 1 : !strcmp(argv[5], "rgb24") ? 3 : !strcmp(argv[5], "rgba") ? 4 : 0;
    if (argc < 5 || argc > 6 || !step || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: budget CHAIN WIDTH HEIGHT FRAMES [rgb24 | rgba]\n");
        return 2;
    }
    filter(argv[1], step, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    return 0;
}
