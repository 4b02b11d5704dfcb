// What calls of the CUDA runtime cost the host, in `sluice bench` as it is: linked into the program
// with -Wl,--wrap for each call (make build/sluice-calls, with CUDA 12.8 or later).
//
//     build/sluice-calls bench -f brightness=20 --backend cuda --quick 2>calls.txt
//
// A line for each measurement of a chain, by its parts and through the library: microseconds of a
// group of eight frames, and of each call how often a group makes it and how long it takes. An
// address that was asked for 16 times a submission, and a stream that was asked whether it is idle
// for half of what a launch costs, were found like this.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/meter.h"

enum { GROUP = 8 };

struct extent {
    unsigned x, y, z;
};

struct call {
    const char *name;
    int64_t count, ns;
};

// Types are those of the calls as far as the convention of calling tells them apart.
#define CALLS(CALL)                                                                              \
    CALL(int, __cudaLaunchKernel,                                                                \
         (void *f, struct extent g, struct extent b, void **a, size_t n, void *s),               \
         (f, g, b, a, n, s))                                                                     \
    CALL(int, cudaLaunchKernel,                                                                  \
         (const void *f, struct extent g, struct extent b, void **a, size_t n, void *s),         \
         (f, g, b, a, n, s))                                                                     \
    CALL(int, cudaLaunchKernelExC, (const void *c, const void *f, void **a), (c, f, a))          \
    CALL(int, cudaGraphExecKernelNodeSetParams, (void *r, void *n, const void *p), (r, n, p))    \
    CALL(int, cudaGraphLaunch, (void *r, void *s), (r, s))                                       \
    CALL(int, __cudaGetKernel, (void *k, const void *f), (k, f))                                 \
    CALL(int, cudaEventRecord, (void *e, void *s), (e, s))                                       \
    CALL(int, cudaEventQuery, (void *e), (e))                                                    \
    CALL(int, cudaStreamWaitEvent, (void *s, void *e, unsigned f), (s, e, f))                    \
    CALL(int, cudaStreamQuery, (void *s), (s))                                                   \
    CALL(int, cudaStreamGetFlags, (void *s, void *f), (s, f))                                    \
    CALL(int, cudaStreamGetId, (void *s, void *i), (s, i))                                       \
    CALL(int, cudaStreamGetDevice, (void *s, void *d), (s, d))                                   \
    CALL(int, cudaStreamIsCapturing, (void *s, void *c), (s, c))                                 \
    CALL(int, cudaSetDevice, (int d), (d))                                                       \
    CALL(int, cudaDeviceGetAttribute, (void *v, int a, int d), (v, a, d))                        \
    CALL(int, cudaFuncSetAttribute, (const void *f, int a, int v), (f, a, v))                    \
    CALL(int, cudaGetDevice, (void *d), (d))                                                     \
    CALL(int, cudaPointerGetAttributes, (void *about, const void *p), (about, p))                \
    CALL(int, cudaMemcpyAsync, (void *to, const void *from, size_t n, int k, void *s),           \
         (to, from, n, k, s))                                                                    \
    CALL(int, cudaMemcpyBatchAsync,                                                              \
         (void *to, const void *from, const void *n, size_t k, void *a, void *i, size_t as,      \
          void *s),                                                                              \
         (to, from, n, k, a, i, as, s))                                                          \
    CALL(int, cudaMemcpy2DAsync,                                                                 \
         (void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int k, void *s), \
         (to, tp, from, fp, w, h, k, s))                                                         \
    CALL(int, sluice_filter_submit_many,                                                         \
         (void *f, const void *in, const void *out, int n, void *s), (f, in, out, n, s))         \
    CALL(int, sluice_filter_receive, (void *f, void *out), (f, out))

#define NUMBER(type, name, takes, passes) NUMBER_##name,
enum { CALLS(NUMBER) NUMBERS };

#define NAME(type, function, takes, passes) {.name = #function},
static struct call calls[] = {CALLS(NAME)};

static void add(int number, int64_t begin_ns)
{
    __atomic_fetch_add(&calls[number].ns, meter_now_ns() - begin_ns, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls[number].count, 1, __ATOMIC_RELAXED);
}

#define WRAP(type, name, takes, passes)           \
    type __real_##name takes;                     \
    type __wrap_##name takes;                     \
    type __wrap_##name takes                      \
    {                                             \
        const int64_t begin_ns = meter_now_ns();  \
        const type result = __real_##name passes; \
        add(NUMBER_##name, begin_ns);             \
        return result;                            \
    }
CALLS(WRAP)

// ---- measurements ----

static void forget(void)
{
    for (int k = 0; k < NUMBERS; k++)
        calls[k].count = calls[k].ns = 0;
}

static void tell(const char *what, int streams, double groups, int64_t ns)
{
    fprintf(stderr, "%s, %d streams: %.2f us a group of %d:", what, streams,
            (double)ns * 1e-3 / groups, GROUP);
    for (int k = 0; k < NUMBERS; k++)
        if (calls[k].count)
            fprintf(stderr, " %s %.2f x %.2f", calls[k].name, (double)calls[k].count / groups,
                    (double)calls[k].ns * 1e-3 / (double)calls[k].count);
    fputc('\n', stderr);
}

int __real_bench_library_run(void *library, int streams, int64_t ns, int64_t *frames);
int __wrap_bench_library_run(void *library, int streams, int64_t ns, int64_t *frames);
int __wrap_bench_library_run(void *library, int streams, int64_t ns, int64_t *frames)
{
    forget();
    const int64_t begin_ns = meter_now_ns();
    int status = __real_bench_library_run(library, streams, ns, frames);
    tell("library", streams, (double)*frames / GROUP, meter_now_ns() - begin_ns);
    return status;
}

int __real_bench_case_run(void *bench_case, int64_t ns, int64_t *frames);
int __wrap_bench_case_run(void *bench_case, int64_t ns, int64_t *frames);
int __wrap_bench_case_run(void *bench_case, int64_t ns, int64_t *frames)
{
    forget();
    const int64_t begin_ns = meter_now_ns();
    int status = __real_bench_case_run(bench_case, ns, frames);
    tell("parts", 0, (double)*frames / GROUP, meter_now_ns() - begin_ns);
    return status;
}
