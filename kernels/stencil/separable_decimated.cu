// The decimated form of separable filters: a grid D apart is made by tents, filtered one axis at a
// time as any plane, and put back by linear interpolation. See OP_SEPARABLE.
//
// The grid reaches past the picture as far as the taps ask. Its planes in memory begin at its first
// column and row, -radius_x and -radius_y, and have no border of their own.
#include "kernels/stencil/separable.cuh"

struct tents {
    struct source source;
    uint32_t *sums;
    int sums_stride;        // in sums
    ptrdiff_t frame_stride; // as well
    int decimate_x, decimate_y;
    int first_x, first_y; // of the grid
    int fraction, shift;
    struct sink grid;
};

struct interpolation {
    struct view grid; // plain, 16 bits
    int decimate_x, decimate_y;
    struct rounding rounding;
    struct source center;
    struct sink sink;
};

// ---- device helpers ----

static __device__ inline uint32_t *row_of_sums(const struct tents *t, int n)
{
    return t->sums + blockIdx.z * t->frame_stride + (int64_t)n * t->sums_stride;
}

// ---- kernels ----

// A thread adds up, under the tent of one grid row, the vec4s of its columns: 2 D - 1 rows, four at
// a time, 128 samples side by side for a warp. Sums stay below 2^28.
static __global__ void __launch_bounds__(WARP *WARPS)
    tent_columns(const __grid_constant__ struct tents t)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, n = blockIdx.y * WARPS + threadIdx.y;
    if (x >= t.source.width || n >= t.grid.height)
        return;
    int d = 1 << t.decimate_y, middle = (n + t.first_y) * d;
    uint32_t sum[VEC4] = {0};
    for (int b = 1 - d; b < d; b += VEC4) {
        int row[VEC4], value[VEC4][VEC4];
        for (int k = 0; k < VEC4; k++)
            row[k] = middle + b + k;
        source_read_rows<VEC4>(&t.source, x, row, value);
        for (int k = 0; k < VEC4; k++)
            for (int i = 0; i < VEC4; i++)
                sum[i] += (uint32_t)max(d - abs(b + k), 0) * (uint32_t)value[k][i];
    }
    *(uint4 *)&row_of_sums(&t, n)[x] = make_uint4(sum[0], sum[1], sum[2], sum[3]);
}

// A thread makes one sample of the grid from 2 D - 1 sums of a row. Lanes read D apart and so use,
// between them, every sum twice.
static __global__ void __launch_bounds__(WARP *WARPS)
    tent_rows(const __grid_constant__ struct tents t)
{
    int m = blockIdx.x * WARP + threadIdx.x, n = blockIdx.y * WARPS + threadIdx.y;
    if (m >= t.grid.width || n >= t.grid.height)
        return;
    const uint32_t *row = row_of_sums(&t, n);
    uint32_t beyond = (uint32_t)t.source.border_value << 2 * t.decimate_y;
    int d = 1 << t.decimate_x, middle = (m + t.first_x) * d;
    uint64_t sum = 0;
    for (int a = 1 - d; a < d; a++) {
        int x = extended_index(t.source.border, middle + a, t.source.width);
        sum += (uint64_t)(uint32_t)(d - abs(a)) * (x < 0 ? beyond : row[x]);
    }
    uint64_t half = (uint64_t)1 << t.shift >> 1;
    view_write(&t.grid.view[0], m, n, (int)(((sum << t.fraction) + half) >> t.shift));
}

// A thread makes four neighbouring results from the grid samples around them; a warp's come from a
// few words that the cache holds. Sums stay below 2^28.
static __global__ void __launch_bounds__(WARP *WARPS)
    interpolate(const __grid_constant__ struct interpolation p)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, y = blockIdx.y * WARPS + threadIdx.y;
    if (x >= p.sink.width || y >= p.sink.height)
        return;
    int dx = 1 << p.decimate_x, dy = 1 << p.decimate_y;
    int n = y >> p.decimate_y, fy = y & (dy - 1), next = n + (fy > 0);
    const uint16_t *above = (const uint16_t *)view_at(&p.grid, 0, n);
    const uint16_t *below = (const uint16_t *)view_at(&p.grid, 0, next);
    int value[VEC4], center[VEC4];
    if (dx >= VEC4) { // all between the same two columns of the grid
        int m = x >> p.decimate_x, fx = x & (dx - 1);
        int right = (min(x + VEC4, p.sink.width) + dx - 2) >> p.decimate_x;
        int at_m = (dy - fy) * __ldg(above + m) + fy * __ldg(below + m);
        int at_right = (dy - fy) * __ldg(above + right) + fy * __ldg(below + right);
        int sum = (dx - fx) * at_m + fx * at_right + rounding_half<int>(&p.rounding);
        for (int i = 0; i < VEC4; i++)
            value[i] = (sum + i * (at_right - at_m)) >> p.rounding.shift;
    } else {
        for (int i = 0; i < VEC4; i++) {
            int column = min(x + i, p.sink.width - 1);
            int m = column >> p.decimate_x, fx = column & (dx - 1), right = m + (fx > 0);
            int sum = (dy - fy) * ((dx - fx) * __ldg(above + m) + fx * __ldg(above + right)) +
                      fy * ((dx - fx) * __ldg(below + m) + fx * __ldg(below + right));
            value[i] = (sum + rounding_half<int>(&p.rounding)) >> p.rounding.shift;
        }
    }
    if (p.rounding.amount) {
        source_read(&p.center, x, y, center);
        for (int i = 0; i < VEC4; i++)
            value[i] = sharpened(&p.rounding, center[i], value[i]);
    }
    sink_put(&p.sink, x, y, value);
}

