// Stencils of 8-bit planes in one go: a separable filter on tensor cores, a gradient in packed
// halves, or the one behind the other, with lookups before and behind.
//
// A block makes 128 columns of 16 rows for each of its warps (two rows less where a gradient
// follows). It loads the samples around them once, into shared memory as 16-bit numbers, and all
// further parts go through shared memory: samples, filtered samples, results.
//
// The numbers are exact. A 16-bit integer n below 2^11 is, as the bits of a half, the number
// n * 2^-24 (subnormal ones included: what would be the hidden bit is a mantissa bit like the
// others). So bytes and sums of a few bytes are halves as they stand, sums of them are integer sums
// while they stay below 2^11, and a tensor core's products with taps of at most 11 significant bits
// add up exactly in single precision while the sum stays below 2^24 units.
//
// A filter along an axis is a product with a band matrix. Down the columns, taps times samples:
//
//   t (16 rows x 8 columns) = band (16 x K) samples (K x 8),      K = 16 + 2 reach
//
// whose result, rounded and packed, is laid out among the lanes as the left factor of the product
// along the rows, t (16 x K) band (K x 8): that one needs no memory between. Cost does not grow
// with the radius but in steps of `reach`, a multiple of 8.
#include "kernels/device.cuh"

#include <math.h>
#include <stdlib.h>

#include <cuda_fp16.h>

enum {
    FUSED_COLUMNS = 128, // of results
    BAND = 16,           // rows of a warp
    FUSED_WARPS = 4,
    FUSED_THREADS = LANES * FUSED_WARPS,
    PLANE_ROWS = BAND * FUSED_WARPS, // filtered, of a block
    CHUNK = 8,                       // samples loaded at once
    PLANE_STRIDE = FUSED_COLUMNS + 16,
    REACH_STEPS = 5, // at most, for a radius of 32
};

// One gradient of three by three, |gx| + |gy|, whose sums stay below 2^11.
struct small_gradient {
    int center, limit, base;
    enum border border;
    int border_value;
};

struct fused {
    struct source source;
    struct sink sink;
    const uint32_t *fragments;
    int reach;         // columns and rows that the operations really need
    float column_half; // rounding, in units of 2^-24
    float row_half;
    float column_scale; // from sums to integers
    float row_scale;
    struct small_gradient gradient;
    int finish; // of the gradient
};

// ---- shapes ----

// Around the results of a gradient, whole chunks are filtered.
template <bool GRADIENT> constexpr int around = GRADIENT ? CHUNK : 0;

// STEPS products of depth 16 make a filter: 16 (STEPS - 1) samples more than results. 0: no filter.
template <int STEPS> constexpr int fused_reach = STEPS ? 8 * (STEPS - 1) : 0;

template <int STEPS, bool GRADIENT>
constexpr int sample_columns = FUSED_COLUMNS + 2 * (around<GRADIENT> + fused_reach<STEPS>);

// An odd number of 16 bytes, so that eight rows begin in different banks.
template <int STEPS, bool GRADIENT>
constexpr int sample_stride = 2 * sample_columns<STEPS, GRADIENT> + 16;

template <int STEPS> constexpr int sample_rows = PLANE_ROWS + 2 * fused_reach<STEPS>;

template <bool GRADIENT> constexpr int result_rows = PLANE_ROWS - (GRADIENT ? 2 : 0);

template <int STEPS, bool GRADIENT>
constexpr size_t fused_bytes = PLANE_ROWS *PLANE_STRIDE +
                               (STEPS ? sample_rows<STEPS> * sample_stride<STEPS, GRADIENT> : 0);

struct corner {
    int x, y;
};

static __device__ inline int thread_of_block(void)
{
    return threadIdx.y * LANES + threadIdx.x;
}

// ---- loading ----

// Samples as they lie in shared memory: 16 bits each for a filter, else bytes.
template <int STEPS>
static __device__ inline void put_chunk(uint8_t *at, uint32_t low, uint32_t high)
{
    if (STEPS)
        *(uint4 *)at = make_uint4(__byte_perm(low, 0, 0x4140), __byte_perm(low, 0, 0x4342),
                                  __byte_perm(high, 0, 0x4140), __byte_perm(high, 0, 0x4342));
    else
        *(uint2 *)at = make_uint2(low, high);
}

// Threads are dealt out to whole rows of chunks, several rows at a time, so that each keeps its
// column. `first` is the row of a thread's first chunk; threads left over have none.
template <int STEPS, bool GRADIENT> struct dealing {
    static constexpr int chunks = sample_columns<STEPS, GRADIENT> / CHUNK;
    static constexpr int rows = sample_rows<STEPS>;
    static constexpr int at_once = FUSED_THREADS / chunks;
    static constexpr int turns = (rows + at_once - 1) / at_once;
    static constexpr int stride = STEPS ? sample_stride<STEPS, GRADIENT> : PLANE_STRIDE;
    static constexpr int chunk_bytes = STEPS ? 2 * CHUNK : CHUNK;
};

