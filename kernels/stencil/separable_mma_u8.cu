// Separable filters by products of bytes, for what halves cannot hold: samples of two bytes or taps
// of 15 bits, alone, sharpened, or with a gradient behind them. Tensor cores multiply bytes and add
// up in 32 bits.
//
// Taps come twice as large, so that they sum to 2^16, as two bytes each; samples of more than 8
// bits and t are two bytes as well. With high and low bytes, a sum is
//
//   sum tap x = sum low low + 2^8 (sum low high + sum high low) + 2^16 sum high high
//
// of which each part is a product of its own. It needs 32 bits without a sign. Outer taps below 256 have
// no high byte, so that a wide Gaussian's high bytes need fewer products: S::HIGH.
#define DEPENDENT_LAUNCHES
#include <assert.h>
#include <stdlib.h>

#include "kernels/stencil/fused_gradient.cuh"
#include "kernels/stencil/separable.cuh"

// ---- bands ----

// The groups of a half's products with the low bytes of taps, or with the high ones.
template <typename S> static __host__ __device__ constexpr int first_of(int half, int part)
{
    return first_group(part ? S::HIGH : S::REACH, S::LEFT, S::GRADIENT, half);
}

template <typename S> static __host__ __device__ constexpr int last_of(int half, int part)
{
    return last_group(part ? S::HIGH : S::REACH, S::LEFT, S::GRADIENT, half);
}

// The order in which a band's matrices are multiplied: first those that high bytes fall on.
static __host__ __device__ constexpr int matrix_of(int k, int outer, int matrices)
{
    return outer ? (k + outer) % matrices : k;
}

// Bands as separable_mma_u8_fragments() wrote them, low and high bytes of taps: the left factor of
// each product down the columns, sixteen rows of samples at a time; the right factors along the
// rows, a group at a time.
template <typename S> struct u8_bands {
    static constexpr int pairs = (S::matrices + 1) / 2;
    uint32_t down[2][2 * pairs];
    uint32_t along[2][2][S::max_groups];
    int down_start[4], along_start[4];
    const uint32_t *gradient; // factors for a gradient inside the picture
};

template <typename S> static __device__ inline u8_bands<S> load_bands(const struct fused *f)
{
    u8_bands<S> b;
    const uint32_t *from = f->fragments + threadIdx.x;
    for (int part = 0; part < 2; part++)
        for (int k = 0; k < 2 * b.pairs - (part ? 2 * S::outer : 0); k++, from += WARP)
            b.down[part][k] = __ldg(from);
    for (int part = 0; part < 2; part++)
        for (int half = 0; half < 2; half++) {
            int first = first_of<S>(half, part);
            for (int k = first; k <= last_of<S>(half, part); k++, from += WARP)
                b.along[part][half][k - first] = __ldg(from);
        }
    for (int k = 0; k < 4; k++) {
        b.down_start[k] = 1 << f->down_shift;
        b.along_start[k] = 1 << f->along_shift;
        asm volatile("" : "+r"(b.down_start[k]), "+r"(b.along_start[k]));
    }
    b.gradient = from - threadIdx.x;
    return b;
}

// ---- the filter ----

// t of 16 rows and one group, as left factors: low bytes and high ones, of rows l / 4 and l / 4
// + 8.
struct u8_group {
    uint32_t part[2][2];
};

