// Frames in the caller's device memory: passes read and write them where they are, those with stencils
// by way of planes of the slot's where they lie otherwise than these want them (stencils.h).
//
// Planes that passes cannot take there lie in the slot's memory, and are copied on the device:
// units of two bytes at odd addresses, and a target in place of a source that passes still have to
// read. Planes that no pass makes are copied from the source, or filled, too.
//
// The submitting thread calls; all work is enqueued, nothing is waited for.
#pragma once

#include "kernels/executor/executor.h"

// Point source and target of picture `n` of slot `slot`, which begin as those of `work`, to where
// passes read and write planes: the caller's memory, or the slot's. True if any is in the slot's.
bool direct_place_source(struct cuda_executor *self, const struct cuda_slot *slot,
                         const struct work *work, struct image *source);
bool direct_place_target(struct cuda_executor *self, const struct cuda_slot *slot,
                         const struct work *work, int n, struct image *target);

// The work before and behind the passes of such frames: between both, sources that are no longer
// needed may be overwritten. Frames lie alike.
cudaError_t direct_begin_async(const struct cuda_executor *self, const struct device_frames *frames,
                               cudaStream_t stream);
cudaError_t direct_finish_async(const struct cuda_executor *self,
                                const struct device_frames *frames, cudaStream_t stream);
