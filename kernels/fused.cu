// Stencils in one go: a separable filter on tensor cores, a gradient in packed halves, or the one
// behind the other, with lookups before and behind.
//
// A block makes 128 columns of 16 rows for each of its warps (two rows less where a gradient
// follows). It loads the samples around them once, into shared memory as 16-bit numbers, and all
// further parts go through shared memory: samples, filtered samples, results.
//
// The numbers are exact. A 16-bit integer n below 2^11 is, as the bits of a half, the number
// n * 2^-24 (subnormal ones included: what would be the hidden bit is a mantissa bit like the
// others). So bytes and sums of a few bytes are halves as they stand, sums of them are integer sums
// while they stay below 2^11, and a tensor core's products with taps of at most 11 significant bits
// add up exactly in single precision while the sum stays below 2^24 units. Samples of more than 11
// bits are two numbers, their bytes, and longer taps are the sum of two.
//
// A filter along an axis is a product with a band matrix. Down the columns, taps times samples:
//
//   t (16 rows x 8 columns) = band (16 x K) samples (K x 8),      K = 16 + 2 REACH
//
// whose result, rounded and packed, is laid out among the lanes as the left factor of the product
// along the rows, t (16 x K) band (K x 8): that one needs no memory between. Cost does not grow
// with the radius but in steps.
#include "kernels/device.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_fp16.h>

enum {
    FUSED_COLUMNS = 128, // of results
    BAND = 16,           // rows of a warp
    FUSED_WARPS = 4,
    FUSED_THREADS = LANES * FUSED_WARPS,
    PLANE_ROWS = BAND * FUSED_WARPS, // filtered, of a block
    PLANE_STRIDE = FUSED_COLUMNS + 16,
    CHUNK = 8,          // samples loaded at once
    STAGE_COLUMNS = 32, // of a filter's results that a warp stores at once
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
    int reach;          // columns and rows that the operations really need
    float column_scale; // from sums to integers
    float row_scale;
    struct small_gradient gradient;
    int tiles_x, tiles;
    int finish; // of the gradient
};

// ---- shapes ----

// REACH: how far above and below a result a filter's products go, at least its radius. 4, or a
// multiple of 8, as they go left and right; 0: no filter. PARTS_X, PARTS_T, PARTS_TAP: numbers that
// a sample, a filtered sample between the axes, a tap is made of.
template <int REACH_, int PARTS_X_, int PARTS_T_, int PARTS_TAP_, bool GRADIENT_> struct shape {
    static constexpr int REACH = REACH_, REACH_X = (REACH + 7) / 8 * 8;
    static constexpr int PARTS_X = PARTS_X_, PARTS_T = PARTS_T_, PARTS_TAP = PARTS_TAP_;
    static constexpr bool GRADIENT = GRADIENT_;
    // Products are 16 deep, the last one down the columns 8 where that is enough.
    static constexpr int steps = (16 + 2 * REACH + 15) / 16;
    static constexpr bool short_last = REACH % 8 != 0;
    // Around the results of a gradient, a whole chunk is filtered.
    static constexpr int around = GRADIENT ? CHUNK : 0;
    static constexpr int columns = FUSED_COLUMNS + 2 * (around + REACH_X);
    static constexpr int rows = PLANE_ROWS + 2 * REACH;
    static constexpr int results = PLANE_ROWS - (GRADIENT ? 2 : 0); // rows
    static constexpr int bytes = PARTS_X;                           // of a sample in memory
    static constexpr int chunk_bytes = REACH ? 2 * CHUNK : CHUNK;   // in shared memory
    // An odd number of 16 bytes, so that eight rows begin in different banks.
    static constexpr int stride = REACH ? (2 * columns / 16 | 1) * 16 : PLANE_STRIDE;
    static constexpr int stage_stride = STAGE_COLUMNS * bytes + 16;
    static constexpr int plane_bytes = PLANE_ROWS * (GRADIENT ? PLANE_STRIDE : stage_stride);
    // The plane for a gradient takes the place of the samples that it was made from.
    static constexpr int samples_at = GRADIENT ? 0 : plane_bytes;
    static constexpr int samples_bytes = REACH ? rows * stride : 0;
    static constexpr size_t shared_bytes =
        samples_at + (samples_bytes > plane_bytes || !GRADIENT ? samples_bytes : plane_bytes);
    // Threads are dealt out to whole rows of chunks, several rows at a time, so that each keeps its
    // column.
    static constexpr int chunks = columns / CHUNK;
    static constexpr int at_once = FUSED_THREADS / chunks;
    static constexpr int turns = (rows + at_once - 1) / at_once;
    // Where loading takes long compared with computing, a block makes several tiles, and each
    // thread keeps the samples of the next one in registers ahead of time: so many turns.
    static constexpr bool several = PARTS_X * PARTS_T == 1 && REACH <= 8 && !(GRADIENT && REACH);
    static constexpr int ahead = several ? 12 : 0;
    static constexpr int fetched = turns < ahead ? turns : ahead;
    // Blocks that are to share a multiprocessor: as many as its shared memory holds, while there
    // are registers.
    static constexpr int blocks = GRADIENT && REACH ? 7
                                  : REACH <= 4      ? 6
                                  : REACH <= 8      ? (several ? 5 : 6)
                                                    : 4;
    static constexpr int blocks_wanted = PARTS_TAP == 1 ? (PARTS_X == 2 ? 3 : blocks)
                                         : REACH <= 8   ? 4
                                                        : 2;
};

