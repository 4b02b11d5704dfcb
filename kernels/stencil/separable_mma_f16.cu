// The narrow form of stages/design/separable.h on 8-bit samples, alone or with a gradient behind
// it, in half precision.
//
// The numbers are exact. A 16-bit integer n below 2^11 is, as the bits of a half, the number
// n * 2^-24 (subnormal ones included: what would be the hidden bit is a mantissa bit like the
// others). So bytes and sums of a few bytes are halves as they stand, sums of them are integer sums
// while they stay below 2^11, and a tensor core's products with taps of at most 11 significant bits
// add up exactly in single precision while the sum stays below 2^24 units.
#define DEPENDENT_LAUNCHES
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/stencil/fused_gradient.cuh"

// ---- the filter ----

// Bands as separable_mma_f16_fragments() wrote them: the left factor of each product down the
// columns; the right factors of the products along the rows.
template <typename S> struct f16_bands {
    static constexpr int steps = (S::matrices + 1) / 2;
    uint32_t down[steps][4];
    uint32_t along[2][S::max_groups][2];
    // The start of sums comes from memory as four for each lane: of one value the compiler
    // would keep one register, of one for all lanes a uniform one, and copy it each time.
    float down_start[4], along_start[4];
    const uint32_t *gradient; // factors for a gradient inside the picture
};

