// Backoff between attempts at a connection: nothing before the first, then a quarter of a second,
// doubling to ten, each shortened by up to a fifth, so that many clients of one server do not come
// back together.
#pragma once

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

// Attempts in a row that a number of reconnections allows: 0 is for ever, below 0 is none.
static inline int backoff_max_attempts(int reconnects)
{
    return reconnects > 0 ? reconnects : reconnects < 0 ? 0 : INT_MAX;
}

// Nanoseconds to wait after `attempts` of them. `seed` is the caller's, any value at first.
static inline int64_t backoff_ns(int attempts, unsigned *seed)
{
    const int64_t min_ns = 250 * INT64_C(1000000), max_ns = 10 * INT64_C(1000000000);
    assert(attempts >= 0);
    if (attempts == 0)
        return 0;
    int64_t ns = attempts > 6 ? max_ns : min_ns << (attempts - 1);
    ns = ns < max_ns ? ns : max_ns;
    return ns - ns / 5 * (rand_r(seed) % 1000) / 1000;
}
