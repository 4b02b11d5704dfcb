// Separable filters of a small radius in one kernel: a tile in shared memory, filtered down its
// columns and along its rows. Larger ones go to the forms of kernels/stencil/separable.h.
//
// Two arithmetics, both exact. Columns of 8-bit samples are summed by dp2a, two 16-bit taps on two
// bytes at once. Rows are summed in single precision while sums stay below 2^24, which the narrow
// form of stages/design/separable.h grants, because the GPU multiplies floats at twice the rate of
// integers; else in 32-bit integers.
#include "kernels/stencil/separable.cuh"

#include <assert.h>
#include <stdlib.h>

#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"
#include "kernels/stencil/fused.h"
#include "kernels/stencil/tile.cuh"

enum { TILE_RADIUS = 32 };

struct separable {
    struct tile tile;
    struct sink sink;
    const int32_t *tap_x, *tap_y;
    int radius_x, radius_y;
    int column_shift;
    struct rounding rounding;
    float scale; // 2^-rounding.shift
};

template <typename Value> struct alignas(16) quad {
    Value value[VEC4];
};

// ---- columns ----

// Weights as the columns need them: of bytes, tap n - 1 and tap n in one word; else tap n.
template <typename T> static __device__ inline uint32_t column_weight(const int32_t *tap, int n)
{
    if (sizeof(T) == 1)
        return (uint32_t)tap[n - 1] | (uint32_t)tap[n] << 16;
    return (uint32_t)tap[n];
}

// Whole vec4s of them, as the compiler reads: the last are zeros.
static __host__ __device__ inline int column_weights(int radius)
{
    return (2 * radius + VEC4 + VEC4 - 1) / VEC4 * VEC4;
}

// Four rows of four columns of the vertical sums, added to `sum`. Row i of the 2 radius + 4 rows
// from `from` on counts towards result o with tap i - o. Bytes of two rows are paired first, so
// that each dp2a multiplies two of them.
static __device__ inline void sum_columns(const vec4<uint8_t> *from, const uint32_t *weight,
                                          int radius, uint32_t sum[VEC4][VEC4])
{
    uint32_t w[VEC4] = {0}; // taps (2 i - o, 2 i - o + 1) of result o
#pragma unroll 2
    for (int i = 0; i < radius + 2; i++) {
        uint2 next = ((const uint2 *)weight)[i];
        w[3] = w[1];
        w[2] = w[0];
        w[1] = next.x;
        w[0] = next.y;
        uint32_t even = from[2 * i * WARP].word, odd = from[(2 * i + 1) * WARP].word;
        uint32_t left = __byte_perm(even, odd, 0x5140), right = __byte_perm(even, odd, 0x7362);
        for (int o = 0; o < VEC4; o++) {
            sum[o][0] = __dp2a_lo(w[o], left, sum[o][0]);
            sum[o][1] = __dp2a_hi(w[o], left, sum[o][1]);
            sum[o][2] = __dp2a_lo(w[o], right, sum[o][2]);
            sum[o][3] = __dp2a_hi(w[o], right, sum[o][3]);
        }
    }
}

static __device__ inline void sum_columns(const vec4<uint16_t> *from, const uint32_t *weight,
                                          int radius, uint32_t sum[VEC4][VEC4])
{
    uint32_t w[VEC4] = {0}; // tap i - o of result o
#pragma unroll 4
    for (int i = 0; i < 2 * radius + VEC4; i++) {
        for (int o = VEC4 - 1; o > 0; o--)
            w[o] = w[o - 1];
        w[0] = weight[i];
        vec4<uint16_t> row = from[i * WARP];
        for (int o = 0; o < VEC4; o++)
            for (int c = 0; c < VEC4; c++)
                sum[o][c] += w[o] * (uint32_t)vec4_get(row, c);
    }
}

// ---- rows ----

// t as a factor. A float whose bits are those of 2^23 with t in the low ones is 2^23 + t.
static __device__ inline void set_value(float *to, uint32_t t)
{
    *to = __uint_as_float(0x4b000000 | t) - 8388608.0f;
}

