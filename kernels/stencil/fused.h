// The kernels behind fused_async().
//
//   separable_mma_f16  8-bit samples, taps that halves hold, and a gradient behind them
//   separable_mma_u8   samples or taps of two bytes, sharpened, and a gradient behind them
//   lines_mma_u8       convolutions of lines in words
//   lines_axis_mma_u8  the same of longer lines, an axis at a time
//   convolve_mma_u8    convolutions of small kernels
//   gradient_mma_u8    gradients whose lengths are scaled or roots
//   fused_gradient     a gradient of 8-bit samples alone
#pragma once

#include "kernels/stencil/convolve.h"
#include "kernels/stencil/separable.h"

enum { FUSED_COLUMNS = 128 }; // of a block

// How far high bytes of taps go in the kernels of separable_mma_u8 that are for Gaussians of bytes of reach
// 32 and 48: with the default radius, taps that sum to 2^16 are below 256 from there on. Others, which are
// cut off earlier, have kernels whose high bytes go all the way.
enum { SEPARABLE_HIGH_32 = 24, SEPARABLE_HIGH_48 = 32 };

// One gradient of three by three, |gx| + |gy|, unscaled.
struct small_gradient {
    int center, limit, base;
    enum border border;
    int border_value;
};

// The end of a gradient: limited, through a threshold, or through any table. A threshold with
// nothing below it and white above compares lengths before they are limited: all beyond the limit
// are beyond its upper value too.
enum finish { FINISH_LIMIT, FINISH_THRESHOLD, FINISH_LOOKUP };

// How gx and gy become a sample, see struct op_gradient.
struct lengths {
    enum norm norm;
    int64_t scale;
    int base, limit;
};

static inline struct lengths lengths_of(const struct op_gradient *op)
{
    return {op->norm, op->scale, op->base, op->limit};
}

// Rows of a kernel, and how many of them are above a result's place.
struct window {
    int height, above;
};

struct fused {
    struct source source;
    struct sink sink;
    const uint32_t *fragments;
    int reach;                     // columns and rows that the operations really need
    int down_shift, along_shift;   // of sums, to t and to results
    float down_scale, along_scale; // separable_mma_f16: the same as factors
    struct rounding rounding;      // separable_mma_u8: with an amount, results are sharpened
    struct convolve_end end;       // lines_mma_u8, convolve_mma_u8
    struct window window;          // convolve_mma_u8, gradient_mma_u8
    struct lengths lengths;        // gradient_mma_u8
    struct small_gradient gradient;
    int tiles_x, tiles;
    enum finish finish; // of the gradient
};

// The kernel that makes a filter.
struct choice {
    int reach; // of its taps; 0: no kernel does
    int left;  // columns to the left of a tile at which it begins to read
    int bytes; // of a sample
    bool u8;   // separable_mma_u8, not separable_mma_f16
    int high;  // separable_mma_u8: of the high bytes of taps: `reach`, or SEPARABLE_HIGH_...
};

extern "C" {

// The taps of OP_SEPARABLE as the lanes of a warp hold them for the tensor cores, in host memory;
// with those of the gradient `next` (optional) if both are to be made at once. Returns how many
// words; 0 where they have no such form. `to` may be NULL.
size_t fused_fragments(const struct op *op, const struct op *next, uint32_t *to);

// The same of the lines, or weights, of OP_CONVOLVE, of samples of `depth` bits.
size_t fused_convolve_fragments(const struct op *op, int depth, uint32_t *to);

// True if fused_async() makes this stencil, with `next` if it has one.
bool fused_takes(const struct stencil *stencil);
cudaError_t fused_async(const struct stencil *stencil, cudaStream_t stream);

// ---- the kernels behind ----

// fused_fragments() of a choice.
size_t separable_mma_f16_fragments(const struct op_separable *op, struct choice choice,
                                   bool gradient, uint32_t *to);
size_t separable_mma_u8_fragments(const struct op_separable *op, struct choice choice,
                                  bool gradient, uint32_t *to);

size_t lines_mma_u8_fragments(const struct op_convolve *op, struct choice choice, uint32_t *to);
size_t lines_axis_mma_u8_fragments(const struct op_convolve *op, uint32_t *to);
size_t gradient_mma_u8_fragments(const struct op_gradient *op, int depth, uint32_t *to);
size_t convolve_mma_u8_fragments(const struct op_convolve *op, struct choice choice, uint32_t *to);

// The choice for weights one by one.
struct choice convolve_mma_u8_choice(const struct op *op, int depth);

// True if halves hold the taps.
bool separable_mma_f16_holds(const struct op_separable *op);

cudaError_t separable_mma_f16_async(const struct fused *f, struct choice choice, bool gradient,
                                    cudaStream_t stream);
cudaError_t separable_mma_u8_async(const struct fused *f, struct choice choice, bool gradient,
                                   cudaStream_t stream);
cudaError_t lines_mma_u8_async(const struct fused *f, struct choice choice, int rank,
                               cudaStream_t stream);
cudaError_t lines_axis_mma_u8_async(const struct stencil *stencil, cudaStream_t stream);
cudaError_t convolve_mma_u8_async(const struct fused *f, const struct op_convolve *op,
                                  struct choice choice, cudaStream_t stream);
cudaError_t gradient_mma_u8_async(const struct stencil *stencil, cudaStream_t stream);
cudaError_t small_gradient_async(const struct fused *f, cudaStream_t stream);
}
