// Means of a rectangle by running sums: down the columns into a plane of 32-bit sums, then along
// its rows. The cost of a result does not grow with the radius, except for the first one of each
// stretch that a thread or warp goes along.
#include <assert.h>

#include "kernels/device.cuh"
#include "kernels/op_kernels.h"

// Sums fit 32 bits: of a column of 32769 samples, 2^31.
struct box {
    struct source source;
    uint32_t *sums;
    int stride;             // in sums
    ptrdiff_t frame_stride; // as well
    int radius_x, radius_y;
    int rows;    // that a thread makes
    int columns; // that a warp makes
    struct sink sink;
    // The mean of n = (2 radius_x + 1)(2 radius_y + 1): see mean_of() below.
    int64_t n;
    uint32_t reciprocal;
    int shift;
};

enum { BOX_ROWS = 16, BOX_COLUMNS = 1024, BOX_WARPS = 2 };

// ---- device helpers ----

// (2 sum + n) / (2 n). n is odd, so that this is (sum + (n - 1) / 2) / n, and a quotient of 32-bit
// numbers is a product with reciprocal = floor(2^(32 + shift) / n) + 1: exact while the dividend
// times n is below 2^(32 + shift). T. Granlund, P. L. Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994.
static __device__ inline int mean_of(const struct box *b, uint32_t sum)
{
    return (int)(__umulhi(sum + (uint32_t)(b->n / 2), b->reciprocal) >> b->shift);
}

// Larger sums are divided in double precision: dividends stay below 2^48, and the true quotient is
// never nearer than 1 / (2 n) > 2^-32 to a whole number, 2 sum + n being odd.
static __device__ inline int mean_of(const struct box *b, uint64_t sum)
{
    return (int)((double)(2 * sum + (uint64_t)b->n) / (double)(2 * b->n));
}

static __device__ inline uint32_t *row_of_sums(const struct box *b, int y)
{
    return b->sums + blockIdx.z * b->frame_stride + (int64_t)y * b->stride;
}

static __device__ inline uint32_t column_sum(const struct box *b, const uint32_t *row, int x)
{
    x = extended_index(b->source.border, x, b->source.width);
    return x < 0 ? (uint32_t)b->source.border_value * (uint32_t)(2 * b->radius_y + 1) : row[x];
}

template <typename Sum> static __device__ inline Sum warp_sum(Sum value)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffff, value, distance);
    return value;
}

// The sum of the values of this lane and those before it.
template <typename Sum> static __device__ inline Sum warp_scan(Sum value)
{
    for (int distance = 1; distance < WARP; distance *= 2) {
        Sum before = __shfl_up_sync(0xffffffff, value, distance);
        if ((int)threadIdx.x >= distance)
            value += before;
    }
    return value;
}

// ---- kernels ----

// A thread owns four columns and goes down `rows` rows: it adds up the 2 radius + 1 rows around the
// first, then adds one that enters and takes away one that leaves, two rows at a time. A warp reads
// 128 samples side by side and writes 512 bytes. Such threads are few: blocks of two warps spread
// them over the GPU.
static __global__ void __launch_bounds__(WARP *BOX_WARPS)
    box_columns(const __grid_constant__ struct box b)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int first = (blockIdx.y * BOX_WARPS + threadIdx.y) * b.rows;
    int last = min(first + b.rows, b.source.height);
    if (x >= b.source.width || first >= last)
        return;
    uint32_t sum[VEC4] = {0};
    int row[VEC4], value[VEC4][VEC4];
    for (int k = -b.radius_y; k <= b.radius_y; k += VEC4) {
        for (int j = 0; j < VEC4; j++)
            row[j] = first + k + j;
        source_read_rows<VEC4>(&b.source, x, row, value);
        for (int j = 0; j < VEC4 && k + j <= b.radius_y; j++)
            for (int i = 0; i < VEC4; i++)
                sum[i] += (uint32_t)value[j][i];
    }
    for (int y = first; y < last; y += 2) {
        for (int k = 0; k < 2; k++) {
            row[2 * k] = y + k + b.radius_y + 1;
            row[2 * k + 1] = y + k - b.radius_y;
        }
        source_read_rows<VEC4>(&b.source, x, row, value);
        for (int k = 0; k < 2 && y + k < last; k++) {
            *(uint4 *)&row_of_sums(&b, y + k)[x] = make_uint4(sum[0], sum[1], sum[2], sum[3]);
            for (int i = 0; i < VEC4; i++)
                sum[i] += (uint32_t)(value[2 * k][i] - value[2 * k + 1][i]);
        }
    }
}

