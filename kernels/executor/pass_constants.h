// What the passes of a plan need on the device besides samples: tables, taps, transforms. The same
// for all frames.
//
// Thread-safety: immutable once made, but for transforms (kernels/transform.h), which belong to the
// thread that submits.
#pragma once

#include "kernels/executor/pass.h"
#include "kernels/launch.h"
#include "kernels/transform.h"

struct pass_constants {
    struct lookup lookup[STENCILS + 1];     // before each stencil, and behind the last
    const int32_t *stencil[STENCILS][2];    // as struct stencil wants them
    const uint32_t *fragments[STENCILS][2]; // as well
    struct transform *transform[STENCILS];  // NULL: made without
    const void *full_frame;                 // of a full-frame operation
};

// Make room for the constants of each pass, and the transforms on the current device: a stencil
// whose transform cannot be had is made without. STATUS_MEMORY is the only failure; *constants is
// what there is then, for pass_constants_destroy().
enum status pass_constants_create(const struct plan *plan, int width, int height,
                                  const struct log *log, struct pass_constants **constants);

// Point `constants` at what will lie at `device`, and write that to `host`; NULL: write nothing.
// Returns how many bytes there are.
size_t pass_constants_put(struct pass_constants *constants, const struct plan *plan, int width,
                          int height, uint8_t *device, uint8_t *host);

// Free all of a plan's. The device is current and idle. Leaves NULL, accepts it.
void pass_constants_destroy(const struct plan *plan, struct pass_constants **constants);
