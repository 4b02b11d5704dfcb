// Shared by the forms of OP_CONVOLVE: how sums become results, in whichever type holds them, and
// which form makes one.
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

static __device__ inline int convolve_limited(const struct convolve_end *end, int64_t sum)
{
    return (int)min(max(end->base + sum, (int64_t)end->low), (int64_t)end->high);
}

static __device__ inline int convolved(const struct convolve_end *end, int64_t sum)
{
    sum = end->absolute && sum < 0 ? -sum : sum;
    return convolve_limited(end, (sum + end->offset) >> end->bits);
}

static __device__ inline int convolved(const struct convolve_end *end, int32_t sum)
{
    sum = end->absolute ? abs(sum) : sum;
    return convolve_limited(end, (sum + (int32_t)end->offset) >> end->bits);
}

static __device__ inline int convolved(const struct convolve_end *end, float sum)
{
    return convolved(end, __float2int_rn(sum));
}

enum { CONVOLVE_SIDE = 15 };

// True if convolve_tile_async() makes this of samples of `depth` bits.
static inline bool convolve_fits_tile(const struct op_convolve *op, int depth)
{
    return !op->rank && op->width <= CONVOLVE_SIDE && op->height <= CONVOLVE_SIDE &&
           op_convolve_max(op, depth) <= INT32_MAX;
}

// OP_CONVOLVE that fits a tile, with weights row by row.
cudaError_t convolve_tile_async(const struct stencil *stencil, cudaStream_t stream);
