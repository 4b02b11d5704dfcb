// Cancellation request and its deadline.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/meter.h"

struct stop {
    atomic_bool asked;
    _Atomic int64_t at_ns; // when, by meter_now_ns()
};

// An output is whole within two seconds of a stop: encoders may flush for most of them, then finish
// the frame that they are at, and then what there is is finished.
static const int64_t stop_flush_ns = 1400 * INT64_C(1000000),
                     stop_frame_ns = 200 * INT64_C(1000000);

// Ask for the stop; the first to ask sets its time. Any thread.
static inline void stop_ask(struct stop *stop)
{
    if (stop->asked)
        return;
    stop->at_ns = meter_now_ns();
    stop->asked = true;
}

// True if the deadline has passed: nothing is waited for any more.
static inline bool stop_is_late(const struct stop *stop)
{
    return stop->asked && meter_now_ns() > stop->at_ns + stop_flush_ns;
}
