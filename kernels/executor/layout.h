// The layout of an executor's device memory, which is one allocation:
//
//   constants | slot 0: input planes, output planes, plan buffers, analyses, scratch | slot 1: ...
//
// Every slot is laid out alike; offsets count from a slot's begin and are multiples of 256 bytes,
// as are pitches.
//
// Thread-safety: immutable once made.
#pragma once

#include "kernels/executor/pass_constants.h"

// A plane in a slot's memory.
struct region {
    size_t offset;
    int pitch; // bytes
};

// The analysis of an operation in a slot's memory.
struct analysis_region {
    size_t offset, bytes;
};

struct slot_layout {
    struct region input[FORMAT_PLANES];                // planes that passes read
    struct region output[MAX_PICTURES][FORMAT_PLANES]; // planes that passes write
    struct region *buffer;                             // of the plan
    struct analysis_region *analysis;                  // of the program
    size_t mixed;                                      // scratch: what a mix makes for a stencil
    size_t apart;                                      // scratch: planes of pixels taken apart ...
    size_t results;                                    // ... and of what stencils make of them
    size_t between; // scratch: what the first of two stencils makes for the second
    size_t scratch; // scratch: of operations
    size_t between_step, scratch_step; // bytes of these two from a part of pixels to the next
    size_t bytes;                      // of a slot
    bool works;                        // there is more than the planes of pictures
};

// Lay out the slots for pictures of width x height. `constants` says which stencils are made by
// transforms. Finish with layout_finish(), also after a failure, of which STATUS_MEMORY is the only
// one; *layout is zeroed before.
enum status layout_init(struct slot_layout *layout, const struct plan *plan,
                        const struct pass_constants *constants, int width, int height);
void layout_finish(struct slot_layout *layout);