// All samples lie within the picture. A thread asks for BATCH chunks before it waits for the first.
template <int STEPS, bool GRADIENT, bool LOOKUP>
static __device__ inline void load_inside(const struct fused *f, uint8_t *tile, const uint8_t *from,
                                          int first, const uint16_t *shared)
{
    using deal = dealing<STEPS, GRADIENT>;
    constexpr int batch = LOOKUP ? 2 : 6;
    int64_t step = (int64_t)f->source.view.stride * deal::at_once;
#pragma unroll(LOOKUP ? 1 : deal::turns)
    for (int turn = 0; turn < deal::turns; turn += batch) {
        uint2 chunk[batch];
        for (int j = 0; j < batch; j++)
            if (first + (turn + j) * deal::at_once < deal::rows) {
                chunk[j] = __ldg((const uint2 *)from);
                from += step;
            }
        for (int j = 0; j < batch; j++)
            if (first + (turn + j) * deal::at_once < deal::rows) {
                if (LOOKUP) {
                    chunk[j].x = lookup_word(&f->source.lookup, shared, chunk[j].x);
                    chunk[j].y = lookup_word(&f->source.lookup, shared, chunk[j].y);
                }
                put_chunk<STEPS>(tile + (turn + j) * deal::at_once * deal::stride, chunk[j].x,
                                 chunk[j].y);
            }
    }
}

// Columns beyond the picture's, as the border rule extends it, as far as they are needed; before
// them, those of the last chunk if it is not a whole one. One by one: this is the edge only.
template <int STEPS, bool GRADIENT>
static __device__ void load_edges(const struct fused *f, uint8_t *tile, const int *row, int x0)
{
    using deal = dealing<STEPS, GRADIENT>;
    const struct source *from = &f->source;
    constexpr int columns = sample_columns<STEPS, GRADIENT>;
    int left = max(-x0 - f->reach, 0), left_end = min(max(-x0, left), columns);
    int right = max((from->width & -CHUNK) - x0, left_end);
    int right_end = max(min(from->width + f->reach - x0, columns), right);
    int count = left_end - left + right_end - right;
#pragma unroll 1
    for (int k = thread_of_block(); k < count * deal::rows; k += FUSED_THREADS) {
        int i = k / deal::rows, line = k % deal::rows, y = row[line];
        int column = i < left_end - left ? left + i : right + i - (left_end - left);
        int x = extended_index(from->border, x0 + column, from->width);
        int value = from->border_value;
        if (x >= 0 && y >= 0) {
            value = view_read(&from->view, x, y);
            if (from->lookup.table)
                value = look_up(from->lookup.table, value);
        }
        uint8_t *at = tile + line * deal::stride;
        if (STEPS)
            ((uint16_t *)at)[column] = (uint16_t)value;
        else
            at[column] = (uint8_t)value;
    }
}

// Some samples lie beyond an edge. What the border rule makes of each row is found out once. Chunks
// that are not within the picture become zeros first: bits that are no number must not meet the
// zeros of a band.
template <int STEPS, bool GRADIENT>
static __device__ inline void load_across(const struct fused *f, uint8_t *samples, struct corner at,
                                          int first, int column, const uint16_t *shared)
{
    using deal = dealing<STEPS, GRADIENT>;
    __shared__ int row[deal::rows];
    const struct source *from = &f->source;
#pragma unroll 1
    for (int k = thread_of_block(); k < deal::rows; k += FUSED_THREADS)
        row[k] = extended_index(from->border, at.y + k, from->height);
    __syncthreads();
    int x = at.x + column;
    bool inside = x >= 0 && x + CHUNK <= from->width;
    uint32_t beyond = (uint32_t)from->border_value * 0x1010101u;
    uint8_t *to = samples + column / CHUNK * deal::chunk_bytes;
#pragma unroll 2
    for (int k = first; k < deal::rows; k += deal::at_once) {
        uint2 chunk = make_uint2(0, 0);
        int y = row[k];
        if (inside)
            chunk = __ldg((const uint2 *)view_at(&from->view, x, max(y, 0)));
        chunk.x = lookup_word(&from->lookup, shared, chunk.x);
        chunk.y = lookup_word(&from->lookup, shared, chunk.y);
        put_chunk<STEPS>(to + k * deal::stride, y < 0 ? beyond : chunk.x, y < 0 ? beyond : chunk.y);
    }
    __syncthreads();
    if (at.x < 0 || at.x + sample_columns < STEPS, GRADIENT >> from->width)
        load_edges<STEPS, GRADIENT>(f, samples, row, at.x);
}

