// One axis of a separable filter over planes of 16-bit samples, by products of bytes on tensor
// cores. See kernels/stencil/separable.h, and separable_mma_u8.cu for the arithmetic.
//
// A warp's product makes 16 results along the axis for eight lines across it:
//
//   results (16 x 8) = band (16 x K) samples (K x 8),      K = 16 + 2 radius, and what is before
//
// The band is the left factor both down the columns and along the rows, so that one set of taps
// serves all warps: what differs is whether the right factor's samples lie side by side along the
// axis, or a row apart, and so whether they are transposed on their way to the lanes.
#include "kernels/shared_memory.h"
#include "kernels/stencil/separable.h"

#include <stdlib.h>

#include "kernels/recording.cuh"
#include "kernels/stencil/products.cuh"

enum {
    STEP = 16,            // samples of a product of bytes, or twice as many
    ALONG = STEP * WARPS, // results of a block along the axis ...
    ACROSS = 64,          // ... and across it
    LINES = 8,            // across it, of a product
    AT_ONCE = 4,          // products of a warp side by side
    CHUNK = 8,            // samples in 16 bytes
    MAX_STEPS = 14,       // radius 102 or more; fits Turing's shared memory
};

// ---- tiles ----

// A block's samples in shared memory: rows of chunks, an odd number of these from row to row, so
// that eight rows of one chunk lie in different banks.
struct samples_tile {
    int rows, chunks, stride; // bytes
};

template <bool ROWS>
static __host__ __device__ inline struct samples_tile samples_tile_of(int steps)
{
    int along = ALONG - STEP + STEP * steps;
    int rows = ROWS ? ACROSS : along, chunks = (ROWS ? along : ACROSS) / CHUNK;
    return {rows, chunks, (chunks | 1) * 16};
}

// Results take the samples' place.
template <bool ROWS> static __host__ __device__ inline struct samples_tile results_tile_of(void)
{
    int rows = ROWS ? ACROSS : ALONG, chunks = (ROWS ? ALONG : ACROSS) / CHUNK;
    return {rows, chunks, (chunks | 1) * 16};
}

// A thread's first chunk of a tile, and how far it is to its next ones. Along the rows a warp takes a
// row of chunks, down the columns four rows of eight.
template <bool ROWS> struct share {
    static constexpr int lanes = ROWS ? WARP : ACROSS / CHUNK, rows = WARP * WARPS / lanes;
    int row, chunk;
};

template <bool ROWS> static __device__ inline share<ROWS> share_of_thread(void)
{
    int thread = threadIdx.y * WARP + threadIdx.x;
    return {thread / share<ROWS>::lanes, thread % share<ROWS>::lanes};
}

// Any sample of the plane will do for what lies beyond it, which is only multiplied by zeros, or makes
// what nobody stores.
template <bool ROWS>
static __device__ inline void fetch(const struct axis_mma *a, uint8_t *to, struct samples_tile tile,
                                    int x, int y)
{
    const struct share<ROWS> own = share_of_thread<ROWS>();
    int last = (a->from_width - 1) / CHUNK;
    for (int chunk = own.chunk; chunk < tile.chunks; chunk += own.lanes) {
        const uint8_t *from = view_at(&a->from, min(x / CHUNK + chunk, last) * CHUNK, 0);
#pragma unroll 4
        for (int row = own.row; row < tile.rows; row += own.rows)
            copy_ahead(to + row * tile.stride + chunk * 16,
                       from + (int64_t)min(y + row, a->from_height - 1) * a->from.stride);
    }
    copies_commit();
}

// Results come as rows of chunks, too.
template <bool ROWS>
static __device__ inline void store(const struct axis_mma *a, const uint8_t *from,
                                    struct samples_tile tile, int x, int y)
{
    const struct share<ROWS> own = share_of_thread<ROWS>();
    const struct sink *to = &a->to;
    x += own.chunk * CHUNK;
    if (own.chunk >= tile.chunks || x >= to->width)
        return;
    uint8_t *at = view_at(&to->view[0], x, y);
#pragma unroll 4
    for (int row = own.row; row < min(tile.rows, to->height - y); row += own.rows)
        *(uint4 *)(at + (int64_t)row * to->view[0].stride) =
            *(const uint4 *)(from + row * tile.stride + own.chunk * 16);
}

