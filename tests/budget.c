// Filter so many frames and say nothing: what test_budget.py counts the instructions of.
//
//   budget CHAIN WIDTH HEIGHT FRAMES     8-bit gray, full range; one worker, one frame at a time
//   budget                               the compiler that the kernels came of, as "gcc-12"
//
// FRAMES may be 0: everything is prepared and nothing filtered.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

static void plan_chain(const char *text, const struct log *log, struct backend *backend,
                       struct program *program, struct plan **plan)
{
    const struct format full = {.range = RANGE_FULL};
    const struct format gray = format_planar(MODEL_GRAY, 8, 0, 0, false, &full);
    struct chain chain;
    require(chain_parse_logged(text, &noise_reader, log, &chain));
    require(program_init(program, &gray));
    require(chain_lower(&chain, program));
    require(program_finish(program, NULL));
    require(plan_create(program, backend->limits, plan));
    chain_free(&chain);
}

// Noise: nothing that a branch could profit from.
static struct image make_image(struct backend *backend, const struct format *format, int width,
                               int height)
{
    size_t bytes = (size_t)width * (size_t)height;
    uint8_t *memory = backend->alloc(backend, bytes);
    require(memory ? STATUS_OK : STATUS_MEMORY);
    uint32_t state = 1;
    for (size_t k = 0; k < bytes; k++) {
        state = state * 1664525 + 1013904223;
        memory[k] = (uint8_t)(state >> 24);
    }
    return (struct image){
        .format = format, .width = width, .height = height, .data = {memory}, .stride = {width}};
}

static void filter(const char *text, int width, int height, int frames)
{
    struct log log = {print_message, NULL};
    struct backend *backend;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    require(backend_cpu_create(1, &log, &backend));
    plan_chain(text, &log, backend, &program, &plan);
    require(backend->executor_create(backend, plan, width, height, 1, true, &executor));
    size_t bytes = (size_t)width * (size_t)height;
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
    backend->free(backend, work.source.data[0], bytes);
    backend->free(backend, work.target.data[0], bytes);
    for (int n = 1; n < program_pictures(&program); n++)
        backend->free(backend, tee[n - 1].data[0], bytes);
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
    if (argc != 5 || atoi(argv[2]) < 1 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: budget CHAIN WIDTH HEIGHT FRAMES\n");
        return 2;
    }
    filter(argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    return 0;
}
