// Convolutions of one or two pairs of lines in words (plan/op.h) by products of bytes. Tensor
// cores multiply bytes and add up in 32 bits.
//
// Taps and t are 16 bits with their sign, in two bytes each: the low one without a sign, the high one
// with it. A sum is
//
//   sum tap t = sum low low + 2^8 (sum low high + sum high low) + 2^16 sum high high
//
// Each part is a product of its own, modulo 2^32: the whole fits that. Both pairs of lines add to the
// same sums along the rows.
#define DEPENDENT_LAUNCHES
#include <assert.h>

#include "kernels/stencil/convolve.cuh"
#include "kernels/stencil/fused.cuh"

// ---- bands ----

// Bands as lines_mma_u8_fragments() wrote them, low and high bytes of taps: the left factor of each
// product down the columns, sixteen rows of samples at a time; the right factors along the rows, a
// group at a time.
template <typename S, int RANK> struct line_bands {
    static constexpr int pairs = (S::matrices + 1) / 2;
    uint32_t down[RANK][2][2 * pairs];
    uint32_t along[RANK][2][2][S::max_groups];
    int start[4]; // what rounds t
};

template <typename S, int RANK>
static __device__ inline line_bands<S, RANK> load_bands(const struct fused *f)
{
    line_bands<S, RANK> b;
    const uint32_t *from = f->fragments + threadIdx.x;
    for (int r = 0; r < RANK; r++)
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < 2 * b.pairs; k++, from += WARP)
                b.down[r][part][k] = __ldg(from);
    for (int r = 0; r < RANK; r++)
        for (int part = 0; part < 2; part++)
            for (int half = 0; half < 2; half++) {
                int first = half ? S::first_right : S::first_left;
                for (int k = first; k <= (half ? S::last_right : S::last_left); k++, from += WARP)
                    b.along[r][part][half][k - first] = __ldg(from);
            }
    for (int k = 0; k < 4; k++) {
        b.start[k] = 1 << f->down_shift >> 1;
        asm volatile("" : "+r"(b.start[k]));
    }
    return b;
}

// ---- down the columns ----

// t of 16 rows and one group, of each pair of lines, as left factors: low bytes and high ones, of
// rows l / 4 and l / 4 + 8.
template <int RANK> struct line_group {
    uint32_t part[RANK][2][2];
};

// Sums of both halves of a group by line r, from `s` times two pairs of matrices.
template <typename S, int RANK>
static __device__ inline void sum_down(const line_bands<S, RANK> *b, int r, int s,
                                       const uint32_t samples[S::BYTES][S::matrices + 1],
                                       struct parts sum[2])
{
    const int nothing[4] = {0};
    bool brief = 4 * s + 2 == S::matrices;
    uint32_t x[2][2][2];
    for (int half = 0; half < 2; half++)
        for (int part = 0; part < S::BYTES; part++)
            for (int k = 0; k < (brief ? 1 : 2); k++) {
                const uint32_t *from = &samples[S::BYTES == 1 ? 0 : half][4 * s + 2 * k];
                x[half][part][k] = bytes_of(from[0], from[1], S::BYTES == 1 ? half : part);
            }
    const uint32_t *low = &b->down[r][0][4 * s], *high = &b->down[r][1][4 * s];
    for (int half = 0; half < 2; half++)
        multiply(brief, sum[half].low, low, x[half][0], s ? sum[half].low : b->start);
    for (int half = 0; half < 2; half++)
        multiply_signed<true, false>(brief, sum[half].middle, high, x[half][0],
                                     s ? sum[half].middle : nothing);
    for (int half = 0; half < 2 && S::BYTES == 2; half++)
        multiply_signed<true, false>(brief, sum[half].high, high, x[half][1],
                                     s ? sum[half].high : nothing);
    for (int half = 0; half < 2 && S::BYTES == 2; half++)
        multiply(brief, sum[half].middle, low, x[half][1], sum[half].middle);
}

// Two sums as t, in the halves of a word.
static __device__ inline uint32_t shifted(const struct parts *sum, int k, int shift)
{
    return word_of((uint32_t)((int)total(sum, k) >> shift),
                   (uint32_t)((int)total(sum, k + 1) >> shift));
}