struct corner {
    int x, y;
};

static __device__ inline int thread_of_block(void)
{
    return threadIdx.y * LANES + threadIdx.x;
}

// ---- loading ----

// Eight samples as they lie in memory.
template <int BYTES> struct chunk;

template <> struct alignas(8) chunk<1> {
    uint32_t word[2];
};

template <> struct alignas(16) chunk<2> {
    uint32_t word[4];
};

static __device__ inline chunk<1> chunk_load(const chunk<1> *from)
{
    uint2 words = __ldg((const uint2 *)from);
    return {{words.x, words.y}};
}

static __device__ inline chunk<2> chunk_load(const chunk<2> *from)
{
    uint4 words = __ldg((const uint4 *)from);
    return {{words.x, words.y, words.z, words.w}};
}

static __device__ inline void chunk_lookup(chunk<1> *c, const struct lookup *lookup)
{
    for (int k = 0; k < 2; k++)
        c->word[k] = lookup_word(lookup, lookup->table, c->word[k]);
}

static __device__ inline void chunk_lookup(chunk<2> *c, const struct lookup *lookup)
{
    if (lookup->table)
        for (int k = 0; k < 4; k++)
            c->word[k] = (uint32_t)look_up(lookup->table, (int)(c->word[k] & 0xffff)) |
                         (uint32_t)look_up(lookup->table, (int)(c->word[k] >> 16)) << 16;
}

// To shared memory: 16 bits each for a filter, else as they are.
template <typename S> static __device__ inline void chunk_put(uint8_t *at, chunk<1> c)
{
    uint32_t low = c.word[0], high = c.word[1];
    if (S::REACH)
        *(uint4 *)at = make_uint4(__byte_perm(low, 0, 0x4140), __byte_perm(low, 0, 0x4342),
                                  __byte_perm(high, 0, 0x4140), __byte_perm(high, 0, 0x4342));
    else
        *(uint2 *)at = make_uint2(low, high);
}

template <typename S> static __device__ inline void chunk_put(uint8_t *at, chunk<2> c)
{
    *(uint4 *)at = make_uint4(c.word[0], c.word[1], c.word[2], c.word[3]);
}

// A thread's samples of one tile, on the way from memory while the block is busy with another.
template <typename S> struct fetched {
    chunk<S::bytes> part[S::fetched ? S::fetched : 1];
    const uint8_t *rest; // where the others are
};

// The row of a thread's first chunk; threads left over have none.
template <typename S> static __device__ inline int first_row(void)
{
    int row = thread_of_block() / S::chunks;
    return row < S::at_once ? row : S::rows;
}

// Whether all samples of a tile lie within the picture.
template <typename S>
static __device__ inline bool is_inside(const struct fused *f, struct corner at)
{
    return at.x >= 0 && at.y >= 0 && at.x + S::columns <= f->source.width &&
           at.y + S::rows <= f->source.height;
}

template <typename S>
static __device__ inline void fetch(const struct fused *f, fetched<S> *to, struct corner at)
{
    int first = first_row<S>(), column = thread_of_block() % S::chunks * CHUNK;
    int64_t step = (int64_t)f->source.view.stride * S::at_once;
    to->rest = view_at(&f->source.view, at.x + column, at.y + first);
#pragma unroll
    for (int turn = 0; turn < S::fetched && !f->source.lookup.table; turn++)
        if (first + turn * S::at_once < S::rows) {
            to->part[turn] = chunk_load((const chunk<S::bytes> *)to->rest);
            to->rest += step;
        }
}

// What was fetched, and the rest, to shared memory. A thread asks for some chunks before it waits
// for the first. LOOKUP: nothing was fetched.
template <typename S, bool LOOKUP>
static __device__ inline void put_inside(const struct fused *f, uint8_t *samples, fetched<S> *from)
{
    constexpr int batch = LOOKUP && S::several ? 2 : S::bytes == 1 ? 6 : 4;
    int first = first_row<S>();
    int64_t step = (int64_t)f->source.view.stride * S::at_once;
    uint8_t *to = samples + first * S::stride + thread_of_block() % S::chunks * S::chunk_bytes;
#pragma unroll
    for (int turn = 0; turn < S::fetched && !LOOKUP; turn++)
        if (first + turn * S::at_once < S::rows) {
            chunk_put<S>(to + turn * S::at_once * S::stride, from->part[turn]);
        }
#pragma unroll(LOOKUP ? 1 : S::turns)
    for (int turn = LOOKUP ? 0 : S::fetched; turn < S::turns; turn += batch) {
        chunk<S::bytes> c[batch];
#pragma unroll
        for (int j = 0; j < batch; j++)
            if (first + (turn + j) * S::at_once < S::rows) {
                c[j] = chunk_load((const chunk<S::bytes> *)from->rest);
                from->rest += step;
            }
#pragma unroll
        for (int j = 0; j < batch; j++)
            if (first + (turn + j) * S::at_once < S::rows) {
                if (LOOKUP)
                    chunk_lookup(&c[j], &f->source.lookup);
                chunk_put<S>(to + (turn + j) * S::at_once * S::stride, c[j]);
            }
    }
}