// ---- launchers ----

// The planes between the parts, in scratch memory.
struct decimated_layout {
    uint32_t *sums;     // of columns under the tents of each grid row, as wide as the picture
    struct sink grid;   // c of OP_SEPARABLE
    struct sink middle; // t
    struct sink result; // u, within the picture
    size_t bytes;
};

static struct sink take_plane(const struct stencil *stencil, size_t *used, int width, int height)
{
    struct sink sink = scratch_sink(stencil, *used, width, height);
    *used += scratch_bytes(width, height, 2);
    return sink;
}

// How many grid samples the interpolation reads along an axis.
static int samples_on_grid(int length, int decimate)
{
    int d = 1 << decimate;
    return (length - 1 + d - 1) / d + 1;
}

static struct decimated_layout decimated_layout_of(const struct stencil *stencil)
{
    const struct op_separable *op = &stencil->op->separable;
    int width = stencil->source.width, height = stencil->source.height;
    int columns = samples_on_grid(width, op->decimate_x);
    int rows = samples_on_grid(height, op->decimate_y);
    int all_columns = columns + 2 * op->radius_x, all_rows = rows + 2 * op->radius_y;
    struct decimated_layout layout = {.sums = (uint32_t *)stencil->scratch};
    layout.bytes = scratch_bytes(width, all_rows, sizeof(uint32_t));
    layout.grid = take_plane(stencil, &layout.bytes, all_columns, all_rows);
    layout.middle = take_plane(stencil, &layout.bytes, all_columns, rows);
    layout.result = take_plane(stencil, &layout.bytes, columns, rows);
    return layout;
}

static cudaError_t tents_async(const struct stencil *stencil, const struct decimated_layout *layout,
                               cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    const struct sink *grid = &layout->grid;
    int width = stencil->source.width;
    struct tents tents = {
        .source = stencil->source,
        .sums = layout->sums,
        .sums_stride = scratch_stride(width, sizeof(uint32_t)) / (int)sizeof(uint32_t),
        .frame_stride = stencil->scratch_step / (ptrdiff_t)sizeof(uint32_t),
        .decimate_x = op->decimate_x,
        .decimate_y = op->decimate_y,
        .first_x = -op->radius_x,
        .first_y = -op->radius_y,
        .fraction = op->fraction,
        .shift = 2 * (op->decimate_x + op->decimate_y),
        .grid = *grid,
    };
    dim3 columns = grid_shape(width, grid->height, grid->frames, WARP * VEC4, WARPS);
    dim3 rows = grid_shape(grid->width, grid->height, grid->frames, WARP, WARPS);
    tent_columns<<<columns, block_shape(), 0, stream>>>(tents);
    tent_rows<<<rows, block_shape(), 0, stream>>>(tents);
    return cudaGetLastError();
}

static cudaError_t filter_grid_async(const struct stencil *stencil,
                                     const struct decimated_layout *layout, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    struct axis columns = {
        .source = scratch_source(&layout->grid, BORDER_REPLICATE, 0),
        .tap = stencil->constants[1],
        .radius = op->radius_y,
        .exact = axis_is_exact(op),
        .rounding = {.shift = op->bits},
        .sink = layout->middle,
    };
    struct axis rows = {
        .source = scratch_source(&layout->middle, BORDER_REPLICATE, 0),
        .tap = stencil->constants[0],
        .radius = op->radius_x,
        .exact = axis_is_exact(op),
        .rounding = {.shift = op->bits},
        .sink = layout->result,
    };
    cudaError_t error = axis_columns_async(&columns, stream);
    return error ? error : axis_rows_async(&rows, stream);
}

static cudaError_t interpolate_async(const struct stencil *stencil,
                                     const struct decimated_layout *layout, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    int bits_below = op->fraction + op->decimate_x + op->decimate_y;
    struct interpolation interpolation = {
        .grid = layout->result.view[0],
        .decimate_x = op->decimate_x,
        .decimate_y = op->decimate_y,
        .rounding = separable_rounding(op, stencil->depth, bits_below),
        .center = stencil->source,
        .sink = stencil->sink,
    };
    dim3 grid = grid_shape(stencil->sink.width, stencil->sink.height, stencil->sink.frames,
                           WARP * VEC4, WARPS);
    interpolate<<<grid, block_shape(), 0, stream>>>(interpolation);
    return cudaGetLastError();
}

size_t separable_decimated_scratch(const struct op *op, int width, int height)
{
    struct stencil stencil = {.op = op};
    stencil.source.width = width;
    stencil.source.height = height;
    return decimated_layout_of(&stencil).bytes;
}

cudaError_t separable_decimated_async(const struct stencil *stencil, cudaStream_t stream)
{
    struct decimated_layout layout = decimated_layout_of(stencil);
    cudaError_t error = tents_async(stencil, &layout, stream);
    if (!error)
        error = filter_grid_async(stencil, &layout, stream);
    return error ? error : interpolate_async(stencil, &layout, stream);
}
