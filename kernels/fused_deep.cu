// Filters of more than bytes and halves can hold: samples of two bytes or taps of 15 bits, alone or
// with a gradient behind them. Tensor cores multiply bytes and add up in 32 bits.
//
// Taps come twice as large, so that they sum to 2^16, as two bytes each; samples of more than 8
// bits and t are two bytes as well. With high and low bytes, a sum is
//
//   sum tap x = sum low low + 2^8 (sum low high + sum high low) + 2^16 sum high high
//
// of which each part is a product of its own. It needs 32 bits without a sign.
#include "kernels/fused_gradient.cuh"

#include <stdlib.h>

// ---- products ----

// sum (16 x 8) = start + a (16 x 32) b (32 x 8) of bytes; `brief`: of the first sixteen columns of a
// and rows of b only.
static __device__ inline void multiply(bool brief, int sum[4], const uint32_t a[4],
                                       const uint32_t b[2], const int start[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (brief)
        asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%7, %8, %9, %10};"
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(start[0]), "r"(start[1]), "r"(start[2]),
              "r"(start[3]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start[0]),
              "r"(start[1]), "r"(start[2]), "r"(start[3]));
#else
    for (int k = 0; k < 2; k++) {
        asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
            : "=r"(sum[2 * k]), "=r"(sum[2 * k + 1])
            : "r"(a[k]), "r"(b[0]), "r"(start[2 * k]), "r"(start[2 * k + 1]));
        if (!brief)
            asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+r"(sum[2 * k]), "+r"(sum[2 * k + 1])
                : "r"(a[2 + k]), "r"(b[1]));
    }
#endif
}

// The parts of a sum.
struct parts {
    int low[4], middle[4], high[4];
};

static __device__ inline uint32_t total(const struct parts *sum, int k)
{
    return (uint32_t)sum->low[k] + ((uint32_t)sum->middle[k] << 8) + ((uint32_t)sum->high[k] << 16);
}

// The low bytes of two words of two samples each, or the high ones.
static __device__ inline uint32_t bytes_of(uint32_t first, uint32_t second, int part)
{
    return __byte_perm(first, second, part ? 0x7531 : 0x6420);
}

// Bands as deep_fragments() wrote them, low and high bytes of taps: the left factor of each product
// down the columns, sixteen rows of samples at a time; the right factors along the rows, a group at
// a time.
template <typename S> struct deep_bands {
    static constexpr int pairs = (S::matrices + 1) / 2;
    static constexpr int kept = S::kept;
    uint32_t down[2][pairs + 1][2];
    uint32_t along[2][2][kept + 2];
    int down_start[4], along_start[4];
    const uint32_t *gradient; // factors for a gradient inside the picture
};

template <typename S> static __device__ inline deep_bands<S> load_bands(const struct fused *f)
{
    deep_bands<S> b;
    const uint32_t *from = f->fragments + threadIdx.x;
    for (int part = 0; part < 2; part++)
        for (int k = 0; k <= b.pairs; k++)
            for (int j = 0; j < 2; j++) {
                b.down[part][k][j] = k < b.pairs ? __ldg(from) : 0;
                from += k < b.pairs ? LANES : 0;
            }
    for (int part = 0; part < 2; part++)
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < (half ? S::groups_right : S::groups_left); k++, from += LANES)
                b.along[part][half][k] = __ldg(from);
    for (int k = 0; k < 4; k++) {
        b.down_start[k] = 1 << f->down_shift;
        b.along_start[k] = 1 << f->along_shift;
        asm volatile("" : "+r"(b.down_start[k]), "+r"(b.along_start[k]));
    }
    b.gradient = from - threadIdx.x;
    return b;
}

// ---- the filter ----

// t of 16 rows and one group, as left factors: low bytes and high ones, of rows l / 4 and l / 4 + 8.
struct deep_group {
    uint32_t part[2][2];
};