// Columns beyond the picture's, as the border rule extends it, as far as they are needed; before
// them, those of the last chunk if it is not a whole one. One by one: this is the edge only.
template <typename S>
static __device__ void load_edges(const struct fused *f, uint8_t *tile, const int *row, int x0)
{
    const struct source *from = &f->source;
    int left = max(-x0 - f->reach, 0), left_end = min(max(-x0, left), S::columns);
    int right = max((from->width & -CHUNK) - x0, left_end);
    int right_end = max(min(from->width + f->reach - x0, S::columns), right);
    int count = left_end - left + right_end - right;
#pragma unroll 1
    for (int k = thread_of_block(); k < count * S::rows; k += FUSED_THREADS) {
        int i = k / S::rows, line = k % S::rows, y = row[line];
        int column = i < left_end - left ? left + i : right + i - (left_end - left);
        int x = extended_index(from->border, x0 + column, from->width);
        int value = from->border_value;
        if (x >= 0 && y >= 0) {
            value = view_read(&from->view, x, y);
            if (from->lookup.table)
                value = look_up(from->lookup.table, value);
        }
        uint8_t *at = tile + line * S::stride;
        if (S::REACH)
            ((uint16_t *)at)[column] = (uint16_t)value;
        else
            at[column] = (uint8_t)value;
    }
}

// Some samples lie beyond an edge. What the border rule makes of each row is found out once. Chunks
// that are not within the picture become zeros first: bits that are no number must not meet the
// zeros of a band.
template <typename S>
static __device__ inline void load_across(const struct fused *f, uint8_t *samples, struct corner at)
{
    __shared__ int row[S::rows];
    const struct source *from = &f->source;
#pragma unroll 1
    for (int k = thread_of_block(); k < S::rows; k += FUSED_THREADS)
        row[k] = extended_index(from->border, at.y + k, from->height);
    __syncthreads();
    int column = thread_of_block() % S::chunks * CHUNK, x = at.x + column;
    bool inside = x >= 0 && x + CHUNK <= from->width;
    uint32_t beyond = (uint32_t)from->border_value * (S::bytes == 1 ? 0x1010101u : 0x10001u);
    uint8_t *to = samples + column / CHUNK * S::chunk_bytes;
#pragma unroll 2
    for (int k = first_row<S>(); k < S::rows; k += S::at_once) {
        chunk<S::bytes> c = {};
        int y = row[k];
        if (inside)
            c = chunk_load((const chunk<S::bytes> *)view_at(&from->view, x, max(y, 0)));
        chunk_lookup(&c, &from->lookup);
        for (int i = 0; i < 2 * S::bytes; i++)
            c.word[i] = !inside ? 0 : y < 0 ? beyond : c.word[i];
        chunk_put<S>(to + k * S::stride, c);
    }
    __syncthreads();
    if (at.x < 0 || at.x + S::columns > from->width)
        load_edges<S>(f, samples, row, at.x);
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

// sum (16 x 8) = start + a (16 x 16) b (16 x 8); SHORT: of the first eight columns of a and rows of
// b only.
template <bool SHORT>
static __device__ inline void multiply(float sum[4], const uint32_t a[4], uint32_t b0, uint32_t b1,
                                       const float start[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (!SHORT) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(start[0]),
              "f"(start[1]), "f"(start[2]), "f"(start[3]));
        return;
    }
#endif
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%7, %8, %9, %10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0), "f"(start[0]), "f"(start[1]), "f"(start[2]),
          "f"(start[3]));
    if (!SHORT)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[2]), "r"(a[3]), "r"(b1));
}

// floor(value * scale), in the low bits of 2^23 + it.
static __device__ inline uint32_t whole(float value, float scale)
{
    return __float_as_uint(__fmaf_rd(value, scale, 8388608.0f));
}

// The same of a sum of one part; or of two parts, 256 high + low, where (256 high + low) >> n is
// (high + (low >> 8)) >> (n - 8).
template <int PARTS>
static __device__ inline uint32_t whole_of(const float sum[PARTS][4], int k, float scale)
{
    if (PARTS == 1)
        return whole(sum[0][k], scale);
    float carried = __fmaf_rd(sum[0][k], 65536.0f, 8388608.0f) - 8388608.0f;
    return whole(fmaf(sum[PARTS - 1][k], 16777216.0f, carried), scale);
}

// Bands as fused_fragments() wrote them: the left factor of each product down the columns; the
// right factors of the two products along the rows that make 16 neighbouring columns. Lane l gets
// columns 4 (l % 4) .. + 3 of them, two from each.
template <typename S> struct bands {
    uint32_t down[S::PARTS_TAP][S::steps][4];
    uint32_t along[S::PARTS_TAP][2][S::steps][2];
    // What sums start from. It comes from memory as four for each lane: of one value the compiler
    // would keep one register, of one for all lanes a uniform one, and copy it each time.
    float down_start[4], along_start[4];
};

