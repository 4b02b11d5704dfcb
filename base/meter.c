#include "base/meter.h"

#include <assert.h>
#include <stdlib.h>
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

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

struct spread meter_spread(double *value, int count)
{
    assert(value && count > 0);
    qsort(value, (size_t)count, sizeof *value, compare_doubles);
    struct spread spread = {.median = value[count / 2], .low = value[0], .high = value[count - 1]};
    for (int k = 0; k < count; k++)
        spread.mean += value[k] / count;
    return spread;
}
