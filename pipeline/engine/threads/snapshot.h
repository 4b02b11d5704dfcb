// One picture for somebody who asks for it while a job runs.
#pragma once

#include <libavutil/frame.h>

#include "base/status.h"

struct snapshot;

enum status snapshot_create(struct snapshot **snapshot);
void snapshot_destroy(struct snapshot **snapshot);

// Here is a filtered frame, if anybody wants one. It stays the caller's. The encode thread; costs
// nothing while nobody asks.
void snapshot_offer(struct snapshot *snapshot, const AVFrame *frame);

// Wait for the next frame until `until_ns` of CLOCK_MONOTONIC; *frame is the caller's then, else
// NULL. Any thread; several get the same.
void snapshot_take(struct snapshot *snapshot, int64_t until_ns, AVFrame **frame);

// No more will come: whoever waits gets nothing.
void snapshot_finish(struct snapshot *snapshot);
