// Convolutions of any size, exact, and which kernels make which. Small ones go to
// kernels/stencil/convolve_tile.cu where the fused ones do not take them.
//
//   fused    small kernels, and lines in words, up to a radius (kernels/stencil/fused.h)
//   lines    sums down the columns into scratch memory, 16, 32 or 64 bits, then along the rows in
//            single precision, 32 or 64 bits: whatever holds op_convolve_max()
//   direct   every weight, in sums of 32 or 64 bits; samples in shared memory, some rows of the
//            kernel at a time
//
// Sixty-four bits are integers, not double precision, of which most GPUs make one for 64 floats.
#include "kernels/stencil/convolve.cuh"

#include <assert.h>
#include <string.h>

#include "kernels/device.cuh"
#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"
#include "kernels/stencil/fused.h"
#include "kernels/stencil/transform.h"

enum {
    DIRECT_ROWS = 2,   // that a thread makes
    DIRECT_HEIGHT = 8, // rows of the kernel at a time
    BLOCK_ROWS = DIRECT_ROWS * WARPS,
    BLOCK_COLUMNS = WARP * VEC4,
};

struct convolve {
    struct source source;
    struct sink sink;
    const int32_t *weight; // rows of weights, or lines along rows; zeros behind each
    const int32_t *line_y; // lines along columns, alike
    int rank;
    int width, height;
    int origin_x, origin_y;
    struct convolve_end end;
    // Lines: sums of columns, a plane for each.
    void *sums;
    ptrdiff_t frame_bytes, plane_bytes;
    int stride; // in sums
    int column_shift;
    int64_t beyond[2]; // what a column beyond the edge sums to, with BORDER_ZERO
};

// ---- device helpers ----

// From one row of weights, or line, to the next.
static __host__ __device__ inline int weight_stride(int count)
{
    return count + TAP_MARGIN;
}

// Four results, one after another, in each of some channels: sum[p] += tap[n - p] times input n.
// Inputs are read four at a time and once each; the taps that four results need of one input move
// along with it. Beyond the last there are zeros.
template <int CHANNELS, typename Sum, typename Tap, typename Input, typename Read>
static __device__ inline void slide(Sum sum[VEC4][CHANNELS], const Tap *tap, int count,
                                    Input input[VEC4][CHANNELS], Read read)
{
    Tap weight[VEC4] = {};
    for (int first = 0; first < count + VEC4 - 1; first += VEC4) {
        read(first);
        for (int i = 0; i < VEC4; i++) {
            for (int p = VEC4 - 1; p > 0; p--)
                weight[p] = weight[p - 1];
            weight[0] = tap[first + i];
            for (int p = 0; p < VEC4; p++)
                for (int c = 0; c < CHANNELS; c++)
                    sum[p][c] += (Sum)weight[p] * (Sum)input[i][c];
        }
    }
}

template <typename Column>
static __device__ inline Column *sums_row(const struct convolve *c, int line, int y)
{
    uint8_t *plane = (uint8_t *)c->sums + blockIdx.z * c->frame_bytes + line * c->plane_bytes;
    return (Column *)plane + (int64_t)y * c->stride;
}

// ---- lines ----

// t of a sum, in words.
template <typename Sum>
static __host__ __device__ inline Sum rounded(const struct convolve *c, Sum sum)
{
    return (sum + ((Sum)1 << c->column_shift >> 1)) >> c->column_shift;
}

// A thread sums four columns for four rows, and reads each of the height + 3 vec4s of samples that
// these need once: a warp reads 128 samples of a row side by side; what the warps above and below
// read again comes from the cache. blockIdx.z counts frames; lines follow each other.
template <typename Sum, typename Column>
static __global__ void __launch_bounds__(WARP *WARPS)
    line_columns(const __grid_constant__ struct convolve c)
{
    __shared__ int32_t line[KERNEL_SIDE + TAP_MARGIN];
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int y = (blockIdx.y * WARPS + threadIdx.y) * VEC4, thread = threadIdx.y * WARP + threadIdx.x;
    for (int r = 0; r < c.rank; r++) {
        __syncthreads();
        for (int k = thread; k < weight_stride(c.height); k += WARP * WARPS)
            line[k] = __ldg(c.line_y + r * weight_stride(c.height) + k);
        __syncthreads();
        if (x >= c.source.width || y >= c.source.height)
            continue;
        Sum sum[VEC4][VEC4] = {};
        int input[VEC4][VEC4];
        slide<VEC4>(sum, line, c.height, input, [&](int first) {
            int row[VEC4];
            for (int i = 0; i < VEC4; i++)
                row[i] = y - c.origin_y + first + i;
            source_read_rows<VEC4>(&c.source, x, row, input);
        });
        for (int o = 0; o < VEC4 && y + o < c.source.height; o++)
            for (int i = 0; i < VEC4; i++)
                sums_row<Column>(&c, r, y + o)[x + i] =
                    (Column)(sizeof(Column) == 2 ? rounded(&c, sum[o][i]) : sum[o][i]);
    }
}

