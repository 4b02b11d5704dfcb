// The narrow form of stages/separable.h on 8-bit samples, alone or with a gradient behind it, in
// half precision.
//
// The numbers are exact. A 16-bit integer n below 2^11 is, as the bits of a half, the number
// n * 2^-24 (subnormal ones included: what would be the hidden bit is a mantissa bit like the
// others). So bytes and sums of a few bytes are halves as they stand, sums of them are integer sums
// while they stay below 2^11, and a tensor core's products with taps of at most 11 significant bits
// add up exactly in single precision while the sum stays below 2^24 units.
#include "kernels/fused_gradient.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the filter ----

// Bands as narrow_fragments() wrote them: the left factor of each product down the columns; the
// right factors of the products along the rows.
template <typename S> struct narrow_bands {
    static constexpr int steps = (S::matrices + 1) / 2, kept = S::kept;
    uint32_t down[steps][4];
    uint32_t along[2][kept + 1][2];
    // What sums start from. It comes from memory as four for each lane: of one value the compiler
    // would keep one register, of one for all lanes a uniform one, and copy it each time.
    float down_start[4], along_start[4];
    const uint32_t *gradient; // this lane's factors for a gradient inside the picture
};

static __device__ inline void load_start(float to[4], const uint32_t *from)
{
    float4 four = __ldg((const float4 *)from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

template <typename S> static __device__ inline narrow_bands<S> load_bands(const struct fused *f)
{
    narrow_bands<S> b;
    const uint32_t *from = f->fragments;
    for (int k = 0; k < b.steps; k++) {
        uint4 four = __ldg((const uint4 *)from + threadIdx.x);
        b.down[k][0] = four.x;
        b.down[k][1] = four.y;
        b.down[k][2] = four.z;
        b.down[k][3] = four.w;
        from += 4 * LANES;
    }
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < (half ? S::groups_right : S::groups_left); k++) {
            uint2 two = __ldg((const uint2 *)from + threadIdx.x);
            b.along[half][k][0] = two.x;
            b.along[half][k][1] = two.y;
            from += 2 * LANES;
        }
    load_start(b.down_start, from + 4 * threadIdx.x);
    load_start(b.along_start, from + 4 * LANES + 4 * threadIdx.x);
    b.gradient = from + 8 * LANES + 4 * threadIdx.x;
    return b;
}

// t of 16 rows and one group, as a left factor: first its even columns, then its odd ones.
struct narrow_group {
    uint32_t factor[4];
};

// `at` is this lane's row of the band at the group's first column.
template <typename S>
static __device__ inline struct narrow_group
filter_down(const struct fused *f, const narrow_bands<S> *b, uint32_t at)
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
    struct narrow_group t;
    for (int k = 0; k < 4; k++)
        t.factor[k] = word_of(whole(sum[k / 2][k % 2 * 2], f->down_scale),
                              whole(sum[k / 2][k % 2 * 2 + 1], f->down_scale));
    return t;
}

// Results in the low bits: two of row l / 4, two of row l / 4 + 8. The groups that they are made of
// begin at group `oldest` of a ring.
template <typename S>
static __device__ inline void filter_along(const struct fused *f, const narrow_bands<S> *b, int half,
                                           const struct narrow_group t[], int oldest,
                                           uint32_t result[4])
{
    float sum[4];
#pragma unroll
    for (int s = 0; s < (half ? S::groups_right : S::groups_left); s++)
        multiply(false, sum, t[(oldest + s) % (b->kept + 1)].factor, b->along[half][s],
                 s ? sum : b->along_start);
    for (int k = 0; k < 4; k++)
        result[k] = whole(sum[k], f->along_scale);
}

// A warp filters its band of 16 rows from left to right, a group at a time: down the columns from
// shared memory, then along the rows from the last few of these, which it keeps. Each lane makes
// four neighbouring results of two rows. Eight rows fall in different banks.
template <typename S>
static __device__ inline void filter(const struct fused *f, const narrow_bands<S> *b,
                                     const uint8_t *samples, uint8_t *band, struct corner results)
{
    constexpr int kept = narrow_bands<S>::kept, ring = kept + 1, count = FUSED_COLUMNS / GROUP;
    uint32_t at = band_at<S>(samples);
    uint8_t *to = band + threadIdx.x / 4 * S::stage_stride + threadIdx.x % 4 * 4;
    struct stage stage = stage_of<S>(f, band, results);
    struct narrow_group t[ring];
#pragma unroll
    for (int i = 0; i < kept; i++)
        t[i] = filter_down<S>(f, b, at + i * GROUP);
    at += kept * GROUP;
#pragma unroll(ring % 2 ? 2 * ring : ring)
    for (int i = 0; i < count; i++) {
        t[(i + kept) % ring] = filter_down<S>(f, b, at);
        uint32_t left[4], right[4];
        filter_along<S>(f, b, 0, t, i % ring, left);
        filter_along<S>(f, b, 1, t, i % ring, right);
        at += GROUP;
        for (int k = 0; k < 2; k++)
            *(uint32_t *)(to + i % 2 * GROUP + 8 * k * S::stage_stride) =
                word_of(__byte_perm(left[2 * k], left[2 * k + 1], 0x0040),
                        __byte_perm(right[2 * k], right[2 * k + 1], 0x0040));
        if (i % 2)
            store_stage<S, false, true>(f, &stage);
    }
}

