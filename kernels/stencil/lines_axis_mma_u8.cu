// Convolutions of lines in words that reach farther than lines_mma_u8.cu, an axis at a time: t of each pair
// down the columns into scratch memory, then results along the rows. Products, bytes and their signs
// are those of lines_mma_u8.cu, the matrices those of axis_mma_u8.cu:
//
//   results (16 x 8) = band (16 x K) samples (K x 8),      K = 15 + the length of the line, and more
//
// for 16 results along the axis and eight lines across it. The band is the left factor both ways.
#include <assert.h>

#include "kernels/stencil/convolve.cuh"
#include "kernels/stencil/fused.cuh"
#include "kernels/stencil/separable.h"

enum {
    STEP = 16,            // samples of a product of bytes, or twice as many
    ALONG = STEP * WARPS, // results of a block along the axis
    DOWN_ACROSS = 64,     // columns of a block
    ALONG_ACROSS = 32,    // rows of one
    LINES = 8,            // across the axis, of a product
    AT_ONCE = 4,          // products of a warp side by side
    MAX_STEPS = 14,       // lines of 202 taps, or somewhat more; fits Turing's shared memory
};

struct line_axes {
    struct source source;
    struct view t[2];
    struct sink sink;
    const uint4 *down, *along; // the bands of each pair, one after the other
    int rank;
    int down_steps, along_steps;
    int above, left; // so far before a result's place begin the samples that its products read
    int shift;
    int16_t beyond[2]; // t of what lies beyond the picture, with BORDER_ZERO
    struct convolve_end end;
};

// ---- samples in ----

// From row to row in shared memory: an odd number of 16 bytes.
static __host__ __device__ constexpr int row_bytes(int bytes)
{
    return (bytes / 16 | 1) * 16;
}

static __host__ __device__ constexpr int samples_along(int steps)
{
    return ALONG + STEP * (steps - 1);
}

// Sixteen bytes of a row of samples, as the border has them.
template <int BYTES>
static __device__ inline void fetch_chunk(const struct source *from, uint8_t *to, int x, int y)
{
    constexpr int count = 16 / BYTES;
    y = extended_index(from->border, y, from->height);
    if (y >= 0 && x >= 0 && x + count <= from->width) {
        copy_ahead(to, view_at(&from->view, x, y));
        return;
    }
#pragma unroll 1
    for (int k = 0; k < count; k++) {
        int column = extended_index(from->border, x + k, from->width), value = from->border_value;
        if (y >= 0 && column >= 0)
            value = view_read(&from->view, column, y);
        if (BYTES == 1)
            to[k] = (uint8_t)value;
        else
            ((uint16_t *)to)[k] = (uint16_t)value;
    }
}

// Through the table, those of the picture.
template <int BYTES>
static __device__ inline void look_up_chunk(const struct source *from, uint8_t *to, int y)
{
    bool beyond = from->border == BORDER_ZERO && (unsigned)y >= (unsigned)from->height;
    if (BYTES == 2 && !beyond)
        limit_damage<4>(&from->view, (uint32_t *)to);
    if (!beyond)
        words_lookup<BYTES, 4>(&from->lookup, (uint32_t *)to);
}

static __device__ inline void share_bands(uint4 *to, const uint4 *from, int count)
{
    for (int k = thread_of_block(); k < count; k += WARP * WARPS)
        to[k] = __ldg(from + k);
}

// ---- down the columns ----

