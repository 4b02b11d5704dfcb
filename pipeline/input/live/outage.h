// Outages of a file that plays at its own pace and stalls, as a live source may: it goes on where
// it was, by as much later in its timestamps as it was away.
//
// Thread-safety: one thread reads the file, any thread asks.
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "pipeline/input/live/live.h"

struct outage {
    int64_t lag_us; // of all timestamps; the reading thread's
    pthread_mutex_t lock;
    // ---- guarded by lock; its one writer reads without ----
    int64_t losses, reconnects, lost_for_ns;
    int64_t since_ns; // 0: it is there
};

void outage_init(struct outage *outage);
void outage_finish(struct outage *outage);

// Begin an outage, and end it. Returns its length in nanoseconds.
void outage_begin(struct outage *outage);
int64_t outage_end(struct outage *outage);

// Counts and state so far, but for the clock, which is the source's.
void outage_figures(const struct outage *outage, struct live_figures *figures);