// Columns of sums around a block's, in shared memory: whole vec4s for the last lane's last.
static __host__ __device__ inline int strip_columns(int width)
{
    return BLOCK_COLUMNS + (width + 2 * VEC4 - 2) / VEC4 * VEC4;
}

// A warp makes 128 results of a row, four neighbours a lane. It lays the sums that it needs in a
// strip of its own, as the border has them, and reads them four at a time, lanes side by side. The
// weights are in shared memory in the type that they are multiplied in.
template <typename Column, typename Tap, typename Sum>
static __global__ void __launch_bounds__(WARP *WARPS)
    line_rows(const __grid_constant__ struct convolve c)
{
    extern __shared__ uint4 memory[];
    struct alignas(sizeof(Column) == 2 ? 8 : 16) quad {
        Column value[VEC4];
    };
    int columns = strip_columns(c.width), lane = threadIdx.x;
    int y = blockIdx.y * WARPS + threadIdx.y, first_x = blockIdx.x * BLOCK_COLUMNS;
    Column *strip = (Column *)memory + threadIdx.y * columns;
    Tap *line = (Tap *)((Column *)memory + WARPS * columns);
    for (int k = threadIdx.y * WARP + lane; k < c.rank * weight_stride(c.width); k += WARP * WARPS)
        line[k] = (Tap)__ldg(c.weight + k);
    __syncthreads();
    if (y >= c.sink.height)
        return;
    Sum sum[VEC4][1] = {};
    for (int r = 0; r < c.rank; r++) {
        const Column *row = sums_row<Column>(&c, r, y);
        for (int k = lane; k < columns; k += WARP) {
            int x = extended_index(c.source.border, first_x - c.origin_x + k, c.source.width);
            strip[k] = x < 0 ? (Column)c.beyond[r] : row[x];
        }
        __syncwarp();
        Column input[VEC4][1];
        slide<1>(sum, line + r * weight_stride(c.width), c.width, input, [&](int first) {
            quad four = ((const quad *)strip)[lane + first / VEC4];
            for (int i = 0; i < VEC4; i++)
                input[i][0] = four.value[i];
        });
        __syncwarp();
    }
    int x = first_x + lane * VEC4, value[VEC4];
    for (int p = 0; p < VEC4; p++)
        value[p] = convolved(&c.end, sum[p][0]);
    if (x < c.sink.width)
        sink_put(&c.sink, x, y, value);
}

// ---- direct ----

// All threads lay the samples for DIRECT_HEIGHT rows of the kernel in shared memory.
template <typename T>
static __device__ inline void strip_fill(T *strip, const struct convolve *c, int columns,
                                         int first_x, int first_y)
{
    const struct source *from = &c->source;
    for (int k = threadIdx.y; k < BLOCK_ROWS + DIRECT_HEIGHT - 1; k += WARPS) {
        int y = extended_index(from->border, first_y + k, from->height);
        for (int i = threadIdx.x; i < columns; i += WARP) {
            int x = extended_index(from->border, first_x + i, from->width);
            int sample = look_up_one(&from->lookup, view_read(&from->view, max(x, 0), max(y, 0)));
            strip[k * columns + i] = (T)(x < 0 || y < 0 ? from->border_value : sample);
        }
    }
}