// `at` is this lane's row of the band at the group's first column.
template <typename S>
static __device__ inline struct deep_group filter_down(const struct fused *f, const deep_bands<S> *b,
                                                       uint32_t at)
{
    const int nothing[4] = {0};
    uint32_t samples[S::BYTES][S::matrices + 2]; // of two rows: two columns each, or one
    for (int k = 0; k < S::BYTES; k++) {
        load_band<S>(samples[k], at + 16 * k);
        if (S::matrices % 4 == 2)
            samples[k][S::matrices] = samples[k][S::matrices + 1] = 0;
    }
    uint32_t t[2][2]; // of each half: rows l / 4, l / 4 + 8
#pragma unroll
    for (int half = 0; half < 2; half++) {
        struct parts sum;
#pragma unroll
        for (int s = 0; 4 * s < S::matrices; s++) {
            constexpr bool odd = S::matrices % 4 == 2;
            bool last = odd && 4 * s + 4 > S::matrices;
            uint32_t a[2][4];
            for (int part = 0; part < 2; part++)
                for (int k = 0; k < 4; k++)
                    a[part][k] = b->down[part][2 * s + (last ? 0 : k / 2)][k % 2];
            uint32_t x[2][2];
            for (int part = 0; part < S::BYTES; part++)
                for (int k = 0; k < 2; k++) {
                    const uint32_t *from = &samples[S::BYTES == 1 ? 0 : half][4 * s + (last ? 0 : 2 * k)];
                    x[part][k] = bytes_of(from[0], from[1], S::BYTES == 1 ? half : part);
                }
            multiply(last, sum.low, a[0], x[0], s ? sum.low : b->down_start);
            multiply(last, sum.middle, a[1], x[0], s ? sum.middle : nothing);
            if (S::BYTES == 2) {
                multiply(last, sum.middle, a[0], x[S::BYTES - 1], sum.middle);
                multiply(last, sum.high, a[1], x[S::BYTES - 1], s ? sum.high : nothing);
            }
        }
        for (int k = 0; k < 2; k++) {
            if (S::BYTES == 1) {
                for (int i = 0; i < 4; i++)
                    sum.high[i] = 0;
                t[half][k] = __byte_perm(total(&sum, 2 * k), total(&sum, 2 * k + 1), 0x6521);
            } else {
                int shift = 15 - f->down_shift;
                t[half][k] = __byte_perm(total(&sum, 2 * k) << shift,
                                         total(&sum, 2 * k + 1) << shift, 0x7632);
            }
        }
    }
    struct deep_group made;
    for (int part = 0; part < 2; part++)
        for (int k = 0; k < 2; k++)
            made.part[part][k] = bytes_of(t[0][k], t[1][k], part);
    return made;
}

// Sums from groups that begin at group `oldest` of a ring: two of row l / 4, two of row l / 4 + 8.
template <typename S>
static __device__ inline void filter_along(const deep_bands<S> *b, int half,
                                           const struct deep_group t[], int oldest,
                                           uint32_t result[4])
{
    constexpr int ring = deep_bands<S>::kept + 1;
    const int nothing[4] = {0};
    struct parts sum;
#pragma unroll
    for (int s = 0; s < (half ? S::groups_right : S::groups_left); s += 2) {
        bool last = s + 1 == (half ? S::groups_right : S::groups_left);
        const struct deep_group *first = &t[(oldest + s) % ring];
        const struct deep_group *second = &t[(oldest + s + (last ? 0 : 1)) % ring];
        uint32_t a[2][4], w[2][2];
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < 2; k++) {
                a[part][k] = first->part[part][k];
                a[part][2 + k] = second->part[part][k];
                w[part][k] = b->along[part][half][s + (last ? 0 : k)];
            }
        multiply(last, sum.low, a[0], w[0], s ? sum.low : b->along_start);
        multiply(last, sum.middle, a[0], w[1], s ? sum.middle : nothing);
        multiply(last, sum.middle, a[1], w[0], sum.middle);
        multiply(last, sum.high, a[1], w[1], s ? sum.high : nothing);
    }
    for (int k = 0; k < 4; k++)
        result[k] = total(&sum, k);
}

// Two results next to each other.
template <typename S>
static __device__ inline uint32_t results_of(const struct fused *f, uint32_t first, uint32_t second)
{
    int shift = f->along_shift - 15;
    return S::BYTES == 1 ? __byte_perm(first, second, 0x0073)
                         : __byte_perm(first >> shift, second >> shift, 0x7632);
}

