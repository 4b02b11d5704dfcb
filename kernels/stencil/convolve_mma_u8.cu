// Convolutions of small kernels by products of bytes, every weight by itself. Tensor cores multiply
// bytes and add up in 32 bits.
//
// Each row of the kernel is a band matrix, the right factor along rows of samples:
//
//   sum (16 rows x 8 columns) += samples (16 x 32) band (32 x 8)
//
// The samples are those of the band of results, moved down by the row: they come from shared memory
// as they lie. Weights are up to three bytes, of which the last has the sign, and samples one or two:
//
//   sum weight x = sum over bytes of 2^(8 (p + q)) sum weight_p x_q
//
// modulo 2^32: the whole fits that.
#include <assert.h>
#include <stdlib.h>

#include "kernels/stencil/convolve.cuh"
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

// Where a lane reads: row l % 16 of the warp's 16, the second 16 bytes from lane 16 on.
template <typename S> static __device__ inline uint32_t group_at(const uint8_t *samples, int row)
{
    int lane = threadIdx.x;
    return (uint32_t)__cvta_generic_to_shared(samples) +
           (threadIdx.y * S::each + row + lane % 16) * S::stride + lane / 16 * 16;
}

// Sums of some groups of columns, as many as registers hold: of both halves of each, in parts by the
// weight of a byte.
template <typename S, int PARTS> struct window_sums {
    static constexpr int parts = PARTS + S::BYTES - 1, groups = parts > 3 ? 2 : 4;
    int part[groups][2][parts][4];
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

// `taps` are this lane's: of each row of the kernel and each of its bytes two factors, for the left
// half of 16 columns and for the right one.
template <typename S, int PARTS>
static __device__ inline void sum_window(const struct fused *f, window_sums<S, PARTS> *sums,
                                         const uint4 *taps, uint32_t at)
{
#pragma unroll 1
    for (int row = 0; row < f->window.height; row++, at += S::stride) {
        constexpr int groups = window_sums<S, PARTS>::groups;
        uint32_t x[groups + 2][S::BYTES][2];
        load_groups<S, groups + 2>(f, x, at);
#pragma unroll
        for (int p = 0; p < PARTS; p++, taps += WARP) {
            uint4 four = __ldg(taps);
            const uint32_t band[2][2] = {{four.x, four.y}, {four.z, four.w}};
#pragma unroll
            for (int q = 0; q < S::BYTES; q++)
                for (int half = 0; half < 2; half++)
                    for (int i = 0; i < groups; i++) {
                        const uint32_t *first = x[i + half][q], *second = x[i + half + 1][q];
                        const uint32_t a[4] = {first[0], first[1], second[0], second[1]};
                        add_product<PARTS>(p, sums->part[i][half][p + q], a, band[half]);
                    }
        }
    }
}

template <typename S, int PARTS>
static __device__ inline uint32_t result_of(const struct fused *f,
                                            const int part[S::BYTES + PARTS - 1][4], int k)
{
    uint32_t sum = 0;
    for (int p = 0; p < PARTS + S::BYTES - 1; p++)
        sum += (uint32_t)part[p][k] << (8 * p);
    return (uint32_t)convolved(&f->end, sum);
}

template <typename S, int PARTS>
static __device__ inline void convolve_band(const struct fused *f, const uint8_t *samples,
                                            uint8_t *stage, struct corner results)
{
    uint32_t at = group_at<S>(samples, S::REACH - f->window.above);
    const uint4 *taps = (const uint4 *)f->fragments + threadIdx.x;
    constexpr int groups = window_sums<S, PARTS>::groups;
#pragma unroll 1
    for (int first = 0; first < S::made; first += groups) {
        window_sums<S, PARTS> sums = {};
        sum_window<S, PARTS>(f, &sums, taps, at + first * GROUP * S::BYTES);
#pragma unroll
        for (int i = 0; i < groups; i++) {
            sixteen y;
            for (int half = 0; half < 2; half++)
                for (int k = 0; k < 2; k++)
                    (half ? y.right : y.left)[k] =
                        __byte_perm(result_of<S, PARTS>(f, sums.part[i][half], 2 * k),
                                    result_of<S, PARTS>(f, sums.part[i][half], 2 * k + 1),
                                    S::BYTES == 1 ? 0x0040 : 0x5410);
            put_sixteen<S>(stage, first + i, &y);
            store_if_full<S, S::BYTES == 1>(f, stage, results, first + i);
        }
    }
}

template <typename S, int PARTS>
static __global__ void __launch_bounds__(S::threads, PARTS == 3 ? 3 : S::BLOCKS)
    convolve_mma_u8(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *stage, struct corner results) {
                      convolve_band<S, PARTS>(&f, samples, stage, results);
                  });
}

