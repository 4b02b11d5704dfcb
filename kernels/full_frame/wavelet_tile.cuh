// Tiles of values, in device code: a block's cells filtered by both pairs of taps of a scale, sums
// down the columns in shared memory, then along the rows.
#pragma once

#include "kernels/full_frame/wavelet.cuh"

enum {
    STRIP = 16,               // neighbouring results of a thread that filters
    STEP = 4,                 // taps that it takes at a time
    WINDOW = STRIP + STEP,    // inputs that it has
    HALO = TILE_ROWS / WARPS, // rows of a warp beside the tile
    HALO_WINDOW = HALO + 3 * STEP,
};

// Taps that are used, in whole steps.
static __host__ __device__ inline int taps_of(int radius)
{
    return up(2 * radius + 1, STEP);
}

// A row of sums in shared memory: an odd number of them, so that lanes may read a column.
static __host__ __device__ inline int sums_stride(int columns, int radius)
{
    return up(columns + taps_of(radius), WARP) + 1;
}

// Both lines of taps, and the sums, behind which the last strip's window reads on.
static inline size_t tile_bytes(int columns, int radius)
{
    return (size_t)2 * taps_of(radius) * sizeof(float) +
           ((size_t)TILE_ROWS * sums_stride(columns, radius) + WINDOW) * sizeof(float2);
}

// Results of a strip: add() gets, for one tap after another, all results with the inputs that are
// under it, input k + p for tap k of result p; read(n) gives input n. The inputs stay in registers,
// where each one's place is known when code is made; what a tap was the last to need makes room
// for an input of the next step.
template <typename Input, int STRIP, int WINDOW, typename Read, typename Add>
static __device__ inline void filter_strip(const float *smooth, const float *bent, int taps,
                                           Read read, Add add)
{
    Input window[WINDOW];
#pragma unroll
    for (int i = 0; i < WINDOW; i++)
        window[i] = read(i);
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
                window[k + t] = read(first + k + t + WINDOW);
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

    float *smooth, *bent;
    float2 *sums; // down the columns: by smooth, by bent
    int taps, stride;
    int beside; // columns of cells beside a tile that its rows ask for
};

template <int COLUMNS>
static __device__ inline shared_tile<COLUMNS> tile_of(float4 *memory, int max_radius, int radius)
{
    float *smooth = (float *)memory, *bent = smooth + taps_of(max_radius);
    return {smooth,
            bent,
            (float2 *)(bent + taps_of(max_radius)),
            taps_of(radius),
            sums_stride(COLUMNS, radius),
            2 * radius};
}

// All threads fetch the taps of a scale; there are zeros behind them where they come from.
template <int COLUMNS>
static __device__ inline void tile_taps(const struct wavelet *w, const struct filter *filter,
                                        const shared_tile<COLUMNS> *tile)
{
    for (int k = (int)threadIdx.x; k < tile->taps; k += THREADS) {
        tile->smooth[k] = w->tap[filter->smooth + k];
        tile->bent[k] = w->tap[filter->bent + k];
    }
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
        [&](int n) { return __ldg(from + (size_t)n * stride); },
        [&](int p, float smooth, float bent, float input) {
            s[p] = __fmaf_rn(smooth, input, s[p]);
            b[p] = __fmaf_rn(bent, input, b[p]);
        });
#pragma unroll
    for (int p = 0; p < COUNT; p++)
        tile->sums[(row + p) * tile->stride + column] = make_float2(s[p], b[p]);
}

// Sums down the columns, for all rows of a tile whose first is under `cells`. A warp makes 16
// rows of 32 neighbouring columns at a time, then four of those beside the tile that its rows ask
// for, so that all warps have as much to do. Behind these there are zeros, for zeros among taps.
template <int COLUMNS>
static __device__ inline void tile_columns(const float *cells, int stride,
                                           const shared_tile<COLUMNS> *tile)
{
    constexpr int groups = COLUMNS / WARP, items = groups * (TILE_ROWS / STRIP);
    static_assert(items % WARPS == 0, "as much for each warp");
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int end = COLUMNS + tile->beside, row = warp * HALO;
    for (int item = warp; item < items; item += WARPS)
        column_sums<STRIP, WINDOW>(cells, stride, item / groups * STRIP,
                                   item % groups * WARP + lane, tile);
    for (int column = COLUMNS + lane; column < end; column += WARP)
        column_sums<HALO, HALO_WINDOW>(cells, stride, row, column, tile);
    if (end + lane < COLUMNS + tile->taps)
        for (int p = 0; p < HALO; p++)
            tile->sums[(row + p) * tile->stride + end + lane] = make_float2(0, 0);
}

// Values: 16 neighbours of row `lane` from column `column` of the tile on.
template <int COLUMNS>
static __device__ inline void tile_row(const shared_tile<COLUMNS> *tile, int column,
                                       float value[STRIP])
{
    const float2 *from = tile->sums + threadIdx.x % WARP * tile->stride + column;
    for (int p = 0; p < STRIP; p++)
        value[p] = 0;
    filter_strip<float2, STRIP, WINDOW>(
        tile->smooth, tile->bent, tile->taps, [&](int n) { return from[n]; },
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