// ---- products ----

// Where this lane reads, of a warp's samples, those of `line` and the next seven that are the n-th
// along the axis and on.
template <bool ROWS>
static __device__ inline uint32_t lane_at(uint32_t samples, struct samples_tile tile, int line,
                                          int n)
{
    int lane = threadIdx.x;
    return ROWS ? samples + (line + lane % 8) * tile.stride + (n + lane / 8 * 8) * 2
                : samples + (n + lane) * tile.stride + line * 2;
}

// Two steps of AT_ONCE products, or the last one: of low and high bytes of taps with those of
// samples.
template <bool ROWS, bool BRIEF>
static __device__ inline void add_step(struct parts sum[AT_ONCE], const uint4 *band,
                                       uint32_t samples, struct samples_tile tile, int line, int n)
{
    uint4 first = band[threadIdx.x], second = BRIEF ? first : band[WARP + threadIdx.x];
    const uint32_t low[4] = {first.x, first.y, second.x, second.y};
    const uint32_t high[4] = {first.z, first.w, second.z, second.w};
    uint32_t x[AT_ONCE][2][2];
    for (int g = 0; g < AT_ONCE; g++) {
        uint32_t units[4], at = lane_at<ROWS>(samples, tile, line + g * LINES, n);
        if (BRIEF && ROWS)
            load_matrices_two(units, at);
        else if (BRIEF)
            load_transposed_two(units, at);
        else if (ROWS)
            load_matrices(units, at);
        else
            load_transposed(units, at);
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < (BRIEF ? 1 : 2); k++)
                x[g][part][k] = bytes_of(units[2 * k], units[2 * k + 1], part);
    }
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].low, low, x[g][0], sum[g].low);
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].middle, high, x[g][0], sum[g].middle);
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].high, high, x[g][1], sum[g].high);
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].middle, low, x[g][1], sum[g].middle);
}

// A warp's 16 results of AT_ONCE times eight lines: two neighbours across the axis in a word, of
// its place l / 4 and of that eight on.
template <bool ROWS>
static __device__ inline void filter(const uint4 *band, int steps, uint32_t samples,
                                     struct samples_tile tile, int line, uint32_t made[AT_ONCE][2])
{
    struct parts sum[AT_ONCE] = {};
    for (int g = 0; g < AT_ONCE; g++)
        for (int k = 0; k < 4; k++)
            sum[g].low[k] = 1 << 15;
    int n = threadIdx.y * STEP, s = 0;
#pragma unroll 1
    for (; s + 1 < steps; s += 2)
        add_step<ROWS, false>(sum, band + s * WARP, samples, tile, line, n + s * STEP);
    if (s < steps)
        add_step<ROWS, true>(sum, band + s * WARP, samples, tile, line, n + s * STEP);
    for (int g = 0; g < AT_ONCE; g++)
        for (int k = 0; k < 2; k++)
            made[g][k] = __byte_perm(total(&sum[g], 2 * k), total(&sum[g], 2 * k + 1), 0x7632);
}

// Put a warp's results where the block's lie.
template <bool ROWS>
static __device__ inline void put(uint8_t *to, struct samples_tile tile, int line,
                                  const uint32_t made[AT_ONCE][2])
{
    int lane = threadIdx.x, n = threadIdx.y * STEP;
    for (int g = 0; g < AT_ONCE; g++)
        for (int k = 0; k < 2; k++) {
            int first = line + g * LINES, place = n + 8 * k;
            if (ROWS)
                *(uint32_t *)(to + (first + lane / 4) * tile.stride + (place + lane % 4 * 2) * 2) =
                    transposed(made[g][k]);
            else
                *(uint32_t *)(to + (place + lane / 4) * tile.stride + (first + lane % 4 * 2) * 2) =
                    made[g][k];
        }
}

