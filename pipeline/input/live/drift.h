// Drift of a source's clock against the world's: two clocks of good quality part by seconds a day.
//
// Packets come with jitter, so what counts is a mean of half a thousand of them. While that is more
// than a quarter of a second off, timestamps are moved by a thousandth of the time that passes,
// which nobody sees or hears. What is farther off than five seconds is no drift: a recording that
// is sent as fast as it can be, or segments that come many at once.
#pragma once

#include <stdint.h>

struct drift {
    int64_t mean_us; // by which packets are ahead of their arrival
    int64_t rest_us; // of what was moved, below a microsecond's worth
};

// A packet lay `ahead_us` before its arrival, and `step_us` of its clock after the one before it.
// Returns by how much the offset of the clock is to be changed.
static inline int64_t drift_follow(struct drift *drift, int64_t ahead_us, int64_t step_us)
{
    enum { MEAN = 512, SLOWLY = 1000 };
    const int64_t min_us = 250000, max_us = 5000000, max_step_us = 1000000;
    drift->mean_us += (ahead_us - drift->mean_us) / MEAN;
    int64_t off_us = drift->mean_us < 0 ? -drift->mean_us : drift->mean_us;
    if (off_us < min_us || off_us > max_us || step_us <= 0 || step_us > max_step_us)
        return 0;
    drift->rest_us += step_us;
    int64_t move_us = drift->rest_us / SLOWLY;
    drift->rest_us %= SLOWLY;
    drift->mean_us += drift->mean_us > 0 ? -move_us : move_us;
    return drift->mean_us > 0 ? -move_us : move_us;
}
