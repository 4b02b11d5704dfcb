// Shared by the forms of OP_CONVOLVE: how sums become results, in whichever type holds them, and
// which form makes one.
#pragma once

#include "kernels/stencil/convolve.h"

static __device__ inline int convolved(const struct convolve_end *end, int64_t sum)
{
    sum = end->absolute && sum < 0 ? -sum : sum;
    sum = (sum + end->offset) >> end->bits;
    return (int)min(max(end->base + sum, (int64_t)end->low), (int64_t)end->high);
}

static __device__ inline int convolved(const struct convolve_end *end, int32_t sum)
{
    sum = end->absolute ? abs(sum) : sum;
    sum = (sum + (int32_t)end->offset) >> end->bits;
    return min(max(sum, end->low - end->base), end->high - end->base) + end->base;
}

// Modulo 2^32.
static __device__ inline int convolved(const struct convolve_end *end, uint32_t sum)
{
    return convolved(end, (int32_t)sum);
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