// ---- the gradient ----

// Of eight columns of a band: weighted sums of three rows, differences of two rows apart.
struct narrow_slopes {
    uint32_t smooth[2], slope[2];
};

static __device__ inline struct narrow_slopes slopes_of(const struct slope_down *down,
                                                        const uint32_t filtered[4])
{
    const uint32_t columns[2] = {turned(word_of(filtered[0], filtered[1])),
                                 turned(word_of(filtered[2], filtered[3]))};
    struct narrow_slopes made;
    multiply_halves(made.smooth, down->smooth, columns);
    multiply_halves(made.slope, down->slope, columns);
    return made;
}

// The lengths of eight columns from two times eight columns of slopes, the first of which begin
// four before them.
template <enum finish FINISH>
static __device__ inline void lengths_of(const struct finisher *finisher,
                                         const struct slope_along *along,
                                         const struct narrow_slopes *left,
                                         const struct narrow_slopes *right, uint32_t length[2])
{
    const uint32_t smooth[4] = {left->smooth[0], left->smooth[1], right->smooth[0],
                                right->smooth[1]};
    const uint32_t slope[4] = {left->slope[0], left->slope[1], right->slope[0], right->slope[1]};
    uint32_t gx[2], gy[2];
    multiply_halves(gx, smooth, along->slope);
    multiply_halves(gy, slope, along->smooth);
    for (int k = 0; k < 2; k++)
        length[k] =
            finished_lanes<FINISH>(finisher, __hadd2(__habs2(halves(gx[k])), __habs2(halves(gy[k]))));
}

// As filter(), then the gradient of 14 of the 16 rows. Filtered columns come by eight, from four
// before the tile on; those of a gradient are one product behind.
template <typename S, enum finish FINISH>
static __device__ inline void filter_gradient(const struct fused *f, const narrow_bands<S> *b,
                                              const uint8_t *samples, uint8_t *band, uint4 *kept_w,
                                              struct corner results)
{
    constexpr int kept = narrow_bands<S>::kept, ring = kept + 1, count = FUSED_COLUMNS / GROUP;
    constexpr int first = S::groups_left - 1; // the group that a left half ends in
    struct slope_down down = load_slope_down(f, b->gradient, results.y);
    struct slope_edges edges = slope_edges_of(f, b->gradient, kept_w, results.x);
    struct finisher finisher = finisher_of(f);
    uint32_t at = band_at<S>(samples);
    uint8_t *to = band + threadIdx.x / 4 * S::stage_stride + threadIdx.x % 4 * 4;
    struct stage stage = stage_of<S>(f, band, results);
    struct narrow_group t[ring];
    struct narrow_slopes slopes[3];
    uint32_t filtered[4];
#pragma unroll
    for (int i = 0; i <= first; i++)
        t[i] = filter_down<S>(f, b, at + i * GROUP);
    filter_along<S>(f, b, 0, t, 0, filtered);
    slopes[0] = slopes_of(&down, filtered);
#pragma unroll
    for (int i = 0; i < count; i++) {
        t[(i + kept) % ring] = filter_down<S>(f, b, at + (i + kept) * GROUP);
        filter_along<S>(f, b, 1, t, i % ring, filtered);
        slopes[1] = slopes_of(&down, filtered);
        filter_along<S>(f, b, 0, t, (i + 1) % ring, filtered);
        slopes[2] = slopes_of(&down, filtered);
        uint32_t left[2], right[2];
        struct slope_along along = slope_along_of(&edges, 2 * i);
        lengths_of<FINISH>(&finisher, &along, &slopes[0], &slopes[1], left);
        along = slope_along_of(&edges, 2 * i + 1);
        lengths_of<FINISH>(&finisher, &along, &slopes[1], &slopes[2], right);
        slopes[0] = slopes[2];
        for (int k = 0; k < 2; k++)
            *(uint32_t *)(to + i % 2 * GROUP + 8 * k * S::stage_stride) =
                __byte_perm(left[k], right[k], 0x6420);
        if (i % 2)
            store_stage<S, true, FINISH == FINISH_LOOKUP>(f, &stage);
    }
}