// Fill the samples of the block, from corner `at` of the picture on.
template <int STEPS, bool GRADIENT>
static __device__ inline void load(const struct fused *f, uint8_t *samples, struct corner at,
                                   const uint16_t *shared)
{
    using deal = dealing<STEPS, GRADIENT>;
    const struct source *from = &f->source;
    int thread = thread_of_block();
    int first = thread / deal::chunks, column = thread % deal::chunks * CHUNK;
    if (first >= deal::at_once)
        first = deal::rows;
    if (at.x < 0 || at.y < 0 || at.x + sample_columns < STEPS,
        GRADIENT >> from->width || at.y + deal::rows > from->height) {
        load_across<STEPS, GRADIENT>(f, samples, at, first, column, shared);
    } else if (first < deal::rows) {
        const uint8_t *data = view_at(&from->view, at.x + column, at.y + first);
        uint8_t *to = samples + first * deal::stride + column / CHUNK * deal::chunk_bytes;
        if (from->lookup.table)
            load_inside<STEPS, GRADIENT, true>(f, to, data, first, shared);
        else
            load_inside<STEPS, GRADIENT, false>(f, to, data, first, shared);
    }
    __syncthreads();
}

// ---- the filter ----

// Eight by eight halves four times, turned over: lane l gets rows 2 (l % 4) and the next of column
// l / 4 of each. `at` is this lane's row.
static __device__ inline void load_turned(uint32_t to[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

// sum (16 x 8) = start + a (16 x 16) b (16 x 8)
static __device__ inline void multiply(float sum[4], const uint32_t a[4], uint32_t b0, uint32_t b1,
                                       const float start[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%7, %8, %9, %10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0), "f"(start[0]), "f"(start[1]), "f"(start[2]),
          "f"(start[3]));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
          "f"(start[1]), "f"(start[2]), "f"(start[3]));
#endif
}

// What sums start from. The compiler is not told that the four are equal: it would keep one of them
// and copy it each time.
struct start {
    float value[4];
};

static __device__ inline struct start start_of(float half)
{
    struct start start;
    for (int k = 0; k < 4; k++) {
        start.value[k] = half;
        asm volatile("" : "+f"(start.value[k]));
    }
    return start;
}

// floor(value * scale), in the low bits of 2^23 + it.
static __device__ inline uint32_t whole(float value, float scale)
{
    return __float_as_uint(__fmaf_rd(value, scale, 8388608.0f));
}

// The same as a number.
static __device__ inline float floored(float value, float scale)
{
    return __fmaf_rd(value, scale, 8388608.0f) - 8388608.0f;
}

// Bands as fused_fragments() wrote them: the left factor of each product down the columns; the
// right factors of the two products along the rows that make 16 neighbouring columns. Lane l gets
// columns 4 (l % 4) .. + 3 of them, two from each.
template <int STEPS> struct bands {
    uint32_t down[STEPS][4];
    uint32_t along[2][STEPS][2];
    struct start down_start, along_start;
};

template <int STEPS> static __device__ inline bands<STEPS> load_bands(const struct fused *f)
{
    bands<STEPS> b;
    const uint4 *down = (const uint4 *)f->fragments + threadIdx.x;
    const uint2 *along = (const uint2 *)((const uint4 *)f->fragments + STEPS * LANES) + threadIdx.x;
    for (int s = 0; s < STEPS; s++) {
        uint4 four = __ldg(down + s * LANES);
        b.down[s][0] = four.x;
        b.down[s][1] = four.y;
        b.down[s][2] = four.z;
        b.down[s][3] = four.w;
    }
    for (int k = 0; k < 2 * STEPS; k++) {
        uint2 two = __ldg(along + k * LANES);
        b.along[k / STEPS][k % STEPS][0] = two.x;
        b.along[k / STEPS][k % STEPS][1] = two.y;
    }
    b.down_start = start_of(f->column_half);
    b.along_start = start_of(f->row_half);
    return b;
}

// t of 16 rows and 16 columns, as factors for the product along the rows: WIDE ones have 16 bits,
// of which each half is a factor by itself.
template <bool WIDE> struct factors {
    uint32_t part[WIDE ? 2 : 1][4];
};

template <bool WIDE>
static __device__ inline void set_factor(factors<WIDE> *to, int k, uint32_t first, uint32_t second)
{
    if (WIDE) {
        to->part[0][k] = __byte_perm(first, second, 0x6420); // low bytes; byte 2 is zero
        to->part[WIDE][k] = __byte_perm(first, second, 0x6521);
    } else {
        to->part[0][k] = __byte_perm(first, second, 0x5410);
    }
}