static __device__ inline void load_start(float to[4], const uint32_t *from)
{
    float4 four = __ldg((const float4 *)from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

template <typename S> static __device__ inline f16_bands<S> load_bands(const struct fused *f)
{
    f16_bands<S> b;
    const uint32_t *from = f->fragments;
    for (int k = 0; k < b.steps; k++) {
        uint4 four = __ldg((const uint4 *)from + threadIdx.x);
        b.down[k][0] = four.x;
        b.down[k][1] = four.y;
        b.down[k][2] = four.z;
        b.down[k][3] = four.w;
        from += 4 * WARP;
    }
    for (int half = 0; half < 2; half++)
        for (int k = 0; k <= (half ? S::last_right - S::first_right : S::last_left - S::first_left);
             k++) {
            uint2 two = __ldg((const uint2 *)from + threadIdx.x);
            b.along[half][k][0] = two.x;
            b.along[half][k][1] = two.y;
            from += 2 * WARP;
        }
    load_start(b.down_start, from + 4 * threadIdx.x);
    load_start(b.along_start, from + 4 * WARP + 4 * threadIdx.x);
    b.gradient = from + 8 * WARP;
    return b;
}

// t of 16 rows and one group, as a left factor: first its even columns, then its odd ones.
struct f16_group {
    uint32_t factor[4];
};

// `at` is this lane's row of the band at the group's first column.
template <typename S>
static __device__ inline struct f16_group filter_down(const struct fused *f, const f16_bands<S> *b,
                                                      uint32_t at)
{
    uint32_t samples[S::matrices + 1]; // of two rows and two columns each
    float sum[2][4];
    load_band<S>(samples, at);
#pragma unroll
    for (int s = 0; s < b->steps; s++) {
        bool last = S::matrices % 2 && s == b->steps - 1;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const uint32_t rows[2] = {
                __byte_perm(samples[2 * s], 0, half ? 0x4341 : 0x4240),
                last ? 0 : __byte_perm(samples[2 * s + 1], 0, half ? 0x4341 : 0x4240)};
            multiply(last, sum[half], b->down[s], rows, s ? sum[half] : b->down_start);
        }
    }
    struct f16_group t;
    for (int k = 0; k < 4; k++)
        t.factor[k] = word_of(whole(sum[k / 2][k % 2 * 2], f->down_scale),
                              whole(sum[k / 2][k % 2 * 2 + 1], f->down_scale));
    return t;
}

// A left half of 16 columns and a right one, from the groups that they are made of: in the low
// bits, two of row l / 4, two of row l / 4 + 8.
struct halves_of_sixteen {
    uint32_t left[4], right[4];
};

template <typename S>
static __device__ inline struct halves_of_sixteen filter_along(const struct fused *f,
                                                               const f16_bands<S> *b,
                                                               const struct f16_group *left,
                                                               const struct f16_group *right)
{
    float sum[2][4];
#pragma unroll
    for (int s = 0; s < S::max_groups; s++) {
        if (s >= S::first_left && s <= S::last_left)
            multiply(false, sum[0], left[s].factor, b->along[0][s - S::first_left],
                     s > S::first_left ? sum[0] : b->along_start);
        if (s >= S::first_right && s <= S::last_right)
            multiply(false, sum[1], right[s].factor, b->along[1][s - S::first_right],
                     s > S::first_right ? sum[1] : b->along_start);
    }
    struct halves_of_sixteen made;
    for (int k = 0; k < 4; k++) {
        made.left[k] = whole(sum[0][k], f->along_scale);
        made.right[k] = whole(sum[1][k], f->along_scale);
    }
    return made;
}

// A warp filters its band of 16 rows from left to right, a group at a time: down the columns from
// shared memory, then along the rows from the last few of these, which it keeps: in `t`, for a tile
// that follows, too.
template <typename S>
static __device__ inline void filter(const struct fused *f, const f16_bands<S> *b,
                                     struct f16_group t[S::ahead + 1], bool follows,
                                     const uint8_t *samples, uint8_t *stage, struct corner results)
{
    uint32_t at = band_at<S>(samples);
    if (!follows)
#pragma unroll
        for (int i = 0; i < S::ahead; i++)
            t[i] = filter_down<S>(f, b, at + i * GROUP);
#pragma unroll
    for (int i = 0; i < S::made; i++) {
        t[S::ahead] = filter_down<S>(f, b, at + (i + S::ahead) * GROUP);
        struct halves_of_sixteen y = filter_along<S>(f, b, t, t);
        uint32_t *to = stage_word(stage, i);
        for (int k = 0; k < 2; k++)
            to[k * 8 * STAGE_BYTES / 4] =
                word_of(__byte_perm(y.left[2 * k], y.left[2 * k + 1], 0x0040),
                        __byte_perm(y.right[2 * k], y.right[2 * k + 1], 0x0040));
        for (int k = 0; k < S::ahead; k++)
            t[k] = t[k + 1];
    }
    if (f->sink.lookup.table)
        store_stage<S, true, true>(f, stage, results);
    else
        store_stage<S, true, false>(f, stage, results);
}

// ---- the gradient ----

// Slopes of 16 columns of a band, the left half first: weighted sums of three rows, differences of
// two rows apart.
struct f16_slopes {
    uint32_t smooth[4], slope[4];
};

static __device__ inline void make_slopes(struct f16_slopes *to, int half,
                                          const struct slope_down *down, const uint32_t filtered[4])
{
    const uint32_t columns[2] = {transposed(word_of(filtered[0], filtered[1])),
                                 transposed(word_of(filtered[2], filtered[3]))};
    multiply_halves(to->smooth + 2 * half, down->smooth, columns);
    multiply_halves(to->slope + 2 * half, down->slope, columns);
}

// The lengths of eight columns, four behind the first of the slopes.
template <bool THRESHOLD>
static __device__ inline void lengths_of(const struct finisher *finisher,
                                         const struct slope_along *along,
                                         const struct f16_slopes *slopes, uint32_t length[2])
{
    uint32_t gx[2], gy[2];
    multiply_halves(gx, slopes->smooth, along->slope);
    multiply_halves(gy, slopes->slope, along->smooth);
    for (int k = 0; k < 2; k++)
        length[k] = finished_lanes<THRESHOLD>(
            finisher, __hadd2(__habs2(halves(gx[k])), __habs2(halves(gy[k]))));
}

// Filter a band as filter() does, then make the gradient of 14 of its 16 rows. Filtered halves
// begin four columns before the tile; each new one takes the place of the last but one among the
// slopes, and so a left half comes behind its right neighbour every other time. The last one made is
// the first of a tile that follows.
template <typename S, bool THRESHOLD, bool SIDES>
static __device__ inline void filter_gradient(const struct fused *f, const f16_bands<S> *b,
                                              struct f16_group t[S::ahead + 1],
                                              struct f16_slopes *slopes, bool follows,
                                              const uint8_t *samples, uint8_t *stage,
                                              struct corner results)
{
    struct slope_down down = slope_down_of(f, b->gradient, results.y);
    struct slope_along first = slope_along_of(b->gradient), second = other_way(&first);
    struct finisher finisher = finisher_of(f);
    uint32_t at = band_at<S>(samples);
    struct halves_of_sixteen y;
    if (!follows) {
#pragma unroll
        for (int i = 0; i < S::ahead; i++)
            t[i] = filter_down<S>(f, b, at + i * GROUP);
        y = filter_along<S>(f, b, t, t);
        make_slopes(slopes, 0, &down, y.left);
    }
#pragma unroll(SIDES ? 1 : S::made)
    for (int i = 0; i < S::made; i++) {
        t[S::ahead] = filter_down<S>(f, b, at + (i + S::ahead) * GROUP);
        y = filter_along<S>(f, b, t + 1, t);
        uint32_t left[2], right[2];
        int x = results.x + i * GROUP;
        struct slope_along eight = slope_along_at<SIDES>(f, &first, x);
        make_slopes(slopes, 1, &down, y.right);
        lengths_of<THRESHOLD>(&finisher, &eight, slopes, left);
        if (SIDES) {
            eight = slope_along_at<SIDES>(f, &first, x + 8);
            second = other_way(&eight);
        }
        make_slopes(slopes, 0, &down, y.left);
        lengths_of<THRESHOLD>(&finisher, &second, slopes, right);
        uint32_t *to = stage_word(stage, i);
        for (int k = 0; k < 2; k++)
            to[k * 8 * STAGE_BYTES / 4] = __byte_perm(left[k], right[k], 0x6420);
        for (int k = 0; k < S::ahead; k++)
            t[k] = t[k + 1];
    }
    if (!THRESHOLD && f->sink.lookup.table)
        store_stage<S, true, true>(f, stage, results);
    else
        store_stage<S, true, false>(f, stage, results);
}

// ---- kernels ----

template <typename S>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    separable_mma_f16(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    f16_bands<S> b = load_bands<S>(&f);
    struct f16_group t[S::ahead + 1];
    make_tiles<S, S::carried>(
        &f, (uint8_t *)memory,
        [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool follows) {
            filter<S>(&f, &b, t, follows, samples, stage, results);
        });
}

template <typename S, bool THRESHOLD>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    separable_mma_f16_gradient(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    f16_bands<S> b = load_bands<S>(&f);
    struct f16_group t[S::ahead + 1];
    struct f16_slopes slopes;
    make_tiles<S, S::carried>(
        &f, (uint8_t *)memory,
        [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool follows) {
            if (has_sides(&f, results.x))
                filter_gradient<S, THRESHOLD, true>(&f, &b, t, &slopes, follows, samples, stage,
                                                    results);
            else
                filter_gradient<S, THRESHOLD, false>(&f, &b, t, &slopes, follows, samples, stage,
                                                     results);
        });
}

// ---- taps ----

// The bits of a half that is the integer `value`; -1 if none is.
static int half_of(int value)
{
    if (value == 0)
        return 0;
    int exponent = 0;
    while (value >> (exponent + 1))
        exponent++;
    if (exponent > 15)
        return -1;
    int mantissa = exponent > 10 ? value >> (exponent - 10) : value << (10 - exponent);
    int back = exponent > 10 ? mantissa << (exponent - 10) : mantissa >> (10 - exponent);
    return back == value ? ((exponent + 15) << 10) + (mantissa & 0x3ff) : -1;
}

bool separable_mma_f16_holds(const struct op_separable *op)
{
    for (int k = 0; k <= op->radius_x; k++)
        if (half_of(op->tap_x[k]) < 0)
            return false;
    for (int k = 0; k <= op->radius_y; k++)
        if (half_of(op->tap_y[k]) < 0)
            return false;
    return true;
}

// Two halves: the taps at `distance` from the centre and `step` behind it.
static uint32_t tap_pair(const int32_t *tap, int radius, int distance, int step)
{
    uint32_t pair = 0;
    for (int k = 0; k < 2; k++)
        if (abs(distance + k * step) <= radius)
            pair |= (uint32_t)half_of(tap[abs(distance + k * step)]) << 16 * k;
    return pair;
}

// Lane l holds, of a block of the left factor, columns 2 (l % 4) and the next of row l / 4; of the
// right factor, rows 2 (l % 4) and the next of column l / 4. Rows of the right factor are first a
// group's even columns, then its odd ones.
size_t separable_mma_f16_fragments(const struct op_separable *op, struct choice choice,
                                   bool gradient, uint32_t *to)
{
    int steps = ((BAND + 2 * choice.reach) / 8 + 1) / 2;
    size_t used = 0;
    for (int i = 0; i < steps * 4 * WARP; i++, used++) {
        // Four words a lane: rows + 0, + 8 of columns + 0, and of columns + 8.
        int lane = i / 4 % WARP, k = 16 * (i / (4 * WARP)) + i % 4 / 2 * 8 - i % 2 * 8;
        if (to)
            to[used] =
                tap_pair(op->tap_y, op->radius_y, k + lane % 4 * 2 - lane / 4 - choice.reach, 1);
    }
    for (int half = 0; half < 2; half++) {
        int first = first_group(choice.reach, choice.left, gradient, half);
        int count = last_group(choice.reach, choice.left, gradient, half) - first + 1;
        for (int i = 0; i < count * 2 * WARP; i++, used++) {
            int lane = i / 2 % WARP, k = GROUP * (first + i / (2 * WARP)) + lane % 4 * 4 + i % 2;
            int column = choice.left - (gradient ? GRADIENT_OFFSET : 0) + 8 * half + lane / 4;
            if (to)
                to[used] = tap_pair(op->tap_x, op->radius_x, k - column, 2);
        }
    }
    // Sums start from half a unit of the result, in units of 2^-24.
    const float start[2] = {ldexpf(0.5f, op->bits - op->fraction - 24),
                            ldexpf(0.5f, op->bits + op->fraction - 24)};
    for (size_t i = 0; i < 8 * WARP; i++, used++)
        if (to)
            memcpy(to + used, &start[i / (4 * WARP)], sizeof start[0]);
    return used;
}

// ---- launchers ----

template <typename S> static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    if constexpr (!S::GRADIENT)
        return launch_tiles<S, S::most>(separable_mma_f16<S>, f, stream);
    else if (f->finish == FINISH_THRESHOLD)
        return launch_tiles<S, S::most>(separable_mma_f16_gradient<S, true>, f, stream);
    else
        return launch_tiles<S, S::most>(separable_mma_f16_gradient<S, false>, f, stream);
}

cudaError_t separable_mma_f16_async(const struct fused *f, struct choice choice, bool gradient,
                                    cudaStream_t stream)
{
    struct fused scaled = *f;
    // Sums are in units of 2^-24.
    scaled.down_scale = ldexpf(1, 24 - f->down_shift);
    scaled.along_scale = ldexpf(1, 24 - f->along_shift);
    if (gradient)
        return choice.reach == 4 ? launch<shape<4, 16, 1, true, 4, 6>>(&scaled, stream)
                                 : launch<shape<8, 16, 1, true, 4, 6>>(&scaled, stream);
    switch (choice.reach) {
    case 4:
        return launch<shape<4, 16, 1, false, 4, 6>>(&scaled, stream);
    case 8:
        return launch<shape<8, 16, 1, false, 4, 6>>(&scaled, stream);
    case 16:
        return launch<shape<16, 16, 1, false, 4, 5>>(&scaled, stream);
    default:
        return launch<shape<24, 32, 1, false, 4, 4>>(&scaled, stream);
    }
}
