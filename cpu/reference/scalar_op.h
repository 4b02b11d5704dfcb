// The references of single operations: their input, and a list of them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/op.h"

struct program;

// One plane of the program, sample by sample, row by row without gaps.
struct plane {
    int width, height;
    uint16_t *sample;
};

static inline uint16_t *plane_at(const struct plane *plane, int x, int y)
{
    return &plane->sample[(size_t)y * (size_t)plane->width + (size_t)x];
}

// x(i, j) of the notation of plan/op.h: extended beyond the edges by the operation's border.
static inline int plane_extended(const struct plane *plane, const struct op *op, int x, int y)
{
    x = border_index(op->border, x, plane->width);
    y = border_index(op->border, y, plane->height);
    return x < 0 || y < 0 ? op->border_value : *plane_at(plane, x, y);
}

static inline int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

// value / 2^bits, rounded to nearest with ties upward.
static inline int64_t rounded_shift(int64_t value, int bits)
{
    return bits ? (value + (INT64_C(1) << (bits - 1))) >> bits : value;
}

// One operation on one picture. `from` and `to` do not overlap; they are of equal size but for
// OP_MIX, which reads `planes`.
struct scalar_work {
    const struct op *op;
    const struct plane *from; // the first source
    struct plane *to;
    int depth;         // of the samples of `from`
    void *analysis;    // its analysis, to be written; NULL: it has none
    const void *reads; // the analysis that it reads; NULL: none
    const struct program *program;
    const struct plane *planes; // the program's
};

// The reference of an operation: plain loops over its formula in plan/op.h, which the list in
// scalar.c names by kind. Writes all of `to` and of `analysis`. STATUS_MEMORY is the only failure.
typedef enum status scalar_op(const struct scalar_work *work);

scalar_op pointwise_scalar, mix_scalar;
scalar_op separable_scalar, box_scalar, convolve_scalar, gradient_scalar;
scalar_op statistics_scalar, wavelet_scalar, match_scalar, mark_scalar;