template <int STEPS, bool WIDE, int STRIDE>
static __device__ inline factors<WIDE> filter_down(const struct fused *f, const bands<STEPS> *b,
                                                   uint32_t at)
{
    float sum[2][4];
    for (int s = 0; s < STEPS; s++) {
        uint32_t samples[4];
        load_turned(samples, at + s * BAND * STRIDE);
        for (int k = 0; k < 2; k++)
            multiply(sum[k], b->down[s], samples[2 * k], samples[2 * k + 1],
                     s ? sum[k] : b->down_start.value);
    }
    factors<WIDE> t;
    for (int k = 0; k < 4; k++)
        set_factor(&t, k, whole(sum[k / 2][k % 2 * 2], f->column_scale),
                   whole(sum[k / 2][k % 2 * 2 + 1], f->column_scale));
    return t;
}

// Results in the low bytes.
template <int STEPS, bool WIDE>
static __device__ inline void filter_along(const struct fused *f, const bands<STEPS> *b, int half,
                                           const factors<WIDE> t[STEPS], int oldest,
                                           uint32_t result[4])
{
    const float zeros[4] = {0};
    float sum[4], high[4];
    for (int s = 0; s < STEPS; s++) {
        const factors<WIDE> *from = &t[(oldest + s) % STEPS];
        const uint32_t *band = b->along[half][s];
        multiply(sum, from->part[0], band[0], band[1], s ? sum : b->along_start.value);
        if (WIDE)
            multiply(high, from->part[WIDE], band[0], band[1], s ? high : zeros);
    }
    for (int k = 0; k < 4; k++) {
        if (WIDE) // (256 high + low) >> n is (high + (low >> 8)) >> (n - 8)
            result[k] = whole(fmaf(high[k], 16777216.0f, floored(sum[k], 65536.0f)), f->row_scale);
        else
            result[k] = whole(sum[k], f->row_scale);
    }
}

// A warp filters its band of 16 rows from left to right, 16 columns of samples at a time: down the
// columns from shared memory, then along the rows from the last STEPS of these, which it keeps.
// Each lane writes four neighbouring results of two rows; eight rows fall in different banks.
template <int STEPS, bool WIDE, bool GRADIENT>
static __device__ inline void filter(const struct fused *f, const bands<STEPS> *b,
                                     const uint8_t *samples, uint8_t *plane)
{
    constexpr int stride = sample_stride<STEPS, GRADIENT>;
    constexpr int columns = sample_columns<STEPS, GRADIENT> / 16;
    int lane = threadIdx.x;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(samples) +
                  (threadIdx.y * BAND + lane % 16) * stride + lane / 16 * 16;
    uint8_t *to = plane + (threadIdx.y * BAND + lane / 4) * PLANE_STRIDE + lane % 4 * 4;
    factors<WIDE> t[STEPS];
    for (int i = 0; i < STEPS - 1; i++)
        t[i] = filter_down<STEPS, WIDE, stride>(f, b, at + i * 32);
    at += (STEPS - 1) * 32;
#pragma unroll STEPS
    for (int i = 0; i < columns - (STEPS - 1); i++) {
        t[(i + STEPS - 1) % STEPS] = filter_down<STEPS, WIDE, stride>(f, b, at);
        uint32_t left[4], right[4];
        filter_along<STEPS, WIDE>(f, b, 0, t, i % STEPS, left);
        filter_along<STEPS, WIDE>(f, b, 1, t, i % STEPS, right);
        for (int k = 0; k < 2; k++)
            *(uint32_t *)(to + 8 * k * PLANE_STRIDE) =
                __byte_perm(__byte_perm(left[2 * k], left[2 * k + 1], 0x0040),
                            __byte_perm(right[2 * k], right[2 * k + 1], 0x0040), 0x5410);
        at += 32;
        to += 16;
    }
}

// ---- results of a filter ----

// Bytes of a stretch that reaches across the right edge: seldom taken, so it is kept small.
static __device__ inline void store_bytes(uint8_t *to, int count, uint4 words)
{
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        to[i] = (uint8_t)words.x;
        words.x = __funnelshift_r(words.x, words.y, 8);
        words.y = __funnelshift_r(words.y, words.z, 8);
        words.z = __funnelshift_r(words.z, words.w, 8);
        words.w >>= 8;
    }
}

