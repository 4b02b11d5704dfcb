// Gradients: a tile in shared memory, and a few rows of it for each warp.
#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"
#include "kernels/stencil/gradient.cuh"
#include "kernels/stencil/tile.cuh"

enum { GRADIENT_ROWS = 9 }; // that a warp makes

struct gradient {
    struct tile tile;
    struct sink sink;
    int side, center;
    struct lengths lengths;
};

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
            value[i] = gradient_length<FORM>(&g.lengths, gx, below.smooth[i] - above.smooth[i]);
        }
        if (y + k < g.sink.height)
            outlet_put(&outlet, after, y + k, value);
        above = here;
        here = below;
    }
}

// ---- launcher ----

template <typename T>
static void launch(const struct gradient *g, length_form form, dim3 grid, dim3 block,
                   cudaStream_t stream)
{
    if (form == LENGTH_PLAIN)
        kernel_launch(gradient<T, LENGTH_PLAIN>, grid, block, 0, stream, *g);
    else if (form == LENGTH_SUM)
        kernel_launch(gradient<T, LENGTH_SUM>, grid, block, 0, stream, *g);
    else if (form == LENGTH_ROOT)
        kernel_launch(gradient<T, LENGTH_ROOT>, grid, block, 0, stream, *g);
    else
        kernel_launch(gradient<T, LENGTH_LONG>, grid, block, 0, stream, *g);
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
        .lengths = lengths_of(op),
    };
    dim3 grid = tile_grid(&g.tile, g.sink.frames), block = block_shape();
    if (stencil->depth == 8)
        launch<uint8_t>(&g, length_form_of(op, stencil->depth), grid, block, stream);
    else
        launch<uint16_t>(&g, length_form_of(op, stencil->depth), grid, block, stream);
    return cudaGetLastError();
}

static void gradient_constants(const struct op_use *use, struct constants *memory,
                               struct op_constants *to)
{
    to->fragments[0] = constants_words(memory, [&](uint32_t *words) {
        return gradient_mma_u8_fragments(&use->op->gradient, use->depth, words);
    });
}

const struct op_kernels gradient_kernels = {
    .kind = OP_GRADIENT,
    .constants = gradient_constants,
    .stencil_async = gradient_async,
    .launches = true,
};
