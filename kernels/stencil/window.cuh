// Small kernels as rows of weights, each of which is a band matrix, the right factor along rows of
// samples, in device code and what the host prepares for it:
//
//   sum (16 rows x 8 columns) += samples (16 x 32) band (32 x 8)
//
// The samples are those of the band of results, moved down by the row: they come from shared memory
// as they lie. Weights are some bytes, of which the last has the sign, and samples one or two:
//
//   sum weight x = sum over bytes of 2^(8 (p + q)) sum weight_p x_q
//
// modulo 2^32. SETS of weights have sums of their own from the same samples.
#pragma once

#include "kernels/stencil/fused.cuh"

enum {
    WINDOW_REACH = 8, // columns that a band reaches to either side
    LARGE_REACH = 8,  // rows, of either shape
    SMALL_REACH = 2,
};

// ---- the kernel ----

// Samples of 16 rows, as left factors: those of COUNT groups, in bytes; of rows l / 4 and l / 4 + 8.
// `at` is this lane's row and half, see group_at().
template <typename S, int COUNT>
static __device__ inline void load_groups(const struct fused *f, uint32_t to[COUNT][S::BYTES][2],
                                          uint32_t at)
{
    uint32_t words[4];
    if constexpr (S::BYTES == 1) {
#pragma unroll
        for (int k = 0; k < COUNT; k += 2) {
            load_matrices(words, at + k * GROUP);
            for (int n = 0; n < 4; n++)
                to[k + n / 2][0][n % 2] = words[n];
        }
    } else {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            load_matrices(words, at + k * 2 * GROUP);
            for (int n = 0; n < 4; n++)
                words[n] = plain_pair(&f->source.view, words[n]);
            for (int part = 0; part < 2; part++)
                for (int n = 0; n < 2; n++)
                    to[k][part][n] = bytes_of(words[n], words[n + 2], part);
        }
    }
}

// The blocks that are to share a multiprocessor, as its registers have it for window_sums.
static constexpr int window_blocks(int bytes, int sets, int parts)
{
    return bytes == 2 ? (parts == 1 ? 3 : 4) : sets * parts == 1 ? 4 : sets * parts == 2 ? 6 : 5;
}

template <int REACH, int BYTES, int SETS, int PARTS>
using window_shape = shape<REACH, GROUP, BYTES, false, 4, window_blocks(BYTES, SETS, PARTS)>;

// Where a lane reads: row l % 16 of the warp's 16, the second 16 bytes from lane 16 on.
template <typename S> static __device__ inline uint32_t group_at(const uint8_t *samples, int row)
{
    int lane = threadIdx.x;
    return (uint32_t)__cvta_generic_to_shared(samples) +
           (threadIdx.y * S::each + row + lane % 16) * S::stride + lane / 16 * 16;
}

// Sums of some groups of columns, as many as registers hold: of both halves of each, in parts by the
// weight of a byte.
template <typename S, int SETS, int PARTS> struct window_sums {
    static constexpr int parts = PARTS + S::BYTES - 1, groups = SETS * parts > S::BYTES ? 2 : 4;
    int part[groups][2][SETS][parts][4];
};

template <int PARTS>
static __device__ inline void add_product(int part, int sum[4], const uint32_t a[4],
                                          const uint32_t b[2])
{
    if (part == PARTS - 1)
        multiply_signed<false, true>(false, sum, a, b, sum);
    else
        multiply(false, sum, a, b, sum);
}

// `taps` are this lane's: of each row of the kernel, each set and each of its bytes two factors, for
// the left half of 16 columns and for the right one.
template <typename S, int SETS, int PARTS>
static __device__ inline void sum_window(const struct fused *f, window_sums<S, SETS, PARTS> *sums,
                                         const uint4 *taps, uint32_t at)
{
#pragma unroll 1
    for (int row = 0; row < f->window.height; row++, at += S::stride) {
        constexpr int groups = window_sums<S, SETS, PARTS>::groups;
        uint32_t x[groups + 2][S::BYTES][2];
        load_groups<S, groups + 2>(f, x, at);
#pragma unroll
        for (int n = 0; n < SETS * PARTS; n++, taps += WARP) {
            uint4 four = __ldg(taps);
            const uint32_t band[2][2] = {{four.x, four.y}, {four.z, four.w}};
#pragma unroll
            for (int q = 0; q < S::BYTES; q++)
                for (int half = 0; half < 2; half++)
                    for (int i = 0; i < groups; i++) {
                        const uint32_t *first = x[i + half][q], *second = x[i + half + 1][q];
                        const uint32_t a[4] = {first[0], first[1], second[0], second[1]};
                        int set = n / PARTS, p = n % PARTS;
                        add_product<PARTS>(p, sums->part[i][half][set][p + q], a, band[half]);
                    }
        }
    }
}

template <int PARTS> static __device__ inline uint32_t window_total(const int part[PARTS][4], int k)
{
    uint32_t sum = 0;
    for (int p = 0; p < PARTS; p++)
        sum += (uint32_t)part[p][k] << (8 * p);
    return sum;
}

// Make a band: `result_of` makes a result of the sums of all sets.
template <typename S, int SETS, int PARTS, typename Result>
static __device__ inline void make_band(const struct fused *f, const uint8_t *samples,
                                        uint8_t *stage, struct corner results,
                                        const Result &result_of)
{
    using sums_type = window_sums<S, SETS, PARTS>;
    uint32_t at = group_at<S>(samples, S::REACH - f->window.above);
    const uint4 *taps = (const uint4 *)f->fragments + threadIdx.x;
#pragma unroll 1
    for (int first = 0; first < S::made; first += sums_type::groups) {
        sums_type sums = {};
        sum_window<S, SETS, PARTS>(f, &sums, taps, at + first * GROUP * S::BYTES);
#pragma unroll
        for (int i = 0; i < sums_type::groups; i++) {
            sixteen y;
            for (int half = 0; half < 2; half++)
                for (int k = 0; k < 2; k++) {
                    uint32_t pair[2];
                    for (int n = 0; n < 2; n++) {
                        uint32_t sum[SETS];
                        for (int set = 0; set < SETS; set++)
                            sum[set] =
                                window_total<sums_type::parts>(sums.part[i][half][set], 2 * k + n);
                        pair[n] = (uint32_t)result_of(sum);
                    }
                    (half ? y.right : y.left)[k] =
                        __byte_perm(pair[0], pair[1], S::BYTES == 1 ? 0x0040 : 0x5410);
                }
            put_sixteen<S>(stage, first + i, &y);
            store_if_full<S, S::BYTES == 1>(f, stage, results, first + i);
        }
    }
}

// ---- weights ----

// Lane l holds numbers 4 (l % 4) .. + 3, and 16 more of each, of column l / 4 of a right factor: the
// word `word` of its four, byte `part` of a row of `width` weights.
static inline uint32_t window_word(const int32_t *row, int width, int origin_x, int part, int lane,
                                   int word, int sample_bytes)
{
    uint32_t made = 0;
    int half = word / 2, q = lane % 4;
    for (int e = 0; e < 4; e++) {
        int of_group = sample_bytes == 1 ? 4 * q + e : 8 * (e / 2) + 2 * q + e % 2;
        int column = GROUP * (word % 2) + of_group - GROUP + 8 * half - lane / 4 + origin_x;
        made |= line_byte(row, width, column, part, e);
    }
    return made;
}
