// Nothing is allocated for a frame: what our own code asks of the system while a job runs does not
// depend on how many frames there are. (FFmpeg's packets and frame headers are FFmpeg's.) The
// linker turns our calls into the counting ones below, see the Makefile.
#include "tests/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sluice/sluice.h"

static atomic_long calls;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **to, size_t alignment, size_t size);
char *__real_strdup(const char *text);
// Weak: builds without CUDA have none of them.
int __real_cudaMalloc(void **to, size_t size) __attribute__((weak));
int __real_cudaHostAlloc(void **to, size_t size, unsigned flags) __attribute__((weak));
int __real_cudaEventCreateWithFlags(void **to, unsigned flags) __attribute__((weak));
int __real_cudaStreamCreateWithFlags(void **to, unsigned flags) __attribute__((weak));

// clang-format off
void *__wrap_malloc(size_t size) { calls++; return __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { calls++; return __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { calls++; return __real_realloc(old, size); }
int __wrap_posix_memalign(void **to, size_t alignment, size_t size) { calls++; return __real_posix_memalign(to, alignment, size); }
char *__wrap_strdup(const char *text) { calls++; return __real_strdup(text); }
int __wrap_cudaMalloc(void **to, size_t size) { calls++; return __real_cudaMalloc(to, size); }
int __wrap_cudaHostAlloc(void **to, size_t size, unsigned flags) { calls++; return __real_cudaHostAlloc(to, size, flags); }
int __wrap_cudaEventCreateWithFlags(void **to, unsigned flags) { calls++; return __real_cudaEventCreateWithFlags(to, flags); }
int __wrap_cudaStreamCreateWithFlags(void **to, unsigned flags) { calls++; return __real_cudaStreamCreateWithFlags(to, flags); }
// clang-format on

enum { WIDTH = 96, HEIGHT = 64, FRAMES = 600 };

// A clip of noise. The name is the caller's to unlink.
static void write_clip(char *name, size_t size)
{
    static unsigned char picture[WIDTH * HEIGHT * 3 / 2];
    snprintf(name, size, "/tmp/sluice-allocations-%d.y4m", (int)getpid());
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    fprintf(file, "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n", WIDTH, HEIGHT);
    for (int k = 0; k < FRAMES; k++) {
        for (size_t n = 0; n < sizeof picture; n++)
            picture[n] = (unsigned char)(rand() >> 7);
        fprintf(file, "FRAME\n");
        fwrite(picture, 1, sizeof picture, file);
    }
    assert_int_equal(fclose(file), 0);
}

// How often our code allocates in a run over so many frames.
static long count_calls(const char *clip, const char *chain, enum sluice_backend backend,
                        int64_t frames)
{
    struct sluice_config config = {.size = sizeof config,
                                   .input = clip,
                                   .output.name = "null:",
                                   .chain = chain,
                                   .backend = backend,
                                   .frames = frames,
                                   .threads = 2,
                                   .ring = 4};
    struct sluice_summary summary = {.size = sizeof summary};
    struct sluice_job *job;
    calls = 0;
    assert_int_equal(sluice_job_create(&config, &job), SLUICE_STATUS_OK);
    assert_int_equal(sluice_job_run(job), SLUICE_STATUS_OK);
    sluice_job_summary(job, &summary);
    assert_int_equal(summary.ledger.frames_out, frames);
    sluice_job_destroy(&job);
    return calls;
}

static void a_frame_allocates_nothing(void **state)
{
    (void)state;
    static const char *const chains[] = {"gray,gaussian=1.4,sobel,threshold=20:240",
                                         "gaussian=30,box=20", "sharpen=1.5,brightness=9",
                                         "wavelet=1:3:9", "null"};
    char clip[64];
    write_clip(clip, sizeof clip);
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        // AUTO: the GPU where there is one.
        for (int backend = SLUICE_BACKEND_AUTO; backend <= SLUICE_BACKEND_CPU;
             backend += SLUICE_BACKEND_CPU) {
            long few = count_calls(clip, chains[k], (enum sluice_backend)backend, 100);
            long many = count_calls(clip, chains[k], (enum sluice_backend)backend, FRAMES);
            assert_true(few > 10); // they are counted
            // Buffers are made when all others are in use, which is a matter of luck: by far not
            // one for each of the 500 frames more.
            assert_true(many - few < 100);
        }
    }
    unlink(clip);
}

// Filters of frames in memory: nothing at all, once every seat was used.
static void a_frame_in_memory_allocates_nothing(void **state)
{
    (void)state;
    enum { IN_FLIGHT = 3 };
    static const char *const chains[] = {"gray,gaussian=1.4,sobel,threshold=20:240", "gaussian=2",
                                         "stats,invert", "wavelet=1:3:9", "null"};
    static uint8_t memory[IN_FLIGHT][WIDTH * HEIGHT];
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        struct sluice_filter_config config = {.size = sizeof config,
                                              .chain = chains[k],
                                              .input = {.size = sizeof config.input,
                                                        .pixfmt = "gray",
                                                        .width = WIDTH,
                                                        .height = HEIGHT},
                                              .threads = 2,
                                              .frames_in_flight = IN_FLIGHT};
        struct sluice_frame frame = {.size = sizeof frame, .stride = {WIDTH}};
        struct sluice_filter *filter;
        calls = 0;
        assert_int_equal(sluice_filter_create(&config, &filter), SLUICE_STATUS_OK);
        assert_true(calls > 10); // they are counted
        for (int n = 0; n < FRAMES; n++) {
            if (n == IN_FLIGHT)
                calls = 0;
            if (n >= IN_FLIGHT)
                assert_int_equal(sluice_filter_receive(filter, &frame), SLUICE_STATUS_OK);
            frame.data[0] = memory[n % IN_FLIGHT];
            assert_int_equal(sluice_filter_submit(filter, &frame, &frame, NULL), SLUICE_STATUS_OK);
        }
        assert_int_equal(calls, 0);
        sluice_filter_destroy(&filter);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_frame_allocates_nothing),
                                       cmocka_unit_test(a_frame_in_memory_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
