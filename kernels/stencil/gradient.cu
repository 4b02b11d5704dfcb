// Gradients: a tile in shared memory, and a few rows of it for each warp.
#include "kernels/op_kernels.h"
#include "kernels/stencil/fused.h"
#include "kernels/stencil/tile.cuh"

enum { GRADIENT_ROWS = 9 }; // that a warp makes

struct gradient {
    struct tile tile;
    struct sink sink;
    int side, center;
    enum norm norm;
    int64_t scale;
    int base, limit;
};

// floor(256 sqrt(m)): single precision is off by a few units in the last of its 24 bits, one step
// of Newton's method mends that for sums beyond 2^24, and the rest is at most one.
static __device__ inline int64_t root_q8(int64_t m)
{
    int64_t square = m << 16;
    float estimate = 256 * sqrtf((float)m);
    int64_t root = (int64_t)estimate;
    if (m >= 1 << 24)
        root += (int64_t)((float)(square - root * root) / (2 * estimate));
    while (root * root > square)
        root--;
    while ((root + 1) * (root + 1) <= square)
        root++;
    return root;
}

// PLAIN: the sum |gx| + |gy| unscaled, in 32 bits: it stays below 2^22.
template <bool PLAIN>
static __device__ inline int gradient_length(const struct gradient *g, int gx, int gy)
{
    int length = abs(gx) + abs(gy);
    if (PLAIN)
        return g->base + min(length, g->limit);
    int64_t scaled;
    if (g->norm == NORM_L2) {
        scaled = (root_q8((int64_t)gx * gx + (int64_t)gy * gy) * g->scale + (1 << 23)) >> 24;
    } else {
        length = g->norm == NORM_X ? abs(gx) : g->norm == NORM_Y ? abs(gy) : length;
        scaled = (length * g->scale + (1 << 15)) >> 16;
    }
    return g->base + (int)min(scaled, (int64_t)g->limit);
}

// Derivatives of one row: differences across a place, and weighted sums around it.
struct derivative {
    int difference[VEC4], smooth[VEC4];
};

template <typename T>
static __device__ inline struct derivative derivative_of(const struct gradient *g,
                                                         const vec4<T> *row)
{
    int x[VEC4 + 2] = {vec4_get(row[-1], VEC4 - 1)};
    for (int i = 0; i < VEC4; i++)
        x[i + 1] = vec4_get(row[0], i);
    x[VEC4 + 1] = vec4_get(row[1], 0);
    struct derivative made;
    for (int i = 0; i < VEC4; i++) {
        made.difference[i] = x[i + 2] - x[i];
        made.smooth[i] = g->side * (x[i] + x[i + 2]) + g->center * x[i + 1];
    }
    return made;
}

// A thread owns four columns of nine rows and walks down: from each row of the tile it reads its
// own vec4 and the sample on either side, and keeps what it made of the two rows before in
// registers. These change their roles every three rows, so three are written out, except where the
// arithmetic is long. The tile has 74 rows for 72 of results, 120 of its 128 columns are results,
// and the only other traffic is one vec4 stored for one loaded.
template <typename T, bool PLAIN>
static __global__ void __launch_bounds__(WARP *WARPS)
    gradient(const __grid_constant__ struct gradient g)
{
    __shared__ vec4<T> tile[(WARPS * GRADIENT_ROWS + 2) * WARP];
    __shared__ uint16_t after[256];
    if (sizeof(T) == 1)
        table_share(after, g.sink.lookup.table);
    tile_fill(tile, &g.tile);
    if (!tile_has_results(&g.tile))
        return;
    int first = threadIdx.y * GRADIENT_ROWS, y = tile_y(&g.tile) + first;
    const vec4<T> *row = &tile[first * WARP + threadIdx.x];
    outlet<T> outlet = outlet_of<T>(&g.sink, tile_x(&g.tile));
    struct derivative above = derivative_of(&g, row), here = derivative_of(&g, row + WARP);
#pragma unroll(PLAIN ? 3 : 1)
    for (int k = 0; k < GRADIENT_ROWS; k++) {
        struct derivative below = derivative_of(&g, row + (k + 2) * WARP);
        int value[VEC4];
        for (int i = 0; i < VEC4; i++) {
            int gx = g.side * (above.difference[i] + below.difference[i]) +
                     g.center * here.difference[i];
            value[i] = gradient_length<PLAIN>(&g, gx, below.smooth[i] - above.smooth[i]);
        }
        if (y + k < g.sink.height)
            outlet_put(&outlet, after, y + k, value);
        above = here;
        here = below;
    }
}

// ---- launcher ----

static cudaError_t gradient_async(const struct stencil *stencil, cudaStream_t stream)
{
    if (fused_takes(stencil))
        return fused_async(stencil, stream);
    const struct op_gradient *op = &stencil->op->gradient;
    struct gradient g = {
        .tile = tile_shape(&stencil->source, 1, 1, WARPS * GRADIENT_ROWS),
        .sink = stencil->sink,
        .side = op->side,
        .center = op->center,
        .norm = op->norm,
        .scale = op->scale,
        .base = op->base,
        .limit = op->limit,
    };
    dim3 grid = tile_grid(&g.tile, g.sink.frames), block = block_shape();
    bool plain = op->norm == NORM_L1 && op->scale == 65536;
    if (stencil->depth == 8 && plain)
        gradient<uint8_t, true><<<grid, block, 0, stream>>>(g);
    else if (stencil->depth == 8)
        gradient<uint8_t, false><<<grid, block, 0, stream>>>(g);
    else if (plain)
        gradient<uint16_t, true><<<grid, block, 0, stream>>>(g);
    else
        gradient<uint16_t, false><<<grid, block, 0, stream>>>(g);
    return cudaGetLastError();
}

const struct op_kernels gradient_kernels = {
    .kind = OP_GRADIENT,
    .stencil_async = gradient_async,
};