// A warp owns `columns` columns of a row and goes along them, 128 at a time. It knows the sum
// before the first, at the beginning by adding up 2 radius + 1 columns together; each lane finds
// out how the sum changes along its vec4, a scan over the lanes turns changes into sums, and the
// last lane's is where the next 128 begin. Unsigned sums may wrap on the way, the result fits.
template <typename Sum>
static __global__ void __launch_bounds__(WARP *WARPS) box_rows(const __grid_constant__ struct box b)
{
    int lane = threadIdx.x, y = blockIdx.y * WARPS + threadIdx.y;
    int first = blockIdx.x * b.columns, last = min(first + b.columns, b.sink.width);
    if (y >= b.sink.height)
        return;
    const uint32_t *row = row_of_sums(&b, y);
    Sum before = 0;
    for (int k = lane - b.radius_x; k <= b.radius_x; k += WARP)
        before += column_sum(&b, row, first - 1 + k);
    before = warp_sum(before);
    for (int x = first + lane * VEC4; x - lane * VEC4 < last; x += WARP * VEC4) {
        Sum sum[VEC4], change = 0;
        for (int i = 0; i < VEC4; i++) {
            change += (Sum)column_sum(&b, row, x + i + b.radius_x) -
                      (Sum)column_sum(&b, row, x + i - 1 - b.radius_x);
            sum[i] = change;
        }
        Sum lanes = warp_scan(change), others = before + lanes - change;
        before += __shfl_sync(0xffffffff, lanes, WARP - 1);
        int value[VEC4];
        for (int i = 0; i < VEC4; i++)
            value[i] = mean_of(&b, (Sum)(others + sum[i]));
        if (x < last)
            sink_put(&b.sink, x, y, value);
    }
}

// ---- launchers ----

// True if sums of n samples of `depth` bits fit 32 bits, and means of them the fast division.
static bool set_reciprocal(struct box *box, int depth)
{
    int64_t n = box->n, max_dividend = ((INT64_C(1) << depth) - 1) * n + n / 2;
    if (max_dividend >> 32 || n == 1)
        return false;
    box->shift = 0;
    while (INT64_C(2) << box->shift <= n)
        box->shift++;
    box->reciprocal = (uint32_t)((UINT64_C(1) << (32 + box->shift)) / (uint64_t)n + 1);
    return (double)max_dividend * (double)n < (double)(UINT64_C(1) << (32 + box->shift));
}

static size_t box_scratch(const struct op_use *use)
{
    return scratch_bytes(use->width, use->height, sizeof(uint32_t));
}

static cudaError_t box_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_box *op = &stencil->op->box;
    int width = stencil->source.width, height = stencil->source.height;
    struct box box = {
        .source = stencil->source,
        .sums = (uint32_t *)stencil->scratch,
        .stride = scratch_stride(width, sizeof(uint32_t)) / (int)sizeof(uint32_t),
        .frame_stride = stencil->scratch_step / (ptrdiff_t)sizeof(uint32_t),
        .radius_x = op->radius_x,
        .radius_y = op->radius_y,
        .rows = op->radius_y > BOX_ROWS ? op->radius_y : BOX_ROWS,
        .columns = BOX_COLUMNS,
        .sink = stencil->sink,
        .n = (2 * (int64_t)op->radius_x + 1) * (2 * (int64_t)op->radius_y + 1),
    };
    assert((uintptr_t)stencil->scratch % 256 == 0);
    bool narrow = set_reciprocal(&box, stencil->depth);
    dim3 columns = grid_shape(width, height, box.sink.frames, WARP * VEC4, BOX_WARPS * box.rows);
    dim3 rows = grid_shape(width, height, box.sink.frames, box.columns, WARPS);
    box_columns<<<columns, dim3(WARP, BOX_WARPS), 0, stream>>>(box);
    if (narrow)
        box_rows<uint32_t><<<rows, block_shape(), 0, stream>>>(box);
    else
        box_rows<uint64_t><<<rows, block_shape(), 0, stream>>>(box);
    return cudaGetLastError();
}

const struct op_kernels box_kernels = {
    .kind = OP_BOX,
    .scratch = box_scratch,
    .stencil_async = box_async,
};
