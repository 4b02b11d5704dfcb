// How old frames are: when their packets arrived, kept by timestamp, and how long they took.
#pragma once

#include <stdint.h>

#include "sluice/sluice.h"
#include "base/status.h"

struct latency;

enum status latency_create(struct latency **latency);
void latency_destroy(struct latency **latency);

// A packet with this timestamp, in microseconds, arrived at `arrived_ns` of CLOCK_MONOTONIC. Where
// packets come in another order than they are shown in, one has arrived when all that are shown
// before it have. The last thousand are remembered. Any thread.
void latency_note_arrival(struct latency *latency, int64_t pts_us, int64_t arrived_ns);

// How long ago the packet with this timestamp arrived; 0 if nothing is known of it. While a source
// is opened packets gather: a second does not count of those that come in the first two, so that a
// job that can keep up has time to catch up. Any thread.
int64_t latency_age_ns(struct latency *latency, int64_t pts_us);

// What the packet with this timestamp became is out. Any thread.
void latency_note_out(struct latency *latency, int64_t pts_us);

// How long the frames took that are out: exact counts, and quantiles within 5 %, 0 if none is. Any
// thread.
void latency_figures(struct latency *latency, struct sluice_latency *figures);
