// A GPU that dies: the program, linked with -Wl,--wrap for the calls of the CUDA runtime (`make
// build/sluice-faults`, with CUDA 12.8 or later), in which one call fails, and every one after it, as when a
// kernel has gone wrong.
//
//     CUDA_FAULT=count build/sluice-faults in.mp4 hash:-      # says how many calls there are
//     CUDA_FAULT=120 build/sluice-faults in.mp4 hash:-        # the 120th fails, from 0
//
// What FFmpeg calls, its decoders among it, goes on working. tests/cuda_faults.py runs all of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAUNCH_FAILURE = 719 };

struct extent {
    unsigned x, y, z;
};

static int calls, fails_at = -1;
static const char *first = "";

__attribute__((constructor)) static void read_fault(void)
{
    const char *text = getenv("CUDA_FAULT");
    if (text && strcmp(text, "count"))
        fails_at = atoi(text);
}

static void tell(void)
{
    const char *text = getenv("CUDA_FAULT");
    if (text && !strcmp(text, "count"))
        fprintf(stderr, "cuda calls %d\n", calls);
    else if (text)
        fprintf(stderr, "cuda fault %s\n", first);
}

// Ends that are no _exit().
__attribute__((destructor)) static void end(void)
{
    tell();
}

static int dies(const char *name)
{
    int number = __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    if (number == fails_at)
        first = name;
    return fails_at >= 0 && number >= fails_at;
}

// Types are those of the calls as far as the convention of calling tells them apart.
#define CALLS(CALL)                                                                              \
    CALL(cudaGetLastError, (void), ())                                                           \
    CALL(__cudaLaunchKernel,                                                                     \
         (void *f, struct extent g, struct extent b, void **a, size_t n, void *s),               \
         (f, g, b, a, n, s))                                                                     \
    CALL(cudaLaunchKernel,                                                                       \
         (const void *f, struct extent g, struct extent b, void **a, size_t n, void *s),         \
         (f, g, b, a, n, s))                                                                     \
    CALL(cudaLaunchKernelExC, (const void *c, const void *f, void **a), (c, f, a))               \
    CALL(cudaGraphCreate, (void *g, unsigned f), (g, f))                                         \
    CALL(cudaGraphAddKernelNode, (void *n, void *g, const void *b, size_t k, const void *p),     \
         (n, g, b, k, p))                                                                        \
    CALL(cudaGraphInstantiateWithFlags, (void *r, void *g, unsigned long long f), (r, g, f))     \
    CALL(cudaGraphUpload, (void *r, void *s), (r, s))                                            \
    CALL(cudaGraphExecKernelNodeSetParams, (void *r, void *n, const void *p), (r, n, p))         \
    CALL(cudaGraphLaunch, (void *r, void *s), (r, s))                                            \
    CALL(cudaThreadExchangeStreamCaptureMode, (void *m), (m))                                    \
    CALL(cudaMalloc, (void *p, size_t n), (p, n))                                                \
    CALL(cudaHostAlloc, (void *p, size_t n, unsigned f), (p, n, f))                              \
    CALL(cudaMemcpy, (void *to, const void *from, size_t n, int k), (to, from, n, k))            \
    CALL(cudaMemcpyAsync, (void *to, const void *from, size_t n, int k, void *s),                \
         (to, from, n, k, s))                                                                    \
    CALL(cudaMemcpyBatchAsync,                                                                   \
         (void *to, const void *from, const void *n, size_t k, void *a, void *i, size_t as,      \
          void *s),                                                                              \
         (to, from, n, k, a, i, as, s))                                                          \
    CALL(cudaMemcpy2DAsync,                                                                      \
         (void *to, size_t tp, const void *from, size_t fp, size_t w, size_t h, int k, void *s), \
         (to, tp, from, fp, w, h, k, s))                                                         \
    CALL(cudaMemset, (void *p, int v, size_t n), (p, v, n))                                      \
    CALL(cudaMemsetAsync, (void *p, int v, size_t n, void *s), (p, v, n, s))                     \
    CALL(cudaStreamCreateWithFlags, (void *s, unsigned f), (s, f))                               \
    CALL(cudaStreamWaitEvent, (void *s, void *e, unsigned f), (s, e, f))                         \
    CALL(cudaStreamSynchronize, (void *s), (s))                                                  \
    CALL(cudaEventCreate, (void *e), (e))                                                        \
    CALL(cudaEventCreateWithFlags, (void *e, unsigned f), (e, f))                                \
    CALL(cudaEventRecord, (void *e, void *s), (e, s))                                            \
    CALL(cudaEventSynchronize, (void *e), (e))                                                   \
    CALL(cudaEventQuery, (void *e), (e))                                                         \
    CALL(cudaEventElapsedTime, (void *ms, void *a, void *b), (ms, a, b))                         \
    CALL(cudaFuncSetAttribute, (const void *f, int a, int v), (f, a, v))                         \
    CALL(cudaSetDevice, (int d), (d))

#define WRAP(name, takes, passes)                                   \
    int __real_##name takes;                                        \
    int __wrap_##name takes;                                        \
    int __wrap_##name takes                                         \
    {                                                               \
        return dies(#name) ? LAUNCH_FAILURE : __real_##name passes; \
    }
CALLS(WRAP)

// The program's way out.
_Noreturn void __real__exit(int code);
_Noreturn void __wrap__exit(int code);
void __wrap__exit(int code)
{
    tell();
    __real__exit(code);
}
