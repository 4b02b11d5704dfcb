// The program's clock.
#pragma once

#include <stdint.h>
#include <time.h>

// Nanoseconds of CLOCK_MONOTONIC.
static inline int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static inline int64_t now_ms(void)
{
    return now_ns() / 1000000;
}
