// One axis of a separable filter at a time. See kernels/stencil/separable.h.
#include "kernels/recording.cuh"
#include "kernels/stencil/separable.cuh"

// ---- device helpers ----

// Four results, one after another, of an axis: sum[o] += tap[i - o] times input i, for as many
// columns as the inputs have. Inputs are read four at a time and once each; the taps that four
// results need of one input move along with it, and the margin of zeros is what moves in and out.
template <typename Sum, int COLUMNS, typename Read>
static __device__ inline void slide(Sum sum[VEC4][COLUMNS], const int32_t *tap, int radius,
                                    Read read)
{
    uint32_t weight[VEC4] = {0};
    for (int first = 0; first < 2 * radius + VEC4; first += VEC4) {
        int input[VEC4][COLUMNS];
        read(first, input);
        for (int i = 0; i < VEC4; i++) {
            for (int o = VEC4 - 1; o > 0; o--)
                weight[o] = weight[o - 1];
            weight[0] = (uint32_t)__ldg(tap + first + i);
            for (int o = 0; o < VEC4; o++)
                for (int c = 0; c < COLUMNS; c++)
                    sum[o][c] += (Sum)weight[o] * (uint32_t)input[i][c];
        }
    }
}

template <typename Sum, int COLUMNS>
static __device__ inline void sums_begin(Sum sum[VEC4][COLUMNS], const struct rounding *rounding)
{
    for (int o = 0; o < VEC4; o++)
        for (int c = 0; c < COLUMNS; c++)
            sum[o][c] = rounding_half<Sum>(rounding);
}

// ---- kernels ----

// A thread makes a square of four columns and four rows. It reads the vec4s of its columns from top
// to bottom, 2 radius + 4 of them, so that a warp reads 128 samples of a row side by side; what the
// warps above and below read again comes from the cache.
template <typename Sum>
static __global__ void __launch_bounds__(WARP *WARPS)
    axis_columns(const __grid_constant__ struct axis a)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int y = (blockIdx.y * WARPS + threadIdx.y) * VEC4;
    if (x >= a.sink.width || y >= a.sink.height)
        return;
    Sum sum[VEC4][VEC4];
    sums_begin(sum, &a.rounding);
    slide(sum, a.tap, a.radius, [&](int first, int input[VEC4][VEC4]) {
        int row[VEC4];
        for (int i = 0; i < VEC4; i++)
            row[i] = y + a.first + first + i;
        source_read_rows<VEC4>(&a.source, x, row, input);
    });
    outlet<uint16_t> outlet = outlet_of<uint16_t>(&a.sink, x);
    for (int o = 0; o < VEC4 && y + o < a.sink.height; o++) {
        int value[VEC4];
        for (int c = 0; c < VEC4; c++)
            value[c] = (int)(sum[o][c] >> a.rounding.shift);
        outlet_store(&outlet, y + o, value);
    }
}

// A thread makes four neighbours of a row from 2 radius + 4 samples, from left to right. The lanes
// of a warp read four samples apart, 256 bytes in all, of which they use the other parts in the
// next three reads, from the cache.
template <typename Sum>
static __global__ void __launch_bounds__(WARP *WARPS)
    axis_rows(const __grid_constant__ struct axis a)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int y = blockIdx.y * WARPS + threadIdx.y;
    if (x >= a.sink.width || y >= a.sink.height)
        return;
    const uint16_t *row = (const uint16_t *)view_at(&a.source.view, 0, y);
    Sum sum[VEC4][1];
    sums_begin(sum, &a.rounding);
    slide(sum, a.tap, a.radius, [&](int first, int input[VEC4][1]) {
        for (int i = 0; i < VEC4; i++) {
            int column = extended_index(a.source.border, x + a.first + first + i, a.source.width);
            input[i][0] = __ldg(row + max(column, 0));
            if (column < 0)
                input[i][0] = a.source.border_value;
        }
    });
    int value[VEC4], center[VEC4];
    for (int o = 0; o < VEC4; o++)
        value[o] = (int)(sum[o][0] >> a.rounding.shift);
    if (a.rounding.amount) {
        source_read(&a.center, x, y, center);
        for (int o = 0; o < VEC4; o++)
            value[o] = sharpened(&a.rounding, center[o], value[o]);
    }
    sink_put(&a.sink, x, y, value);
}

// ---- launchers ----

cudaError_t axis_columns_async(const struct axis *axis, cudaStream_t stream)
{
    dim3 grid = grid_shape(axis->sink.width, axis->sink.height, axis->sink.frames, WARP * VEC4,
                           WARPS * VEC4);
    if (axis->exact)
        kernel_launch(axis_columns<uint64_t>, grid, block_shape(), 0, stream, *axis);
    else
        kernel_launch(axis_columns<uint32_t>, grid, block_shape(), 0, stream, *axis);
    return cudaGetLastError();
}

cudaError_t axis_rows_async(const struct axis *axis, cudaStream_t stream)
{
    dim3 grid =
        grid_shape(axis->sink.width, axis->sink.height, axis->sink.frames, WARP * VEC4, WARPS);
    if (axis->exact)
        kernel_launch(axis_rows<uint64_t>, grid, block_shape(), 0, stream, *axis);
    else
        kernel_launch(axis_rows<uint32_t>, grid, block_shape(), 0, stream, *axis);
    return cudaGetLastError();
}