// Sums of both halves of a group, from `s` times two pairs of matrices. Products that need each
// other's results are far apart.
template <typename S>
static __device__ inline void sum_down(const u8_bands<S> *b, int s,
                                       const uint32_t samples[S::BYTES][S::matrices + 1],
                                       struct parts sum[2])
{
    const int nothing[4] = {0};
    bool brief = 4 * s + 2 == S::matrices;
    bool has_high = 4 * s < S::high_matrices, high_brief = 4 * s + 2 == S::high_matrices;
    uint32_t x[2][2][2];
    for (int half = 0; half < 2; half++)
        for (int part = 0; part < S::BYTES; part++)
            for (int k = 0; k < (brief ? 1 : 2); k++) {
                const uint32_t *from = samples[S::BYTES == 1 ? 0 : half];
                int first = matrix_of(4 * s + 2 * k, S::outer, S::matrices);
                int second = matrix_of(4 * s + 2 * k + 1, S::outer, S::matrices);
                x[half][part][k] = bytes_of(from[first], from[second], S::BYTES == 1 ? half : part);
            }
    const uint32_t *low = &b->down[0][4 * s], *high = &b->down[1][4 * s];
    for (int half = 0; half < 2; half++)
        multiply(brief, sum[half].low, low, x[half][0], s ? sum[half].low : b->down_start);
    for (int half = 0; half < 2 && has_high; half++)
        multiply(high_brief, sum[half].middle, high, x[half][0], s ? sum[half].middle : nothing);
    for (int half = 0; half < 2 && S::BYTES == 2 && has_high; half++)
        multiply(high_brief, sum[half].high, high, x[half][S::BYTES - 1],
                 s ? sum[half].high : nothing);
    for (int half = 0; half < 2 && S::BYTES == 2; half++)
        multiply(brief, sum[half].middle, low, x[half][S::BYTES - 1], sum[half].middle);
}

// `at` is this lane's row of the band at the group's first column.
template <typename S, bool FULL>
static __device__ inline struct u8_group filter_down(const struct fused *f, const u8_bands<S> *b,
                                                     uint32_t at)
{
    uint32_t samples[S::BYTES][S::matrices + 1]; // of two rows: two columns each, or one
    struct parts sum[2] = {};
    for (int k = 0; k < S::BYTES; k++)
        load_band<S>(samples[k], at + 16 * k);
    for (int k = 0; k < S::BYTES && S::BYTES == 2 && !FULL; k++)
        if (S::GRADIENT)
            limit_damage<S::matrices>(&f->source.view, samples[k]);
        else
            for (int m = 0; m < S::matrices; m++)
                samples[k][m] = plain_pair(&f->source.view, samples[k][m]);
#pragma unroll
    for (int s = 0; 4 * s < S::matrices; s++)
        sum_down<S>(b, s, samples, sum);
    uint32_t t[2][2]; // of each half: rows l / 4, l / 4 + 8
    int shift = S::BYTES == 1 || FULL ? 0 : 15 - f->down_shift;
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++)
            t[half][k] = S::BYTES == 1 ? __byte_perm(total(&sum[half], 2 * k),
                                                     total(&sum[half], 2 * k + 1), 0x6521)
                                       : __byte_perm(total(&sum[half], 2 * k) << shift,
                                                     total(&sum[half], 2 * k + 1) << shift, 0x7632);
    struct u8_group made;
    for (int part = 0; part < 2; part++)
        for (int k = 0; k < 2; k++)
            made.part[part][k] = bytes_of(t[0][k], t[1][k], part);
    return made;
}

