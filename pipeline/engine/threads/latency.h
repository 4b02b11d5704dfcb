// How old frames are: when their packets arrived, kept by timestamp, and how long they took; and
// which are too old to be worked on.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct sluice_latency;

struct latency;

// Frames older than `limit_ns` are late; 0: none ever is.
enum status latency_create(int64_t limit_ns, struct latency **latency);
void latency_destroy(struct latency **latency);

int64_t latency_limit_ns(const struct latency *latency);

// A packet with this timestamp, in microseconds, arrived at `arrived_ns` of CLOCK_MONOTONIC. Where
// packets come in another order than they are shown in, one has arrived when all that are shown
// before it have. The last thousand are remembered. Any thread.
void latency_note_arrival(struct latency *latency, int64_t pts_us, int64_t arrived_ns);

// How long ago the packet with this timestamp arrived; 0 if nothing is known of it. While a source
// is opened packets gather: a second does not count of those that come in the first two, so that a
// job that can keep up has time to catch up. Any thread.
int64_t latency_age_ns(struct latency *latency, int64_t pts_us);

// A frame was handed to the sink. The encode thread.
void latency_note_shown(struct latency *latency);

// True if a frame, its pts in `time_base`, will be older than the limit when what is ahead of it,
// which takes `ahead_ns`, is done: it makes room for fresher ones, before it is filtered or before
// it is encoded, never after. Not where nothing was shown for long: where even the freshest are
// late, some are shown all the same. `latency` NULL: never. Any thread.
bool latency_frame_is_late(struct latency *latency, const AVFrame *frame, AVRational time_base,
                           int64_t ahead_ns);

// The frame or packet made of the packet with this timestamp is out. Any thread.
void latency_note_out(struct latency *latency, int64_t pts_us);

// How long the frames took that are out: exact counts, and quantiles within 5 %, 0 if none is. Any
// thread.
void latency_figures(struct latency *latency, struct sluice_latency *figures);
