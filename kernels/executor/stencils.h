// Passes with stencils, and what their kernels work on.
//
// Stencils are fastest on samples that lie side by side at multiples of sixteen bytes. All components of
// pixels of one pass, units that are no samples, and planes at other addresses are taken apart into such
// planes of the slot's memory, and results put together again (pixels_split_async(),
// pixels_merge_async()); a single stencil of small radius is made of bytes where they lie
// (kernels/stencil/compact.h). Single components of pixels are gathered and scattered.
#pragma once

#include "kernels/executor/executor.h"

// How a pass takes pixels apart: into a plane for each sample that its stencils filter, in the order of
// their places, and one for each that stays as it is behind those. Without pixels there is one.
struct pass_parts {
    int samples;                  // of a pixel
    int plane[FORMAT_COMPONENTS]; // by place; -1: a filler
    int filtered, planes;
};

struct pass_parts pass_parts(const struct plan_pass *pass);

// True if kernels/stencil/compact.h makes a pass with stencils, of bytes side by side at any address and
// into such.
bool pass_is_compact(const struct plan_pass *pass);

// Enqueue the pass.
cudaError_t stencils_async(const struct cuda_executor *self, const struct plan_pass *pass,
                           const struct pass_constants *constants,
                           const struct device_frames *frames, cudaStream_t stream);

// Enqueue the mix of a pass, into `sink`.
cudaError_t mix_async(const struct cuda_executor *self, const struct plan_pass *pass,
                      const struct pass_constants *constants, const struct device_frames *frames,
                      const struct sink *sink, cudaStream_t stream);