// The i-th of a band. Two groups go into one product of 32 numbers if the first has an even number in
// its tile: they lie side by side in registers where the loop over i is unrolled.
template <typename S, bool FULL, bool SHARP>
static __device__ inline sixteen filter_along(const struct fused *f, const u8_bands<S> *b,
                                              const struct u8_group *left,
                                              const struct u8_group *right, int i)
{
    const int nothing[4] = {0};
    struct parts sum[2];
    auto add = [&](int s, int half, int t, int tap, int part) {
        int first = first_of<S>(half, tap), last = last_of<S>(half, tap);
        bool even = S::pairs && (i + s) % 2 == 0;
        if (s < first || s > last || (S::pairs && !even && s > first))
            return;
        bool two = even && s < last;
        // High bytes of taps begin the middle part, unless low ones begin earlier.
        bool begins = s == first && (part != 1 || (first_of<S>(half, 0) == first &&
                                                   (tap == 1 || first_of<S>(half, 1) > first)));
        const struct u8_group *groups = (half ? right : left) + s;
        int *to = part == 0 ? sum[half].low : part == 1 ? sum[half].middle : sum[half].high;
        const int *start = !begins ? to : part == 0 ? b->along_start : nothing;
        const uint32_t a[4] = {groups[0].part[t][0], groups[0].part[t][1], groups[two].part[t][0],
                               groups[two].part[t][1]};
        multiply(!two, to, a, &b->along[tap][half][s - first], start);
    };
#pragma unroll
    for (int s = 0; s < S::max_groups; s++) {
        for (int half = 0; half < 2; half++)
            add(s, half, 0, 0, 0);
        for (int half = 0; half < 2; half++)
            add(s, half, 0, 1, 1);
        for (int half = 0; half < 2; half++)
            add(s, half, 1, 1, 2);
        for (int half = 0; half < 2; half++)
            add(s, half, 1, 0, 1);
    }
    struct sixteen made;
    int shift = S::BYTES == 1 || FULL ? 0 : f->along_shift - 15;
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++) {
            uint32_t first = total(&sum[half], 2 * k), second = total(&sum[half], 2 * k + 1);
            (half ? made.right : made.left)[k] =
                S::BYTES == 1 && !SHARP ? __byte_perm(first, second, 0x0073)
                                        : __byte_perm(first >> shift, second >> shift, 0x7632);
        }
    return made;
}

// Sharpen 16 columns, the i-th of a band, from `y`: blurred ones with the bits below the samples that
// make them 16.
template <typename S>
static __device__ inline void sharpen_sixteen(const struct fused *f, const uint8_t *samples, int i,
                                              struct sixteen *y)
{
    int row = threadIdx.y * S::each + S::REACH + threadIdx.x / 4;
    int column = S::LEFT + i * GROUP + threadIdx.x % 4 * 2;
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++) {
            const uint8_t *at =
                samples + (row + 8 * k) * S::stride + (column + 8 * half) * S::BYTES;
            uint32_t *word = &(half ? y->right : y->left)[k], pair;
            if (S::BYTES == 1)
                pair = __byte_perm(*(const uint16_t *)at, 0, 0x4140);
            else
                pair = plain_pair(&f->source.view, *(const uint32_t *)at);
            int first = sharpened(&f->rounding, (int)(pair & 0xffff), (int)(*word & 0xffff));
            int second = sharpened(&f->rounding, (int)(pair >> 16), (int)(*word >> 16));
            *word = __byte_perm((uint32_t)first, (uint32_t)second, S::BYTES == 1 ? 0x0040 : 0x5410);
        }
}

// Filter a band, as filter() of separable_mma_f16 does. FULL: samples of 16 bits, which need
// no limit and no shift. SHARP: sharpen it.
template <typename S, bool FULL, bool SHARP>
static __device__ inline void filter(const struct fused *f, const u8_bands<S> *b,
                                     struct u8_group t[S::ahead + 1], bool follows,
                                     const uint8_t *samples, uint8_t *stage, struct corner results)
{
    constexpr int step = GROUP * S::BYTES;
    uint32_t at = band_at<S>(samples);
    if (!follows)
#pragma unroll
        for (int i = 0; i < S::ahead; i++)
            t[i] = filter_down<S, FULL>(f, b, at + i * step);
#pragma unroll
    for (int i = 0; i < S::made; i++) {
        t[S::ahead] = filter_down<S, FULL>(f, b, at + (i + S::ahead) * step);
        struct sixteen y = filter_along<S, FULL, SHARP>(f, b, t, t, i);
        if (SHARP)
            sharpen_sixteen<S>(f, samples, i, &y);
        put_sixteen<S>(stage, i, &y);
        store_if_full<S, S::BYTES == 1>(f, stage, results, i);
        for (int k = 0; k < S::ahead; k++)
            t[k] = t[k + 1];
    }
}

// ---- the gradient ----

// Slopes of 16 columns of a band, of low and high bytes: weighted sums of three rows, differences
// of two rows apart. The high ones count 256 times as much.
struct u8_slopes {
    uint32_t smooth[2][4], slope[2][4];
};

