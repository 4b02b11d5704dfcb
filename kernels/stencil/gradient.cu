// Gradients: a tile in shared memory, and a few rows of it for each warp.
#include "kernels/op_kernels.h"
#include "kernels/stencil/fused.h"
#include "kernels/stencil/tile.cuh"

enum { GRADIENT_ROWS = 9 }; // that a warp makes

// How lengths are made: the sum |gx| + |gy| unscaled; any where gx^2 + gy^2 is below SHORT_SQUARES and
// the scale fits 32 bits; any.
enum length_form { LENGTH_PLAIN, LENGTH_SHORT, LENGTH_LONG };
enum { SHORT_SQUARES = 1 << 28 };

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

// The same of m below SHORT_SQUARES. The approximate root errs by 2^-22 at most, and so by less than 1
// here. Squares are compared modulo 2^32, as they differ by less than 2^24.
static __device__ inline int short_root_q8(int m)
{
    float estimate;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"((float)m));
    uint32_t root = (uint32_t)(256 * estimate), square = (uint32_t)m << 16;
    int beyond = (int)(root * root - square);
    return (int)root - (beyond > 0) + (beyond + 2 * (int)root + 1 <= 0);
}

template <length_form FORM>
static __device__ inline int gradient_length(const struct gradient *g, int gx, int gy)
{
    int length = abs(gx) + abs(gy);
    if (FORM == LENGTH_PLAIN)
        return g->base + min(length, g->limit);
    if (FORM == LENGTH_SHORT) {
        bool root = g->norm == NORM_L2;
        int bits = root ? 24 : 16;
        length = root                ? short_root_q8(gx * gx + gy * gy)
                 : g->norm == NORM_X ? abs(gx)
                 : g->norm == NORM_Y ? abs(gy)
                                     : length;
        uint64_t scaled = (uint64_t)(uint32_t)length * (uint32_t)g->scale + (1u << bits >> 1);
        return g->base + (int)min((uint32_t)(scaled >> bits), (uint32_t)g->limit);
    }
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
template <typename T, length_form FORM>
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
#pragma unroll(FORM == LENGTH_LONG ? 1 : 3)
    for (int k = 0; k < GRADIENT_ROWS; k++) {
        struct derivative below = derivative_of(&g, row + (k + 2) * WARP);
        int value[VEC4];
        for (int i = 0; i < VEC4; i++) {
            int gx = g.side * (above.difference[i] + below.difference[i]) +
                     g.center * here.difference[i];
            value[i] = gradient_length<FORM>(&g, gx, below.smooth[i] - above.smooth[i]);
        }
        if (y + k < g.sink.height)
            outlet_put(&outlet, after, y + k, value);
        above = here;
        here = below;
    }
}

// ---- launcher ----

static length_form length_form_of(const struct op_gradient *op, int depth)
{
    int64_t most = (int64_t)(2 * op->side + op->center) * max_sample(depth);
    if (op->norm == NORM_L1 && op->scale == 65536)
        return LENGTH_PLAIN;
    // The scaled length without its fraction has to fit 32 bits.
    return 2 * most * most < SHORT_SQUARES && op->scale > 0 && op->scale <= 1 << 24 ? LENGTH_SHORT
                                                                                    : LENGTH_LONG;
}

template <typename T>
static void launch(const struct gradient *g, length_form form, dim3 grid, dim3 block,
                   cudaStream_t stream)
{
    if (form == LENGTH_PLAIN)
        gradient<T, LENGTH_PLAIN><<<grid, block, 0, stream>>>(*g);
    else if (form == LENGTH_SHORT)
        gradient<T, LENGTH_SHORT><<<grid, block, 0, stream>>>(*g);
    else
        gradient<T, LENGTH_LONG><<<grid, block, 0, stream>>>(*g);
}

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
    if (stencil->depth == 8)
        launch<uint8_t>(&g, length_form_of(op, stencil->depth), grid, block, stream);
    else
        launch<uint16_t>(&g, length_form_of(op, stencil->depth), grid, block, stream);
    return cudaGetLastError();
}

const struct op_kernels gradient_kernels = {
    .kind = OP_GRADIENT,
    .stencil_async = gradient_async,
};
