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

long long host_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}
