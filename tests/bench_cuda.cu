// How fast the CUDA backend is when frames are on the GPU already and stay there.
//
//   bench_cuda [--case TEXT] [--size COLUMN] [--ms N]
//
// Each line is a chain; each column a picture size and how many frames go together. Figures are
// 10^9 pixels a second, and behind them the ratio to a kernel that copies 16 bytes a thread, in the
// same run. Frames take turns so that more data moves than the cache holds; one half of them is
// under way while the other is waited for. Times are the host's, from the first submission to the
// last result; the median of three runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

extern "C" {
#include "stages/backend.h"
#include "stages/chain.h"
}

struct shape {
    const char *name;
    int width, height, together;
};

static const struct shape shapes[] = {
    {"1080p", 1920, 1080, 1}, {"1080p x8", 1920, 1080, 8}, {"4K", 3840, 2160, 1},
    {"4K x4", 3840, 2160, 4}, {"8K", 7680, 4320, 1},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

struct chain_case {
    const char *text;
    int depth;
};

static const struct chain_case cases[] = {
    {"brightness=20", 8},
    {"contrast=1.3", 8},
    {"gamma=2.2", 8},
    {"threshold=20:240", 8},
    {"sobel", 8},
    {"gaussian=0.8", 8},
    {"gaussian=1.4", 8},
    {"gray,gaussian=1.4,sobel,threshold=20:240", 8},
    {"brightness=20,gray,gaussian=1.4,sobel,threshold=20:240", 8},
    {"gaussian=2.7", 8},
    {"gaussian=5", 8},
    {"gaussian=10", 8},
    {"gaussian=65", 8},
    {"box=5", 8},
    {"sharpen", 8},
    {"laplacian", 8},
    {"brightness=20", 16},
    {"contrast=1.3", 16},
    {"sobel", 16},
    {"gaussian=1.4", 16},
    {"gray,gaussian=1.4,sobel,threshold=20:240", 16},
    {"gaussian=2.7", 16},
    {"gaussian=10", 16},
    {"gaussian=65", 16},
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "bench_cuda: %s failed\n", what);
    exit(1);
}

static __global__ void __launch_bounds__(256) copy16(const uint4 *from, uint4 *to, size_t count)
{
    size_t first = (size_t)blockIdx.x * 1024 + threadIdx.x;
    if (first + 768 < count) {
        uint4 words[4];
        for (int k = 0; k < 4; k++)
            words[k] = __ldg(from + first + k * 256);
        for (int k = 0; k < 4; k++)
            to[first + k * 256] = words[k];
        return;
    }
    for (; first < count; first += 256)
        to[first] = from[first];
}

// Copies under way at the same time; runs of which the median counts.
enum { AT_ONCE = 4, REPEATS = 3 };

// Of frames, half of them sources: much, as threads that wait for a GPU wake up late.
static const size_t ring_bytes = (size_t)4 << 30;

// Frames on the GPU, in groups of those that go together, filled with noise.
struct frames {
    int groups, together;
    size_t bytes; // of a frame
    uint8_t *memory;
};

static void frames_init(struct frames *frames, const struct shape *shape, int depth)
{
    frames->bytes = (size_t)shape->width * (size_t)shape->height * (depth > 8 ? 2 : 1);
    frames->together = shape->together;
    frames->groups = (int)(ring_bytes / 2 / (frames->bytes * (size_t)shape->together));
    size_t all = frames->bytes * (size_t)(frames->groups * shape->together);
    check(cudaMalloc(&frames->memory, all), "cudaMalloc");
    uint8_t *host = (uint8_t *)malloc(frames->bytes);
    uint64_t state = 1;
    for (size_t k = 0; k < frames->bytes; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        host[k] = (uint8_t)(state >> 56);
    }
    for (int k = 0; k < frames->groups * shape->together; k++)
        check(cudaMemcpy(frames->memory + (size_t)k * frames->bytes, host, frames->bytes,
                         cudaMemcpyHostToDevice),
              "cudaMemcpy");
    free(host);
}

static double median(const double rates[REPEATS])
{
    double low = rates[0] < rates[1] ? rates[0] : rates[1];
    double high = rates[0] < rates[1] ? rates[1] : rates[0];
    return rates[2] < low ? low : rates[2] > high ? high : rates[2];
}

static double copy_rate(const struct frames *frames, int ms)
{
    uint8_t *to;
    cudaStream_t stream[AT_ONCE];
    cudaEvent_t event[AT_ONCE];
    size_t group = frames->bytes * (size_t)frames->together;
    check(cudaMalloc(&to, group * (size_t)frames->groups), "cudaMalloc");
    for (int k = 0; k < AT_ONCE; k++)
        check(cudaStreamCreateWithFlags(&stream[k], cudaStreamNonBlocking) ||
                  cudaEventCreateWithFlags(&event[k], cudaEventDisableTiming),
              "stream");
    double rates[REPEATS];
    for (int k = -1; k < REPEATS; k++) {
        double began = now_s();
        long done = 0;
        for (; done < frames->groups || now_s() - began < ms * 1e-3; done++) {
            int g = (int)(done % frames->groups);
            if (done >= AT_ONCE)
                check(cudaEventSynchronize(event[done % AT_ONCE]), "copy");
            copy16<<<(unsigned)((group / 16 + 1023) / 1024), 256, 0, stream[done % AT_ONCE]>>>(
                (const uint4 *)(frames->memory + (size_t)g * group),
                (uint4 *)(to + (size_t)g * group), group / 16);
            check(cudaEventRecord(event[done % AT_ONCE], stream[done % AT_ONCE]), "event");
        }
        check(cudaDeviceSynchronize(), "copy");
        if (k >= 0)
            rates[k] = (double)done * (double)group / (now_s() - began);
    }
    double rate = median(rates);
    for (int k = 0; k < AT_ONCE; k++) {
        cudaStreamDestroy(stream[k]);
        cudaEventDestroy(event[k]);
    }
    cudaFree(to);
    return rate;
}