static __device__ inline void set_value(uint32_t *to, uint32_t t)
{
    *to = t;
}

// Sums of four rows of four neighbours, added to `sum`, from rows of t WARP apart. The neighbours
// that a quad of t, j quads away, counts towards need the taps 4 j - 3 .. 4 j + 3: eight from two
// quads of weights, of which the second is the first of the next step.
template <typename Value>
static __device__ inline void sum_rows(const quad<Value> *t, const quad<Value> *weight, int words,
                                       Value sum[VEC4][VEC4])
{
    quad<Value> before = weight[0];
    for (int j = -words; j <= words; j++) {
        quad<Value> here = weight[j + words + 1];
        for (int o = 0; o < VEC4; o++) {
            quad<Value> from = t[o * WARP + j];
            for (int p = 0; p < VEC4; p++)
                for (int e = 0; e < VEC4; e++)
                    sum[o][p] +=
                        (e < p ? before.value[VEC4 + e - p] : here.value[e - p]) * from.value[e];
        }
        before = here;
    }
}

// The sum's end: a float's by one multiplication that rounds down at the bits below the sample,
// which leaves the result in the low bits of 2^23 + result.
static __device__ inline int finished(const struct separable *s, float sum, int x)
{
    (void)x;
    return __float_as_int(__fmaf_rd(sum, s->scale, 8388608.0f)) & 0xff;
}

static __device__ inline int finished(const struct separable *s, uint32_t sum, int x)
{
    int value = (int)(sum >> s->rounding.shift);
    return s->rounding.amount ? sharpened(&s->rounding, x, value) : value;
}

// ---- the kernel ----

// Blocks that are to share a multiprocessor, which limits registers: Turing has fewer threads.
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
enum { BYTE_BLOCKS = 4, WORD_BLOCKS = 4 };
#else
enum { BYTE_BLOCKS = 5, WORD_BLOCKS = 4 };
#endif

// Where the parts of the dynamic shared memory lie.
template <typename T, typename Value> struct layout {
    vec4<T> *tile;    // WARP a row
    quad<Value> *t;   // four rows for each warp
    quad<Value> *row; // weights
    uint32_t *column; // weights
};

static __host__ __device__ inline int row_weights(int words)
{
    return 2 * words + 2;
}

template <typename T, typename Value>
static __device__ inline layout<T, Value> layout_of(const struct separable *s, void *memory)
{
    layout<T, Value> at;
    at.tile = (vec4<T> *)memory;
    at.t = (quad<Value> *)(at.tile + (s->tile.rows + 2 * s->tile.margin) * WARP);
    at.row = at.t + WARPS * VEC4 * WARP;
    at.column = (uint32_t *)(at.row + row_weights(s->tile.words));
    return at;
}

template <typename T, typename Value> static size_t layout_bytes(const struct separable *s)
{
    size_t quads = WARPS * VEC4 * WARP + (size_t)row_weights(s->tile.words);
    return tile_bytes<T>(&s->tile) + sizeof(quad<Value>) * quads +
           sizeof(uint32_t) * (size_t)column_weights(s->radius_y);
}

template <typename T, typename Value>
static __device__ inline void share_weights(const struct separable *s, const layout<T, Value> *at)
{
    int thread = threadIdx.y * WARP + threadIdx.x;
    if (thread < column_weights(s->radius_y))
        at->column[thread] = column_weight<T>(s->tap_y, thread);
    int first = s->radius_x - VEC4 * (s->tile.words + 1); // the tap at the first weight
    if (thread < VEC4 * row_weights(s->tile.words))
        at->row[thread / VEC4].value[thread % VEC4] = (Value)s->tap_x[first + thread];
}