// A warp writes its own band, four rows at a time, 128 bytes each.
template <bool LOOKUP>
static __device__ inline void store_band(const struct fused *f, const uint8_t *plane,
                                         const uint16_t *shared, struct corner at)
{
    int column = threadIdx.x % 8 * 16, x = at.x + column;
    int row = threadIdx.y * BAND + threadIdx.x / 8, rows = f->sink.height - at.y - row;
    if (x >= f->sink.width)
        return;
    uint8_t *to = view_at(&f->sink.view[0], x, at.y + row);
    int64_t step = 4 * (int64_t)f->sink.view[0].stride;
    plane += row * PLANE_STRIDE + column;
#pragma unroll(LOOKUP ? 1 : 4)
    for (int k = 0; k < BAND; k += 4) {
        uint4 words = *(const uint4 *)(plane + k * PLANE_STRIDE);
        if (LOOKUP) {
            words.x = lookup_word(&f->sink.lookup, shared, words.x);
            words.y = lookup_word(&f->sink.lookup, shared, words.y);
            words.z = lookup_word(&f->sink.lookup, shared, words.z);
            words.w = lookup_word(&f->sink.lookup, shared, words.w);
        }
        if (k < rows && x + 16 <= f->sink.width)
            *(uint4 *)to = words;
        else if (k < rows)
            store_bytes(to, f->sink.width - x, words);
        to += step;
    }
}

// ---- the gradient ----

static __device__ __noinline__ void extend_one(const struct fused *f, uint8_t *plane,
                                               struct corner at, int x, int y)
{
    const struct small_gradient *g = &f->gradient;
    int from_x = extended_index(g->border, x, f->sink.width);
    int from_y = extended_index(g->border, y, f->sink.height);
    int value = from_x < 0 || from_y < 0 ? g->border_value
                                         : plane[(from_y - at.y) * PLANE_STRIDE + from_x - at.x];
    plane[(y - at.y) * PLANE_STRIDE + x - at.x] = (uint8_t)value;
}

// A filtered plane is extended by its own samples, not by what the filter makes beyond the edge:
// write the one row and column around the picture that the gradient reads. `at` is the corner of
// the plane in shared memory.
static __device__ void extend_plane(const struct fused *f, uint8_t *plane, struct corner at)
{
    int width = f->sink.width, height = f->sink.height;
#pragma unroll 1
    for (int k = thread_of_block(); k < PLANE_ROWS; k += FUSED_THREADS) {
        int y = at.y + k;
        if (y <= height && at.x <= -1)
            extend_one(f, plane, at, -1, y);
        if (y <= height && width < at.x + PLANE_STRIDE)
            extend_one(f, plane, at, width, y);
    }
#pragma unroll 1
    for (int k = thread_of_block(); k < PLANE_STRIDE; k += FUSED_THREADS) {
        int x = at.x + k;
        if (x >= 0 && x < width && at.y == -1)
            extend_one(f, plane, at, x, -1);
        if (x >= 0 && x < width && height < at.y + PLANE_ROWS)
            extend_one(f, plane, at, x, height);
    }
}

static __device__ inline __half2 halves(uint32_t bits)
{
    __half2 made;
    *(uint32_t *)&made = bits;
    return made;
}

static __device__ inline uint32_t bits_of(__half2 value)
{
    return *(uint32_t *)&value;
}

// Differences across, and weighted sums around, the eight samples of a row that a thread owns.
struct slopes {
    __half2 difference[4], smooth[4];
};

static __device__ inline struct slopes slopes_of(const uint8_t *row, __half2 center)
{
    uint2 words = *(const uint2 *)row;
    // The last sample before them in the upper lane, the first behind them in the lower.
    uint32_t around_them =
        __byte_perm(*(const uint32_t *)(row - 4), *(const uint32_t *)(row + 8), 0x4334) & 0xff00ff;
    struct pairs a = pairs_of(words.x), b = pairs_of(words.y);
    // Samples 2 k .. 2 k + 2 of each step: to the left, in the middle, to the right.
    uint32_t left_of_a = __byte_perm(around_them, a.odd, 0x5432);
    uint32_t middle_odd = __byte_perm(a.odd, b.odd, 0x5432);
    uint32_t middle_even = __byte_perm(a.even, b.even, 0x5432);
    uint32_t right_of_b = __byte_perm(b.even, around_them, 0x5432);
    const uint32_t left[4] = {left_of_a, a.even, middle_odd, b.even};
    const uint32_t middle[4] = {a.even, a.odd, b.even, b.odd};
    const uint32_t right[4] = {a.odd, middle_even, b.odd, right_of_b};
    struct slopes made;
    for (int k = 0; k < 4; k++) {
        made.difference[k] = __hsub2(halves(right[k]), halves(left[k]));
        made.smooth[k] =
            __hfma2(halves(middle[k]), center, __hadd2(halves(left[k]), halves(right[k])));
    }
    return made;
}

// What becomes of a gradient's length. A threshold tells lengths apart before they are limited: all
// beyond the limit are beyond its upper value too.
enum finish { FINISH_LIMIT, FINISH_THRESHOLD, FINISH_LOOKUP };

