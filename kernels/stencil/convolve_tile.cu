// Convolutions of up to 15 x 15 weights with sums of 32 bits: a tile in shared memory, and a few
// rows of it for each warp.
#include <assert.h>

#include "kernels/recording.cuh"
#include "kernels/stencil/convolve.cuh"
#include "kernels/stencil/tile.cuh"

enum { CONVOLVE_ROWS = 4 }; // that a warp makes

struct convolve_tile {
    struct tile tile;
    struct sink sink;
    const int32_t *weight;
    int width, height;
    int origin_x, origin_y;
    int bits, offset;
    bool absolute;
    int base, low, high;
};

static __device__ inline int convolved(const struct convolve_tile *c, int sum)
{
    if (c->absolute)
        sum = abs(sum);
    sum = (sum + c->offset) >> c->bits;
    return min(max(c->base + sum, c->low), c->high);
}

// A thread makes four neighbouring results of a row, four rows one after another. It reads the tile
// sample by sample, a warp's reads falling in different banks, and each weight by all lanes at
// once; weights of zero cost nothing more than their test.
template <typename T>
static __global__ void __launch_bounds__(WARP *WARPS)
    convolve_tile(const __grid_constant__ struct convolve_tile c)
{
    __shared__ vec4<T> tile[(WARPS * CONVOLVE_ROWS + CONVOLVE_SIDE - 1) * WARP];
    __shared__ int32_t weight[CONVOLVE_SIDE * CONVOLVE_SIDE];
    __shared__ uint16_t after[256];
    int thread = threadIdx.y * WARP + threadIdx.x;
    if (thread < c.width * c.height)
        weight[thread] = c.weight[thread];
    if (sizeof(T) == 1)
        table_share(after, c.sink.lookup.table);
    tile_fill(tile, &c.tile);
    if (!tile_has_results(&c.tile))
        return;
    outlet<T> outlet = outlet_of<T>(&c.sink, tile_x(&c.tile));
    for (int k = threadIdx.y; k < WARPS * CONVOLVE_ROWS; k += WARPS) {
        int y = tile_y(&c.tile) + k, sum[VEC4] = {0};
        if (y >= c.sink.height)
            return;
        const vec4<T> *row = &tile[(k + c.tile.margin - c.origin_y) * WARP + threadIdx.x];
        for (int j = 0; j < c.height; j++)
            for (int i = 0; i < c.width; i++) {
                int32_t w = weight[j * c.width + i];
                const T *from = (const T *)&row[j * WARP] + i - c.origin_x;
                if (w)
                    for (int p = 0; p < VEC4; p++)
                        sum[p] += w * from[p];
            }
        for (int p = 0; p < VEC4; p++)
            sum[p] = convolved(&c, sum[p]);
        outlet_put(&outlet, after, y, sum);
    }
}

// ---- launcher ----

cudaError_t convolve_tile_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_convolve *op = &stencil->op->convolve;
    assert(convolve_fits_tile(op, stencil->depth));
    struct convolve_tile c = {
        .tile = tile_shape(&stencil->source, op_radius_x(stencil->op), op_radius_y(stencil->op),
                           WARPS * CONVOLVE_ROWS),
        .sink = stencil->sink,
        .weight = stencil->constants[0],
        .width = op->width,
        .height = op->height,
        .origin_x = op->origin_x,
        .origin_y = op->origin_y,
        .bits = op->bits,
        .offset = (int)op->offset,
        .absolute = op->absolute,
        .base = op->base,
        .low = op->low,
        .high = op->high,
    };
    dim3 grid = tile_grid(&c.tile, c.sink.frames), block = block_shape();
    if (stencil->depth == 8)
        kernel_launch(convolve_tile<uint8_t>, grid, block, 0, stream, c);
    else
        kernel_launch(convolve_tile<uint16_t>, grid, block, 0, stream, c);
    return cudaGetLastError();
}
