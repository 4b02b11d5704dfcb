// Pointwise steps as arithmetic: what the 2^depth entries of a table say, in a form that a row
// kernel computes faster than it looks them up.
#pragma once

#include <stdint.h>

#include "plan/plan.h"

enum point_kind {
    // y = below if x < low, above if x > high, else (x ^ flip) + add, in the sample's own bits:
    // thresholds, brightness, negatives, and runs of them.
    POINT_RANGES,
    // y = clamp((x * gain + offset) >> 16, low, high) in 32 bits.
    POINT_AFFINE,
    POINT_TABLE,
};

struct point {
    enum point_kind kind;
    int most; // the largest sample: what is above reads as that
    int low, high;
    int below, above; // ranges
    int flip, add;    // ranges
    int gain, offset; // affine: the rounding is in the offset
    const uint16_t *table;
    int ahead; // rows_ahead() where results go to memory, else 0
};

enum { SPARED_BYTES = 64 }; // a multiple of a pixel's

// Bits of every so many bytes that a step of pixels spares: of components that stay as they are, and of
// those that have all bits of a sample.
struct spared {
    uint8_t kept[SPARED_BYTES], filled[SPARED_BYTES];
};

// The cheapest form of a step that is a table.
struct point point_of_step(const struct plan_step *step);