// Two steps of AT_ONCE products, or the last one.
template <int BYTES, bool BRIEF>
static __device__ inline void add_down(struct parts sum[AT_ONCE], const uint4 *band, uint32_t at,
                                       const struct view *view)
{
    uint4 first = band[threadIdx.x], second = BRIEF ? first : band[WARP + threadIdx.x];
    const uint32_t low[4] = {first.x, first.y, second.x, second.y};
    const uint32_t high[4] = {first.z, first.w, second.z, second.w};
    uint32_t x[AT_ONCE][BYTES][2];
    for (int g = 0; g < AT_ONCE * BYTES / 2; g++) {
        uint32_t units[4];
        if (BRIEF)
            load_transposed_two(units, at + g * 16);
        else
            load_transposed(units, at + g * 16);
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < (BRIEF ? 1 : 2); k++) {
                uint32_t a = units[2 * k], b = units[2 * k + 1];
                if (BYTES == 1)
                    x[2 * g + part][0][k] = bytes_of(a, b, part);
                else
                    x[g][part % BYTES][k] =
                        bytes_of(plain_pair(view, a), plain_pair(view, b), part);
            }
    }
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].low, low, x[g][0], sum[g].low);
    for (int g = 0; g < AT_ONCE; g++)
        multiply_signed<true, false>(BRIEF, sum[g].middle, high, x[g][0], sum[g].middle);
    for (int g = 0; g < AT_ONCE && BYTES == 2; g++)
        multiply_signed<true, false>(BRIEF, sum[g].high, high, x[g][BYTES - 1], sum[g].high);
    for (int g = 0; g < AT_ONCE && BYTES == 2; g++)
        multiply(BRIEF, sum[g].middle, low, x[g][BYTES - 1], sum[g].middle);
}

static __device__ inline uint32_t t_of(const struct line_axes *c, const struct parts *sum, int k)
{
    return (uint32_t)((int)total(sum, k) >> c->shift);
}

// A lane's t of row y, from column x on, in the k-th half of its sums: of bytes, those of even columns
// and of odd ones are in different sums.
template <int BYTES>
static __device__ inline void store_t(const struct line_axes *c, int r, int x, int y, int k,
                                      const struct parts sum[AT_ONCE])
{
    constexpr int each = 4 / BYTES; // columns of a lane that lie side by side
    if (y >= c->source.height)
        return;
    for (int g = 0; g < AT_ONCE * BYTES / 2; g++) {
        int column = x + g * 2 * LINES / BYTES + threadIdx.x % 4 * each;
        if (column >= c->source.width)
            continue;
        uint8_t *to = view_at(&c->t[r], column, y);
        if (BYTES == 2) {
            *(uint32_t *)to = word_of(t_of(c, &sum[g], 2 * k), t_of(c, &sum[g], 2 * k + 1));
            continue;
        }
        const struct parts *even = &sum[2 * g % AT_ONCE], *odd = even + 1;
        *(uint2 *)to = make_uint2(word_of(t_of(c, even, 2 * k), t_of(c, odd, 2 * k)),
                                  word_of(t_of(c, even, 2 * k + 1), t_of(c, odd, 2 * k + 1)));
    }
}

