// The length of a gradient, in device code.
#pragma once

#include "kernels/device.cuh"
#include "kernels/stencil/fused.h"

// How lengths are made: the sum |gx| + |gy| unscaled; sums, or roots, where gx^2 + gy^2 is below
// SHORT_SQUARES and the scale fits 32 bits; any.
enum length_form { LENGTH_PLAIN, LENGTH_SUM, LENGTH_ROOT, LENGTH_LONG };
enum { SHORT_SQUARES = 1 << 28 };

// floor(256 sqrt(m)): single precision is off by a few units in the last of its 24 bits, one step
// of Newton's method mends that for sums beyond 2^24, and the rest is at most one.
static __device__ inline int64_t root_q8(int64_t m)
{
    int64_t square = m << 16;
    float estimate = 256 * sqrtf((float)m);
    int64_t root = (int64_t)estimate;
    if (m >= 1 << 24)
        root += (int64_t)((float)(square - root * root) / (2 * estimate));
    while (root * root > square)
        root--;
    while ((root + 1) * (root + 1) <= square)
        root++;
    return root;
}

// The same of m below SHORT_SQUARES. The approximate root errs by 2^-22 at most, and so by less than 1
// here; its floor is in the low bits of 2^23 + it. Squares are compared modulo 2^32, as they differ by
// less than 2^24.
static __device__ inline int short_root_q8(int m)
{
    float estimate;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"((float)m));
    int root = __float_as_int(__fmaf_rd(estimate, 256, 8388608.0f)) & 0x7fffff;
    int beyond = (int)((uint32_t)root * (uint32_t)root - ((uint32_t)m << 16));
    return root - (beyond > 0) + (beyond + 2 * root + 1 <= 0);
}

// |gx| + |gy|, or one of them.
static __device__ inline int gradient_sum(const struct lengths *g, int gx, int gy)
{
    return g->norm == NORM_X ? abs(gx) : g->norm == NORM_Y ? abs(gy) : abs(gx) + abs(gy);
}

template <length_form FORM>
static __device__ inline int gradient_length(const struct lengths *g, int gx, int gy)
{
    if (FORM == LENGTH_PLAIN)
        return g->base + min(abs(gx) + abs(gy), g->limit);
    if (FORM == LENGTH_SUM || FORM == LENGTH_ROOT) {
        constexpr int bits = FORM == LENGTH_ROOT ? 24 : 16;
        int length =
            FORM == LENGTH_ROOT ? short_root_q8(gx * gx + gy * gy) : gradient_sum(g, gx, gy);
        uint64_t scaled = (uint64_t)(uint32_t)length * (uint32_t)g->scale + (1u << bits >> 1);
        return g->base + (int)min((uint32_t)(scaled >> bits), (uint32_t)g->limit);
    }
    int64_t scaled;
    if (g->norm == NORM_L2) {
        scaled = (root_q8((int64_t)gx * gx + (int64_t)gy * gy) * g->scale + (1 << 23)) >> 24;
    } else {
        scaled = (gradient_sum(g, gx, gy) * g->scale + (1 << 15)) >> 16;
    }
    return g->base + (int)min(scaled, (int64_t)g->limit);
}

static length_form length_form_of(const struct op_gradient *op, int depth)
{
    int64_t most = (int64_t)(2 * op->side + op->center) * max_sample(depth);
    if (op->norm == NORM_L1 && op->scale == 65536)
        return LENGTH_PLAIN;
    // The scaled length without its fraction has to fit 32 bits.
    bool is_short = 2 * most * most < SHORT_SQUARES && op->scale > 0 && op->scale <= 1 << 24;
    return !is_short ? LENGTH_LONG : op->norm == NORM_L2 ? LENGTH_ROOT : LENGTH_SUM;
}