// A block fills a tile, margin included, and each of its eight warps takes four rows of results at
// a time. First a lane makes t for the four columns it owns: it walks down the tile, a word a row,
// all lanes side by side and so without bank conflicts, and keeps sixteen sums. It leaves t in rows
// of shared memory that belong to its warp alone, so that the warp needs no one else's barrier.
// Then the lane makes its four columns of the result from its own and the next lanes' t, 16 bytes a
// read, again side by side. Rows of t and sums are in registers four rows at a time, which is what
// one loaded weight serves.
template <typename T, typename Value>
static __global__ void __launch_bounds__(WARP *WARPS, sizeof(T) == 1 ? BYTE_BLOCKS : WORD_BLOCKS)
    separable_tile(const __grid_constant__ struct separable s)
{
    extern __shared__ uint4 memory[];
    __shared__ uint16_t after[256];
    const layout<T, Value> at = layout_of<T, Value>(&s, memory);
    if (sizeof(T) == 1)
        table_share(after, s.sink.lookup.table);
    share_weights<T, Value>(&s, &at);
    tile_fill(at.tile, &s.tile);
    int lane = threadIdx.x;
    bool has_results = tile_has_results(&s.tile);
    outlet<T> outlet = outlet_of<T>(&s.sink, tile_x(&s.tile));
    quad<Value> *t = at.t + threadIdx.y * VEC4 * WARP + lane;
    for (int k = threadIdx.y * VEC4; k < s.tile.rows; k += WARPS * VEC4) {
        int y = tile_y(&s.tile) + k;
        if (y >= s.sink.height)
            return;
        uint32_t columns[VEC4][VEC4];
        for (int o = 0; o < VEC4; o++)
            for (int c = 0; c < VEC4; c++)
                columns[o][c] = 1u << s.column_shift >> 1;
        sum_columns(&at.tile[k * WARP + lane], at.column, s.radius_y, columns);
        for (int o = 0; o < VEC4; o++) {
            quad<Value> row;
            for (int c = 0; c < VEC4; c++)
                set_value(&row.value[c], columns[o][c] >> s.column_shift);
            t[o * WARP] = row;
        }
        __syncwarp();
        if (has_results) {
            Value sum[VEC4][VEC4];
            for (int o = 0; o < VEC4; o++)
                for (int p = 0; p < VEC4; p++)
                    sum[o][p] = (Value)(1u << s.rounding.shift >> 1);
            sum_rows(t, at.row, s.tile.words, sum);
            for (int o = 0; o < VEC4 && y + o < s.sink.height; o++) {
                vec4<T> center = at.tile[(k + o + s.tile.margin) * WARP + lane];
                int value[VEC4];
                for (int p = 0; p < VEC4; p++)
                    value[p] = finished(&s, sum[o][p], vec4_get(center, p));
                outlet_put(&outlet, after, y + o, value);
            }
        }
        __syncwarp();
    }
}

// ---- launchers ----

template <typename T, typename Value>
static cudaError_t tile_async(const struct stencil *stencil, int rows, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    int shift = op->bits + op->fraction;
    struct separable s = {
        .tile = tile_shape(&stencil->source, op->radius_x, op->radius_y, rows),
        .sink = stencil->sink,
        .tap_x = stencil->constants[0],
        .tap_y = stencil->constants[1],
        .radius_x = op->radius_x,
        .radius_y = op->radius_y,
        .column_shift = op->bits - op->fraction,
        .rounding = separable_rounding(op, stencil->depth, shift),
        .scale = 1.0f / (float)(1 << shift),
    };
    kernel_launch(separable_tile<T, Value>, tile_grid(&s.tile, s.sink.frames), block_shape(),
                  layout_bytes<T, Value>(&s), stream, s);
    return cudaGetLastError();
}

// Floats hold the sums of 8-bit samples, 255.5 * 2^(bits + fraction), while those are below 2^24.
static cudaError_t tiles_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    if (stencil->depth > 8)
        return tile_async<uint16_t, uint32_t>(stencil, 32, stream);
    if (op->bits + op->fraction > 16 || op->amount)
        return tile_async<uint8_t, uint32_t>(stencil, 64, stream);
    return tile_async<uint8_t, float>(stencil, 64, stream);
}

