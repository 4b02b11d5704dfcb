// Tiles of values, in device code: a block's cells filtered by both pairs of taps of a scale.
// First sums down the columns, two of them a thread, go to shared memory as vectors of both; then
// threads filter along the rows.
#pragma once

#include "kernels/full_frame/wavelet.cuh"

enum {
    STRIP = 16,               // neighbouring results of a thread that filters
    STEP = 4,                 // taps that it takes at a time
    WINDOW = STRIP + STEP,    // inputs that it has
    HALO = TILE_ROWS / WARPS, // rows of a warp beside the tile
    HALO_WINDOW = HALO + 3 * STEP,
    PAIRS = 2 * WARP, // columns of a warp that has two a lane
    PAIR_ROWS = 8,    // and its rows at a time
    PAIR_WINDOW = PAIR_ROWS + STEP,
};

// Taps that are used, in whole steps.
static __host__ __device__ inline int taps_of(int radius)
{
    return up(2 * radius + 1, STEP);
}

// A row of sums in shared memory, two columns in a vector: an odd number of them, so that lanes
// may read a column.
static __host__ __device__ inline int sums_stride(int columns, int radius)
{
    return (columns + taps_of(radius)) / 2 | 1;
}

// The lines of taps, and the sums, behind which the last strip's window reads on.
static inline size_t tile_bytes(int columns, int radius)
{
    return (size_t)4 * taps_of(radius) * sizeof(float) +
           ((size_t)TILE_ROWS * sums_stride(columns, radius) + WINDOW) * sizeof(float4);
}

// Results of a strip: add() gets, for one tap after another, all results with the inputs that are
// under it, input k + p for tap k of result p; read(n, i) gives input n + i, n even, i a constant.
// The inputs stay in registers, where each one's place is known when code is made; what a tap was
// the last to need makes room for an input of the next step.
template <typename Input, int STRIP, int WINDOW, typename Read, typename Add>
static __device__ inline void filter_strip(const float *smooth, const float *bent, int taps,
                                           Read read, Add add)
{
    Input window[WINDOW];
#pragma unroll
    for (int i = 0; i < WINDOW; i++)
        window[i] = read(0, i);
    for (int first = 0;; first += WINDOW)
#pragma unroll
        for (int k = 0; k < WINDOW; k += STEP) {
            float4 s = *(const float4 *)(smooth + first + k);
            float4 b = *(const float4 *)(bent + first + k);
            const float step_s[STEP] = {s.x, s.y, s.z, s.w}, step_b[STEP] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int t = 0; t < STEP; t++) {
#pragma unroll
                for (int p = 0; p < STRIP; p++)
                    add(p, step_s[t], step_b[t], window[(k + t + p) % WINDOW]);
                window[k + t] = read(first, k + t + WINDOW);
            }
            if (first + k + STEP >= taps)
                return;
        }
}

// The shared memory of a block of COLUMNS values in each row: `smooth` and `bent` point at their
// first taps.
template <int COLUMNS> struct shared_tile {
    static constexpr int ITEMS = COLUMNS / STRIP / WARPS; // strips of a thread along the rows
    static constexpr int TRANSPOSE_STRIDE = COLUMNS + VEC4;

    float *smooth, *bent;         // taps down the columns
    float *row_smooth, *row_bent; // and along the rows, behind `before` zeros
    // Down columns 2 i and 2 i + 1: by smooth of the second, of the first, by bent of either.
    float4 *sums;
    int taps, stride;
    int before; // 1: the first cell is no multiple of two, and a column ahead of it is made, too
    int beside; // columns of cells beside a tile that its rows ask for
};

template <int COLUMNS>
static __device__ inline shared_tile<COLUMNS> tile_of(float4 *memory, int max_radius, int radius,
                                                      const float *cells)
{
    float *smooth = (float *)memory;
    int line = taps_of(max_radius);
    return {smooth,
            smooth + line,
            smooth + 2 * line,
            smooth + 3 * line,
            (float4 *)(smooth + 4 * line),
            taps_of(radius),
            sums_stride(COLUMNS, radius),
            (int)((uintptr_t)cells / sizeof(float) % 2),
            2 * radius};
}

// All threads fetch the taps of a scale; there are zeros around them where they come from.
template <int COLUMNS>
static __device__ inline void tile_taps(const struct wavelet *w, const struct filter *filter,
                                        const shared_tile<COLUMNS> *tile)
{
    for (int k = (int)threadIdx.x; k < tile->taps; k += THREADS) {
        tile->smooth[k] = w->tap[filter->smooth + k];
        tile->bent[k] = w->tap[filter->bent + k];
        tile->row_smooth[k] = w->tap[filter->smooth + k - tile->before];
        tile->row_bent[k] = w->tap[filter->bent + k - tile->before];
    }
}

template <int COLUMNS>
static __device__ inline void put_sums(const shared_tile<COLUMNS> *tile, int row, int column,
                                       float smooth, float bent)
{
    float *to = (float *)(tile->sums + row * tile->stride + column / 2) + (~column & 1);
    to[0] = smooth;
    to[2] = bent;
}

