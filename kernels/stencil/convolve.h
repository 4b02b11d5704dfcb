// What the kernels of OP_CONVOLVE share: how sums become results, and taps by bytes.
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

// Byte `part` of tap k of a line of `count`, as byte `at` of a word; zero beyond its ends.
static inline uint32_t line_byte(const int32_t *line, int count, int k, int part, int at)
{
    uint32_t tap = k >= 0 && k < count ? (uint32_t)line[k] : 0;
    return (tap >> (8 * part) & 0xff) << (8 * at);
}