static __device__ inline void make_slopes(struct u8_slopes *to, int half,
                                          const struct slope_down down[2],
                                          const uint32_t filtered[2])
{
    uint32_t upper = transposed(filtered[0]), lower = transposed(filtered[1]);
    for (int part = 0; part < 2; part++) {
        const uint32_t columns[2] = {__byte_perm(upper, 0, part ? 0x4341 : 0x4240),
                                     __byte_perm(lower, 0, part ? 0x4341 : 0x4240)};
        multiply_halves(to->smooth[part] + 2 * half, down[part].smooth, columns);
        multiply_halves(to->slope[part] + 2 * half, down[part].slope, columns);
    }
}

// In units of 2^-24, as the lengths are.
struct u8_finisher {
    float limit, low, high, below, above;
    float base; // in the low bits of 2^23 + it
};

static __device__ inline struct u8_finisher u8_finisher_of(const struct fused *f)
{
    const struct lookup *lookup = &f->sink.lookup;
    const float unit = 1 / 16777216.0f;
    return {f->gradient.limit * unit, lookup->low * unit,   lookup->high * unit,
            lookup->below * unit,     lookup->above * unit, 8388608.0f + (float)f->gradient.base};
}

// A length in the low 16 bits.
template <bool THRESHOLD>
static __device__ inline uint32_t finished(const struct u8_finisher *f, float gx, float gy)
{
    float length = fabsf(gx) + fabsf(gy);
    if (THRESHOLD) {
        length = length < f->low ? f->below : length;
        length = length > f->high ? f->above : length;
    } else {
        length = fminf(length, f->limit);
    }
    return __float_as_uint(__fmaf_rd(length, 16777216.0f, f->base));
}

// The lengths of eight columns, four behind the first of the slopes.
template <bool THRESHOLD>
static __device__ inline void lengths_of(const struct u8_finisher *finisher,
                                         const struct slope_along *along,
                                         const struct u8_slopes *slopes, uint32_t length[2])
{
    const float nothing[4] = {0};
    float gx[4], gy[4];
    for (int part = 0; part < 2; part++) {
        multiply(false, gx, slopes->smooth[part], along->slope, part ? gx : nothing);
        multiply(false, gy, slopes->slope[part], along->smooth, part ? gy : nothing);
    }
    for (int k = 0; k < 2; k++)
        length[k] = word_of(finished<THRESHOLD>(finisher, gx[2 * k], gy[2 * k]),
                            finished<THRESHOLD>(finisher, gx[2 * k + 1], gy[2 * k + 1]));
}

// Filter a band and make its gradient, as filter_gradient() of separable_mma_f16 does.
template <typename S, bool FULL, bool THRESHOLD, bool SIDES>
static __device__ inline void filter_gradient(const struct fused *f, const u8_bands<S> *b,
                                              struct u8_group t[S::ahead + 1],
                                              struct u8_slopes *slopes, bool follows,
                                              const uint8_t *samples, uint8_t *stage,
                                              struct corner results)
{
    constexpr int step = GROUP * S::BYTES;
    struct slope_down down[2] = {slope_down_of(f, b->gradient, results.y)};
    for (int k = 0; k < 4; k++) {
        __half2 much = __half2half2(__int2half_rn(256));
        down[1].smooth[k] = bits_of(__hmul2(halves(down[0].smooth[k]), much));
        down[1].slope[k] = bits_of(__hmul2(halves(down[0].slope[k]), much));
    }
    struct slope_along first = slope_along_of(b->gradient), second = other_way(&first);
    struct u8_finisher finisher = u8_finisher_of(f);
    uint32_t at = band_at<S>(samples);
    struct sixteen y;
    if (!follows) {
#pragma unroll
        for (int i = 0; i < S::ahead; i++)
            t[i] = filter_down<S, FULL>(f, b, at + i * step);
        y = filter_along<S, FULL, false>(f, b, t, t, 0);
        make_slopes(slopes, 0, down, y.left);
    }
#pragma unroll(SIDES ? 1 : 2)
    for (int i = 0; i < S::made; i++) {
        t[S::ahead] = filter_down<S, FULL>(f, b, at + (i + S::ahead) * step);
        y = filter_along<S, FULL, false>(f, b, t + 1, t, i);
        struct sixteen length;
        int x = results.x + i * GROUP;
        struct slope_along eight = slope_along_at<SIDES>(f, &first, x);
        make_slopes(slopes, 1, down, y.right);
        lengths_of<THRESHOLD>(&finisher, &eight, slopes, length.left);
        if (SIDES) {
            eight = slope_along_at<SIDES>(f, &first, x + 8);
            second = other_way(&eight);
        }
        make_slopes(slopes, 0, down, y.left);
        lengths_of<THRESHOLD>(&finisher, &second, slopes, length.right);
        put_sixteen<S>(stage, i, &length);
        store_if_full<S, false>(f, stage, results, i);
        for (int k = 0; k < S::ahead; k++)
            t[k] = t[k + 1];
    }
}

