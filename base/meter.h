// Clocks, what they told, and how long a part has been busy.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

int64_t meter_now_ns(void);     // CLOCK_MONOTONIC
int64_t meter_process_ns(void); // of processor time, all threads

// Some figures at a glance; the median of an even number is the higher of the middle two. Sorts
// them.
struct spread {
    double mean, median, low, high;
};
struct spread meter_spread(double *value, int count);

// Nanoseconds that a part has been busy; see sluice_summary.busy.
struct meter {
    _Atomic int64_t busy_ns;
};
