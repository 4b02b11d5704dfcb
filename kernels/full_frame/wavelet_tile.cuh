// Tiles of values, in device code: a block's cells filtered by both pairs of taps of a scale, sums
// down the columns in shared memory, then along the rows.
#pragma once

#include "kernels/full_frame/wavelet.cuh"

enum {
    STRIP = 8,                            // neighbouring results of a thread that filters
    ITEMS = TILE_COLUMNS / STRIP / WARPS, // strips of a thread along the rows
    TRANSPOSE_STRIDE = TILE_COLUMNS + VEC4,
};

// Taps that are used, in whole strips.
static __host__ __device__ inline int taps_of(int radius)
{
    return up(2 * radius + 1, STRIP);
}

// A row of sums in shared memory: an odd number of them, so that lanes may read a column.
static __host__ __device__ inline int sums_stride(int radius)
{
    return up(TILE_COLUMNS + taps_of(radius), WARP) + 1;
}

// Both lines of taps, with a strip of zeros before and behind.
static __host__ __device__ inline int shared_taps(int radius)
{
    return taps_of(radius) + 2 * STRIP;
}

static __host__ __device__ inline size_t tile_bytes(int radius)
{
    return (size_t)2 * shared_taps(radius) * sizeof(float) +
           (size_t)TILE_ROWS * sums_stride(radius) * sizeof(float2);
}

enum part { PART_HEAD, PART_MIDDLE, PART_TAIL };

// Add STRIP inputs, input 0 being the one under tap `first` of result 0, to STRIP results:
// input i meets tap first + i - p of result p. At the head there are none before the first tap, at
// the tail none behind the last.
template <enum part PART, typename Input, typename Add>
static __device__ inline void add_strip(const float *smooth, const float *bent, int first,
                                        const Input input[STRIP], Add add)
{
    float s[2 * STRIP], b[2 * STRIP];
#pragma unroll
    for (int i = PART == PART_HEAD ? STRIP : 0; i < (PART == PART_TAIL ? STRIP : 2 * STRIP);
         i += VEC4) {
        *(float4 *)(s + i) = *(const float4 *)(smooth + first - STRIP + i);
        *(float4 *)(b + i) = *(const float4 *)(bent + first - STRIP + i);
    }
#pragma unroll
    for (int i = 0; i < STRIP; i++)
#pragma unroll
        for (int p = 0; p < STRIP; p++)
            if (PART == PART_MIDDLE || (PART == PART_HEAD) == (p <= i))
                add(p, s[STRIP + i - p], b[STRIP + i - p], input[i]);
}

// Results of a strip: read(n) gives input n, add() uses it. Inputs are fetched while those before
// them are used.
template <typename Input, typename Read, typename Add>
static __device__ inline void filter_strip(const float *smooth, const float *bent, int taps,
                                           Read read, Add add)
{
    Input input[STRIP], next[STRIP];
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        input[i] = read(i);
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        next[i] = read(STRIP + i);
    add_strip<PART_HEAD>(smooth, bent, 0, input, add);
#pragma unroll 2
    for (int n = STRIP; n < taps; n += STRIP) {
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            input[i] = next[i];
            next[i] = read(n + STRIP + i);
        }
        add_strip<PART_MIDDLE>(smooth, bent, n, input, add);
    }
    add_strip<PART_TAIL>(smooth, bent, taps, next, add);
}

// The shared memory of a block: `smooth` and `bent` point at their first taps.
struct shared_tile {
    float *smooth, *bent;
    float2 *sums; // down the columns: by smooth, by bent
    int taps, stride;
};

static __device__ inline struct shared_tile tile_of(float4 *memory, int max_radius, int radius)
{
    float *smooth = (float *)memory + STRIP, *bent = smooth + shared_taps(max_radius);
    return {smooth, bent, (float2 *)((float *)memory + 2 * shared_taps(max_radius)),
            taps_of(radius), sums_stride(radius)};
}

// All threads fetch the taps of a scale; there are zeros around them where they come from.
static __device__ inline void tile_taps(const struct wavelet *w, const struct filter *filter,
                                        const struct shared_tile *tile)
{
    for (int k = (int)threadIdx.x - STRIP; k < tile->taps + STRIP; k += THREADS) {
        tile->smooth[k] = w->tap[filter->smooth + k];
        tile->bent[k] = w->tap[filter->bent + k];
    }
}

// Sums down the columns, for all rows of a tile whose first is under `cells`. A warp makes eight
// rows of 32 neighbouring columns; each input is read once for both sums of all that it is in.
static __device__ inline void tile_columns(const float *cells, int stride,
                                           const struct shared_tile *tile)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int groups = (TILE_COLUMNS + tile->taps + WARP - 1) / WARP;
    for (int item = warp; item < groups * (TILE_ROWS / STRIP); item += WARPS) {
        int column = item % groups * WARP + lane, row = item / groups * STRIP;
        const float *from = cells + (size_t)row * stride + column;
        float s[STRIP] = {}, b[STRIP] = {};
        filter_strip<float>(
            tile->smooth, tile->bent, tile->taps,
            [&](int n) { return __ldg(from + (size_t)n * stride); },
            [&](int p, float smooth, float bent, float input) {
                s[p] = __fmaf_rn(smooth, input, s[p]);
                b[p] = __fmaf_rn(bent, input, b[p]);
            });
        for (int p = 0; p < STRIP; p++)
            tile->sums[(row + p) * tile->stride + column] = make_float2(s[p], b[p]);
    }
}

// Values: eight neighbours of row `lane` from column `column` of the tile on.
static __device__ inline void tile_row(const struct shared_tile *tile, int column,
                                       float value[STRIP])
{
    const float2 *from = tile->sums + threadIdx.x % WARP * tile->stride + column;
    for (int p = 0; p < STRIP; p++)
        value[p] = 0;
    filter_strip<float2>(
        tile->smooth, tile->bent, tile->taps, [&](int n) { return from[n]; },
        [&](int p, float smooth, float bent, float2 input) {
            value[p] = __fmaf_rn(bent, input.x, value[p]);
            value[p] = __fmaf_rn(smooth, input.y, value[p]);
        });
}

// Transpose the values of a tile, so that lanes have neighbours along the rows: keep(row, column,
// four) gets four of them. They pass through the sums' memory, which nobody may need any more.
template <typename Keep>
static __device__ inline void tile_transpose(const struct shared_tile *tile,
                                             const float value[ITEMS][STRIP], Keep keep)
{
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
        keep(row, lane * VEC4,
             *(const float4 *)(transposed + row * TRANSPOSE_STRIDE + lane * VEC4));
}