// ---- kernels ----

template <typename S, bool FULL, bool SHARP>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    separable_mma_u8(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    u8_bands<S> b = load_bands<S>(&f);
    struct u8_group t[S::ahead + 1];
    // Sharpening reads the samples at the results again.
    make_tiles<S, SHARP && S::carried ? S::LEFT : S::carried>(
        &f, (uint8_t *)memory,
        [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool follows) {
            filter<S, FULL, SHARP>(&f, &b, t, follows, samples, stage, results);
        });
}

template <typename S, bool FULL, bool THRESHOLD>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    separable_mma_u8_gradient(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    u8_bands<S> b = load_bands<S>(&f);
    struct u8_group t[S::ahead + 1];
    struct u8_slopes slopes;
    make_tiles<S, S::carried>(
        &f, (uint8_t *)memory,
        [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool follows) {
            if (has_sides(&f, results.x))
                filter_gradient<S, FULL, THRESHOLD, true>(&f, &b, t, &slopes, follows, samples,
                                                          stage, results);
            else
                filter_gradient<S, FULL, THRESHOLD, false>(&f, &b, t, &slopes, follows, samples,
                                                           stage, results);
        });
}

// ---- taps ----

// Lane l holds, of a block of 16 columns of the left factor, numbers 4 (l % 4) .. + 3 of row l / 4;
// of the right factor, the same of column l / 4. Sixteen rows of samples come as 2 q, 2 q + 1 of
// the first eight and of the second; columns of a group come as load_band() finds them.
size_t separable_mma_u8_fragments(const struct op_separable *op, struct choice choice,
                                  bool gradient, uint32_t *to)
{
    int matrices = (BAND + 2 * choice.reach) / 8, outer = (choice.reach - choice.high) / 8;
    int pairs = (matrices + 1) / 2, high_pairs = pairs - outer;
    size_t used = 0;
    for (int i = 0; i < (pairs + high_pairs) * 2 * WARP; i++, used++) {
        int lane = i % WARP, lower = i / WARP % 2, pair = i / (2 * WARP) % pairs;
        int part = i / (2 * WARP * pairs);
        for (int e = 0; to && e < 4; e++) {
            int row = 8 * matrix_of(2 * pair + e / 2, outer, matrices) + lane % 4 * 2 + e % 2;
            to[used] =
                (e ? to[used] : 0) | tap_byte(op->tap_y, op->radius_y,
                                              row - lane / 4 - 8 * lower - choice.reach, part, e);
        }
    }
    for (int n = 0; n < 4; n++) {
        int part = n / 2, half = n % 2, reach = part ? choice.high : choice.reach;
        int first = first_group(reach, choice.left, gradient, half);
        int count = last_group(reach, choice.left, gradient, half) - first + 1;
        int column = choice.left - (gradient ? GRADIENT_OFFSET : 0) + 8 * half;
        for (int i = 0; i < count * WARP; i++, used++) {
            int q = i % WARP % 4;
            for (int e = 0; to && e < 4; e++) {
                int of_group =
                    choice.bytes == 1 ? 4 * q + 2 * (e % 2) + e / 2 : 8 * (e / 2) + 2 * q + e % 2;
                int distance = GROUP * (first + i / WARP) + of_group - column - i % WARP / 4;
                to[used] =
                    (e ? to[used] : 0) | tap_byte(op->tap_x, op->radius_x, distance, part, e);
            }
        }
    }
    return used;
}