// `at` is this lane's row of the band at the group's first column.
template <typename S, int RANK>
static __device__ inline line_group<RANK> filter_down(const struct fused *f,
                                                      const line_bands<S, RANK> *b, uint32_t at)
{
    uint32_t samples[S::BYTES][S::matrices + 1]; // of two rows: two columns each, or one
    for (int k = 0; k < S::BYTES; k++)
        load_band<S>(samples[k], at + 16 * k);
    for (int k = 0; k < S::BYTES && S::BYTES == 2; k++)
        for (int m = 0; m < S::matrices; m++)
            samples[k][m] = plain_pair(&f->source.view, samples[k][m]);
    line_group<RANK> made;
#pragma unroll
    for (int r = 0; r < RANK; r++) {
        struct parts sum[2] = {};
#pragma unroll
        for (int s = 0; 4 * s < S::matrices; s++)
            sum_down<S, RANK>(b, r, s, samples, sum);
        uint32_t t[2][2]; // of each half: rows l / 4, l / 4 + 8
        for (int half = 0; half < 2; half++)
            for (int k = 0; k < 2; k++)
                t[half][k] = shifted(&sum[half], 2 * k, f->down_shift);
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < 2; k++)
                made.part[r][part][k] = bytes_of(t[0][k], t[1][k], part);
    }
    return made;
}

// ---- along the rows ----

// The i-th 16 columns of a band, from the groups that they are made of. Two groups, of which the
// first has an even number in the band, lie side by side in registers, and go into one product of 32
// numbers where the loop over i is unrolled.
template <typename S, int RANK>
static __device__ inline sixteen filter_along(const struct fused *f, const line_bands<S, RANK> *b,
                                              const line_group<RANK> *t, int i)
{
    const int nothing[4] = {0};
    struct parts sum[2];
    auto add = [&](int r, int s, int half, int of_t, int tap, int part) {
        int first = half ? S::first_right : S::first_left;
        int last = half ? S::last_right : S::last_left;
        bool even = S::pairs && (i + s) % 2 == 0;
        if (s < first || s > last || (S::pairs && !even && s > first))
            return;
        bool two = even && s < last;
        int *to = part == 0 ? sum[half].low : part == 1 ? sum[half].middle : sum[half].high;
        const int *start = r > 0 || s > first || (of_t == 1 && tap == 0) ? to : nothing;
        const uint32_t a[4] = {t[s].part[r][of_t][0], t[s].part[r][of_t][1],
                               t[s + two].part[r][of_t][0], t[s + two].part[r][of_t][1]};
        const uint32_t *taps = &b->along[r][tap][half][s - first];
        if (of_t)
            tap ? multiply_signed<true, true>(!two, to, a, taps, start)
                : multiply_signed<true, false>(!two, to, a, taps, start);
        else
            tap ? multiply_signed<false, true>(!two, to, a, taps, start)
                : multiply(!two, to, a, taps, start);
    };
#pragma unroll
    for (int r = 0; r < RANK; r++)
#pragma unroll
        for (int s = 0; s < S::max_groups; s++) {
            for (int half = 0; half < 2; half++)
                add(r, s, half, 0, 0, 0);
            for (int half = 0; half < 2; half++)
                add(r, s, half, 0, 1, 1);
            for (int half = 0; half < 2; half++)
                add(r, s, half, 1, 1, 2);
            for (int half = 0; half < 2; half++)
                add(r, s, half, 1, 0, 1);
        }
    struct sixteen made;
    for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++) {
            uint32_t first = (uint32_t)convolved(&f->end, total(&sum[half], 2 * k));
            uint32_t second = (uint32_t)convolved(&f->end, total(&sum[half], 2 * k + 1));
            (half ? made.right : made.left)[k] =
                __byte_perm(first, second, S::BYTES == 1 ? 0x0040 : 0x5410);
        }
    return made;
}

// ---- the kernel ----