template <typename S> static __device__ inline bands<S> load_bands(const struct fused *f)
{
    bands<S> b;
    const uint4 *down = (const uint4 *)f->fragments + threadIdx.x;
    const uint2 *along =
        (const uint2 *)((const uint4 *)f->fragments + S::PARTS_TAP * S::steps * LANES) +
        threadIdx.x;
    for (int k = 0; k < S::PARTS_TAP * S::steps; k++) {
        uint4 four = __ldg(down + k * LANES);
        uint32_t *to = b.down[k / S::steps][k % S::steps];
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    }
    for (int k = 0; k < S::PARTS_TAP * 2 * S::steps; k++) {
        uint2 two = __ldg(along + k * LANES);
        uint32_t *to = b.along[k / (2 * S::steps)][k / S::steps % 2][k % S::steps];
        to[0] = two.x;
        to[1] = two.y;
    }
    const float4 *starts =
        (const float4 *)((const uint4 *)f->fragments + 2 * S::PARTS_TAP * S::steps * LANES);
    for (int k = 0; k < 2; k++) {
        float4 four = __ldg(starts + k * LANES + threadIdx.x);
        float *to = k ? b.along_start : b.down_start;
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    }
    return b;
}

// t of 16 rows and 16 columns, as factors for the product along the rows.
template <typename S> struct factors {
    uint32_t part[S::PARTS_T][4];
};

template <typename S>
static __device__ inline void set_factor(factors<S> *to, int k, uint32_t first, uint32_t second)
{
    if (S::PARTS_T > 1) {
        to->part[0][k] = __byte_perm(first, second, 0x6420); // low bytes; byte 2 is zero
        to->part[S::PARTS_T - 1][k] = __byte_perm(first, second, 0x6521);
    } else {
        to->part[0][k] = __byte_perm(first, second, 0x5410);
    }
}

// The last eight rows of a short product are read twice: there may be no others.
template <typename S>
static __device__ inline factors<S> filter_down(const struct fused *f, const bands<S> *b,
                                                uint32_t at)
{
    const float nothing[4] = {0};
    float sum[2][S::PARTS_X][4];
#pragma unroll
    for (int s = 0; s < S::steps; s++) {
        uint32_t samples[4];
        bool last = S::short_last && s == S::steps - 1;
        load_turned(samples,
                    at + s * BAND * S::stride - (last ? threadIdx.x % 16 / 8 * 8 : 0) * S::stride);
#pragma unroll
        for (int p = 0; p < S::PARTS_X; p++) {
            uint32_t part[4];
            for (int k = 0; k < 4; k++)
                part[k] =
                    S::PARTS_X == 1 ? samples[k] : __byte_perm(samples[k], 0, p ? 0x4341 : 0x4240);
#pragma unroll
            for (int n = 0; n < 2 * S::PARTS_TAP; n++) {
                int half = n % 2, tap = n / 2;
                const float *start = s || tap ? sum[half][p] : p ? nothing : b->down_start;
                if (last)
                    multiply<true>(sum[half][p], b->down[tap][s], part[2 * half], 0, start);
                else
                    multiply<false>(sum[half][p], b->down[tap][s], part[2 * half],
                                    part[2 * half + 1], start);
            }
        }
    }
    factors<S> t;
    for (int k = 0; k < 4; k++)
        set_factor<S>(&t, k, whole_of<S::PARTS_X>(sum[k / 2], k % 2 * 2, f->column_scale),
                      whole_of<S::PARTS_X>(sum[k / 2], k % 2 * 2 + 1, f->column_scale));
    return t;
}

// Results in the low bits.
template <typename S>
static __device__ inline void filter_along(const struct fused *f, const bands<S> *b, int half,
                                           const factors<S> t[S::steps], int oldest,
                                           uint32_t result[4])
{
    const float nothing[4] = {0};
    float sum[S::PARTS_T][4];
#pragma unroll
    for (int s = 0; s < S::steps; s++) {
        const factors<S> *from = &t[(oldest + s) % S::steps];
#pragma unroll
        for (int n = 0; n < S::PARTS_T * S::PARTS_TAP; n++) {
            int p = n % S::PARTS_T, tap = n / S::PARTS_T;
            const uint32_t *band = b->along[tap][half][s];
            const float *start = s || tap ? sum[p] : p ? nothing : b->along_start;
            multiply<false>(sum[p], from->part[p], band[0], band[1], start);
        }
    }
    for (int k = 0; k < 4; k++)
        result[k] = whole_of<S::PARTS_T>(sum, k, f->row_scale);
}

// Four neighbouring results of a row, two from each product.
static __device__ inline uint32_t packed_results(const uint32_t left[2], const uint32_t right[2])
{
    return __byte_perm(__byte_perm(left[0], left[1], 0x0040),
                       __byte_perm(right[0], right[1], 0x0040), 0x5410);
}

template <int BYTES>
static __device__ inline void put_results(uint8_t *to, const uint32_t left[2],
                                          const uint32_t right[2])
{
    if (BYTES == 1)
        *(uint32_t *)to = packed_results(left, right);
    else
        *(uint2 *)to = make_uint2(__byte_perm(left[0], left[1], 0x5410),
                                  __byte_perm(right[0], right[1], 0x5410));
}

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

