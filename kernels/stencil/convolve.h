// The end of OP_CONVOLVE: how sums become results.
#pragma once

#include "kernels/launch.h"

// y = clamp(base + ((s or |s| if absolute) + offset >> bits), low, high)
struct convolve_end {
    int bits;
    int64_t offset;
    bool absolute;
    int base, low, high;
};

static inline struct convolve_end convolve_end_of(const struct op_convolve *op)
{
    return {op->bits, op->offset, op->absolute, op->base, op->low, op->high};
}