struct finisher {
    uint32_t limit, base;        // in both lanes
    uint32_t low, high;          // what carries lanes from these values on into the highest bit
    uint32_t below, above;       // in four bytes
    const struct lookup *lookup; // FINISH_LOOKUP
    const uint16_t *shared;
};

static __device__ inline struct finisher finisher_of(const struct fused *f, const uint16_t *shared)
{
    const struct lookup *lookup = &f->sink.lookup;
    struct finisher made = {both_lanes(f->gradient.limit),
                            both_lanes(f->gradient.base),
                            both_lanes(0x8000 - lookup->low),
                            both_lanes(0x7fff - lookup->high),
                            (uint32_t)lookup->below * 0x1010101u,
                            (uint32_t)lookup->above * 0x1010101u,
                            lookup,
                            shared};
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+r"(made.limit), "+r"(made.base), "+r"(made.low), "+r"(made.high));
    asm volatile("" : "+r"(made.below), "+r"(made.above));
    return made;
}

template <enum finish FINISH>
static __device__ inline uint32_t finished(const struct finisher *f, __half2 even, __half2 odd)
{
    struct pairs p = {bits_of(even), bits_of(odd)};
    if (FINISH == FINISH_THRESHOLD) {
        uint32_t word = pairs_word(p);
        uint32_t from_low = carries(p, f->low), above = carries(p, f->high);
        word = (word & from_low) | (f->below & ~from_low);
        return (word & ~above) | (f->above & above);
    }
    p.even = bits_of(__hmin2(even, halves(f->limit))) + f->base;
    p.odd = bits_of(__hmin2(odd, halves(f->limit))) + f->base;
    return FINISH == FINISH_LOOKUP ? lookup_pairs(f->lookup, f->shared, p) : pairs_word(p);
}

// Half a warp owns a row of 128 results, eight columns a thread, and walks down eight rows: of each
// it reads its own eight bytes and a word on either side.
template <enum finish FINISH>
static __device__ inline void make_gradient(const struct fused *f, const uint8_t *plane,
                                            const uint16_t *shared, struct corner at)
{
    constexpr int each = PLANE_ROWS / (2 * FUSED_WARPS);
    int column = threadIdx.x % 16 * CHUNK, x = at.x + column;
    int first = (threadIdx.y * 2 + threadIdx.x / 16) * each;
    int rows = min(min(result_rows<true>, f->sink.height - at.y) - first, each);
    if (x >= f->sink.width || rows <= 0)
        return;
    plane += first * PLANE_STRIDE + CHUNK + column;
    uint8_t *to = view_at(&f->sink.view[0], x, at.y + first);
    int64_t step = f->sink.view[0].stride;
    int whole = x + CHUNK <= f->sink.width;
    __half2 center = __half2half2(__int2half_rn(f->gradient.center));
    struct finisher finisher = finisher_of(f, shared);
    asm volatile("" : "+r"(*(uint32_t *)&center), "+r"(whole));
    struct slopes above = slopes_of(plane, center), here = slopes_of(plane + PLANE_STRIDE, center);
#pragma unroll(FINISH == FINISH_LOOKUP ? 1 : each)
    for (int k = 0; k < each; k++) {
        if (k >= rows)
            return;
        struct slopes below = slopes_of(plane + (k + 2) * PLANE_STRIDE, center);
        __half2 length[4];
        for (int i = 0; i < 4; i++) {
            __half2 gx = __hfma2(here.difference[i], center,
                                 __hadd2(above.difference[i], below.difference[i]));
            __half2 gy = __hsub2(below.smooth[i], above.smooth[i]);
            length[i] = __hadd2(__habs2(gx), __habs2(gy));
        }
        uint2 words = make_uint2(finished<FINISH>(&finisher, length[0], length[1]),
                                 finished<FINISH>(&finisher, length[2], length[3]));
        if (whole)
            *(uint2 *)to = words;
        else
            store_bytes(to, f->sink.width - x, make_uint4(words.x, words.y, 0, 0));
        above = here;
        here = below;
        to += step;
    }
}

// ---- the kernel ----

// Blocks that are to share a multiprocessor.
template <int STEPS> constexpr int fused_blocks = STEPS <= 2 ? 6 : 3;

static __device__ inline void share_table(uint16_t shared[256], const struct lookup *lookup)
{
    if (lookup->table && lookup->kind == LOOKUP_TABLE)
        for (int k = thread_of_block(); k < 256; k += FUSED_THREADS)
            shared[k] = __ldg(lookup->table + k);
}