// A warp stores what it has made of STAGE_COLUMNS columns, 16 bytes of one row a lane, or of two
// rows: whole sectors of 32. `from` and `to` are the lane's place in the stage and in the first of
// the pictures' columns; `rows` and `columns` how many from there on the picture has.
struct stage {
    const uint8_t *from;
    uint8_t *to;
    int rows, columns;
};

template <typename S>
static __device__ inline struct stage stage_of(const struct fused *f, const uint8_t *band,
                                               struct corner at)
{
    constexpr int parts = STAGE_COLUMNS * S::bytes / 16;
    int row = threadIdx.x / parts, part = threadIdx.x % parts, x = at.x + part * 16 / S::bytes;
    return {band + row * S::stage_stride + part * 16, view_at(&f->sink.view[0], x, at.y + row),
            f->sink.height - at.y - row, f->sink.width - x};
}

template <typename S>
static __device__ inline void store_stage(const struct fused *f, struct stage *stage)
{
    constexpr int whole = 16 / S::bytes, rows = LANES / (STAGE_COLUMNS * S::bytes / 16);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BAND; k += rows) {
        uint4 words = *(const uint4 *)(stage->from + k * S::stage_stride);
        uint8_t *to = stage->to + k * (int64_t)f->sink.view[0].stride;
        if (f->sink.lookup.table) {
            chunk<S::bytes> c[2 / S::bytes];
            memcpy(c, &words, sizeof words);
            for (int i = 0; i < 2 / S::bytes; i++)
                chunk_lookup(&c[i], &f->sink.lookup);
            memcpy(&words, c, sizeof words);
        }
        if (k < stage->rows && stage->columns >= whole)
            *(uint4 *)to = words;
        else if (k < stage->rows && stage->columns > 0)
            store_bytes(to, stage->columns * S::bytes, words);
    }
    stage->to += STAGE_COLUMNS * S::bytes;
    stage->columns -= STAGE_COLUMNS;
    __syncwarp();
}

// A warp filters its band of 16 rows from left to right, 16 columns of samples at a time: down the
// columns from shared memory, then along the rows from the last few of these, which it keeps. Each
// lane makes four neighbouring results of two rows. It writes them into the warp's own stage; or
// for a gradient, when all warps are done with the samples, into the plane that takes their place.
// Eight rows fall in different banks.
template <typename S>
static __device__ inline void filter(const struct fused *f, const bands<S> *b,
                                     const uint8_t *samples, uint8_t *plane, struct corner results)
{
    constexpr int stride = S::GRADIENT ? PLANE_STRIDE : S::stage_stride;
    constexpr int kept = S::steps - 1, count = (FUSED_COLUMNS + 2 * S::around) / 16;
    int lane = threadIdx.x;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(samples) +
                  (threadIdx.y * BAND + lane % 16) * S::stride + lane / 16 * 16;
    uint8_t *band = plane + threadIdx.y * BAND * stride;
    uint8_t *to = band + lane / 4 * stride + lane % 4 * 4 * S::bytes;
    results.y += threadIdx.y * BAND;
    struct stage stage = {};
    if (!S::GRADIENT)
        stage = stage_of<S>(f, band, results);
    factors<S> t[S::steps];
#pragma unroll
    for (int i = 0; i < kept; i++)
        t[i] = filter_down<S>(f, b, at + i * 32);
    at += kept * 32;
    uint32_t words[S::GRADIENT ? count : 1][2];
#pragma unroll(S::GRADIENT ? count : S::steps % 2 ? 2 * S::steps : S::steps)
    for (int i = 0; i < count; i++) {
        t[(i + kept) % S::steps] = filter_down<S>(f, b, at);
        uint32_t left[4], right[4];
        filter_along<S>(f, b, 0, t, i % S::steps, left);
        filter_along<S>(f, b, 1, t, i % S::steps, right);
        at += 32;
        if (S::GRADIENT) {
            words[i][0] = packed_results(left, right);
            words[i][1] = packed_results(left + 2, right + 2);
            continue;
        }
        put_results<S::bytes>(to + i % 2 * 16 * S::bytes, left, right);
        put_results<S::bytes>(to + i % 2 * 16 * S::bytes + 8 * stride, left + 2, right + 2);
        if (i % 2)
            store_stage<S>(f, &stage);
    }
    if (!S::GRADIENT)
        return;
    __syncthreads(); // all have read their samples
#pragma unroll
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++)
            *(uint32_t *)(to + i * 16 + 8 * k * stride) = words[S::GRADIENT ? i : 0][k];
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

// What becomes of a gradient's length. A threshold with nothing below it and white above tells
// lengths apart before they are limited: all beyond the limit are beyond its upper value too.
enum finish { FINISH_LIMIT, FINISH_THRESHOLD, FINISH_LOOKUP };

struct finisher {
    uint32_t limit, base; // in both lanes
    uint32_t low, high;   // the least length that is kept, the least that becomes white
    const struct lookup *lookup;
};