// As that of fused_narrow.
template <typename S>
static __device__ inline void filter(const struct fused *f, const deep_bands<S> *b,
                                     const uint8_t *samples, uint8_t *band, struct corner results)
{
    constexpr int kept = deep_bands<S>::kept, ring = kept + 1, count = FUSED_COLUMNS / GROUP;
    constexpr int step = GROUP * S::BYTES;
    uint32_t at = band_at<S>(samples);
    uint8_t *to = band + threadIdx.x / 4 * S::stage_stride + threadIdx.x % 4 * 4 * S::BYTES;
    struct stage stage = stage_of<S>(f, band, results);
    struct deep_group t[ring];
#pragma unroll
    for (int i = 0; i < kept; i++)
        t[i] = filter_down<S>(f, b, at + i * step);
    at += kept * step;
#pragma unroll(ring % 2 ? 2 * ring : ring)
    for (int i = 0; i < count; i++) {
        t[(i + kept) % ring] = filter_down<S>(f, b, at);
        uint32_t left[4], right[4];
        filter_along<S>(b, 0, t, i % ring, left);
        filter_along<S>(b, 1, t, i % ring, right);
        at += step;
        for (int k = 0; k < 2; k++) {
            uint32_t first = results_of<S>(f, left[2 * k], left[2 * k + 1]);
            uint32_t second = results_of<S>(f, right[2 * k], right[2 * k + 1]);
            uint8_t *row = to + i % 2 * step + 8 * k * S::stage_stride;
            if (S::BYTES == 1)
                *(uint32_t *)row = word_of(first, second);
            else
                *(uint2 *)row = make_uint2(first, second);
        }
        if (i % 2)
            store_stage<S, false, true>(f, &stage);
    }
}

// ---- the gradient ----

// Of eight columns of a band, of their low and their high bytes: weighted sums of three rows,
// differences of two rows apart. The high ones count 256 times as much.
struct deep_slopes {
    uint32_t smooth[2][2], slope[2][2];
};

static __device__ inline struct deep_slopes slopes_of(const struct slope_down down[2],
                                                      uint32_t upper, uint32_t lower)
{
    struct deep_slopes made;
    upper = turned(upper);
    lower = turned(lower);
    for (int part = 0; part < 2; part++) {
        const uint32_t columns[2] = {__byte_perm(upper, 0, part ? 0x4341 : 0x4240),
                                     __byte_perm(lower, 0, part ? 0x4341 : 0x4240)};
        multiply_halves(made.smooth[part], down[part].smooth, columns);
        multiply_halves(made.slope[part], down[part].slope, columns);
    }
    return made;
}

// In units of 2^-24, as the lengths are.
struct deep_finisher {
    float limit, low, high, below, above;
};

static __device__ inline struct deep_finisher deep_finisher_of(const struct fused *f)
{
    const struct lookup *lookup = &f->sink.lookup;
    const float unit = 1 / 16777216.0f;
    return {f->gradient.limit * unit, lookup->low * unit, lookup->high * unit, lookup->below * unit,
            lookup->above * unit};
}

// A length in the low 16 bits.
template <enum finish FINISH>
static __device__ inline uint32_t finished(const struct deep_finisher *f, float length, float base)
{
    if (FINISH == FINISH_THRESHOLD)
        length = length < f->low ? f->below : length > f->high ? f->above : length;
    else
        length = fminf(length, f->limit);
    return __float_as_uint(__fmaf_rd(length, 16777216.0f, base));
}

template <enum finish FINISH>
static __device__ inline void lengths_of(const struct deep_finisher *finisher, float base,
                                         const struct slope_along *along,
                                         const struct deep_slopes *left,
                                         const struct deep_slopes *right, uint32_t length[2])
{
    const float nothing[4] = {0};
    float gx[4], gy[4];
    for (int part = 0; part < 2; part++) {
        const uint32_t smooth[4] = {left->smooth[part][0], left->smooth[part][1],
                                    right->smooth[part][0], right->smooth[part][1]};
        const uint32_t slope[4] = {left->slope[part][0], left->slope[part][1],
                                   right->slope[part][0], right->slope[part][1]};
        multiply(false, gx, smooth, along->slope, part ? gx : nothing);
        multiply(false, gy, slope, along->smooth, part ? gy : nothing);
    }
    for (int k = 0; k < 2; k++)
        length[k] = word_of(
            finished<FINISH>(finisher, fabsf(gx[2 * k]) + fabsf(gy[2 * k]), base),
            finished<FINISH>(finisher, fabsf(gx[2 * k + 1]) + fabsf(gy[2 * k + 1]), base));
}