// A block makes 128 columns of 16 rows, a thread four neighbours in each of two rows. Samples are
// read as vec4s, lanes side by side, and each weight by all lanes at once.
template <typename T, typename Sum>
static __global__ void __launch_bounds__(WARP *WARPS)
    convolve_any(const __grid_constant__ struct convolve c)
{
    extern __shared__ uint4 memory[];
    T *strip = (T *)memory;
    int columns = strip_columns(c.width), first_x = blockIdx.x * BLOCK_COLUMNS;
    int first_y = blockIdx.y * BLOCK_ROWS, own = threadIdx.y * DIRECT_ROWS;
    Sum sum[VEC4][DIRECT_ROWS] = {};
    for (int j = 0; j < c.height; j += DIRECT_HEIGHT) {
        __syncthreads();
        strip_fill(strip, &c, columns, first_x - c.origin_x, first_y - c.origin_y + j);
        __syncthreads();
        for (int k = 0; k < min(DIRECT_HEIGHT, c.height - j); k++) {
            int input[VEC4][DIRECT_ROWS];
            const int32_t *weight = c.weight + (j + k) * weight_stride(c.width);
            slide<DIRECT_ROWS>(sum, weight, c.width, input, [&](int first) {
                for (int o = 0; o < DIRECT_ROWS; o++) {
                    const T *row = strip + (own + o + k) * columns + first;
                    vec4<T> samples = ((const vec4<T> *)row)[threadIdx.x];
                    for (int i = 0; i < VEC4; i++)
                        input[i][o] = vec4_get(samples, i);
                }
            });
        }
    }
    int x = first_x + threadIdx.x * VEC4;
    for (int o = 0; o < DIRECT_ROWS && first_y + own + o < c.sink.height; o++) {
        int value[VEC4];
        for (int p = 0; p < VEC4; p++)
            value[p] = convolved(&c.end, sum[p][o]);
        if (x < c.sink.width)
            sink_put(&c.sink, x, first_y + own + o, value);
    }
}

// ---- launchers ----

static int64_t sum_of(const int32_t *line, int count, bool sizes)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += sizes ? llabs(line[k]) : line[k];
    return sum;
}

// True if sums of columns need 64 bits.
static bool columns_are_long(const struct op_convolve *op, int depth)
{
    bool is_long = false;
    for (int r = 0; r < op->rank; r++)
        is_long |= sum_of(op->line_y[r], op->height, true) << depth > INT32_MAX;
    return is_long;
}

// The bytes of a sum of columns in scratch memory.
static int sum_bytes(const struct op_convolve *op, int depth)
{
    return op->words ? 2 : columns_are_long(op, depth) ? 8 : 4;
}

static size_t sums_bytes(const struct op_convolve *op, int depth, int width, int height)
{
    return scratch_bytes(width, height, sum_bytes(op, depth));
}

static size_t convolve_scratch(const struct op_use *use)
{
    const struct op_convolve *op = &use->op->convolve;
    if (use->transform)
        return transform_scratch(use->transform);
    return (size_t)op->rank * sums_bytes(op, use->depth, use->width, use->height);
}

template <typename Column, typename Tap, typename Sum>
static cudaError_t line_rows_async(const struct convolve *c, cudaStream_t stream)
{
    size_t bytes = sizeof(Column) * WARPS * (size_t)strip_columns(c->width) +
                   sizeof(Tap) * (size_t)(c->rank * weight_stride(c->width));
    dim3 grid = grid_shape(c->sink.width, c->sink.height, c->sink.frames, BLOCK_COLUMNS, WARPS);
    kernel_launch(line_rows<Column, Tap, Sum>, grid, block_shape(), bytes, stream, *c);
    return cudaGetLastError();
}

template <typename Sum, typename Column>
static cudaError_t line_columns_async(const struct convolve *c, cudaStream_t stream)
{
    dim3 grid =
        grid_shape(c->sink.width, c->sink.height, c->sink.frames, BLOCK_COLUMNS, WARPS * VEC4);
    kernel_launch(line_columns<Sum, Column>, grid, block_shape(), 0, stream, *c);
    return cudaGetLastError();
}

static cudaError_t lines_async(const struct convolve *c, int64_t max_sum, int bytes,
                               cudaStream_t stream)
{
    cudaError_t error;
    if (bytes == 2) {
        error = line_columns_async<int32_t, int16_t>(c, stream);
        return error ? error : line_rows_async<int16_t, int32_t, uint32_t>(c, stream);
    }
    assert(!c->column_shift);
    if (bytes == 8) {
        error = line_columns_async<int64_t, int64_t>(c, stream);
        return error ? error : line_rows_async<int64_t, int32_t, int64_t>(c, stream);
    }
    if (max_sum < 1 << 24) {
        error = line_columns_async<int32_t, float>(c, stream);
        return error ? error : line_rows_async<float, float, float>(c, stream);
    }
    error = line_columns_async<int32_t, int32_t>(c, stream);
    if (error)
        return error;
    return max_sum <= INT32_MAX ? line_rows_async<int32_t, int32_t, int32_t>(c, stream)
                                : line_rows_async<int32_t, int32_t, int64_t>(c, stream);
}