static __device__ inline struct finisher finisher_of(const struct fused *f)
{
    const struct lookup *lookup = &f->sink.lookup;
    struct finisher made = {both_lanes(f->gradient.limit), both_lanes(f->gradient.base),
                            both_lanes(lookup->low), both_lanes(lookup->high + 1), lookup};
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+r"(made.limit), "+r"(made.base), "+r"(made.low), "+r"(made.high));
    return made;
}

// Of two lanes, in their low bytes.
template <enum finish FINISH>
static __device__ inline uint32_t finished_lanes(const struct finisher *f, __half2 length)
{
    if (FINISH == FINISH_THRESHOLD)
        return (bits_of(length) & __hge2_mask(length, halves(f->low))) |
               __hge2_mask(length, halves(f->high));
    return bits_of(__hmin2(length, halves(f->limit))) + f->base;
}

template <enum finish FINISH>
static __device__ inline uint32_t finished(const struct finisher *f, __half2 even, __half2 odd)
{
    struct pairs p = {finished_lanes<FINISH>(f, even), finished_lanes<FINISH>(f, odd)};
    return FINISH == FINISH_LOOKUP ? lookup_pairs(f->lookup, f->lookup->table, p) : pairs_word(p);
}

// Half a warp owns a row of 128 results, eight columns a thread, and walks down eight rows: of each
// it reads its own eight bytes and a word on either side. WHOLE: all eight columns exist.
template <enum finish FINISH, bool WHOLE>
static __device__ inline void walk_gradient(const struct fused *f, const uint8_t *plane,
                                            uint8_t *to, int columns, int rows)
{
    constexpr int each = PLANE_ROWS / (2 * FUSED_WARPS);
    int64_t step = f->sink.view[0].stride;
    __half2 center = __half2half2(__int2half_rn(f->gradient.center));
    struct finisher finisher = finisher_of(f);
    struct slopes above = slopes_of(plane, center), here = slopes_of(plane + PLANE_STRIDE, center);
#pragma unroll(WHOLE &&FINISH != FINISH_LOOKUP ? each : 1)
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
        if (WHOLE)
            *(uint2 *)to = words;
        else
            store_bytes(to, columns, make_uint4(words.x, words.y, 0, 0));
        above = here;
        here = below;
        to += step;
    }
}

template <enum finish FINISH>
static __device__ inline void make_gradient(const struct fused *f, const uint8_t *plane,
                                            struct corner at, int result_rows)
{
    constexpr int each = PLANE_ROWS / (2 * FUSED_WARPS);
    int column = threadIdx.x % 16 * CHUNK, columns = f->sink.width - at.x - column;
    int first = (threadIdx.y * 2 + threadIdx.x / 16) * each;
    int rows = min(result_rows, f->sink.height - at.y) - first;
    if (columns <= 0 || rows <= 0)
        return;
    plane += first * PLANE_STRIDE + CHUNK + column;
    uint8_t *to = view_at(&f->sink.view[0], at.x + column, at.y + first);
    if (columns >= CHUNK)
        walk_gradient<FINISH, true>(f, plane, to, columns, rows);
    else
        walk_gradient<FINISH, false>(f, plane, to, columns, rows);
}

// ---- the kernel ----

// Make the results of one tile from its samples. Warps of a filter alone need no one else's results
// and so do not wait for them.
template <typename S>
static __device__ inline void make_tile(const struct fused *f, const bands<S> *b,
                                        const uint8_t *samples, uint8_t *plane, struct corner at)
{
    struct corner plane_at = {at.x - S::around, at.y - (S::GRADIENT ? 1 : 0)};
    if constexpr (S::REACH > 0)
        filter<S>(f, b, samples, plane, plane_at);
    if constexpr (S::GRADIENT && S::REACH > 0) {
        __syncthreads();
        if (plane_at.x < 0 || plane_at.y < 0 || plane_at.x + PLANE_STRIDE > f->sink.width ||
            plane_at.y + PLANE_ROWS > f->sink.height) {
            extend_plane(f, plane, plane_at);
            __syncthreads();
        }
    }
    if constexpr (S::GRADIENT) {
        if (f->finish == FINISH_LIMIT)
            make_gradient<FINISH_LIMIT>(f, plane, at, S::results);
        else if (f->finish == FINISH_THRESHOLD)
            make_gradient<FINISH_THRESHOLD>(f, plane, at, S::results);
        else
            make_gradient<FINISH_LOOKUP>(f, plane, at, S::results);
    }
}

template <typename S>
static __device__ inline struct corner results_of(const struct fused *f, int tile)
{
    return {tile % f->tiles_x * FUSED_COLUMNS, tile / f->tiles_x * S::results};
}