static void submit_group(struct executor *executor, const struct frames *frames, int g,
                         const struct image *image, void *stream)
{
    struct work work[8] = {};
    for (int k = 0; k < frames->together; k++) {
        work[k].source = *image;
        work[k].target = *image;
        work[k].source.data[0] =
            frames->memory + (size_t)(g * frames->together + k) * frames->bytes;
        work[k].target.data[0] = NULL;
        work[k].source_on_device = true;
        work[k].source_stream = stream;
    }
    check(executor_submit_many_async(executor, g * frames->together, work, frames->together),
          "submit");
}

static void wait_group(struct executor *executor, const struct frames *frames, int g)
{
    for (int k = 0; k < frames->together; k++)
        check(executor->wait(executor, g * frames->together + k, NULL), "wait");
}

static double chain_rate(struct backend *backend, const struct chain_case *of,
                         const struct shape *shape, const struct frames *frames, int ms)
{
    struct format meaning = {};
    meaning.range = RANGE_FULL;
    struct format format = format_planar(MODEL_GRAY, of->depth, 0, 0, false, &meaning);
    struct program program;
    struct plan *plan;
    struct chain chain;
    struct chain_error error;
    struct executor *executor;
    void *stream;
    check(chain_parse(of->text, &chain, &error), of->text);
    check(program_init(&program, &format) || chain_lower(&chain, &program) ||
              program_finish(&program, NULL) || plan_create(&program, backend->limits, &plan),
          "plan");
    chain_free(&chain);
    check(backend->executor_create(backend, plan, shape->width, shape->height,
                                   frames->groups * frames->together, true, &executor),
          "executor");
    check(backend->stream_create(backend, &stream), "stream");
    struct image image = {};
    image.format = &program.input;
    image.width = shape->width;
    image.height = shape->height;
    image.stride[0] = (ptrdiff_t)shape->width * (of->depth > 8 ? 2 : 1);
    double rates[REPEATS];
    for (int k = -1; k < REPEATS; k++) {
        double began = now_s();
        int half = frames->groups / 2, rounds = 0;
        for (; rounds < 2 || now_s() - began < ms * 1e-3; rounds++) {
            int first = rounds % 2 * half;
            for (int g = first; rounds >= 2 && g < first + half; g++)
                wait_group(executor, frames, g);
            for (int g = first; g < first + half; g++)
                submit_group(executor, frames, g, &image, stream);
        }
        for (int g = 0; g < 2 * half; g++)
            wait_group(executor, frames, g);
        if (k >= 0)
            rates[k] = (double)rounds * half * frames->together * shape->width * shape->height /
                       (now_s() - began);
    }
    double rate = median(rates);
    executor_destroy(&executor);
    backend->stream_destroy(backend, &stream);
    plan_destroy(&plan);
    program_free(&program);
    return rate;
}

static void print_message(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque;
    if (level <= LOG_WARNING)
        fprintf(stderr, "%s\n", sentence);
}

int main(int argc, char **argv)
{
    struct log log = {print_message, NULL};
    struct backend *backend;
    char reason[256] = "";
    const char *only = NULL;
    int ms = 60, size = -1;
    for (int k = 1; k + 1 < argc; k += 2) {
        if (!strcmp(argv[k], "--case"))
            only = argv[k + 1];
        else if (!strcmp(argv[k], "--size"))
            size = atoi(argv[k + 1]);
        else if (!strcmp(argv[k], "--ms"))
            ms = atoi(argv[k + 1]);
    }
    if (backend_cuda_create(0, &log, &backend, reason, sizeof reason)) {
        fprintf(stderr, "bench_cuda: %s\n", reason);
        return 1;
    }
    printf("%s\n%-58s", backend->description, "Gpx/s (ratio to copy)");
    for (int s = 0; s < SHAPES; s++)
        printf("%14s", shapes[s].name);
    printf("\n");
    struct frames frames[2][SHAPES];
    double copy[2][SHAPES];
    for (int deep = 0; deep < 2; deep++) {
        printf("%2d  %-54s", deep ? 16 : 8, "copy");
        for (int s = 0; s < SHAPES; s++) {
            frames_init(&frames[deep][s], &shapes[s], deep ? 16 : 8);
            copy[deep][s] = copy_rate(&frames[deep][s], ms) / (deep ? 2 : 1);
            printf("%14.0f", copy[deep][s] * 1e-9);
        }
        printf("\n");
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int deep = cases[c].depth > 8;
        if (only && !strstr(cases[c].text, only))
            continue;
        printf("%2d  %-54s", cases[c].depth, cases[c].text);
        for (int s = 0; s < SHAPES; s++) {
            if (size >= 0 && s != size)
                continue;
            double rate = chain_rate(backend, &cases[c], &shapes[s], &frames[deep][s], ms);
            printf("%7.0f (%.2f)", rate * 1e-9, rate / copy[deep][s]);
            fflush(stdout);
        }
        printf("\n");
    }
    backend_destroy(&backend);
    return 0;
}
