// The end of a separable filter, in device code.
#pragma once

#include "kernels/stencil/separable.h"

#include "kernels/device.cuh"

template <typename Sum> static __device__ inline Sum rounding_half(const struct rounding *r)
{
    return (Sum)1 << r->shift >> 1;
}

// y of OP_SEPARABLE with an amount. It fits 32 bits: amounts are at most 16 * 256.
static __device__ inline int sharpened(const struct rounding *r, int x, int blurred)
{
    int sharp = (x << (16 - r->depth)) * (256 + r->amount) - blurred * r->amount;
    sharp = (sharp + (1 << (23 - r->depth))) >> (24 - r->depth);
    return min(max(sharp, r->low), r->high);
}