// As that of fused_narrow.
template <typename S, enum finish FINISH>
static __device__ inline void filter_gradient(const struct fused *f, const deep_bands<S> *b,
                                              const uint8_t *samples, uint8_t *band, uint4 *kept_w,
                                              struct corner results)
{
    constexpr int kept = deep_bands<S>::kept, ring = kept + 1, count = FUSED_COLUMNS / GROUP;
    constexpr int step = GROUP * S::BYTES;
    struct slope_down down[2] = {load_slope_down(f, b->gradient, results.y)};
    for (int k = 0; k < 4; k++) {
        __half2 much = __half2half2(__int2half_rn(256));
        down[1].smooth[k] = bits_of(__hmul2(halves(down[0].smooth[k]), much));
        down[1].slope[k] = bits_of(__hmul2(halves(down[0].slope[k]), much));
    }
    struct slope_edges edges = slope_edges_of(f, b->gradient, kept_w, results.x);
    struct deep_finisher finisher = deep_finisher_of(f);
    float base = 8388608.0f + (float)f->gradient.base;
    uint32_t at = band_at<S>(samples);
    uint8_t *to = band + threadIdx.x / 4 * S::stage_stride + threadIdx.x % 4 * 4;
    struct stage stage = stage_of<S>(f, band, results);
    struct deep_group t[ring];
    struct deep_slopes slopes[3];
    auto slopes_at = [&](int half, int oldest) {
        uint32_t sum[4];
        filter_along<S>(b, half, t, oldest, sum);
        return slopes_of(down, results_of<S>(f, sum[0], sum[1]), results_of<S>(f, sum[2], sum[3]));
    };
#pragma unroll
    for (int i = 0; i < kept; i++)
        t[i] = filter_down<S>(f, b, at + i * step);
    slopes[0] = slopes_at(0, 0);
#pragma unroll(ring == 2 ? 2 : count)
    for (int i = 0; i < count; i++) {
        t[(i + kept) % ring] = filter_down<S>(f, b, at + (i + kept) * step);
        slopes[1] = slopes_at(1, i % ring);
        slopes[2] = slopes_at(0, (i + 1) % ring);
        uint32_t length[2];
        for (int half = 0; half < 2; half++) {
            struct slope_along along = slope_along_of(&edges, 2 * i + half);
            lengths_of<FINISH>(&finisher, base, &along, &slopes[half], &slopes[half + 1], length);
            for (int k = 0; k < 2; k++)
                *(uint32_t *)(to + i % 2 * step + 16 * half + 8 * k * S::stage_stride) = length[k];
        }
        slopes[0] = slopes[2];
        if (i % 2)
            store_stage<S, false, FINISH == FINISH_LOOKUP>(f, &stage);
    }
}

// ---- kernels ----

template <typename S>
static constexpr int deep_blocks = S::GRADIENT                      ? 4
                                   : S::BYTES == 1 && S::REACH <= 16 ? 6
                                   : S::BYTES == 2 && S::REACH > 16  ? 3
                                                                     : 4;

template <typename S>
static __global__ void __launch_bounds__(FUSED_THREADS, deep_blocks<S>)
    deep(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    deep_bands<S> b = load_bands<S>(&f);
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *band, struct corner results) {
                      filter<S>(&f, &b, samples, band, results);
                  });
}

template <typename S, enum finish FINISH>
static __global__ void __launch_bounds__(FUSED_THREADS, deep_blocks<S>)
    deep_gradient(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    __shared__ uint4 edges[FUSED_WARPS][2 * LANES];
    deep_bands<S> b = load_bands<S>(&f);
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *band, struct corner results) {
                      filter_gradient<S, FINISH>(&f, &b, samples, band, edges[threadIdx.y],
                                                 results);
                  });
}

// ---- taps ----

