// Tiles: the neighbourhood of a block's results, in shared memory.
//
// A row of a tile is as wide as a warp, 32 vec4s or 128 samples, margins included: lane l owns the
// vec4 at column 4 l, and the outer `words` lanes on both sides hold margin only and make no
// results. So a warp walks down a tile without a remainder, whatever the radius, and the left and
// right neighbours of a vec4 are those of the next lanes.
#pragma once

#include "kernels/device.cuh"

enum { TILE_ROWS = 128 }; // at most, margins included

struct tile {
    struct source source;
    int words;  // of margin left and right, in vec4s
    int margin; // rows above and below
    int rows;   // of results
};

static inline struct tile tile_shape(const struct source *source, int radius_x, int radius_y,
                                     int rows)
{
    return {*source, (radius_x + VEC4 - 1) / VEC4, radius_y, rows};
}

static inline dim3 tile_grid(const struct tile *tile, int frames)
{
    return grid_shape(tile->source.width, tile->source.height, frames,
                      VEC4 * (WARP - 2 * tile->words), tile->rows);
}

template <typename T> static inline size_t tile_bytes(const struct tile *tile)
{
    return sizeof(vec4<T>) * WARP * (size_t)(tile->rows + 2 * tile->margin);
}

// The picture column of this lane's vec4, and the row of the block's first result.
static __device__ inline int tile_x(const struct tile *tile)
{
    int results = VEC4 * (WARP - 2 * tile->words);
    return blockIdx.x * results + VEC4 * ((int)threadIdx.x - tile->words);
}

static __device__ inline int tile_y(const struct tile *tile)
{
    return blockIdx.y * tile->rows;
}

// True if this lane makes results.
static __device__ inline bool tile_has_results(const struct tile *tile)
{
    int lane = threadIdx.x;
    return lane >= tile->words && lane < WARP - tile->words && tile_x(tile) < tile->source.width;
}

// ---- filling ----

// A vec4 of the tile from one in memory: shifted, swapped, looked up, as the source asks for it.
// PLAIN: it asks for nothing of these.
template <bool PLAIN, typename T, typename Unit>
static __device__ inline vec4<T> tile_vec4(const struct source *from, const uint16_t *shared,
                                           vec4<Unit> units)
{
    if constexpr (PLAIN) {
        return plain_vec4(&from->view, units);
    } else {
        int value[VEC4];
        for (int i = 0; i < VEC4; i++) {
            value[i] = unit_sample<Unit>(&from->view, vec4_get(units, i));
            if (from->lookup.table)
                value[i] =
                    sizeof(Unit) == 1 ? shared[value[i]] : look_up(from->lookup.table, value[i]);
        }
        vec4<T> made;
        vec4_set(&made, value);
        return made;
    }
}

// Rows that a lane asks for before it waits for the first: of plain vec4s all of a tile of up to 80
// rows, of others half as many, of single samples a few.
enum { FILL_PLAIN = 10, FILL_FOURS = 5, FILL_SAMPLES = 3 };

// Fours that lie within the picture's columns. row[k] is the picture's row for row k of the tile,
// -1 for none. All vec4s of a batch are asked for, and made, whether they exist or not: with a
// branch between, the compiler would ask for one after another.
template <bool PLAIN, typename Unit, typename T>
static __device__ inline void tile_fill_vec4s(vec4<T> *tile, const struct source *from,
                                              const uint16_t *shared, const int *row, int rows,
                                              int x, vec4<T> beyond)
{
    constexpr int batch = PLAIN ? FILL_PLAIN : FILL_FOURS;
    for (int first = threadIdx.y; first < rows; first += batch * WARPS) {
        vec4<Unit> units[batch];
        for (int j = 0; j < batch; j++) {
            int y = row[min(first + j * WARPS, rows - 1)];
            units[j] = vec4_load<Unit>(view_at(&from->view, x, max(y, 0)));
        }
        for (int j = 0; j < batch; j++) {
            int k = first + j * WARPS;
            vec4<T> made = tile_vec4<PLAIN, T>(from, shared, units[j]);
            if (k < rows)
                tile[k * WARP + threadIdx.x] = row[k] < 0 ? beyond : made;
        }
    }
}

// Samples one by one: across the left and right edge, and of units that do not lie side by side.
template <typename T>
static __device__ inline void tile_fill_samples(vec4<T> *tile, const struct source *from,
                                                const int *row, int rows, int x)
{
    int column[VEC4];
    for (int i = 0; i < VEC4; i++)
        column[i] = extended_index(from->border, x + i, from->width);
    for (int first = threadIdx.y; first < rows; first += FILL_SAMPLES * WARPS) {
        int value[FILL_SAMPLES][VEC4];
        for (int j = 0; j < FILL_SAMPLES; j++) {
            int y = row[min(first + j * WARPS, rows - 1)];
            for (int i = 0; i < VEC4; i++)
                value[j][i] = view_read(&from->view, max(column[i], 0), max(y, 0));
        }
        for (int j = 0; j < FILL_SAMPLES; j++) {
            int k = first + j * WARPS, y = row[min(k, rows - 1)];
            look_up_vec4(&from->lookup, value[j]);
            for (int i = 0; i < VEC4; i++)
                if (y < 0 || column[i] < 0)
                    value[j][i] = from->border_value;
            if (k < rows)
                vec4_set(&tile[k * WARP + threadIdx.x], value[j]);
        }
    }
}

// All threads of a block fill its tile, and wait until it is whole. What the border rule makes of
// each row is found out once and kept in shared memory.
template <typename T>
static __device__ inline void tile_fill(vec4<T> *tile, const struct tile *shape)
{
    __shared__ int row[TILE_ROWS];
    __shared__ uint16_t shared[256];
    const struct source *from = &shape->source;
    const struct view *view = &from->view;
    int rows = shape->rows + 2 * shape->margin, thread = threadIdx.y * WARP + threadIdx.x;
    if (thread < rows)
        row[thread] =
            extended_index(from->border, tile_y(shape) - shape->margin + thread, from->height);
    if (view->bytes == 1)
        table_share(shared, from->lookup.table);
    __syncthreads();
    int x = tile_x(shape), border[VEC4];
    for (int i = 0; i < VEC4; i++)
        border[i] = from->border_value;
    vec4<T> beyond;
    vec4_set(&beyond, border);
    if (!view->adjacent || x < 0 || x + VEC4 > from->width)
        tile_fill_samples(tile, from, row, rows, x);
    else if (view->plain && view->bytes == sizeof(T) && !from->lookup.table)
        tile_fill_vec4s<true, T>(tile, from, shared, row, rows, x, beyond);
    else if (view->bytes == 1)
        tile_fill_vec4s<false, uint8_t>(tile, from, shared, row, rows, x, beyond);
    else
        tile_fill_vec4s<false, uint16_t>(tile, from, shared, row, rows, x, beyond);
    __syncthreads();
}
