#include "cpu/host.h"

#include <stdlib.h>
#include <time.h>

void *host_alloc(struct backend *backend, size_t bytes)
{
    (void)backend;
    void *memory = NULL;
    return posix_memalign(&memory, 64, bytes) ? NULL : memory;
}

void host_free(struct backend *backend, void *memory, size_t bytes)
{
    (void)backend, (void)bytes;
    free(memory);
}

static long long clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

long long host_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

long long host_thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}