// See above: load, filter, write; or load, filter, extend, make the gradient. Warps of a filter
// alone need no one else's results and so do not wait for them.
template <int STEPS, bool WIDE, bool GRADIENT>
static __global__ void __launch_bounds__(FUSED_THREADS, fused_blocks<STEPS>)
    fused(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    __shared__ uint16_t before[256], after[256];
    constexpr int reach = fused_reach<STEPS>;
    struct corner at = {(int)blockIdx.x * FUSED_COLUMNS, (int)blockIdx.y * result_rows<GRADIENT>};
    struct corner plane_at = {at.x - around<GRADIENT>, at.y - (GRADIENT ? 1 : 0)};
    uint8_t *plane = (uint8_t *)memory, *samples = plane + (STEPS ? PLANE_ROWS * PLANE_STRIDE : 0);
    share_table(before, &f.source.lookup);
    share_table(after, &f.sink.lookup);
    if (f.source.lookup.table)
        __syncthreads();
    bands<STEPS ? STEPS : 1> b;
    if constexpr (STEPS > 0)
        b = load_bands<STEPS>(&f);
    load<STEPS, GRADIENT>(&f, samples, {plane_at.x - reach, plane_at.y - reach}, before);
    if constexpr (STEPS > 0)
        filter<STEPS, WIDE, GRADIENT>(&f, &b, samples, plane);
    if constexpr (!GRADIENT) {
        __syncwarp();
        if (f.sink.lookup.table)
            store_band<true>(&f, plane, after, at);
        else
            store_band<false>(&f, plane, after, at);
    } else {
        if constexpr (STEPS > 0) {
            __syncthreads();
            if (plane_at.x < 0 || plane_at.y < 0 || plane_at.x + PLANE_STRIDE > f.sink.width ||
                plane_at.y + PLANE_ROWS > f.sink.height) {
                extend_plane(&f, plane, plane_at);
                __syncthreads();
            }
        }
        if (f.finish == FINISH_LIMIT)
            make_gradient<FINISH_LIMIT>(&f, plane, after, at);
        else if (f.finish == FINISH_THRESHOLD)
            make_gradient<FINISH_THRESHOLD>(&f, plane, after, at);
        else
            make_gradient<FINISH_LOOKUP>(&f, plane, after, at);
    }
}

// ---- taps ----

// The bits of a half that is the integer `value`; -1 if none is.
static int half_of(int value)
{
    if (value == 0)
        return 0;
    int exponent = 0;
    while (value >> (exponent + 1))
        exponent++;
    if (exponent > 15)
        return -1;
    int mantissa = exponent > 10 ? value >> (exponent - 10) : value << (10 - exponent);
    int back = exponent > 10 ? mantissa << (exponent - 10) : mantissa >> (10 - exponent);
    return back == value ? ((exponent + 15) << 10) + (mantissa & 0x3ff) : -1;
}

static int fused_steps(const struct op_separable *op)
{
    int radius = op->radius_x > op->radius_y ? op->radius_x : op->radius_y;
    return (radius + 7) / 8 + 1;
}

static bool is_wide(const struct op_separable *op)
{
    return op->fraction > 3;
}

static bool has_fragments(const struct op_separable *op)
{
    bool narrow = op->bits == 13 && op->fraction == 3, wide = op->bits == 15 && op->fraction == 8;
    if (op->decimate_x || op->decimate_y || op->amount || !(narrow || wide) ||
        fused_steps(op) > REACH_STEPS)
        return false;
    for (int k = 0; k <= op->radius_x; k++)
        if (half_of(op->tap_x[k]) < 0)
            return false;
    for (int k = 0; k <= op->radius_y; k++)
        if (half_of(op->tap_y[k]) < 0)
            return false;
    return true;
}

// Two halves: the taps at `distance` from the centre and behind it.
static uint32_t tap_pair(const int32_t *tap, int radius, int distance)
{
    uint32_t pair = 0;
    for (int k = 0; k < 2; k++)
        if (abs(distance + k) <= radius)
            pair |= (uint32_t)half_of(tap[abs(distance + k)]) << 16 * k;
    return pair;
}

// Lane l holds, of a block of the left factor, columns 2 (l % 4) and the next of row l / 4; of the
// right factor, rows 2 (l % 4) and the next of column l / 4. See struct bands.
size_t fused_fragments(const struct op *op, uint32_t *to)
{
    const struct op_separable *f = &op->separable;
    if (!has_fragments(f))
        return 0;
    int steps = fused_steps(f), reach = 8 * (steps - 1);
    size_t down = (size_t)steps * 4 * LANES, count = 2 * down;
    for (size_t i = 0; to && i < count; i++) {
        int part = (int)(i % down), lane, column, k;
        if (i < down) { // four words a lane: rows + 0, + 8 of columns + 0, and of columns + 8
            lane = part / 4 % LANES;
            k = 16 * (part / (4 * LANES)) + part % 4 / 2 * 8 - part % 2 * 8;
            to[i] = tap_pair(f->tap_y, f->radius_y, k + lane % 4 * 2 - lane / 4 - reach);
        } else { // two words a lane: rows + 0 and + 8
            int n = part / (2 * LANES);
            lane = part / 2 % LANES;
            column = lane / 8 * 4 + 2 * (n / steps) + lane / 4 % 2;
            k = 16 * (n % steps) + part % 2 * 8;
            to[i] = tap_pair(f->tap_x, f->radius_x, k + lane % 4 * 2 - column - reach);
        }
    }
    return count;
}