// ---- launchers ----

template <typename S, bool FULL>
static cudaError_t launch_any(const struct fused *f, cudaStream_t stream)
{
    if constexpr (!S::GRADIENT)
        return launch_tiles<S, S::most>(separable_mma_u8<S, FULL, false>, f, stream);
    else if (f->finish == FINISH_THRESHOLD)
        return launch_tiles<S, S::most>(separable_mma_u8_gradient<S, FULL, true>, f, stream);
    else
        return launch_tiles<S, S::most>(separable_mma_u8_gradient<S, FULL, false>, f, stream);
}

template <typename S> static cudaError_t launch_shape(const struct fused *f, cudaStream_t stream)
{
    if constexpr (!S::GRADIENT && S::REACH != 24)
        if (f->rounding.amount)
            return launch_tiles<S, S::most>(separable_mma_u8<S, false, true>, f, stream);
    assert(!f->rounding.amount); // see fused.cu, sharpened
    if constexpr (S::BYTES == 2)
        if (f->down_shift == f->along_shift)
            return launch_any<S, true>(f, stream);
    return launch_any<S, false>(f, stream);
}

// A shape that every GPU has the shared memory for.
template <typename S> static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    static_assert(S::shared_bytes <= LEAST_SHARED_BYTES, "Turing has no more for a block");
    return launch_shape<S>(f, stream);
}

// One that some have not, and what these do instead.
template <typename S, typename Smaller>
static cudaError_t launch_either(const struct fused *f, cudaStream_t stream)
{
    int device = 0, bytes = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error)
        return error;
    return (size_t)bytes < S::shared_bytes ? launch<Smaller>(f, stream)
                                           : launch_shape<S>(f, stream);
}

static cudaError_t launch_bytes(const struct fused *f, struct choice choice, cudaStream_t stream)
{
    bool all = choice.high == choice.reach;
    switch (choice.reach) {
    case 8:
        return launch<shape<8, 16, 1, false, 4, 5>>(f, stream);
    case 16:
        return launch<shape<16, 16, 1, false, 4, 5>>(f, stream);
    case 24:
        return launch<shape<24, 32, 1, false, 4, 4>>(f, stream);
    case 32:
        return all ? launch<shape<32, 32, 1, false, 4, 3>>(f, stream)
                   : launch<shape<32, 32, 1, false, 4, 3, SEPARABLE_HIGH_32>>(f, stream);
    default:
        return all ? launch<shape<48, 48, 1, false, 4, 3>>(f, stream)
                   : launch<shape<48, 48, 1, false, 4, 3, SEPARABLE_HIGH_48>>(f, stream);
    }
}

cudaError_t separable_mma_u8_async(const struct fused *f, struct choice choice, bool gradient,
                                   cudaStream_t stream)
{
    if (choice.bytes == 1)
        return launch_bytes(f, choice, stream);
    if (gradient)
        return choice.reach == 4 ? launch<shape<4, 8, 2, true, 4, 4>>(f, stream)
                                 : launch<shape<8, 16, 2, true, 4, 4>>(f, stream);
    switch (choice.reach) {
    case 4:
        return launch<shape<4, 8, 2, false, 4, 7>>(f, stream);
    case 8:
        return launch<shape<8, 8, 2, false, 4, 6>>(f, stream);
    case 16:
        return launch<shape<16, 16, 2, false, 4, 4>>(f, stream);
    case 32:
        return launch<shape<32, 32, 2, false, 4, 3>>(f, stream);
    default:
        return launch_either<shape<48, 48, 2, false, 4, 2>, shape<48, 48, 2, false, 2, 3>>(f,
                                                                                           stream);
    }
}
