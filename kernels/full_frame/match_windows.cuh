// Sums over windows, in device code: of their columns, which slide down, as bytes that tensor cores
// add up along the rows.
#pragma once

#include "kernels/full_frame/match.cuh"

// Sums of a window's rows in each of four neighbouring columns: of samples in packed halves, of
// their squares.
struct columns {
    uint32_t even, odd;
    uint32_t square[4];
};

static __device__ inline void columns_add(struct columns *to, uint32_t word)
{
    to->even += word & 0x00ff00ff;
    to->odd += word >> 8 & 0x00ff00ff;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff;
        to->square[k] += sample * sample;
    }
}

// Four rows at once: bytes that lie one above the other make a word.
static __device__ inline void columns_add_vec4(struct columns *to, const uint32_t row[4])
{
    uint32_t upper[2] = {__byte_perm(row[0], row[1], 0x5140), __byte_perm(row[0], row[1], 0x7362)};
    uint32_t lower[2] = {__byte_perm(row[2], row[3], 0x5140), __byte_perm(row[2], row[3], 0x7362)};
    uint32_t sum[4];
    for (int k = 0; k < 4; k++) {
        uint32_t column = __byte_perm(upper[k / 2], lower[k / 2], k % 2 ? 0x7632 : 0x5410);
        sum[k] = __dp4a(column, 0x01010101u, 0u);
        to->square[k] = __dp4a(column, column, to->square[k]);
    }
    to->even += sum[0] | sum[2] << 16;
    to->odd += sum[1] | sum[3] << 16;
}

static __device__ inline void columns_take(struct columns *to, uint32_t word)
{
    to->even -= word & 0x00ff00ff;
    to->odd -= word >> 8 & 0x00ff00ff;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff;
        to->square[k] -= sample * sample;
    }
}

// Limbs: sums for tensor cores, which add them up along the rows: as bytes, of 6, 8 and 8 bits.
// Those of samples, up to 64 * 255, have two, those of squares three. Sums of the second are taken
// 64 times, together with the first.
enum limb { SAMPLES_LOW, SAMPLES_HIGH, SQUARES_LOW, SQUARES_MIDDLE, SQUARES_HIGH, LIMBS };

// Four columns' limbs, one of each in a word.
static __device__ inline void limbs_of(uint32_t limb[LIMBS], const struct columns *c)
{
    const uint32_t *q = c->square;
    uint32_t left = __byte_perm(q[0] >> 6, q[1] >> 6, 0x5140);
    uint32_t right = __byte_perm(q[2] >> 6, q[3] >> 6, 0x5140);
    uint32_t low =
        __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    limb[SAMPLES_LOW] = (c->even & 0x003f003f) | (c->odd & 0x003f003f) << 8;
    limb[SAMPLES_HIGH] = (c->even >> 6 & 0x00ff00ff) | (c->odd >> 6 & 0x00ff00ff) << 8;
    limb[SQUARES_LOW] = low & 0x3f3f3f3f;
    limb[SQUARES_MIDDLE] = __byte_perm(left, right, 0x5410);
    limb[SQUARES_HIGH] = __byte_perm(left, right, 0x7632);
}

// Sums over windows, as a lane has them of a product of limbs and ones.
struct window_sums {
    int samples[4], squares[4], squares_high[4];
};

static __device__ inline int squares_of(const struct window_sums *sums, int k)
{
    return sums->squares[k] + (sums->squares_high[k] << 14);
}

// The place at (column, row) of a span, whose windows' sums are known: keep its score, and mark it
// in its row of the span's map, if it is enough. Few places get here, unless there is a map.
template <bool MAP>
static __device__ __noinline__ void take_place(const struct match *m, int x, int y, int products,
                                               int samples, int squares, uint32_t *bits)
{
    if (x >= m->columns || y >= m->rows)
        return;
    float score = score_of(&m->pattern, products, samples, squares);
    if (MAP || score >= m->min_score)
        m->score[(i64)y * m->columns + x] = score;
    if (score >= m->min_score)
        atomicOr(&bits[x % SPAN / 32], 1u << x % 32);
}