// A block of eight warps makes 128 results along the axis of 64 lines, so that what two blocks read
// both is no more than half of what they read. Its samples come into shared memory by rows of 16
// bytes a thread; a warp then has 16 results of all lines, 32 lines at a time, for as many sums fit
// its registers.
template <bool ROWS>
static __global__ void __launch_bounds__(WARP *WARPS, 3)
    axis_mma_u8(const __grid_constant__ struct axis_mma a)
{
    constexpr int turns = ACROSS / (AT_ONCE * LINES);
    extern __shared__ uint4 memory[];
    const struct samples_tile tile = samples_tile_of<ROWS>(a.steps);
    const struct samples_tile results = results_tile_of<ROWS>();
    uint8_t *samples = (uint8_t *)(memory + a.steps * WARP);
    int x = blockIdx.x * (ROWS ? ALONG : ACROSS), y = blockIdx.y * (ROWS ? ACROSS : ALONG);
    fetch<ROWS>(&a, samples, tile, x, y);
    for (int k = threadIdx.y; k < a.steps; k += WARPS)
        memory[k * WARP + threadIdx.x] = __ldg((const uint4 *)a.fragments + k * WARP + threadIdx.x);
    copies_wait<0>();
    __syncthreads();
    uint32_t made[turns][AT_ONCE][2], at = (uint32_t)__cvta_generic_to_shared(samples);
#pragma unroll
    for (int t = 0; t < turns; t++)
        filter<ROWS>(memory, a.steps, at, tile, t * AT_ONCE * LINES, made[t]);
    __syncthreads();
#pragma unroll
    for (int t = 0; t < turns; t++)
        put<ROWS>(samples, results, t * AT_ONCE * LINES, made[t]);
    __syncthreads();
    store<ROWS>(&a, samples, results, x, y);
}

// ---- taps ----

int axis_mma_u8_steps(int radius, int first)
{
    return (STEP + first + 2 * radius + STEP - 1) / STEP;
}

// A lane's four words of a step: low bytes of the taps of rows l / 4 and l / 4 + 8 of the band, then
// high ones. Samples come as 2 q, 2 q + 1 of the first eight and of the second, q = l % 4.
size_t axis_mma_u8_fragments(const int32_t *tap, int radius, int bits, int first, uint32_t *to)
{
    int steps = axis_mma_u8_steps(radius, first);
    if (bits != 15 || steps > MAX_STEPS || tap[0] >> bits)
        return 0;
    for (int i = 0; to && i < steps * WARP * 4; i++) {
        int lane = i / 4 % WARP, part = i % 4 / 2, row = lane / 4 + i % 2 * 8;
        to[i] = 0;
        for (int e = 0; e < 4; e++) {
            int sample = i / (4 * WARP) * STEP + e / 2 * 8 + lane % 4 * 2 + e % 2;
            to[i] |= tap_byte(tap, radius, sample - row - first - radius, part, e);
        }
    }
    return (size_t)(steps * WARP * 4);
}

// ---- launchers ----

template <bool ROWS> static cudaError_t launch(const struct axis_mma *axis, cudaStream_t stream)
{
    const struct samples_tile tile = samples_tile_of<ROWS>(axis->steps);
    const struct samples_tile results = results_tile_of<ROWS>();
    size_t bytes = (size_t)axis->steps * WARP * sizeof(uint4);
    bytes += (size_t)max(tile.rows * tile.stride, results.rows * results.stride);
    cudaError_t error = shared_memory_allow((const void *)axis_mma_u8<ROWS>, bytes);
    if (error)
        return error;
    dim3 grid = grid_shape(axis->to.width, axis->to.height, axis->to.frames, ROWS ? ALONG : ACROSS,
                           ROWS ? ACROSS : ALONG);
    kernel_launch(axis_mma_u8<ROWS>, grid, block_shape(), bytes, stream, *axis);
    return cudaGetLastError();
}

cudaError_t axis_mma_u8_async(const struct axis_mma *axis, bool rows, cudaStream_t stream)
{
    return rows ? launch<true>(axis, stream) : launch<false>(axis, stream);
}
