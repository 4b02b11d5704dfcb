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
    CHUNK = 8,           // samples loaded at once
    RESULT_STRIDE = FUSED_COLUMNS + 16,
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
    int reach;            // columns and rows that the operations really need
    float column_half;    // rounding, in units of 2^-24
    float row_half;
    float column_scale;   // from sums to integers
    float row_scale;
    struct small_gradient gradient;
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

template <int STEPS, bool GRADIENT> static __host__ __device__ inline int sample_rows(int bands)
{
    return BAND * bands + 2 * fused_reach<STEPS>;
}

static __host__ __device__ inline int result_rows(bool gradient, int bands)
{
    return BAND * bands - (gradient ? 2 : 0);
}

template <int STEPS, bool GRADIENT> static size_t fused_bytes(int bands)
{
    size_t samples =
        STEPS ? (size_t)sample_rows<STEPS, GRADIENT>(bands) * sample_stride<STEPS, GRADIENT> : 0;
    return samples + (size_t)BAND * (size_t)bands * RESULT_STRIDE;
}

// ---- loading ----

struct corner {
    int x, y;
};

template <int STEPS>
static __device__ inline void put_chunk(uint8_t *at, uint32_t low, uint32_t high)
{
    if (STEPS)
        *(uint4 *)at = make_uint4(__byte_perm(low, 0, 0x4140), __byte_perm(low, 0, 0x4342),
                                  __byte_perm(high, 0, 0x4140), __byte_perm(high, 0, 0x4342));
    else
        *(uint2 *)at = make_uint2(low, high);
}

// Columns beyond the picture's, as the border rule extends it, as far as they are needed; before
// them, those of the last chunk if it is not a whole one. One by one: this is the edge only.
template <int STEPS, int COLUMNS>
static __device__ void load_edges(const struct fused *f, uint8_t *tile, int stride,
                                  const int *row, int rows, int x0)
{
    const struct source *from = &f->source;
    int threads = blockDim.x * blockDim.y, thread = threadIdx.y * LANES + threadIdx.x;
    int left = max(-x0 - f->reach, 0), left_end = min(max(-x0, left), COLUMNS);
    int right = max((from->width & -CHUNK) - x0, left_end);
    int right_end = max(min(from->width + f->reach - x0, COLUMNS), right);
    int count = left_end - left + right_end - right;
    for (int k = thread; k < count * rows; k += threads) {
        int i = k / rows, y = row[k % rows];
        int column = i < left_end - left ? left + i : right + i - (left_end - left);
        int x = extended_index(from->border, x0 + column, from->width);
        int value = from->border_value;
        if (x >= 0 && y >= 0) {
            value = view_read(&from->view, x, y);
            if (from->lookup.table)
                value = look_up(from->lookup.table, value);
        }
        uint8_t *at = tile + k % rows * stride;
        if (STEPS)
            ((uint16_t *)at)[column] = (uint16_t)value;
        else
            at[column] = (uint8_t)value;
    }
}