template <typename T, typename Sum>
static cudaError_t direct_async(const struct convolve *c, cudaStream_t stream)
{
    size_t bytes = sizeof(T) * (BLOCK_ROWS + DIRECT_HEIGHT - 1) * (size_t)strip_columns(c->width);
    dim3 grid =
        grid_shape(c->sink.width, c->sink.height, c->sink.frames, BLOCK_COLUMNS, BLOCK_ROWS);
    kernel_launch(convolve_any<T, Sum>, grid, block_shape(), bytes, stream, *c);
    return cudaGetLastError();
}

static cudaError_t any_async(const struct convolve *c, int depth, int64_t max_sum,
                             cudaStream_t stream)
{
    bool is_long = max_sum > INT32_MAX;
    if (depth == 8)
        return is_long ? direct_async<uint8_t, int64_t>(c, stream)
                       : direct_async<uint8_t, int32_t>(c, stream);
    return is_long ? direct_async<uint16_t, int64_t>(c, stream)
                   : direct_async<uint16_t, int32_t>(c, stream);
}

static cudaError_t convolve_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_convolve *op = &stencil->op->convolve;
    const struct source *source = &stencil->source;
    assert(op->rank <= 2 && op->width <= KERNEL_SIDE && op->height <= KERNEL_SIDE);
    if (stencil->transform)
        return transform_convolve_async(stencil->transform, stencil, stream);
    if (fused_takes(stencil))
        return fused_async(stencil, stream);
    if (convolve_fits_tile(op, stencil->depth))
        return convolve_tile_async(stencil, stream);
    int bytes = sum_bytes(op, stencil->depth);
    struct convolve c = {
        .source = *source,
        .sink = stencil->sink,
        .weight = stencil->constants[0],
        .line_y = stencil->constants[1],
        .rank = op->rank,
        .width = op->width,
        .height = op->height,
        .origin_x = op->origin_x,
        .origin_y = op->origin_y,
        .end = convolve_end_of(op),
        .sums = stencil->scratch,
        .frame_bytes = stencil->scratch_step,
        .plane_bytes = (ptrdiff_t)sums_bytes(op, stencil->depth, source->width, source->height),
        .stride = scratch_stride(source->width, bytes) / bytes,
        .column_shift = op->column_shift,
    };
    for (int r = 0; r < op->rank; r++)
        c.beyond[r] = rounded(&c, source->border_value * sum_of(op->line_y[r], op->height, false));
    int64_t max_sum = op_convolve_max(op, stencil->depth);
    return op->rank ? lines_async(&c, max_sum, bytes, stream)
                    : any_async(&c, stencil->depth, max_sum, stream);
}

// ---- constants ----

static enum status convolve_prepare(const struct op_use *use, const struct log *log,
                                    struct transform **transform)
{
    const struct op_convolve *op = &use->op->convolve;
    const struct transform_request request = {
        .weight = op->weight,
        .width = op->width,
        .height = op->height,
        .columns = use->width,
        .rows = use->height,
        .depth = use->depth,
    };
    return transform_create(&request, log, transform);
}

// Rows of weights, with `margin` zeros behind each.
static const int32_t *put_rows(struct constants *memory, const int32_t *const *row, int rows,
                               int length, int margin)
{
    void *host;
    size_t stride = (size_t)(length + margin);
    const void *device = constants_take(memory, (size_t)rows * stride * sizeof **row, &host);
    for (int k = 0; k < rows && host; k++)
        memcpy((int32_t *)host + (size_t)k * stride, row[k], (size_t)length * sizeof **row);
    return (const int32_t *)device;
}

static void convolve_constants(const struct op_use *use, struct constants *memory,
                               struct op_constants *to)
{
    const struct op_convolve *op = &use->op->convolve;
    const int32_t *row[KERNEL_SIDE];
    if (use->transform)
        return;
    to->fragments[0] = constants_words(memory, [&](uint32_t *words) {
        return fused_convolve_fragments(use->op, use->depth, words);
    });
    if (op->rank) {
        to->weight[0] = put_rows(memory, op->line_x, op->rank, op->width, TAP_MARGIN);
        to->weight[1] = put_rows(memory, op->line_y, op->rank, op->height, TAP_MARGIN);
        return;
    }
    for (int k = 0; k < op->height; k++)
        row[k] = op->weight + k * op->width;
    to->weight[0] = put_rows(memory, row, op->height, op->width,
                             convolve_fits_tile(op, use->depth) ? 0 : TAP_MARGIN);
}

const struct op_kernels convolve_kernels = {
    .kind = OP_CONVOLVE,
    .prepare = convolve_prepare,
    .constants = convolve_constants,
    .scratch = convolve_scratch,
    .stencil_async = convolve_async,
    .launches = true,
};