// A block of eight warps makes t of 128 rows and 64 columns, a warp of 16 rows, 32 columns at a time.
template <int BYTES>
static __global__ void __launch_bounds__(WARP *WARPS, 3)
    lines_down(const __grid_constant__ struct line_axes c)
{
    constexpr int chunks = DOWN_ACROSS * BYTES / 16, stride = row_bytes(DOWN_ACROSS * BYTES);
    extern __shared__ uint4 memory[];
    int bands = c.rank * c.down_steps * WARP, rows = samples_along(c.down_steps);
    uint8_t *samples = (uint8_t *)(memory + bands);
    int first_x = blockIdx.x * DOWN_ACROSS, first_y = blockIdx.y * ALONG;
    int top = first_y - c.above, thread = thread_of_block();
    uint8_t *own = samples + thread % chunks * 16;
    int x = first_x + thread % chunks * (16 / BYTES);
#pragma unroll 2
    for (int row = thread / chunks; row < rows; row += WARP * WARPS / chunks)
        if (x < c.source.width)
            fetch_chunk<BYTES>(&c.source, own + row * stride, x, top + row);
    copies_commit();
    share_bands(memory, c.down, bands);
    copies_wait<0>();
    if (c.source.lookup.table)
        for (int row = thread / chunks; row < rows; row += WARP * WARPS / chunks)
            if (x < c.source.width)
                look_up_chunk<BYTES>(&c.source, own + row * stride, top + row);
    __syncthreads();
    int lane = threadIdx.x, n = threadIdx.y * STEP;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(samples) + (n + lane) * stride;
#pragma unroll 1
    for (int turn = 0; turn < c.rank * (DOWN_ACROSS / (AT_ONCE * LINES)); turn++) {
        int r = turn % c.rank, line = turn / c.rank * AT_ONCE * LINES, s = 0;
        struct parts sum[AT_ONCE] = {};
        const uint4 *band = memory + r * c.down_steps * WARP;
        for (int g = 0; g < AT_ONCE; g++)
            for (int k = 0; k < 4; k++)
                sum[g].low[k] = 1 << c.shift >> 1;
#pragma unroll 1
        for (; s + 1 < c.down_steps; s += 2)
            add_down<BYTES, false>(sum, band + s * WARP, at + s * STEP * stride + line * BYTES,
                                   &c.source.view);
        if (s < c.down_steps)
            add_down<BYTES, true>(sum, band + s * WARP, at + s * STEP * stride + line * BYTES,
                                  &c.source.view);
        for (int k = 0; k < 2; k++)
            store_t<BYTES>(&c, r, first_x + line, first_y + n + lane / 4 + 8 * k, k, sum);
    }
}

// ---- along the rows ----

// Sixteen bytes of a row of t, as the border has them.
static __device__ inline void fetch_t(const struct line_axes *c, int r, uint8_t *to, int x, int y)
{
    constexpr int count = 8;
    const struct source *from = &c->source;
    if (x >= 0 && x + count <= from->width) {
        copy_ahead(to, view_at(&c->t[r], x, y));
        return;
    }
#pragma unroll 1
    for (int k = 0; k < count; k++) {
        int column = extended_index(from->border, x + k, from->width);
        ((int16_t *)to)[k] =
            column >= 0 ? *(const int16_t *)view_at(&c->t[r], column, y) : c->beyond[r];
    }
}

template <bool BRIEF>
static __device__ inline void add_along(struct parts sum[AT_ONCE], const uint4 *band, uint32_t at,
                                        int stride)
{
    uint4 first = band[threadIdx.x], second = BRIEF ? first : band[WARP + threadIdx.x];
    const uint32_t low[4] = {first.x, first.y, second.x, second.y};
    const uint32_t high[4] = {first.z, first.w, second.z, second.w};
    uint32_t t[AT_ONCE][2][2];
    for (int g = 0; g < AT_ONCE; g++) {
        uint32_t units[4];
        if (BRIEF)
            load_matrices_two(units, at + g * LINES * stride);
        else
            load_matrices(units, at + g * LINES * stride);
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < (BRIEF ? 1 : 2); k++)
                t[g][part][k] = bytes_of(units[2 * k], units[2 * k + 1], part);
    }
    for (int g = 0; g < AT_ONCE; g++)
        multiply(BRIEF, sum[g].low, low, t[g][0], sum[g].low);
    for (int g = 0; g < AT_ONCE; g++)
        multiply_signed<true, false>(BRIEF, sum[g].middle, high, t[g][0], sum[g].middle);
    for (int g = 0; g < AT_ONCE; g++)
        multiply_signed<true, true>(BRIEF, sum[g].high, high, t[g][1], sum[g].high);
    for (int g = 0; g < AT_ONCE; g++)
        multiply_signed<false, true>(BRIEF, sum[g].middle, low, t[g][1], sum[g].middle);
}