// ---- kernels ----

// Blocks that are to share a multiprocessor: as many as its shared memory holds, while there are
// registers.
template <typename S>
static constexpr int narrow_blocks = S::GRADIENT ? 6 : S::REACH <= 8 ? 8 : 5;

template <typename S>
static __global__ void __launch_bounds__(FUSED_THREADS, narrow_blocks<S>)
    narrow(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    narrow_bands<S> b = load_bands<S>(&f);
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *band, struct corner results) {
                      filter<S>(&f, &b, samples, band, results);
                  });
}

template <typename S, enum finish FINISH>
static __global__ void __launch_bounds__(FUSED_THREADS, narrow_blocks<S>)
    narrow_gradient(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    __shared__ uint4 edges[FUSED_WARPS][2 * LANES];
    narrow_bands<S> b = load_bands<S>(&f);
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *band, struct corner results) {
                      filter_gradient<S, FINISH>(&f, &b, samples, band, edges[threadIdx.y],
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

bool narrow_holds(const struct op_separable *op)
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
size_t narrow_fragments(const struct op_separable *op, struct choice choice, bool gradient,
                        uint32_t *to)
{
    int steps = ((BAND + 2 * choice.reach) / 8 + 1) / 2;
    size_t used = 0;
    for (int i = 0; i < steps * 4 * LANES; i++, used++) {
        // Four words a lane: rows + 0, + 8 of columns + 0, and of columns + 8.
        int lane = i / 4 % LANES, k = 16 * (i / (4 * LANES)) + i % 4 / 2 * 8 - i % 2 * 8;
        if (to)
            to[used] = tap_pair(op->tap_y, op->radius_y, k + lane % 4 * 2 - lane / 4 - choice.reach,
                                1);
    }
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < groups_along(choice.reach, choice.left, gradient, half) * 2 * LANES; i++, used++) {
            int lane = i / 2 % LANES, k = GROUP * (i / (2 * LANES)) + lane % 4 * 4 + i % 2;
            int column = gradient ? 8 * half + lane / 4 - 4
                                  : lane / 8 * 4 + 2 * half + lane / 4 % 2;
            if (to)
                to[used] = tap_pair(op->tap_x, op->radius_x, k - column - choice.left, 2);
        }
    // What sums start from: half a unit of the result, in units of 2^-24.
    const float start[2] = {ldexpf(0.5f, op->bits - op->fraction - 24),
                            ldexpf(0.5f, op->bits + op->fraction - 24)};
    for (size_t i = 0; i < 8 * LANES; i++, used++)
        if (to)
            memcpy(to + used, &start[i / (4 * LANES)], sizeof start[0]);
    return used;
}

// ---- launchers ----

template <typename S> static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    if constexpr (!S::GRADIENT)
        return launch_tiles<S>(narrow<S>, f, narrow_blocks<S>, stream);
    else
        switch (f->finish) {
        case FINISH_THRESHOLD:
            return launch_tiles<S>(narrow_gradient<S, FINISH_THRESHOLD>, f, narrow_blocks<S>,
                                   stream);
        case FINISH_LIMIT:
            return launch_tiles<S>(narrow_gradient<S, FINISH_LIMIT>, f, narrow_blocks<S>, stream);
        default:
            return launch_tiles<S>(narrow_gradient<S, FINISH_LOOKUP>, f, narrow_blocks<S>, stream);
        }
}

cudaError_t narrow_async(const struct fused *f, struct choice choice, bool gradient,
                         cudaStream_t stream)
{
    struct fused scaled = *f;
    // Sums are in units of 2^-24.
    scaled.down_scale = ldexpf(1, 24 - f->down_shift);
    scaled.along_scale = ldexpf(1, 24 - f->along_shift);
    if (gradient)
        return choice.reach == 4 ? launch<shape<4, 8, 1, true>>(&scaled, stream)
                                 : launch<shape<8, 16, 1, true>>(&scaled, stream);
    switch (choice.reach) {
    case 4:
        return launch<shape<4, 8, 1, false>>(&scaled, stream);
    case 8:
        return launch<shape<8, 8, 1, false>>(&scaled, stream);
    case 16:
        return launch<shape<16, 16, 1, false>>(&scaled, stream);
    default:
        return launch<shape<24, 24, 1, false>>(&scaled, stream);
    }
}
