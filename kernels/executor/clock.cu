#include "kernels/executor/clock.h"

#include <assert.h>
#include <limits.h>

#include "kernels/executor/executor.h"

static const long long period_ns = 1000000000;

// How long an answer of the GPU may take. It says within some microseconds that it has come to an event on
// a stream without work; what takes longer, as the GPU is busy for others or the thread had to wait, is wrong by
// half of that. Clocks that go apart by 20 millionths, as those of an H100 and its host, are wrong by more in the end.
static long long patience_after(long long age_ns)
{
    const long long at_once_ns = 50000, most_ns = 10000000;
    long long patience_ns = at_once_ns + age_ns / 20000;
    return patience_ns < most_ns ? patience_ns : most_ns;
}

// Begin to count from now, unless the GPU does not answer within `patience_ns`.
static enum status renew(struct gpu_clock *clock, long long patience_ns)
{
    const long long begin_ns = now_ns();
    long long took_ns = 0;
    cudaError_t error = cudaEventRecord(clock->next, clock->stream);
    bool asks = !error;
    while (asks) {
        error = cudaEventQuery(clock->next);
        took_ns = now_ns() - begin_ns;
        asks = error == cudaErrorNotReady && took_ns <= patience_ns;
        if (error == cudaErrorNotReady)
            cudaGetLastError(); // it would pass for that of the next launch
    }
    clock->due_ns = begin_ns + took_ns + period_ns;
    if (!error && took_ns <= patience_ns) {
        cudaEvent_t before = clock->epoch;
        clock->epoch = clock->next;
        clock->next = before;
        clock->epoch_ns = begin_ns + took_ns / 2;
    }
    return error == cudaErrorNotReady ? STATUS_OK
                                      : cuda_check(clock->backend, error, "cudaEventQuery");
}

enum status gpu_clock_init(struct gpu_clock *clock, struct cuda_backend *backend)
{
    *clock = {.backend = backend, .lock = PTHREAD_MUTEX_INITIALIZER};
    enum status status =
        CUDA_CHECK(backend, cudaStreamCreateWithFlags(&clock->stream, cudaStreamNonBlocking));
    if (!status)
        status = CUDA_CHECK(backend, cudaEventCreateWithFlags(&clock->epoch, cudaEventDefault));
    if (!status)
        status = CUDA_CHECK(backend, cudaEventCreateWithFlags(&clock->next, cudaEventDefault));
    return status ? status : renew(clock, LLONG_MAX);
}

void gpu_clock_destroy(struct gpu_clock *clock)
{
    if (clock->epoch)
        cudaEventDestroy(clock->epoch);
    if (clock->next)
        cudaEventDestroy(clock->next);
    if (clock->stream)
        cudaStreamDestroy(clock->stream);
    pthread_mutex_destroy(&clock->lock);
    *clock = {};
}

enum status gpu_clock_read(struct gpu_clock *clock, const cudaEvent_t *event, int count,
                           long long *ns)
{
    assert(clock->epoch && count >= 0);
    pthread_mutex_lock(&clock->lock);
    const long long now = now_ns();
    enum status status =
        now < clock->due_ns ? STATUS_OK : renew(clock, patience_after(now - clock->epoch_ns));
    for (int k = 0; k < count && !status; k++) {
        float ms = 0; // below 0: it happened before the epoch
        status = CUDA_CHECK(clock->backend, cudaEventElapsedTime(&ms, clock->epoch, event[k]));
        ns[k] = clock->epoch_ns + (long long)(ms * 1e6);
    }
    pthread_mutex_unlock(&clock->lock);
    return status;
}