// ---- weights ----

// How many bits below the lowest that any weight has.
static int spare_bits(const struct op_convolve *op)
{
    uint32_t all = 0;
    int bits = 0;
    for (int k = 0; k < op->width * op->height; k++)
        all |= (uint32_t)op->weight[k];
    while (bits < op->bits && !(all >> bits & 1))
        bits++;
    return bits;
}

// Bytes that hold the weights without their spare bits.
static int bytes_of_weights(const struct op_convolve *op)
{
    int bytes = 1, spare = spare_bits(op);
    for (int k = 0; k < op->width * op->height; k++)
        while (bytes < 4 && abs((op->weight[k] >> spare) + (op->weight[k] < 0)) >> (8 * bytes - 1))
            bytes++;
    return bytes;
}

static int farther(int a, int b)
{
    return a > b ? a : b;
}

// How far a kernel reaches to the left or right; up or down.
static int columns_of(const struct op_convolve *op)
{
    return farther(op->origin_x, op->width - 1 - op->origin_x);
}

static int rows_of(const struct op_convolve *op)
{
    return farther(op->origin_y, op->height - 1 - op->origin_y);
}

struct choice convolve_mma_u8_choice(const struct op_convolve *op, int depth)
{
    int columns = columns_of(op), rows = rows_of(op);
    if (op->rank || columns > WINDOW_REACH || rows > LARGE_REACH || bytes_of_weights(op) > 3 ||
        op_convolve_max(op, depth) > INT32_MAX)
        return {};
    return {rows > SMALL_REACH ? LARGE_REACH : SMALL_REACH, GROUP, depth > 8 ? 2 : 1, true};
}

// Lane l holds numbers 4 (l % 4) .. + 3, and 16 more of each, of column l / 4 of a right factor.
size_t convolve_mma_u8_fragments(const struct op_convolve *op, struct choice choice, uint32_t *to)
{
    int bytes = bytes_of_weights(op), spare = spare_bits(op);
    size_t count = (size_t)(op->height * bytes) * WARP * 4;
    for (size_t i = 0; to && i < count; i++) {
        int word = (int)(i % 4), lane = (int)(i / 4 % WARP), half = word / 2, q = lane % 4;
        int part = (int)(i / (4 * WARP)) % bytes, row = (int)(i / (4 * WARP)) / bytes;
        to[i] = 0;
        for (int e = 0; e < 4; e++) {
            int of_group = choice.bytes == 1 ? 4 * q + e : 8 * (e / 2) + 2 * q + e % 2;
            int column = GROUP * (word % 2) + of_group - GROUP + 8 * half - lane / 4 + op->origin_x;
            int32_t weight = column >= 0 && column < op->width
                                 ? op->weight[row * op->width + column] >> spare
                                 : 0;
            to[i] |= ((uint32_t)weight >> (8 * part) & 0xff) << (8 * e);
        }
    }
    return count;
}

// ---- launchers ----

template <typename S>
static cudaError_t launch(const struct fused *f, int bytes, cudaStream_t stream)
{
    static_assert(S::shared_bytes <= LEAST_SHARED_BYTES, "Turing has no more for a block");
    return bytes == 1   ? launch_tiles<S>(convolve_mma_u8<S, 1>, f, stream)
           : bytes == 2 ? launch_tiles<S>(convolve_mma_u8<S, 2>, f, stream)
                        : launch_tiles<S>(convolve_mma_u8<S, 3>, f, stream);
}

cudaError_t convolve_mma_u8_async(const struct fused *f, const struct op_convolve *op,
                                  struct choice choice, cudaStream_t stream)
{
    int bytes = bytes_of_weights(op), spare = spare_bits(op);
    struct fused window = *f;
    assert(choice.reach && bytes <= 3);
    window.window = {op->height, op->origin_y};
    window.reach = farther(columns_of(op), rows_of(op));
    window.end.bits -= spare;
    window.end.offset >>= spare;
    if (choice.bytes == 1)
        return choice.reach == SMALL_REACH
                   ? launch<shape<SMALL_REACH, GROUP, 1, false, 4, 4>>(&window, bytes, stream)
                   : launch<shape<LARGE_REACH, GROUP, 1, false, 4, 4>>(&window, bytes, stream);
    return choice.reach == SMALL_REACH
               ? launch<shape<SMALL_REACH, GROUP, 2, false, 4, 3>>(&window, bytes, stream)
               : launch<shape<LARGE_REACH, GROUP, 2, false, 4, 3>>(&window, bytes, stream);
}
