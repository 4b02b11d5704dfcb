// How fast the CPU backend filters pictures that are in memory already: no file, no codec.
//
//   bench_cpu [--threads N] [--depth N] [--size WxH] [--repeat N] [CHAIN ...]
//
// A line per chain: the median over repetitions, in thousand million samples a second, then the
// slowest and the fastest. Frames are gray, full range, random; several in turn, so that the next
// one is not in the first-level cache.
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/host.h"
#include "stages/backend.h"
#include "stages/chain.h"

static const char *const default_chains[] = {
    CHAIN_DEFAULT,      "null",         "brightness=20",  "contrast=1.5",   "gamma=2.2",
    "threshold=20:240", "gaussian=1.4", "gaussian=0.6:2", "gaussian=2.5:8", "gaussian=5",
    "gaussian=9",       "gaussian=20",  "gaussian=60",    "box=2",          "box=20",
    "sharpen",          "sobel",        "sobel=l2",       "scharr",         "laplacian",
    "emboss",
};

enum { FRAMES = 4, FRAMES_A_REPETITION = 8, MOST_REPETITIONS = 1000 };

struct settings {
    int threads, depth, width, height, repetitions;
};

struct bench {
    struct program program;
    struct plan *plan;
    struct backend *backend;
    struct executor *executor;
    struct image source[FRAMES], target[FRAMES];
};

static void print_message(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_cpu: %s\n", what);
    exit(1);
}

static void init_image(struct image *image, const struct format *format,
                       const struct settings *settings)
{
    size_t row = (format_row_bytes(format, 0, settings->width) + 63) / 64 * 64;
    size_t size = row * (size_t)settings->height;
    *image = (struct image){format, settings->width, settings->height, {NULL}, {(ptrdiff_t)row}};
    image->data[0] = host_alloc(NULL, size);
    if (!image->data[0])
        fail("out of memory");
    uint64_t state = 1;
    for (size_t i = 0; i<size; i += format->depth> 8 ? 2 : 1) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (format->depth > 8) {
            uint16_t sample = (uint16_t)(state >> (64 - format->depth));
            memcpy(image->data[0] + i, &sample, 2);
        } else {
            image->data[0][i] = (uint8_t)(state >> 56);
        }
    }
}

static void bench_init(struct bench *bench, const char *text, const struct settings *settings)
{
    static const struct log log = {print_message, NULL};
    struct format meaning = {.range = RANGE_FULL, .kr = 0.2126, .kb = 0.0722};
    struct format format = format_planar(MODEL_GRAY, settings->depth, 0, 0, false, &meaning);
    struct chain chain;
    *bench = (struct bench){0};
    if (chain_parse_logged(text, &log, &chain) || program_init(&bench->program, &format) ||
        chain_lower(&chain, &bench->program) || program_finish(&bench->program, NULL) ||
        backend_cpu_create(settings->threads, &log, &bench->backend) ||
        plan_create(&bench->program, bench->backend->limits, &bench->plan) ||
        bench->backend->executor_create(bench->backend, bench->plan, settings->width,
                                        settings->height, FRAMES, true, &bench->executor))
        fail("this chain cannot be made");
    chain_free(&chain);
    for (int k = 0; k < FRAMES; k++) {
        init_image(&bench->source[k], &bench->program.input, settings);
        init_image(&bench->target[k], &bench->program.output, settings);
    }
}

static void bench_finish(struct bench *bench)
{
    for (int k = 0; k < FRAMES; k++) {
        host_free(NULL, bench->source[k].data[0], 0);
        host_free(NULL, bench->target[k].data[0], 0);
    }
    executor_destroy(&bench->executor);
    plan_destroy(&bench->plan);
    program_free(&bench->program);
    backend_destroy(&bench->backend);
}

// One repetition: every slot kept busy. Returns nanoseconds.
static long long run_frames(struct bench *bench, int frames)
{
    struct executor *executor = bench->executor;
    long long start = host_now_ns();
    for (int k = 0; k < frames + FRAMES; k++) {
        int slot = k % FRAMES;
        struct work work = {.source = bench->source[slot], .target = bench->target[slot]};
        if (k >= FRAMES && executor->wait(executor, slot, NULL))
            fail("a frame failed");
        if (k < frames && executor->submit_async(executor, slot, &work))
            fail("a frame was not taken");
    }
    return host_now_ns() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run(const char *chain, const struct settings *settings)
{
    static double speed[MOST_REPETITIONS];
    struct bench bench;
    bench_init(&bench, chain, settings);
    run_frames(&bench, FRAMES);
    int frames = FRAMES_A_REPETITION * settings->threads;
    double samples = (double)settings->width * settings->height * frames;
    for (int k = 0; k < settings->repetitions; k++)
        speed[k] = samples / (double)run_frames(&bench, frames);
    qsort(speed, (size_t)settings->repetitions, sizeof *speed, compare);
    printf("%7.3f %7.3f %7.3f Gpx/s  %s\n", speed[settings->repetitions / 2], speed[0],
           speed[settings->repetitions - 1], chain);
    bench_finish(&bench);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"threads", required_argument, NULL, 't'},
        {"depth", required_argument, NULL, 'd'},
        {"size", required_argument, NULL, 's'},
        {"repeat", required_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    struct settings settings = {1, 8, 1920, 1080, 9};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 't')
            settings.threads = atoi(optarg);
        else if (option == 'd')
            settings.depth = atoi(optarg);
        else if (option == 'r')
            settings.repetitions = atoi(optarg);
        else if (option != 's' || sscanf(optarg, "%dx%d", &settings.width, &settings.height) != 2)
            return 2;
    }
    if (settings.threads < 1 || settings.depth < 8 || settings.depth > 16 || settings.width < 1 ||
        settings.height < 1 || settings.repetitions < 1 || settings.repetitions > MOST_REPETITIONS)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int k = optind; k < argc; k++)
        run(argv[k], &settings);
    for (size_t k = 0; optind == argc && k < sizeof default_chains / sizeof *default_chains; k++)
        run(default_chains[k], &settings);
    return 0;
}