// Fill the samples of the block, from corner `at` on. Threads are dealt out to whole rows of chunks
// so that each keeps its column: rows of up to 24 chunks of 8 bytes, several rows at a time. A
// thread asks for four chunks before it waits for the first. What the border rule makes of each row
// is found out once. Chunks that are not within the picture become zeros: bits that are no number
// must not meet the zeros of a band.
template <int STEPS, bool GRADIENT>
static __device__ inline void load(const struct fused *f, uint8_t *tile, struct corner at,
                                   int *row, const uint16_t *shared, int rows)
{
    constexpr int columns = sample_columns<STEPS, GRADIENT>, chunks = columns / CHUNK, batch = 4;
    constexpr int stride = STEPS ? sample_stride<STEPS, GRADIENT> : RESULT_STRIDE;
    const struct source *from = &f->source;
    int threads = blockDim.x * blockDim.y, thread = threadIdx.y * LANES + threadIdx.x;
    for (int k = thread; k < rows; k += threads)
        row[k] = extended_index(from->border, at.y + k, from->height);
    __syncthreads();
    int at_once = threads / chunks, first = thread / chunks, column = thread % chunks * CHUNK;
    int x = at.x + column;
    bool inside = x >= 0 && x + CHUNK <= from->width;
    uint32_t beyond = (uint32_t)from->border_value * 0x1010101u;
    uint8_t *to = tile + column * (STEPS ? 2 : 1);
    const uint8_t *data = view_at(&from->view, inside ? x : 0, 0);
    if (first < at_once)
        for (; first < rows; first += batch * at_once) {
            uint2 chunk[batch];
            int y[batch];
            for (int j = 0; j < batch; j++) {
                y[j] = row[min(first + j * at_once, rows - 1)];
                chunk[j] = inside ? __ldg((const uint2 *)(data + (int64_t)max(y[j], 0) *
                                                                     from->view.stride))
                                  : make_uint2(0, 0);
            }
            for (int j = 0; j < batch && first + j * at_once < rows; j++) {
                uint32_t low = lookup_word(&from->lookup, shared, chunk[j].x);
                uint32_t high = lookup_word(&from->lookup, shared, chunk[j].y);
                if (y[j] < 0)
                    low = high = beyond;
                put_chunk<STEPS>(to + (first + j * at_once) * stride, low, high);
            }
        }
    __syncthreads();
    if (at.x < 0 || at.x + columns > from->width) {
        load_edges<STEPS, columns>(f, tile, stride, row, rows, at.x);
        __syncthreads();
    }
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

// sum (16 x 8) += a (16 x 16) b (16 x 8)
static __device__ inline void multiply(float sum[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ inline void sums_begin(float sum[4], float half)
{
    for (int k = 0; k < 4; k++)
        sum[k] = half;
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

// Bands as fused_fragments() wrote them. Down: block (s, i) of the matrix that is 16 rows high, of
// which those with the same distance from the diagonal are equal. Along: for the two products that
// make 16 neighbouring columns; lane l / 4 holds columns 4 (l % 4) .. + 3 of them, two from each.
template <int STEPS> struct bands {
    uint32_t down[2 * STEPS + 1];
    uint32_t along[2][STEPS][2];
};

template <int STEPS> static __device__ inline bands<STEPS> load_bands(const uint32_t *from)
{
    bands<STEPS> b;
    from += threadIdx.x;
    for (int k = 0; k < 2 * STEPS + 1; k++)
        b.down[k] = __ldg(from + k * LANES);
    from += (2 * STEPS + 1) * LANES;
    for (int k = 0; k < 4 * STEPS; k++)
        b.along[k / (2 * STEPS)][k / 2 % STEPS][k % 2] = __ldg(from + k * LANES);
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
    sums_begin(sum[0], f->column_half);
    sums_begin(sum[1], f->column_half);
    for (int s = 0; s < STEPS; s++) {
        uint32_t samples[4];
        load_turned(samples, at + s * BAND * STRIDE);
        const uint32_t *d = &b->down[2 * s];
        const uint32_t band[4] = {d[1], d[0], d[2], d[1]};
        multiply(sum[0], band, samples[0], samples[1]);
        multiply(sum[1], band, samples[2], samples[3]);
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
    float sum[4], high[4];
    sums_begin(sum, f->row_half);
    sums_begin(high, 0);
    for (int s = 0; s < STEPS; s++) {
        const factors<WIDE> *from = &t[(oldest + s) % STEPS];
        multiply(sum, from->part[0], b->along[half][s][0], b->along[half][s][1]);
        if (WIDE)
            multiply(high, from->part[WIDE], b->along[half][s][0], b->along[half][s][1]);
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
static __device__ inline void filter(const struct fused *f, const uint8_t *samples,
                                     uint8_t *results)
{
    constexpr int stride = sample_stride<STEPS, GRADIENT>;
    constexpr int columns = sample_columns<STEPS, GRADIENT> / 16;
    int lane = threadIdx.x;
    const bands<STEPS> b = load_bands<STEPS>(f->fragments);
    uint32_t at = (uint32_t)__cvta_generic_to_shared(samples) +
                  (threadIdx.y * BAND + lane % 16) * stride + lane / 16 * 16;
    uint8_t *to = results + (threadIdx.y * BAND + lane / 4) * RESULT_STRIDE + lane % 4 * 4;
    factors<WIDE> t[STEPS];
    for (int i = 0; i < STEPS - 1; i++)
        t[i] = filter_down<STEPS, WIDE, stride>(f, &b, at + i * 32);
    at += (STEPS - 1) * 32;
#pragma unroll STEPS
    for (int i = 0; i < columns - (STEPS - 1); i++) {
        t[(i + STEPS - 1) % STEPS] = filter_down<STEPS, WIDE, stride>(f, &b, at);
        uint32_t left[4], right[4];
        filter_along<STEPS, WIDE>(f, &b, 0, t, i % STEPS, left);
        filter_along<STEPS, WIDE>(f, &b, 1, t, i % STEPS, right);
        for (int k = 0; k < 2; k++)
            *(uint32_t *)(to + 8 * k * RESULT_STRIDE) =
                __byte_perm(__byte_perm(left[2 * k], left[2 * k + 1], 0x0040),
                            __byte_perm(right[2 * k], right[2 * k + 1], 0x0040), 0x5410);
        at += 32;
        to += 16;
    }
}

// ---- results of a filter ----

static __device__ inline void store_bytes(const struct sink *sink, int x, int y, uint32_t word)
{
    for (int i = 0; i < FOUR && x + i < sink->width; i++)
        *view_at(&sink->view[0], x + i, y) = (uint8_t)(word >> 8 * i);
}

// A warp writes its own band, four rows at a time, 128 bytes each.
static __device__ inline void store_band(const struct fused *f, const uint8_t *results,
                                         const uint16_t *shared, struct corner at)
{
    int column = threadIdx.x % 8 * 16, x = at.x + column;
    for (int k = threadIdx.x / 8; k < BAND; k += 4) {
        int row = threadIdx.y * BAND + k, y = at.y + row;
        if (y >= f->sink.height || x >= f->sink.width)
            return;
        uint4 words = *(const uint4 *)(results + row * RESULT_STRIDE + column);
        words.x = lookup_word(&f->sink.lookup, shared, words.x);
        words.y = lookup_word(&f->sink.lookup, shared, words.y);
        words.z = lookup_word(&f->sink.lookup, shared, words.z);
        words.w = lookup_word(&f->sink.lookup, shared, words.w);
        if (x + 16 <= f->sink.width) {
            *(uint4 *)view_at(&f->sink.view[0], x, y) = words;
        } else {
            store_bytes(&f->sink, x, y, words.x);
            store_bytes(&f->sink, x + 4, y, words.y);
            store_bytes(&f->sink, x + 8, y, words.z);
            store_bytes(&f->sink, x + 12, y, words.w);
        }
    }
}

// ---- the gradient ----

static __device__ inline void extend_one(const struct fused *f, uint8_t *plane, struct corner at,
                                         int x, int y)
{
    const struct small_gradient *g = &f->gradient;
    int from_x = extended_index(g->border, x, f->sink.width);
    int from_y = extended_index(g->border, y, f->sink.height);
    int value = from_x < 0 || from_y < 0
                    ? g->border_value
                    : plane[(from_y - at.y) * RESULT_STRIDE + from_x - at.x];
    plane[(y - at.y) * RESULT_STRIDE + x - at.x] = (uint8_t)value;
}

// A filtered plane is extended by its own samples, not by what the filter makes beyond the edge:
// write the one row and column around the picture that the gradient reads. `at` is the corner of
// the plane in shared memory.
static __device__ void extend_plane(const struct fused *f, uint8_t *plane, struct corner at,
                                    int rows)
{
    int width = f->sink.width, height = f->sink.height;
    int threads = blockDim.x * blockDim.y, thread = threadIdx.y * LANES + threadIdx.x;
    for (int k = thread; k < rows; k += threads) {
        int y = at.y + k;
        if (y <= height && at.x <= -1)
            extend_one(f, plane, at, -1, y);
        if (y <= height && width < at.x + RESULT_STRIDE)
            extend_one(f, plane, at, width, y);
    }
    for (int k = thread; k < RESULT_STRIDE; k += threads) {
        int x = at.x + k;
        if (x >= 0 && x < width && at.y == -1)
            extend_one(f, plane, at, x, -1);
        if (x >= 0 && x < width && height < at.y + rows)
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
        made.smooth[k] = __hfma2(halves(middle[k]), center,
                                 __hadd2(halves(left[k]), halves(right[k])));
    }
    return made;
}

// Half a warp owns a row of 128 results, eight columns a thread, and walks down: of each row it
// reads its own eight bytes and a word on either side.
static __device__ inline void make_gradient(const struct fused *f, const uint8_t *plane,
                                            const uint16_t *shared, struct corner at, int rows)
{
    int column = threadIdx.x % 16 * 8, x = at.x + column;
    int groups = blockDim.y * 2, each = (rows + groups - 1) / groups;
    int first = (threadIdx.y * 2 + threadIdx.x / 16) * each;
    int last = min(first + each, min(rows, f->sink.height - at.y));
    if (x >= f->sink.width || first >= last)
        return;
    const uint8_t *row = plane + first * RESULT_STRIDE + CHUNK + column;
    uint8_t *to = view_at(&f->sink.view[0], x, at.y + first);
    const __half2 center = __half2half2(__int2half_rn(f->gradient.center));
    const uint32_t limit = both_lanes(f->gradient.limit), base = both_lanes(f->gradient.base);
    struct slopes above = slopes_of(row, center), here = slopes_of(row + RESULT_STRIDE, center);
    row += 2 * RESULT_STRIDE;
#pragma unroll 3
    for (int k = first; k < last; k++) {
        struct slopes below = slopes_of(row, center);
        uint32_t made[4];
        for (int i = 0; i < 4; i++) {
            __half2 gx = __hfma2(here.difference[i], center,
                                 __hadd2(above.difference[i], below.difference[i]));
            __half2 gy = __hsub2(below.smooth[i], above.smooth[i]);
            __half2 length = __hadd2(__habs2(gx), __habs2(gy));
            made[i] = bits_of(__hmin2(length, halves(limit))) + base;
        }
        uint32_t low = lookup_pairs(&f->sink.lookup, shared, {made[0], made[1]});
        uint32_t high = lookup_pairs(&f->sink.lookup, shared, {made[2], made[3]});
        if (x + CHUNK <= f->sink.width) {
            *(uint2 *)to = make_uint2(low, high);
        } else {
            store_bytes(&f->sink, x, at.y + k, low);
            store_bytes(&f->sink, x + 4, at.y + k, high);
        }
        above = here;
        here = below;
        row += RESULT_STRIDE;
        to += f->sink.view[0].stride;
    }
}

// ---- the kernel ----

// Threads of a block and blocks that are to share a multiprocessor.
enum { FUSED_WARPS = 4 };

template <int STEPS>
constexpr int fused_blocks = STEPS <= 2 ? 6 : 3;

// See above: load, filter, write; or load, filter, extend, make the gradient. Warps of a filter
// alone need no one else's results and so do not wait for them.
template <int STEPS, bool WIDE, bool GRADIENT>
static __global__ void __launch_bounds__(LANES *FUSED_WARPS, fused_blocks<STEPS>)
    fused(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    __shared__ uint16_t before[256], after[256];
    __shared__ int row[BAND * FUSED_WARPS + 2 * fused_reach<REACH_STEPS>];
    constexpr int edge = GRADIENT ? 1 : 0;
    int thread = threadIdx.y * LANES + threadIdx.x, bands = blockDim.y;
    struct corner at = {(int)blockIdx.x * FUSED_COLUMNS,
                        (int)blockIdx.y * result_rows(GRADIENT, bands)};
    struct corner plane_at = {at.x - around<GRADIENT>, at.y - edge};
    struct corner sample_at = {plane_at.x - fused_reach<STEPS>, plane_at.y - fused_reach<STEPS>};
    uint8_t *plane = (uint8_t *)memory, *samples = plane + BAND * bands * RESULT_STRIDE;
    for (int k = thread; k < 256; k += LANES * bands) {
        if (f.source.lookup.table)
            before[k] = f.source.lookup.table[k];
        if (f.sink.lookup.table)
            after[k] = f.sink.lookup.table[k];
    }
    load<STEPS, GRADIENT>(&f, STEPS ? samples : plane, sample_at, row, before,
                          sample_rows<STEPS, GRADIENT>(bands));
    if constexpr (STEPS > 0) {
        filter<STEPS, WIDE, GRADIENT>(&f, samples, plane);
        if constexpr (!GRADIENT) {
            __syncwarp();
            store_band(&f, plane, after, at);
            return;
        }
        __syncthreads();
        int rows = BAND * bands;
        if (plane_at.x < 0 || plane_at.y < 0 || plane_at.x + RESULT_STRIDE > f.sink.width ||
            plane_at.y + rows > f.sink.height) {
            extend_plane(&f, plane, plane_at, rows);
            __syncthreads();
        }
    }
    if constexpr (GRADIENT)
        make_gradient(&f, plane, after, at, result_rows(true, bands));
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
    int steps = fused_steps(f), reach = 8 * (steps - 1), down = 2 * steps + 1;
    size_t count = (size_t)(down + 4 * steps) * LANES;
    for (size_t i = 0; to && i < count; i++) {
        int lane = (int)i % LANES, k = (int)i / LANES, inner = 2 * (lane % 4), outer = lane / 4;
        if (k < down) {
            to[i] = tap_pair(f->tap_y, f->radius_y, 8 * (k - 1) + inner - outer - reach);
        } else {
            k -= down;
            int half = k / (2 * steps), column = outer / 2 * 4 + 2 * half + outer % 2;
            to[i] = tap_pair(f->tap_x, f->radius_x,
                             8 * (k % (2 * steps)) + inner - column - reach);
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
    return !next || (is_small_gradient(next) && next->border != BORDER_WRAP &&
                     !is_wide(&stencil->op->separable) &&
                     fused_steps(&stencil->op->separable) == 2);
}

template <int STEPS, bool WIDE, bool GRADIENT>
static cudaError_t launch(const struct fused *f, cudaStream_t stream)
{
    size_t bytes = fused_bytes<STEPS, GRADIENT>(FUSED_WARPS);
    dim3 grid = grid_shape(f->sink.width, f->sink.height, f->sink.frames, FUSED_COLUMNS,
                           result_rows(GRADIENT, FUSED_WARPS));
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
    struct fused f = {.source = stencil->source,
                      .sink = stencil->sink,
                      .fragments = stencil->fragments};
    if (gradient) {
        f.gradient = {gradient->gradient.center, gradient->gradient.limit,
                      gradient->gradient.base, gradient->border, gradient->border_value};
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