// Store a block's results, which lie in rows of shared memory.
template <int BYTES>
static __device__ inline void store_block(const struct sink *to, uint8_t *results, int stride,
                                          int first_x, int first_y)
{
    constexpr int chunks = ALONG * BYTES / 16, count = 16 / BYTES;
    int x = first_x + thread_of_block() % chunks * count;
    for (int row = thread_of_block() / chunks; row < ALONG_ACROSS; row += WARP * WARPS / chunks) {
        int y = first_y + row, columns = to->width - x;
        uint4 *own = (uint4 *)(results + row * stride + thread_of_block() % chunks * 16);
        if (y >= to->height || columns <= 0)
            continue;
        if (to->lookup.table)
            words_lookup<BYTES, 4>(&to->lookup, (uint32_t *)own);
        uint8_t *at = view_at(&to->view[0], x, y);
        if (columns >= count)
            *(uint4 *)at = *own;
        else
            store_bytes(at, columns * BYTES, *own);
    }
}

// A block makes 128 columns of 32 rows, a warp 16 columns of all of them.
template <int BYTES>
static __global__ void __launch_bounds__(WARP *WARPS, 2)
    lines_along(const __grid_constant__ struct line_axes c)
{
    extern __shared__ uint4 memory[];
    int bands = c.rank * c.along_steps * WARP, columns = samples_along(c.along_steps);
    int stride = row_bytes(columns * 2), chunks = columns / 8;
    uint8_t *samples = (uint8_t *)(memory + bands);
    int first_x = blockIdx.x * ALONG, first_y = blockIdx.y * ALONG_ACROSS;
    for (int r = 0; r < c.rank; r++)
        for (int row = threadIdx.y; row < ALONG_ACROSS; row += WARPS)
            for (int k = threadIdx.x; k < chunks; k += WARP)
                fetch_t(&c, r, samples + (r * ALONG_ACROSS + row) * stride + k * 16,
                        first_x - c.left + k * 8, min(first_y + row, c.source.height - 1));
    copies_commit();
    share_bands(memory, c.along, bands);
    copies_wait<0>();
    __syncthreads();
    int lane = threadIdx.x, n = threadIdx.y * STEP;
    struct parts sum[AT_ONCE] = {};
#pragma unroll 1
    for (int r = 0; r < c.rank; r++) {
        const uint4 *band = memory + r * c.along_steps * WARP;
        uint32_t at = (uint32_t)__cvta_generic_to_shared(samples) +
                      (r * ALONG_ACROSS + lane % 8) * stride + (n + lane / 8 * 8) * 2;
        int s = 0;
#pragma unroll 1
        for (; s + 1 < c.along_steps; s += 2)
            add_along<false>(sum, band + s * WARP, at + s * STEP * 2, stride);
        if (s < c.along_steps)
            add_along<true>(sum, band + s * WARP, at + s * STEP * 2, stride);
    }
    __syncthreads();
    constexpr int results_stride = row_bytes(ALONG * BYTES);
    for (int g = 0; g < AT_ONCE; g++)
        for (int k = 0; k < 2; k++) {
            uint32_t first = (uint32_t)convolved(&c.end, total(&sum[g], 2 * k));
            uint32_t second = (uint32_t)convolved(&c.end, total(&sum[g], 2 * k + 1));
            uint32_t pair = transposed(word_of(first, second)); // neighbours of one row
            uint8_t *to = samples + (g * LINES + lane / 4) * results_stride +
                          (n + 8 * k + lane % 4 * 2) * BYTES;
            if (BYTES == 1)
                *(uint16_t *)to = (uint16_t)__byte_perm(pair, 0, 0x4420);
            else
                *(uint32_t *)to = pair;
        }
    __syncthreads();
    store_block<BYTES>(&c.sink, samples, results_stride, first_x, first_y);
}

// ---- taps ----

// So far before its origin the products of a line along the rows begin: whole chunks of t.
static int along_lead(const struct op_convolve *op)
{
    return (op->origin_x + 7) / 8 * 8;
}

static int steps_of(int taps)
{
    return (STEP - 1 + taps + STEP - 1) / STEP;
}

