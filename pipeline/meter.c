#include "pipeline/meter.h"

#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int64_t meter_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t meter_process_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
