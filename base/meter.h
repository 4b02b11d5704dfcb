// Clocks, the spread of measurements, and the time that a part has been busy.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

int64_t meter_now_ns(void);     // CLOCK_MONOTONIC
int64_t meter_process_ns(void); // of processor time, all threads

// Mean, median, smallest and largest of `count` values, 1 or more; the median of an even number is
// the higher of the middle two. Sorts the values.
struct spread {
    double mean, median, low, high;
};
struct spread meter_spread(double *value, int count);

// Busy time of a part; any thread may add to it and read it.
struct meter {
    _Atomic int64_t busy_ns;
};