template <typename S, int RANK>
static __device__ inline void filter(const struct fused *f, const line_bands<S, RANK> *b,
                                     line_group<RANK> t[S::ahead + 1], bool follows,
                                     const uint8_t *samples, uint8_t *stage, struct corner results)
{
    constexpr int step = GROUP * S::BYTES;
    uint32_t at = band_at<S>(samples);
    if (!follows)
#pragma unroll
        for (int i = 0; i < S::ahead; i++)
            t[i] = filter_down<S, RANK>(f, b, at + i * step);
#pragma unroll
    for (int i = 0; i < S::made; i++) {
        t[S::ahead] = filter_down<S, RANK>(f, b, at + (i + S::ahead) * step);
        struct sixteen y = filter_along<S, RANK>(f, b, t, i);
        put_sixteen<S>(stage, i, &y);
        store_if_full<S, S::BYTES == 1>(f, stage, results, i);
        for (int k = 0; k < S::ahead; k++)
            t[k] = t[k + 1];
    }
}

template <typename S, int RANK>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    lines_mma_u8(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    line_bands<S, RANK> b = load_bands<S, RANK>(&f);
    line_group<RANK> t[S::ahead + 1];
    make_tiles<S, S::carried>(
        &f, (uint8_t *)memory,
        [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool follows) {
            filter<S, RANK>(&f, &b, t, follows, samples, stage, results);
        });
}

// ---- taps ----

// See separable_mma_u8_fragments(), for which number is whose.
size_t lines_mma_u8_fragments(const struct op_convolve *op, struct choice choice, uint32_t *to)
{
    int words = 2 * (((BAND + 2 * choice.reach) / 8 + 1) / 2);
    size_t used = 0;
    for (int n = 0; n < 2 * op->rank; n++)
        for (int i = 0; i < words * WARP; i++, used++) {
            int lane = i % WARP, lower = i / WARP % 2, pair = i / (2 * WARP);
            for (int e = 0; to && e < 4; e++) {
                int row = 16 * pair + 8 * (e / 2) + lane % 4 * 2 + e % 2;
                int k = row - lane / 4 - 8 * lower - choice.reach + op->origin_y;
                to[used] =
                    (e ? to[used] : 0) | line_byte(op->line_y[n / 2], op->height, k, n % 2, e);
            }
        }
    for (int n = 0; n < 4 * op->rank; n++) {
        int part = n / 2 % 2, half = n % 2, column = choice.left + 8 * half;
        int first = first_group(choice.reach, choice.left, false, half);
        int count = last_group(choice.reach, choice.left, false, half) - first + 1;
        for (int i = 0; i < count * WARP; i++, used++) {
            int q = i % WARP % 4;
            for (int e = 0; to && e < 4; e++) {
                int of_group =
                    choice.bytes == 1 ? 4 * q + 2 * (e % 2) + e / 2 : 8 * (e / 2) + 2 * q + e % 2;
                int distance = GROUP * (first + i / WARP) + of_group - column - i % WARP / 4;
                to[used] = (e ? to[used] : 0) | line_byte(op->line_x[n / 4], op->width,
                                                          distance + op->origin_x, part, e);
            }
        }
    }
    return used;
}

// ---- launchers ----

template <typename S>
static cudaError_t launch(const struct fused *f, int rank, cudaStream_t stream)
{
    static_assert(S::shared_bytes <= LEAST_SHARED_BYTES, "Turing has no more for a block");
    return rank == 1 ? launch_tiles<S, S::most>(lines_mma_u8<S, 1>, f, stream)
                     : launch_tiles<S, S::most>(lines_mma_u8<S, 2>, f, stream);
}

cudaError_t lines_mma_u8_async(const struct fused *f, struct choice choice, int rank,
                               cudaStream_t stream)
{
    assert(rank == 1 || rank == 2);
    if (choice.bytes == 1)
        return choice.reach == 8    ? launch<shape<8, 16, 1, false, 4, 4>>(f, rank, stream)
               : choice.reach == 16 ? launch<shape<16, 16, 1, false, 4, 4>>(f, rank, stream)
                                    : launch<shape<32, 32, 1, false, 4, 2>>(f, rank, stream);
    return choice.reach == 8    ? launch<shape<8, 8, 2, false, 4, 4>>(f, rank, stream)
           : choice.reach == 16 ? launch<shape<16, 16, 2, false, 4, 4>>(f, rank, stream)
                                : launch<shape<32, 32, 2, false, 4, 3>>(f, rank, stream);
}