// Sums down a column, of `COUNT` rows from `row` on; each input is read once for both sums of all
// that it is in.
template <int COUNT, int WINDOW, int COLUMNS>
static __device__ inline void column_sums(const float *cells, int stride, int row, int column,
                                          const shared_tile<COLUMNS> *tile)
{
    const float *from = cells + (size_t)row * stride + column;
    float s[COUNT] = {}, b[COUNT] = {};
    filter_strip<float, COUNT, WINDOW>(
        tile->smooth, tile->bent, tile->taps,
        [&](int n, int i) { return __ldg(from + (size_t)(n + i) * stride); },
        [&](int p, float smooth, float bent, float input) {
            s[p] = __fmaf_rn(smooth, input, s[p]);
            b[p] = __fmaf_rn(bent, input, b[p]);
        });
#pragma unroll
    for (int p = 0; p < COUNT; p++)
        put_sums(tile, row + p, column, s[p], b[p]);
}

// The same of an even column and the next. Two operands of a product that lie in one bank of
// registers, the even or the odd ones, hold it up by a cycle. Inputs that are read as a pair lie in
// either bank, and so do sums that are written as one, each input's in the other than itself.
template <int COUNT, int WINDOW, int COLUMNS>
static __device__ inline void column_pairs(const float *cells, int stride, int row, int column,
                                           const shared_tile<COLUMNS> *tile)
{
    const float *from = cells + (size_t)row * stride + column;
    float s0[COUNT] = {}, b0[COUNT] = {}, s1[COUNT] = {}, b1[COUNT] = {};
    filter_strip<float2, COUNT, WINDOW>(
        tile->smooth, tile->bent, tile->taps,
        [&](int n, int i) { return __ldg((const float2 *)(from + (size_t)(n + i) * stride)); },
        [&](int p, float smooth, float bent, float2 input) {
            s0[p] = __fmaf_rn(smooth, input.x, s0[p]);
            s1[p] = __fmaf_rn(smooth, input.y, s1[p]);
            b0[p] = __fmaf_rn(bent, input.x, b0[p]);
            b1[p] = __fmaf_rn(bent, input.y, b1[p]);
        });
#pragma unroll
    for (int p = 0; p < COUNT; p++)
        tile->sums[(row + p) * tile->stride + column / 2] = make_float4(s1[p], s0[p], b1[p], b0[p]);
}

// Sums down the columns, for all rows of a tile whose first is under `cells`. A warp makes eight
// rows of 64 neighbouring columns at a time, then four of those beside the tile that its rows ask
// for, so that all warps have as much to do. Behind these there are zeros, for zeros among taps.
template <int COLUMNS>
static __device__ inline void tile_columns(const float *cells, int stride,
                                           const shared_tile<COLUMNS> *tile)
{
    constexpr int groups = COLUMNS / PAIRS, items = groups * (TILE_ROWS / PAIR_ROWS);
    static_assert(items % WARPS == 0, "as much for each warp");
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int end = COLUMNS + tile->beside + tile->before, row = warp * HALO;
    cells -= tile->before;
    for (int item = warp; item < items; item += WARPS)
        column_pairs<PAIR_ROWS, PAIR_WINDOW>(cells, stride, item / groups * PAIR_ROWS,
                                             item % groups * PAIRS + 2 * lane, tile);
    for (int column = COLUMNS + lane; column < end; column += WARP)
        column_sums<HALO, HALO_WINDOW>(cells, stride, row, column, tile);
    if (end + lane < COLUMNS + tile->taps)
        for (int p = 0; p < HALO; p++)
            put_sums(tile, row + p, end + lane, 0, 0);
}

// Values: 16 neighbours of row `lane` from column `column` of the tile on.
template <int COLUMNS>
static __device__ inline void tile_row(const shared_tile<COLUMNS> *tile, int column,
                                       float value[STRIP])
{
    const float4 *from = tile->sums + threadIdx.x % WARP * tile->stride + column / 2;
    for (int p = 0; p < STRIP; p++)
        value[p] = 0;
    filter_strip<float2, STRIP, WINDOW>(
        tile->row_smooth, tile->row_bent, tile->taps,
        [&](int n, int i) {
            float4 two = from[(n >> 1) + i / 2];
            return i % 2 ? make_float2(two.x, two.z) : make_float2(two.y, two.w);
        },
        [&](int p, float smooth, float bent, float2 input) {
            value[p] = __fmaf_rn(bent, input.x, value[p]);
            value[p] = __fmaf_rn(smooth, input.y, value[p]);
        });
}

// Transpose the values of a tile, so that lanes have neighbours along the rows: keep(row, column,
// four) gets four of them. They pass through the sums' memory, which nobody may need any more.
template <int COLUMNS, typename Keep>
static __device__ inline void tile_transpose(const shared_tile<COLUMNS> *tile,
                                             const float value[][STRIP], Keep keep)
{
    constexpr int ITEMS = shared_tile<COLUMNS>::ITEMS;
    constexpr int TRANSPOSE_STRIDE = shared_tile<COLUMNS>::TRANSPOSE_STRIDE;
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    float *transposed = (float *)tile->sums;
    float *own = transposed + lane * TRANSPOSE_STRIDE + warp * ITEMS * STRIP;
    __syncthreads();
#pragma unroll
    for (int n = 0; n < ITEMS * STRIP; n += VEC4) {
        const float *from = &value[n / STRIP][n % STRIP];
        *(float4 *)(own + n) = make_float4(from[0], from[1], from[2], from[3]);
    }
    __syncthreads();
    for (int row = warp; row < TILE_ROWS; row += WARPS)
#pragma unroll
        for (int column = lane * VEC4; column < COLUMNS; column += WARP * VEC4)
            keep(row, column, *(const float4 *)(transposed + row * TRANSPOSE_STRIDE + column));
}
