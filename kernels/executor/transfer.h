// Frames between host and device, and the order between streams. The submitting thread calls; all
// work is enqueued, nothing is waited for unless it says so.
#pragma once

#include "kernels/executor/executor.h"

// Point plane `p` of `image` into `region` of a slot's memory: with the same direction of rows as
// it has, and with the same stride where that fits and keeps 16 bytes aligned.
void transfer_place_plane(struct image *image, int p, struct region region, uint8_t *memory);

// Copy the sources of `frames` into the slots from `lead` on, and point frames->source there; the
// lead's stream waits for them. The caller waits for sources in another GPU's memory.
enum status transfer_upload(struct cuda_executor *self, struct cuda_slot *lead,
                            const struct work *work, struct device_frames *frames);

// Let the lead's stream wait for what is on the callers' streams: what makes sources, and what last
// used targets on this device.
enum status transfer_await_callers(struct cuda_executor *self, struct cuda_slot *lead,
                                   const struct work *work, int count);

// Let `stream`, of number `id`, wait until the memory of `count` slots from `lead` on is free of
// frames that used it and were handed over. `id` 0: none of these was made on this stream.
enum status transfer_await_slots(struct cuda_executor *self, struct cuda_slot *lead,
                                 cudaStream_t stream, unsigned long long id, int count);

// True if a target has planes that are the source's, and that passes do not read.
bool transfer_has_reference(const struct cuda_executor *self);

// Copy planes that are the source's from the host to targets on this device, behind
// transfer_upload().
enum status transfer_refer(struct cuda_executor *self, const struct cuda_slot *lead,
                           const struct device_frames *frames);

// True if any frame has a picture or an analysis that the host wants.
bool transfer_has_download(const struct cuda_executor *self, const struct work *work, int count);

// Copy what the host wants when the lead's stream has made it, and record `done` behind it.
enum status transfer_download(struct cuda_executor *self, struct cuda_slot *lead,
                              const struct work *work, const struct device_frames *frames);

// Record an event on a stream.
enum status transfer_record(struct cuda_executor *self, cudaEvent_t event, cudaStream_t stream);
