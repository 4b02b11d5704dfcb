// Constants of the passes of a plan on the device: tables, taps, transforms. The same for all
// frames.
//
// Thread-safety: immutable once made, but for transforms (kernels/stencil/transform.h), which
// belong to the thread that submits.
#pragma once

#include "kernels/executor/pass.h"
#include "kernels/op_kernels.h"
#include "kernels/stencil/transform.h"

struct pass_constants {
    struct lookup lookup[STENCILS + 1];    // before each stencil, and behind the last
    struct lookup before[3];               // of each source of a mix
    struct op_constants op[STENCILS];      // of each stencil, or of the full-frame operation
    struct transform *transform[STENCILS]; // of each stencil; NULL: made without
};

// Make room for the constants of each pass, and the transforms on the current device: a stencil
// whose transform cannot be had is made without. STATUS_MEMORY is the only failure; *constants is
// what there is then, for pass_constants_destroy().
enum status pass_constants_create(const struct plan *plan, int width, int height,
                                  const struct log *log, struct pass_constants **constants);

// Point `constants` at what will lie in `memory`, which is empty, and write that where it has host
// memory. Returns how many bytes there are.
size_t pass_constants_put(struct pass_constants *constants, const struct plan *plan, int width,
                          int height, struct constants memory);

// Stencil `n` of a pass, or its full-frame operation (n = 0), for pictures of width x height.
struct op_use pass_use(const struct plan_pass *pass, const struct pass_constants *constants, int n,
                       int width, int height);

// Free all of a plan's. The device is current and idle. Leaves NULL, accepts it.
void pass_constants_destroy(const struct plan *plan, struct pass_constants **constants);