static cudaError_t axes_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_separable *op = &stencil->op->separable;
    const struct source *source = &stencil->source;
    struct axis columns = {
        .source = *source,
        .tap = stencil->constants[1],
        .radius = op->radius_y,
        .first = -op->radius_y,
        .exact = axis_is_exact(op),
        .rounding = {.shift = op->bits - op->fraction},
        .sink = scratch_sink(stencil, 0, source->width, source->height),
    };
    struct axis rows = {
        .source =
            scratch_source(&columns.sink, source->border, source->border_value << op->fraction),
        .tap = stencil->constants[0],
        .radius = op->radius_x,
        .first = -op->radius_x,
        .exact = axis_is_exact(op),
        .rounding = separable_rounding(op, stencil->depth, op->bits + op->fraction),
        .center = *source,
        .sink = stencil->sink,
    };
    cudaError_t error = axis_columns_async(&columns, stream);
    return error ? error : axis_rows_async(&rows, stream);
}

// ---- selection: which form makes a filter ----

enum form { FORM_TILES, FORM_AXES, FORM_DECIMATED };

static enum form separable_form(const struct op_separable *op)
{
    if (separable_is_decimated(op))
        return FORM_DECIMATED;
    bool small = op->radius_x <= TILE_RADIUS && op->radius_y <= TILE_RADIUS;
    return small && !axis_is_exact(op) ? FORM_TILES : FORM_AXES;
}

static size_t separable_scratch(const struct op_use *use)
{
    switch (separable_form(&use->op->separable)) {
    case FORM_TILES:
        return 0;
    case FORM_AXES:
        return scratch_bytes(use->width, use->height, 2);
    default:
        return separable_decimated_scratch(use->op, use->width, use->height);
    }
}

static cudaError_t separable_async(const struct stencil *stencil, cudaStream_t stream)
{
    if (fused_takes(stencil))
        return fused_async(stencil, stream);
    assert(!stencil->next); // see struct op_kernels, fits
    switch (separable_form(&stencil->op->separable)) {
    case FORM_TILES:
        return tiles_async(stencil, stream);
    case FORM_AXES:
        return axes_async(stencil, stream);
    default:
        return separable_decimated_async(stencil, stream);
    }
}

// ---- constants ----

// The taps of an axis from the first to the last, between zeros.
static const int32_t *put_taps(struct constants *memory, const int32_t *tap, int radius)
{
    size_t count = 2 * (size_t)radius + 1 + 2 * TAP_MARGIN;
    void *host;
    const void *device = constants_take(memory, count * sizeof *tap, &host);
    if (host)
        for (int k = -radius; k <= radius; k++)
            ((int32_t *)host)[TAP_MARGIN + radius + k] = tap[abs(k)];
    return (const int32_t *)device + TAP_MARGIN;
}

static void separable_constants(const struct op_use *use, struct constants *memory,
                                struct op_constants *to)
{
    const struct op_separable *op = &use->op->separable;
    to->weight[0] = put_taps(memory, op->tap_x, op->radius_x);
    to->weight[1] = put_taps(memory, op->tap_y, op->radius_y);
    if (separable_is_decimated(op)) {
        to->fragments[0] = constants_words(memory, [&](uint32_t *words) {
            return axis_mma_u8_fragments(op->tap_x, op->radius_x, op->bits, decimated_lead(op),
                                         words);
        });
        to->fragments[1] = constants_words(memory, [&](uint32_t *words) {
            return axis_mma_u8_fragments(op->tap_y, op->radius_y, op->bits, 0, words);
        });
        return;
    }
    const struct op *const next[2] = {NULL, use->next};
    for (int k = 0; k < (use->next ? 2 : 1); k++)
        to->fragments[k] = constants_words(
            memory, [&](uint32_t *words) { return fused_fragments(use->op, next[k], words); });
}

const struct op_kernels separable_kernels = {
    .kind = OP_SEPARABLE,
    .constants = separable_constants,
    .scratch = separable_scratch,
    .fits = fused_takes,
    .stencil_async = separable_async,
    .launches = true,
};