// Byte `part` of twice the tap at `distance` from the centre, as byte `at` of a word.
static uint32_t tap_byte(const int32_t *tap, int radius, int distance, int part, int at)
{
    if (abs(distance) > radius)
        return 0;
    return ((uint32_t)tap[abs(distance)] * 2 >> 8 * part & 0xff) << 8 * at;
}

// Lane l holds, of a block of 16 columns of the left factor, numbers 4 (l % 4) .. + 3 of row l / 4;
// of the right factor, the same of column l / 4. Sixteen rows of samples come as 2 q, 2 q + 1 of the
// first eight and of the second; columns of a group come as load_band() finds them.
size_t deep_fragments(const struct op_separable *op, struct choice choice, bool gradient,
                      uint32_t *to)
{
    int pairs = ((BAND + 2 * choice.reach) / 8 + 1) / 2;
    size_t used = 0;
    for (int i = 0; i < 2 * pairs * 2 * LANES; i++, used++) {
        int lane = i % LANES, lower = i / LANES % 2, pair = i / (2 * LANES) % pairs;
        int part = i / (2 * LANES * pairs);
        for (int e = 0; to && e < 4; e++) {
            int row = 16 * pair + 8 * (e / 2) + lane % 4 * 2 + e % 2;
            to[used] = (e ? to[used] : 0) | tap_byte(op->tap_y, op->radius_y,
                                                     row - lane / 4 - 8 * lower - choice.reach,
                                                     part, e);
        }
    }
    for (int part = 0; part < 2; part++)
        for (int half = 0; half < 2; half++)
            for (int i = 0; i < groups_along(choice.reach, choice.left, gradient, half) * LANES; i++, used++) {
                int lane = i % LANES, q = lane % 4, n = lane / 4;
                int column = gradient ? 8 * half + n - 4 : n / 2 * 4 + 2 * half + n % 2;
                for (int e = 0; to && e < 4; e++) {
                    int of_group = choice.bytes == 1 ? 4 * q + 2 * (e % 2) + e / 2
                                                     : 8 * (e / 2) + 2 * q + e % 2;
                    int distance = GROUP * (i / LANES) + of_group - column - choice.left;
                    to[used] = (e ? to[used] : 0) |
                               tap_byte(op->tap_x, op->radius_x, distance, part, e);
                }
            }
    return used;
}

// ---- launchers ----

template <typename S> static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    if constexpr (!S::GRADIENT)
        return launch_tiles<S>(deep<S>, f, deep_blocks<S>, stream);
    else
        switch (f->finish) {
        case FINISH_THRESHOLD:
            return launch_tiles<S>(deep_gradient<S, FINISH_THRESHOLD>, f, deep_blocks<S>, stream);
        case FINISH_LIMIT:
            return launch_tiles<S>(deep_gradient<S, FINISH_LIMIT>, f, deep_blocks<S>, stream);
        default:
            return launch_tiles<S>(deep_gradient<S, FINISH_LOOKUP>, f, deep_blocks<S>, stream);
        }
}

static cudaError_t launch_bytes(const struct fused *f, int reach, cudaStream_t stream)
{
    switch (reach) {
    case 8:
        return launch<shape<8, 8, 1, false>>(f, stream);
    case 16:
        return launch<shape<16, 16, 1, false>>(f, stream);
    case 24:
        return launch<shape<24, 24, 1, false>>(f, stream);
    default:
        return launch<shape<32, 32, 1, false>>(f, stream);
    }
}

cudaError_t deep_async(const struct fused *f, struct choice choice, bool gradient,
                       cudaStream_t stream)
{
    if (choice.bytes == 1)
        return launch_bytes(f, choice.reach, stream);
    if (gradient)
        return choice.reach == 4 ? launch<shape<4, 8, 2, true>>(f, stream)
                                 : launch<shape<8, 16, 2, true>>(f, stream);
    switch (choice.reach) {
    case 4:
        return launch<shape<4, 8, 2, false>>(f, stream);
    case 8:
        return launch<shape<8, 8, 2, false>>(f, stream);
    case 16:
        return launch<shape<16, 16, 2, false>>(f, stream);
    default:
        return launch<shape<32, 32, 2, false>>(f, stream);
    }
}