// ---- launchers ----

static bool is_small_gradient(const struct op *op)
{
    const struct op_gradient *g = &op->gradient;
    return op->kind == OP_GRADIENT && g->side == 1 && g->center <= 2 && g->norm == NORM_L1 &&
           g->scale == 65536;
}

bool fused_takes(const struct stencil *stencil)
{
    const struct view *from = &stencil->source.view, *to = &stencil->sink.view[0];
    const struct op *next = stencil->next;
    bool bytes = stencil->depth == 8 && from->bytes == 1 && to->bytes == 1;
    if (!bytes || !from->plain || !to->plain || stencil->sink.views > 1 ||
        !view_is_aligned(from, 8) || !view_is_aligned(to, 16))
        return false;
    if (stencil->op->kind == OP_GRADIENT)
        return !next && is_small_gradient(stencil->op);
    if (stencil->op->kind != OP_SEPARABLE || !stencil->fragments)
        return false;
    return !next ||
           (is_small_gradient(next) && next->border != BORDER_WRAP &&
            !is_wide(&stencil->op->separable) && fused_steps(&stencil->op->separable) == 2);
}

static enum finish finish_of(const struct lookup *lookup, const struct small_gradient *gradient)
{
    if (!lookup->table)
        return FINISH_LIMIT;
    bool before_limit = gradient->base == 0 && lookup->high < gradient->limit;
    return lookup->kind == LOOKUP_THRESHOLD && before_limit ? FINISH_THRESHOLD : FINISH_LOOKUP;
}

template <int STEPS, bool WIDE, bool GRADIENT>
static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    size_t bytes = fused_bytes<STEPS, GRADIENT>;
    dim3 grid = grid_shape(f->sink.width, f->sink.height, f->sink.frames, FUSED_COLUMNS,
                           result_rows<GRADIENT>);
    cudaError_t error = cudaSuccess;
    if (bytes > 48 << 10)
        error = cudaFuncSetAttribute(fused<STEPS, WIDE, GRADIENT>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    fused<STEPS, WIDE, GRADIENT><<<grid, dim3(LANES, FUSED_WARPS), bytes, stream>>>(*f);
    return cudaGetLastError();
}

template <bool WIDE>
static cudaError_t launch_filter(const struct fused *f, int steps, cudaStream_t stream)
{
    switch (steps) {
    case 2:
        return launch<2, WIDE, false>(f, stream);
    case 3:
        return launch<3, WIDE, false>(f, stream);
    case 4:
        return launch<4, WIDE, false>(f, stream);
    default:
        return launch<5, WIDE, false>(f, stream);
    }
}

cudaError_t fused_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op *filter = stencil->op->kind == OP_SEPARABLE ? stencil->op : NULL;
    const struct op *gradient = filter ? stencil->next : stencil->op;
    struct fused f = {
        .source = stencil->source, .sink = stencil->sink, .fragments = stencil->fragments};
    if (gradient) {
        f.gradient = {gradient->gradient.center, gradient->gradient.limit, gradient->gradient.base,
                      gradient->border, gradient->border_value};
        f.finish = finish_of(&stencil->sink.lookup, &f.gradient);
        f.reach = 1;
    }
    if (!filter)
        return launch<0, false, true>(&f, stream);
    const struct op_separable *op = &filter->separable;
    int down = op->bits - op->fraction, along = op->bits + op->fraction;
    f.reach += op->radius_x > op->radius_y ? op->radius_x : op->radius_y;
    f.column_half = ldexpf(0.5f, down - 24);
    f.row_half = ldexpf(0.5f, along - 24);
    f.column_scale = ldexpf(1, 24 - down);
    f.row_scale = ldexpf(1, 24 - along);
    if (is_wide(op))
        f.row_scale = ldexpf(1, 8 - along); // behind floored(), a number of units
    if (gradient)
        return launch<2, false, true>(&f, stream);
    int steps = fused_steps(op);
    return is_wide(op) ? launch_filter<true>(&f, steps, stream)
                       : launch_filter<false>(&f, steps, stream);
}
