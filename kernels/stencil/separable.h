// The forms of OP_SEPARABLE that go through memory between their parts.
//
//   axis                 one axis at a time, any radius, sums of 32 or 64 bits
//   axis_mma_u8          the same of 16-bit samples, by products of bytes on tensor cores
//   separable_decimated  on a coarser grid: tents down, axes on the grid, interpolation up
#pragma once

#include <assert.h>
#include <stdlib.h>

#include "kernels/launch.h"

// How sums become samples: shifted with rounding, or where amount > 0 sharpened, as plan/op.h
// says. `depth` is that of the samples sharpened.
struct rounding {
    int shift; // of the sum, to the result or to b
    int amount, depth, low, high;
};

// The end of `op`, whose sum has `bits_below` bits below the sample.
static inline struct rounding separable_rounding(const struct op_separable *op, int depth,
                                                 int bits_below)
{
    return {op->amount ? bits_below - (16 - depth) : bits_below, op->amount, depth, op->low,
            op->high};
}

// Result i of a column (row) is made of the samples i + first .. i + first + 2 radius of `source`.
struct axis {
    struct source source; // for rows: plain 16-bit samples without a table
    const int32_t *tap;   // the first of 2 radius + 1, with margins of zeros
    int radius, first;
    bool exact; // sums may need more than 32 bits
    struct rounding rounding;
    struct source center; // what is sharpened: rows with an amount only
    struct sink sink;     // for columns: plain 16-bit samples
};

// Result i of a column (row) is made of the samples i + first .. i + first + 2 radius of `from`, and
// is a sample of 16 bits, too: the sum, shifted by the bits of the taps. Both planes are scratch
// memory's.
struct axis_mma {
    struct view from;
    int from_width, from_height;
    const uint32_t *fragments; // with `first` in them
    int steps;
    struct sink to;
};

// True if it is made on a coarser grid.
static inline bool separable_is_decimated(const struct op_separable *op)
{
    return op->decimate_x || op->decimate_y;
}

// Columns of the grid before the first one that the taps ask for, so that it begins at a multiple of
// four columns of the picture and of itself.
static inline int decimated_lead(const struct op_separable *op)
{
    return -op->radius_x & 3;
}

// True if the sums of this filter may need more than 32 bits.
static inline bool axis_is_exact(const struct op_separable *op)
{
    return op->bits > 15;
}

// Byte `part` of twice the tap at `distance` from the centre, as byte `at` of a word.
static inline uint32_t tap_byte(const int32_t *tap, int radius, int distance, int part, int at)
{
    if (abs(distance) > radius)
        return 0;
    return ((uint32_t)tap[abs(distance)] * 2 >> 8 * part & 0xff) << 8 * at;
}

// Planes of 16-bit samples in scratch memory, as the place of results and as a source.
static inline struct sink scratch_sink(const struct stencil *stencil, size_t offset, int width,
                                       int height)
{
    struct sink sink = {};
    assert((uintptr_t)stencil->scratch % 256 == 0 && offset % 256 == 0);
    sink.view[0] = view_plain((uint8_t *)stencil->scratch + offset, stencil->scratch_step,
                              scratch_stride(width, 2), 2);
    sink.views = 1;
    sink.width = width;
    sink.height = height;
    sink.frames = stencil->sink.frames;
    return sink;
}

static inline struct source scratch_source(const struct sink *sink, enum border border,
                                           int border_value)
{
    return {sink->view[0], {}, sink->width, sink->height, border, border_value};
}

extern "C" {

// Down the columns into 16-bit samples; along the rows into anything.
cudaError_t axis_columns_async(const struct axis *axis, cudaStream_t stream);
cudaError_t axis_rows_async(const struct axis *axis, cudaStream_t stream);

// Down the columns, or along the rows.
cudaError_t axis_mma_u8_async(const struct axis_mma *axis, bool rows, cudaStream_t stream);

// The taps of an axis as the lanes of a warp hold them for axis_mma_u8_async(), in host memory.
// Returns how many words; 0 where they have no such form. `to` may be NULL.
size_t axis_mma_u8_fragments(const int32_t *tap, int radius, int bits, int first, uint32_t *to);

// Steps of that many words.
int axis_mma_u8_steps(int radius, int first);

size_t separable_decimated_scratch(const struct op *op, int width, int height);
cudaError_t separable_decimated_async(const struct stencil *stencil, cudaStream_t stream);
}