// A lane's four words of a step: low bytes of the taps of rows l / 4 and l / 4 + 8 of the band, then
// high ones. Samples come as 2 q, 2 q + 1 of the first eight and of the second, q = l % 4. `lead`
// samples are before the line's first.
static uint32_t *put_bands(const int32_t *line, int count, int lead, int steps, uint32_t *to)
{
    for (int i = 0; i < steps * WARP * 4; i++) {
        int lane = i / 4 % WARP, part = i % 4 / 2, row = lane / 4 + i % 2 * 8;
        to[i] = 0;
        for (int e = 0; e < 4; e++) {
            int k = i / (4 * WARP) * STEP + e / 2 * 8 + lane % 4 * 2 + e % 2 - row - lead;
            to[i] |= line_byte(line, count, k, part, e);
        }
    }
    return to + steps * WARP * 4;
}

size_t lines_axis_mma_u8_fragments(const struct op_convolve *op, uint32_t *to)
{
    int lead = along_lead(op) - op->origin_x;
    int down = steps_of(op->height), along = steps_of(op->width + lead);
    if (!op->words || down > MAX_STEPS || along > MAX_STEPS)
        return 0;
    for (int r = 0; to && r < op->rank; r++)
        to = put_bands(op->line_y[r], op->height, 0, down, to);
    for (int r = 0; to && r < op->rank; r++)
        to = put_bands(op->line_x[r], op->width, lead, along, to);
    return (size_t)(op->rank * (down + along) * WARP * 4);
}

// ---- launchers ----

template <int BYTES> static cudaError_t launch(const struct line_axes *c, cudaStream_t stream)
{
    size_t band = (size_t)c->rank * WARP * sizeof(uint4);
    size_t down_bytes = band * (size_t)c->down_steps +
                        (size_t)(samples_along(c->down_steps) * row_bytes(DOWN_ACROSS * BYTES));
    size_t along_bytes =
        band * (size_t)c->along_steps +
        (size_t)(c->rank * ALONG_ACROSS * row_bytes(samples_along(c->along_steps) * 2));
    assert(down_bytes <= LEAST_SHARED_BYTES && along_bytes <= LEAST_SHARED_BYTES);
    int processors;
    cudaError_t error = prepare(lines_down<BYTES>, down_bytes, &processors);
    if (!error)
        error = prepare(lines_along<BYTES>, along_bytes, &processors);
    if (error)
        return error;
    const struct sink *to = &c->sink;
    kernel_launch(lines_down<BYTES>,
                  grid_shape(to->width, to->height, to->frames, DOWN_ACROSS, ALONG), block_shape(),
                  down_bytes, stream, *c);
    error = cudaGetLastError();
    if (error)
        return error;
    kernel_launch(lines_along<BYTES>,
                  grid_shape(to->width, to->height, to->frames, ALONG, ALONG_ACROSS), block_shape(),
                  along_bytes, stream, *c);
    return cudaGetLastError();
}

cudaError_t lines_axis_mma_u8_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_convolve *op = &stencil->op->convolve;
    const struct source *source = &stencil->source;
    struct line_axes c = {
        .source = *source,
        .sink = stencil->sink,
        .rank = op->rank,
        .down_steps = steps_of(op->height),
        .along_steps = steps_of(op->width + along_lead(op) - op->origin_x),
        .above = op->origin_y,
        .left = along_lead(op),
        .shift = op->column_shift,
        .end = convolve_end_of(op),
    };
    c.down = (const uint4 *)stencil->fragments[0];
    c.along = c.down + op->rank * c.down_steps * WARP;
    for (int r = 0; r < op->rank; r++) {
        int64_t sum = INT64_C(1) << op->column_shift >> 1;
        for (int k = 0; k < op->height; k++)
            sum += (int64_t)source->border_value * op->line_y[r][k];
        c.beyond[r] = (int16_t)(sum >> op->column_shift);
        size_t plane = scratch_bytes(source->width, source->height, 2);
        c.t[r] = scratch_sink(stencil, (size_t)r * plane, source->width, source->height).view[0];
    }
    return stencil->depth > 8 ? launch<2>(&c, stream) : launch<1>(&c, stream);
}
