// Frames between host and device, and the order between streams. The submitting thread calls; all
// work is enqueued, nothing is waited for unless it says so.
#pragma once

#include "kernels/executor/executor.h"

// Point the target of picture `n` into the slot's memory, where passes compute it.
void transfer_place_target(struct cuda_executor *self, const struct cuda_slot *slot, int n,
                           struct image *target);

// Copy the sources of `frames` into the slots from `lead` on, and point frames->source there; the
// lead's stream waits for them. The caller waits for sources in another GPU's memory.
enum status transfer_upload(struct cuda_executor *self, struct cuda_slot *lead,
                            const struct work *work, struct device_frames *frames);

// Let the lead's stream wait for sources on this device.
enum status transfer_await_sources(struct cuda_executor *self, struct cuda_slot *lead,
                                   const struct work *work, int count);

// True if any frame has a picture or an analysis that the host wants.
bool transfer_has_download(const struct cuda_executor *self, const struct work *work, int count);

// Copy what the host wants when the lead's stream has made it, and record `done` behind it.
enum status transfer_download(struct cuda_executor *self, struct cuda_slot *lead,
                              const struct work *work, const struct device_frames *frames);

// Record an event on a stream.
enum status transfer_record(struct cuda_executor *self, cudaEvent_t event, cudaStream_t stream);