// See above: load, filter and store; or load, filter, extend, make the gradient. There are as many
// blocks as the GPU has room for, and each makes several tiles: while it computes one, the samples
// of the next are on their way into its registers.
template <typename S>
static __global__ void __launch_bounds__(FUSED_THREADS, S::blocks_wanted)
    fused(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    constexpr struct corner before = {-S::around - S::REACH_X, -(S::GRADIENT ? 1 : 0) - S::REACH};
    uint8_t *plane = (uint8_t *)memory, *samples = plane + S::samples_at;
    bands<S> b;
    if constexpr (S::REACH > 0)
        b = load_bands<S>(&f);
    fetched<S> ahead;
    struct corner at = results_of<S>(&f, blockIdx.x), from = {at.x + before.x, at.y + before.y};
    bool inside = is_inside<S>(&f, from);
    if (inside)
        fetch<S>(&f, &ahead, from);
    for (int tile = blockIdx.x; tile < f.tiles;) {
        if (!inside)
            load_across<S>(&f, samples, from);
        else if (f.source.lookup.table)
            put_inside<S, true>(&f, samples, &ahead);
        else
            put_inside<S, false>(&f, samples, &ahead);
        __syncthreads();
        struct corner here = at;
        tile += gridDim.x;
        if (S::several && tile < f.tiles) {
            at = results_of<S>(&f, tile);
            from = {at.x + before.x, at.y + before.y};
            inside = is_inside<S>(&f, from);
            if (inside)
                fetch<S>(&f, &ahead, from);
        }
        make_tile<S>(&f, &b, samples, plane, here);
        if (!S::several)
            return;
        __syncthreads();
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

// The forms of stages/separable.h: narrow, wide of 8-bit samples, wide of deeper ones.
enum number_form { FORM_NONE, FORM_NARROW, FORM_WIDE, FORM_DEEP };

static enum number_form form_of(const struct op_separable *op)
{
    if (op->bits == 13 && op->fraction == 3)
        return FORM_NARROW;
    if (op->bits != 15 || op->fraction > 8)
        return FORM_NONE;
    return op->fraction == 8 ? FORM_WIDE : FORM_DEEP;
}

static int radius_of(const struct op_separable *op)
{
    return op->radius_x > op->radius_y ? op->radius_x : op->radius_y;
}

// How many numbers a tap has to be.
static int tap_parts(const struct op_separable *op)
{
    for (int k = 0; k <= op->radius_x; k++)
        if (half_of(op->tap_x[k]) < 0)
            return 2;
    for (int k = 0; k <= op->radius_y; k++)
        if (half_of(op->tap_y[k]) < 0)
            return 2;
    return 1;
}

// What there are kernels for; reach 0 for none.
struct choice {
    int reach, parts;
};

static struct choice choose(const struct op_separable *op)
{
    static const int narrow[] = {4, 8, 16, 24, 0}, wide[] = {8, 16, 24, 32, 0};
    static const int deep_split[] = {4, 8, 16, 32, 0}, deep[] = {32, 0};
    enum number_form form = form_of(op);
    int parts = tap_parts(op);
    if (op->decimate_x || op->decimate_y || op->amount || form == FORM_NONE ||
        (parts == 2 && form != FORM_DEEP))
        return {};
    if (form == FORM_DEEP && radius_of(op) <= 16)
        parts = 2;
    const int *reach = form == FORM_NARROW ? narrow
                       : form == FORM_WIDE ? wide
                       : parts == 2        ? deep_split
                                           : deep;
    while (*reach && *reach < radius_of(op))
        reach++;
    return {*reach, parts};
}

// Two halves: part `part` of `parts` of the taps at `distance` from the centre and behind it.
static uint32_t tap_pair(const int32_t *tap, int radius, int distance, int part, int parts)
{
    uint32_t pair = 0;
    for (int k = 0; k < 2; k++) {
        if (abs(distance + k) > radius)
            continue;
        int value = tap[abs(distance + k)];
        if (parts == 2)
            value = part ? value & 31 : value & ~31;
        pair |= (uint32_t)half_of(value) << 16 * k;
    }
    return pair;
}

// Lane l holds, of a block of the left factor, columns 2 (l % 4) and the next of row l / 4; of the
// right factor, rows 2 (l % 4) and the next of column l / 4. See struct bands.
size_t fused_fragments(const struct op *op, uint32_t *to)
{
    const struct op_separable *f = &op->separable;
    struct choice choice = choose(f);
    if (!choice.reach)
        return 0;
    int steps = (16 + 2 * choice.reach + 15) / 16, reach_x = (choice.reach + 7) / 8 * 8;
    size_t each = (size_t)steps * 4 * LANES, down = each * (size_t)choice.parts;
    for (size_t i = 0; to && i < 2 * down; i++) {
        int part = (int)(i % down / each), at = (int)(i % each);
        if (i < down) { // four words a lane: rows + 0, + 8 of columns + 0, and of columns + 8
            int lane = at / 4 % LANES, k = 16 * (at / (4 * LANES)) + at % 4 / 2 * 8 - at % 2 * 8;
            to[i] = tap_pair(f->tap_y, f->radius_y, k + lane % 4 * 2 - lane / 4 - choice.reach,
                             part, choice.parts);
        } else { // two words a lane: rows + 0 and + 8
            int lane = at / 2 % LANES, n = at / (2 * LANES), k = 16 * (n % steps) + at % 2 * 8;
            int column = lane / 8 * 4 + 2 * (n / steps) + lane / 4 % 2;
            to[i] = tap_pair(f->tap_x, f->radius_x, k + lane % 4 * 2 - column - reach_x, part,
                             choice.parts);
        }
    }
    // What sums start from: half a unit of the result, in units of 2^-24.
    const float half[2] = {ldexpf(0.5f, f->bits - f->fraction - 24),
                           ldexpf(0.5f, f->bits + f->fraction - 24)};
    for (size_t i = 0; to && i < 8 * LANES; i++)
        memcpy(to + 2 * down + i, &half[i / (4 * LANES)], sizeof half[0]);
    return 2 * down + 8 * LANES;
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
    int bytes = stencil->depth > 8 ? 2 : 1;
    if (from->bytes != bytes || to->bytes != bytes || !from->plain || !to->plain ||
        stencil->sink.views > 1 || !view_is_aligned(from, CHUNK * bytes) ||
        !view_is_aligned(to, 16))
        return false;
    if (stencil->op->kind == OP_GRADIENT)
        return bytes == 1 && !next && is_small_gradient(stencil->op);
    if (stencil->op->kind != OP_SEPARABLE || !stencil->fragments)
        return false;
    const struct op_separable *op = &stencil->op->separable;
    return !next || (is_small_gradient(next) && next->border != BORDER_WRAP &&
                     form_of(op) == FORM_NARROW && radius_of(op) <= 8);
}

static enum finish finish_of(const struct lookup *lookup, const struct small_gradient *gradient)
{
    if (!lookup->table)
        return FINISH_LIMIT;
    bool simple = lookup->kind == LOOKUP_THRESHOLD && lookup->below == 0 && lookup->above == 255;
    bool before_limit = gradient->base == 0 && lookup->high < gradient->limit;
    return simple && before_limit ? FINISH_THRESHOLD : FINISH_LOOKUP;
}

template <typename S> static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    dim3 tiles = grid_shape(f->sink.width, f->sink.height, 1, FUSED_COLUMNS, S::results);
    struct fused whole = *f;
    int device = 0, processors = 1;
    whole.tiles_x = (int)tiles.x;
    whole.tiles = (int)(tiles.x * tiles.y);
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (!error && S::shared_bytes > 48 << 10)
        error = cudaFuncSetAttribute(fused<S>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     (int)S::shared_bytes);
    if (error)
        return error;
    int room = S::several ? processors * S::blocks_wanted / f->sink.frames : whole.tiles;
    int blocks = room < 1 ? 1 : room < whole.tiles ? room : whole.tiles;
    fused<S><<<dim3((unsigned)blocks, 1, (unsigned)f->sink.frames), dim3(LANES, FUSED_WARPS),
               S::shared_bytes, stream>>>(whole);
    return cudaGetLastError();
}

static cudaError_t launch_narrow(const struct fused *f, int reach, cudaStream_t stream)
{
    switch (reach) {
    case 4:
        return launch<shape<4, 1, 1, 1, false>>(f, stream);
    case 8:
        return launch<shape<8, 1, 1, 1, false>>(f, stream);
    case 16:
        return launch<shape<16, 1, 1, 1, false>>(f, stream);
    default:
        return launch<shape<24, 1, 1, 1, false>>(f, stream);
    }
}

static cudaError_t launch_wide(const struct fused *f, int reach, cudaStream_t stream)
{
    switch (reach) {
    case 8:
        return launch<shape<8, 1, 2, 1, false>>(f, stream);
    case 16:
        return launch<shape<16, 1, 2, 1, false>>(f, stream);
    case 24:
        return launch<shape<24, 1, 2, 1, false>>(f, stream);
    default:
        return launch<shape<32, 1, 2, 1, false>>(f, stream);
    }
}

static cudaError_t launch_deep(const struct fused *f, struct choice choice, cudaStream_t stream)
{
    if (choice.parts == 1)
        return launch<shape<32, 2, 2, 1, false>>(f, stream);
    switch (choice.reach) {
    case 4:
        return launch<shape<4, 2, 2, 2, false>>(f, stream);
    case 8:
        return launch<shape<8, 2, 2, 2, false>>(f, stream);
    case 16:
        return launch<shape<16, 2, 2, 2, false>>(f, stream);
    default:
        return launch<shape<32, 2, 2, 2, false>>(f, stream);
    }
}

// Sums of one part are scaled from units of 2^-24; of two parts, see whole_of().
static float scale_of(int parts, int shift)
{
    return ldexpf(1, (parts == 1 ? 24 : 8) - shift);
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
        return launch<shape<0, 1, 1, 1, true>>(&f, stream);
    const struct op_separable *op = &filter->separable;
    enum number_form form = form_of(op);
    struct choice choice = choose(op);
    int down = op->bits - op->fraction, along = op->bits + op->fraction;
    f.reach += radius_of(op);
    f.column_scale = scale_of(form == FORM_DEEP ? 2 : 1, down);
    f.row_scale = scale_of(form == FORM_NARROW ? 1 : 2, along);
    if (gradient)
        return choice.reach == 4 ? launch<shape<4, 1, 1, 1, true>>(&f, stream)
                                 : launch<shape<8, 1, 1, 1, true>>(&f, stream);
    return form == FORM_NARROW ? launch_narrow(&f, choice.reach, stream)
           : form == FORM_WIDE ? launch_wide(&f, choice.reach, stream)
                               : launch_deep(&f, choice, stream);
}
