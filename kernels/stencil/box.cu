// Means of a rectangle by running sums: of columns, which go down the picture, and along their row.
// The cost of a result does not grow with the radius, except for the first one of each stretch that
// a thread or warp goes along. Two ways:
//
//   strips  one pass: a block goes down 1024 columns, or 2048, their sums in registers, and passes a
//           step's rows of them through shared memory to one warp each, which goes along
//   planes  sums of columns through memory: where less than half of those would be results, where two
//           strips side by side would be needed and results are no groups of bytes or the GPU lacks
//           shared memory, and where sums need more than 32 bits or their division a double
#include <assert.h>
#include <math.h>

#include "kernels/device.cuh"
#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"
#include "kernels/shared_memory.h"

// Sums of columns fit 32 bits: those of 32769 samples of 16 bits are below 2^31 + 2^16.
struct box {
    struct source source;
    uint32_t *sums;
    int stride;             // in sums
    ptrdiff_t frame_stride; // as well
    int radius_x, radius_y;
    int rows;    // that a thread of box_columns or box_strips makes
    int columns; // that a warp of box_rows or a block of box_strips makes
    struct sink sink;
    // The mean of n = (2 radius_x + 1)(2 radius_y + 1): see mean_of() below.
    int64_t n;
    uint32_t half; // n / 2, where sums fit 32 bits
    uint32_t reciprocal;
    int shift;
    uint32_t bytes; // selects the means of two products, if `shift` is whole bytes
    // box_strips: columns from where a block's first chunk begins to its first result; vec4s of zeros
    // before a row in shared memory, and of the whole row with them.
    int lead, front_vec4s, row_vec4s;
};

enum { BOX_ROWS = 16 }; // that a thread or block makes, at least
enum { PLANE_COLUMNS = 1024, PLANE_WARPS = 2 };

// Strips: results side by side that a lane makes; columns of a strip; vec4s of both.
enum { CHUNK = 32, STRIP = WARP * CHUNK, STRIP_VEC4S = STRIP / VEC4, CHUNK_VEC4S = CHUNK / VEC4 };
// Results that go to memory at once.
enum { GROUP = 4 * VEC4 };
// Blocks, at most, that keep the 132 multiprocessors of an H200 at work, measured there: more of them add
// up more rows before their first, fewer leave some idle. Where a block's first sums are of many rows,
// one a multiprocessor is enough.
enum { STRIP_FILL = 200, STRIP_FILL_TALL = 132, TALL_RADIUS = 32 };

// ---- device helpers ----

// (2 sum + n) / (2 n). n is odd, so that this is (sum + (n - 1) / 2) / n, and a quotient of 32-bit
// numbers is a product with reciprocal = floor(2^(32 + shift) / n) + 1: exact while the dividend
// times n is below 2^(32 + shift). T. Granlund, P. L. Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994.
static __device__ inline int mean_of(const struct box *b, uint32_t sum)
{
    return (int)(__umulhi(sum + b->half, b->reciprocal) >> b->shift);
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

// The shuffle itself says which lanes have one before them.
template <> __device__ inline uint32_t warp_scan(uint32_t value)
{
    for (int distance = 1; distance < WARP; distance *= 2)
        asm volatile("{\n\t"
                     ".reg .u32 before;\n\t"
                     ".reg .pred has;\n\t"
                     "shfl.sync.up.b32 before|has, %0, %1, 0, 0xffffffff;\n\t"
                     "@has add.u32 %0, %0, before;\n\t"
                     "}"
                     : "+r"(value)
                     : "r"(distance));
    return value;
}

// A vec4's samples in one row. Bytes have it in a word.
struct four_samples {
    int value[VEC4];
};

// Sums of four columns, and a row that comes in, or leaves.
static __device__ inline void sums_add(uint32_t sum[VEC4], struct four_samples row)
{
    for (int i = 0; i < VEC4; i++)
        sum[i] += (uint32_t)row.value[i];
}

static __device__ inline void sums_subtract(uint32_t sum[VEC4], struct four_samples row)
{
    for (int i = 0; i < VEC4; i++)
        sum[i] -= (uint32_t)row.value[i];
}

static __device__ inline void sums_add(uint32_t sum[VEC4], uint32_t row)
{
    for (int i = 0; i < VEC4; i++)
        sum[i] = __dp4a(row, 1u << 8 * i, sum[i]);
}

// Products of bytes with minus one.
static __device__ inline void sums_subtract(uint32_t sum[VEC4], uint32_t row)
{
    for (int i = 0; i < VEC4; i++)
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum[i]) : "r"(row), "r"(0xffu << 8 * i));
}

// Columns x .. x + 3 of the extended plane, read some rows at a time: two runs of rows that follow
// each other. columns_load() asks for them. columns_take(), of the same rows, waits for them and looks
// them up: words in `table`, which is a copy in shared memory.
//
// any_columns    of any samples: those that lie side by side at once, others by columns_take(), one by
//                one
// word_columns   of plain bytes in rows of whole words, or with room for such: four columns, mirrored or
//                not, lie in two words at most
struct any_columns {
    enum { step = 2, blocks = 3 }; // rows of a run, blocks on a multiprocessor
    typedef struct four_samples samples;
    struct rows {
        uint2 units[2 * step];
    };
    int x, column[VEC4]; // -1: the border value
    int within;          // the plane's own, side by side
};

struct word_columns {
    enum { step = 4, blocks = 3 };
    typedef uint32_t samples;
    struct rows {
        uint32_t word[2 * step], beyond; // a bit for each: the border value
    };
    const uint8_t *first; // in row 0
    int second;           // in bytes from `first`; 0: no second word
    int within;           // all are those of `first`
    uint32_t selector;    // which bytes of both, or of `first` and `fill`
    uint32_t fill;        // four times the border value
};

static __device__ inline void columns_begin(struct any_columns *to, const struct source *source,
                                            int x)
{
    to->x = x;
    to->within = source->view.adjacent && x >= 0 && x + VEC4 <= source->width;
    for (int i = 0; i < VEC4; i++)
        to->column[i] = extended_index(source->border, x + i, source->width);
}

static __device__ inline void columns_begin(struct word_columns *to, const struct source *source,
                                            int x)
{
    const uint8_t *row = source->view.data[blockIdx.z];
    int first = 0, second = -1;
    to->selector = 0;
    for (int i = 0; i < VEC4; i++) {
        int column = extended_index(source->border, x + i, source->width);
        int word = column < 0 ? -1 : column / VEC4;
        if (i == 0)
            first = max(word, 0);
        else if (word != first)
            second = max(second, word);
        int from = word == first ? column % VEC4 : VEC4 + max(column, 0) % VEC4;
        to->selector |= (uint32_t)from << 4 * i;
    }
    to->first = row + first * VEC4;
    to->second = second < 0 ? 0 : (second - first) * VEC4;
    to->within = x >= 0 && x + VEC4 <= source->width;
    to->fill = (uint32_t)source->border_value * 0x1010101u;
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+l"(to->first), "+r"(to->second), "+r"(to->within));
}

// True if some of the rows are beyond the plane's.
template <int ROWS> static __device__ inline bool leave_plane(const int y[ROWS], int height)
{
    return min(y[0], y[ROWS / 2]) < 0 || max(y[ROWS / 2 - 1], y[ROWS - 1]) >= height;
}

static __device__ inline void columns_load(const struct any_columns *from,
                                           const struct source *source,
                                           const int y[2 * any_columns::step],
                                           struct any_columns::rows *rows)
{
    enum { ROWS = 2 * any_columns::step };
    int row[ROWS];
    if (!from->within)
        return;
    for (int k = 0; k < ROWS; k++)
        row[k] = y[k];
    if (leave_plane<ROWS>(y, source->height))
        for (int k = 0; k < ROWS; k++)
            row[k] = max(extended_index(source->border, y[k], source->height), 0);
    for (int k = 0; k < ROWS; k++) {
        const uint8_t *at = view_at(&source->view, from->x, row[k]);
        if (source->view.bytes == 1)
            rows->units[k].x = __ldg((const uint32_t *)at);
        else
            rows->units[k] = __ldg((const uint2 *)at);
    }
}

// Samples of one row that are not side by side, or beyond the plane.
static __device__ inline void read_apart(const struct any_columns *from,
                                         const struct source *source, int y, int value[VEC4])
{
    for (int i = 0; i < VEC4; i++)
        value[i] = view_read(&source->view, max(from->column[i], 0), max(y, 0));
    look_up_vec4(&source->lookup, value);
    for (int i = 0; i < VEC4; i++)
        if (y < 0 || from->column[i] < 0)
            value[i] = source->border_value;
}

static __device__ inline void columns_take(const struct any_columns *from,
                                           const struct source *source, const uint16_t *,
                                           const int y[2 * any_columns::step],
                                           const struct any_columns::rows *rows,
                                           struct four_samples samples[2 * any_columns::step])
{
    enum { ROWS = 2 * any_columns::step };
    const struct view *view = &source->view;
    for (int k = 0; k < ROWS; k++) {
        uint2 units = rows->units[k];
        int *value = samples[k].value;
        if (!from->within) {
            read_apart(from, source, extended_index(source->border, y[k], source->height), value);
            continue;
        }
        if (view->bytes == 1) {
            for (int i = 0; i < VEC4; i++)
                value[i] = unit_sample<uint8_t>(view, vec4_get(vec4<uint8_t>{units.x}, i));
        } else if (view->plain) {
            vec4<uint16_t> plain = plain_vec4(view, vec4<uint16_t>{units.x, units.y});
            for (int i = 0; i < VEC4; i++)
                value[i] = vec4_get(plain, i);
        } else {
            for (int i = 0; i < VEC4; i++)
                value[i] =
                    unit_sample<uint16_t>(view, vec4_get(vec4<uint16_t>{units.x, units.y}, i));
        }
        look_up_vec4(&source->lookup, value);
        if (source->border == BORDER_ZERO && (unsigned)y[k] >= (unsigned)source->height)
            for (int i = 0; i < VEC4; i++)
                value[i] = source->border_value;
    }
}

static __device__ inline void columns_load(const struct word_columns *from,
                                           const struct source *source,
                                           const int y[2 * word_columns::step],
                                           struct word_columns::rows *rows)
{
    enum { ROWS = 2 * word_columns::step };
    int row[ROWS];
    rows->beyond = 0;
    for (int k = 0; k < ROWS; k++)
        row[k] = y[k];
    if (leave_plane<ROWS>(y, source->height))
        for (int k = 0; k < ROWS; k++) {
            row[k] = extended_index(source->border, y[k], source->height);
            rows->beyond |= (uint32_t)(row[k] < 0) << k;
            row[k] = max(row[k], 0);
        }
    for (int k = 0; k < ROWS; k++)
        rows->word[k] =
            __ldg((const uint32_t *)(from->first + (int64_t)row[k] * source->view.stride));
    if (from->second)
        for (int k = 0; k < ROWS; k++)
            rows->word[k] =
                __byte_perm(rows->word[k],
                            __ldg((const uint32_t *)(from->first + from->second +
                                                     (int64_t)row[k] * source->view.stride)),
                            from->selector);
}

static __device__ inline void columns_take(const struct word_columns *from,
                                           const struct source *source, const uint16_t *table,
                                           const int *, const struct word_columns::rows *rows,
                                           uint32_t word[2 * word_columns::step])
{
    enum { ROWS = 2 * word_columns::step };
    for (int k = 0; k < ROWS; k++)
        word[k] = rows->word[k];
    if (source->lookup.table)
        for (int k = 0; k < ROWS; k++)
            word[k] = lookup_word(&source->lookup, table, word[k]);
    if (!from->within && !from->second)
        for (int k = 0; k < ROWS; k++)
            word[k] = __byte_perm(word[k], from->fill, from->selector);
    if (rows->beyond)
        for (int k = 0; k < ROWS; k++)
            word[k] = rows->beyond >> k & 1 ? from->fill : word[k];
}

// ---- strips ----

// A thread's columns on their way down, a vec4 of each strip, the sums of each column, and the rows
// that were asked for.
template <typename Columns, int STRIPS> struct strip_columns {
    Columns strip[STRIPS];
    uint32_t sum[STRIPS][VEC4];
    typename Columns::rows rows[STRIPS];
    const uint16_t *table;
};

// Where a vec4 lies in its row in shared memory: those that eight lanes reach for at a time, a chunk
// apart, lie in different banks.
static __host__ __device__ inline int vec4_place(int vec4)
{
    return vec4 + (vec4 >> 3);
}
static_assert(CHUNK_VEC4S == 8, "vec4_place() divides by it");

// Ask for two runs of rows: from `in` on, and from `out` on, which leave where sums go down.
template <typename Columns, int STRIPS>
static __device__ inline void strip_load(struct strip_columns<Columns, STRIPS> *own,
                                         const struct box *b, int in, int out)
{
    int row[2 * Columns::step];
    for (int k = 0; k < Columns::step; k++) {
        row[k] = in + k;
        row[Columns::step + k] = out + k;
    }
#pragma unroll
    for (int s = 0; s < STRIPS; s++)
        columns_load(&own->strip[s], &b->source, row, &own->rows[s]);
}

// Take what strip_load() asked for, of one strip. The next may be asked for then.
template <typename Columns, int STRIPS>
static __device__ inline void strip_take(const struct strip_columns<Columns, STRIPS> *own,
                                         const struct box *b, int s, int in, int out,
                                         typename Columns::samples samples[2 * Columns::step])
{
    int row[2 * Columns::step];
    for (int k = 0; k < Columns::step; k++) {
        row[k] = in + k;
        row[Columns::step + k] = out + k;
    }
    columns_take(&own->strip[s], &b->source, own->table, row, &own->rows[s], samples);
}

// Sums around the row above `first`. The first step's rows have been asked for then.
template <typename Columns, int STRIPS>
static __device__ inline void strip_begin(struct strip_columns<Columns, STRIPS> *own,
                                          const struct box *b, int x, int first)
{
    enum { STEP = Columns::step };
    typename Columns::samples samples[STRIPS][2 * STEP];
#pragma unroll
    for (int s = 0; s < STRIPS; s++) {
        columns_begin(&own->strip[s], &b->source, x + s * STRIP);
        for (int i = 0; i < VEC4; i++)
            own->sum[s][i] = 0;
    }
    int y = first - b->radius_y - 1, end = first + b->radius_y;
    strip_load(own, b, y, y + STEP);
    for (; y < end; y += 2 * STEP) {
#pragma unroll
        for (int s = 0; s < STRIPS; s++)
            strip_take(own, b, s, y, y + STEP, samples[s]);
        if (y + 2 * STEP < end)
            strip_load(own, b, y + 2 * STEP, y + 3 * STEP);
        else
            strip_load(own, b, end, first - b->radius_y - 1);
        for (int s = 0; s < STRIPS; s++)
            for (int j = 0; j < 2 * STEP && y + j < end; j++)
                sums_add(own->sum[s], samples[s][j]);
    }
}

// Sums of the rows from y on into shared memory, a row for each warp. The next step's rows have been
// asked for then.
template <typename Columns, int STRIPS>
static __device__ inline void strip_down(struct strip_columns<Columns, STRIPS> *own,
                                         const struct box *b, uint4 *to, int y)
{
    enum { STEP = Columns::step };
    typename Columns::samples samples[STRIPS][2 * STEP];
    int in = y + b->radius_y, out = y - b->radius_y - 1;
    to += vec4_place(threadIdx.y * WARP + threadIdx.x);
#pragma unroll
    for (int at = 0; at < WARPS; at += STEP) {
#pragma unroll
        for (int s = 0; s < STRIPS; s++)
            strip_take(own, b, s, in + at, out + at, samples[s]);
        strip_load(own, b, in + at + STEP, out + at + STEP);
#pragma unroll
        for (int s = 0; s < STRIPS; s++) {
            uint32_t *sum = own->sum[s];
            for (int k = 0; k < STEP; k++) {
                sums_add(sum, samples[s][k]);
                sums_subtract(sum, samples[s][STEP + k]);
                to[(at + k) * b->row_vec4s + vec4_place(s * STRIP_VEC4S)] =
                    make_uint4(sum[0], sum[1], sum[2], sum[3]);
            }
        }
    }
}

static __device__ inline void vec4_words(uint4 from, uint32_t to[VEC4])
{
    to[0] = from.x;
    to[1] = from.y;
    to[2] = from.z;
    to[3] = from.w;
}

// By how much the sums of a lane's rectangles differ from those before them, in strip s: the
// column that comes in less the one that leaves, which is 2 radius + 1 columns behind it. SHIFT, the radius
// modulo four, is where the first that comes in lies in its vec4: with the row's first one, those
// before it come in, too.
template <int SHIFT>
static __device__ inline void row_changes(const uint4 *row, int radius, int s,
                                          uint32_t change[CHUNK])
{
    enum { LEAVES = VEC4 - 1 - SHIFT }; // where the first that leaves lies in its vec4
    int behind = (2 * radius + 1 - SHIFT + LEAVES) / VEC4;
    uint32_t in[2 * VEC4] = {0}, out[2 * VEC4] = {0}, before = 0;
    row += vec4_place((threadIdx.x + s * WARP) * CHUNK_VEC4S);
    for (int j = 0; j <= CHUNK_VEC4S; j++) {
        for (int i = 0; i < VEC4; i++) {
            in[i] = in[VEC4 + i];
            out[i] = out[VEC4 + i];
        }
        if (j < CHUNK_VEC4S || SHIFT > 0)
            vec4_words(row[vec4_place(j)], in + VEC4);
        if (j == 0)
            for (int i = 0; i < SHIFT && threadIdx.x + s == 0; i++)
                before += in[VEC4 + i];
        if (j < CHUNK_VEC4S || LEAVES > 0)
            vec4_words(row[vec4_place(j - behind)], out + VEC4);
        for (int i = 0; i < VEC4 && j > 0; i++)
            change[(j - 1) * VEC4 + i] = in[SHIFT + i] - out[LEAVES + i];
    }
    change[0] += before;
}

// Four means, of sums that change so from *sum on, which includes n / 2.
static __device__ inline void four_means(const struct box *b, uint32_t *sum,
                                         const uint32_t change[VEC4], uint32_t mean[VEC4])
{
    for (int i = 0; i < VEC4; i++)
        mean[i] = __umulhi(*sum += change[i], b->reciprocal);
}

// Four means of bytes. Each is one byte of its product: b->bytes selects those of two products.
static __device__ inline uint32_t word_of_means(const struct box *b, uint32_t *sum,
                                                const uint32_t change[VEC4])
{
    uint32_t mean[VEC4];
    four_means(b, sum, change, mean);
    return __byte_perm(__byte_perm(mean[0], mean[1], b->bytes),
                       __byte_perm(mean[2], mean[3], b->bytes), 0x5410);
}

// Columns of results that a block makes: first .. last - 1. Its first chunk begins at `origin`.
struct strip_range {
    int origin, first, last;
};

// A warp's row of results, of bytes. They go to memory in groups, of which the picture's last may
// consist of whole words only if UNIT is the bytes of one.
template <int UNIT>
static __device__ inline void row_of_bytes(const struct box *b, struct strip_range range, int s,
                                           int y, uint32_t sum, const uint32_t change[CHUNK])
{
    int x = range.origin + (s * WARP + threadIdx.x) * CHUNK;
    uint8_t *to = b->sink.view[0].data[blockIdx.z] + (int64_t)y * b->sink.view[0].stride + x;
    for (int j = 0; j < CHUNK; j += GROUP) {
        uint32_t word[VEC4];
        for (int i = 0; i < VEC4; i++)
            word[i] = word_of_means(b, &sum, change + j + i * VEC4);
        if (x + j < range.first || x + j >= range.last)
            continue;
        if (UNIT == GROUP || x + j + GROUP <= range.last)
            *(uint4 *)(to + j) = make_uint4(word[0], word[1], word[2], word[3]);
        else
            for (int i = 0; i < VEC4; i++)
                if (x + j + i * VEC4 < range.last)
                    *(uint32_t *)(to + j + i * VEC4) = word[i];
    }
}

// A warp's row of results of any kind: they go by way of the warp's row in shared memory, whose sums
// nobody needs any more, so that the lanes write vec4s side by side.
static __device__ inline void row_of_any(const struct box *b, struct strip_range range, int y,
                                         uint32_t sum, const uint32_t change[CHUNK], uint4 *row)
{
    int lane = threadIdx.x;
    __syncwarp(); // all have read the sums
    for (int j = 0; j < CHUNK_VEC4S; j++) {
        uint32_t mean[VEC4];
        four_means(b, &sum, change + j * VEC4, mean);
        row[vec4_place(lane * CHUNK_VEC4S + j)] = make_uint4(
            mean[0] >> b->shift, mean[1] >> b->shift, mean[2] >> b->shift, mean[3] >> b->shift);
    }
    __syncwarp();
#pragma unroll 1
    for (int j = 0; j < CHUNK_VEC4S; j++) {
        int x = range.origin + (j * WARP + lane) * VEC4;
        uint4 mean = row[vec4_place(j * WARP + lane)];
        int value[VEC4] = {(int)mean.x, (int)mean.y, (int)mean.z, (int)mean.w};
        if (x >= range.first && x < range.last)
            sink_put(&b->sink, x, y, value);
    }
}

// A warp goes along row y, whose sums of columns are in shared memory. A lane's first sum comes by
// the changes of the lanes before it.
template <int STRIPS, int SHIFT, int UNIT>
static __device__ inline void strip_along(const struct box *b, struct strip_range range, int y,
                                          int last, uint4 *row)
{
    static_assert(STRIPS == 1 || UNIT, "row_of_any() would overwrite sums of the next strip");
    uint32_t before = b->half;
#pragma unroll
    for (int s = 0; s < STRIPS; s++) {
        uint32_t change[CHUNK], total = 0;
        row_changes<SHIFT>(row, b->radius_x, s, change);
        for (int i = 0; i < CHUNK; i++)
            total += change[i];
        uint32_t scan = warp_scan(total), sum = before + scan - total;
        before += __shfl_sync(0xffffffff, scan, WARP - 1);
        if (y >= last)
            continue;
        if constexpr (UNIT)
            row_of_bytes<UNIT>(b, range, s, y, sum, change);
        else
            row_of_any(b, range, y, sum, change, row);
    }
}

// ---- kernels ----

// A block makes `rows` rows of `columns` columns, as many at a time as it has warps: a thread goes down
// four columns of each strip, of which a warp reads 128 samples side by side, and then warp w along row
// w, lane l making results 32 l .. 32 l + 31 of each strip. The first chunk begins 2 radius columns or
// more before the block's results: sums begin empty there, and those of results are whole. They may
// wrap on the way. G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
//
// UNIT: results are bytes side by side, rows of them a multiple of so many, or with room for that; 0: any.
template <typename Columns, int STRIPS, int SHIFT, int UNIT>
static __global__ void __launch_bounds__(WARP *WARPS, STRIPS > 1 ? 2 : Columns::blocks)
    box_strips(const __grid_constant__ struct box b)
{
    extern __shared__ uint4 memory[];
    __shared__ uint16_t table[256];
    uint4 *shared = memory + vec4_place(b.front_vec4s);
    int lane = threadIdx.x, warp = threadIdx.y;
    struct strip_range range = {.first = (int)blockIdx.x * b.columns};
    range.last = min(range.first + b.columns, b.sink.width);
    range.origin = range.first - b.lead;
    int first = blockIdx.y * b.rows, last = min(first + b.rows, b.sink.height);
    struct strip_columns<Columns, STRIPS> own = {
        .table = table
    };
    table_share(table, b.source.lookup.table);
    for (int k = lane; k < vec4_place(b.front_vec4s); k += WARP)
        memory[warp * b.row_vec4s + k] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    strip_begin(&own, &b, range.origin + b.radius_x - SHIFT + (warp * WARP + lane) * VEC4, first);
    for (int y = first; y < last; y += WARPS) {
        strip_down(&own, &b, shared, y);
        __syncthreads(); // the rows are there
        strip_along<STRIPS, SHIFT, UNIT>(&b, range, y + warp, last, shared + warp * b.row_vec4s);
        __syncthreads(); // nobody reads them any more
    }
}

// A thread owns four columns and goes down `rows` rows: it adds up the 2 radius + 1 rows around the
// first, then adds one that enters and takes away one that leaves, two rows at a time. A warp reads
// 128 samples side by side and writes 512 bytes. Such threads are few: blocks of two warps spread
// them over the GPU.
static __global__ void __launch_bounds__(WARP *PLANE_WARPS)
    box_columns(const __grid_constant__ struct box b)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4;
    int first = (blockIdx.y * PLANE_WARPS + threadIdx.y) * b.rows;
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

// True if sums of n samples of `depth` bits fit 32 bits, and means of them the fast division, which one
// sample has no need of. It shifts by whole bytes where the reciprocal still fits 32 bits then.
static bool set_reciprocal(struct box *box, int depth)
{
    int64_t n = box->n, max_dividend = ((INT64_C(1) << depth) - 1) * n + n / 2;
    int least = 0; // that is exact
    if (max_dividend >> 32 || n == 1)
        return false;
    while ((double)max_dividend * (double)n >= ldexp(1, 32 + least))
        least++;
    int whole = (least + 7) / 8 * 8;
    box->half = (uint32_t)(n / 2);
    box->shift = n >> whole ? whole : least;
    box->bytes = box->shift % 8 ? 0 : (uint32_t)(box->shift / 8 * 0x11 + 0x40);
    box->reciprocal = (uint32_t)((UINT64_C(1) << (32 + box->shift)) / (uint64_t)n + 1);
    return n >> box->shift;
}

static struct box box_of(const struct op_box *op)
{
    return {
        .radius_x = op->radius_x,
        .radius_y = op->radius_y,
        .n = (2 * (int64_t)op->radius_x + 1) * (2 * (int64_t)op->radius_y + 1),
    };
}

// UNIT of box_strips.
static int unit_of(const struct box *box)
{
    const struct view *view = &box->sink.view[0];
    if (box->sink.views > 1 || !view->plain || view->bytes > 1 || box->sink.lookup.table ||
        (box->sink.width % VEC4 && !view->padded) || !view_is_aligned(view, GROUP) ||
        box->shift % 8)
        return 0;
    return box->sink.width % GROUP && !view->padded ? (int)VEC4 : (int)GROUP;
}

// Columns of results of so many strips side by side, at most: a lane's last ones come short by SHIFT.
static int strip_columns_of(const struct box *box, int strips)
{
    return strips * STRIP - box->lead - (box->radius_x % VEC4 ? GROUP : 0);
}

// How a block of so many strips lies in shared memory: behind a row there is one vec4 more, which its
// last lane reads, and no result uses.
static void lay_out_strips(struct box *box, int strips)
{
    box->lead = (2 * box->radius_x + GROUP - 1) / GROUP * GROUP;
    box->front_vec4s = (box->radius_x / 2 + CHUNK_VEC4S) / CHUNK_VEC4S * CHUNK_VEC4S;
    box->row_vec4s = vec4_place(box->front_vec4s + strips * STRIP_VEC4S) + 1;
}

static size_t strip_bytes(const struct box *box)
{
    return (size_t)WARPS * box->row_vec4s * sizeof(uint4);
}

// Half of the columns would be results, at least, of a picture that is wide enough.
static bool pays(const struct box *box, int strips)
{
    return strip_columns_of(box, strips) >= strips * STRIP / 2;
}

// One strip that pays has room on every GPU, two have not: they share with the table of lookups.
static bool has_room(const struct box *box)
{
    int device = 0, most = 0;
    return !cudaGetDevice(&device) &&
           !cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) &&
           strip_bytes(box) + 256 * sizeof(uint16_t) <= (size_t)most;
}

// True if columns may be read in whole words of rows: wrapped around more than once, or where the first
// ones do not follow at a word's begin, four of them may lie in three.
static bool has_whole_words(const struct box *box)
{
    const struct source *source = &box->source;
    return source->width % VEC4 == 0 || (source->view.padded && source->border != BORDER_WRAP);
}

static size_t box_scratch(const struct op_use *use)
{
    struct box box = box_of(&use->op->box);
    lay_out_strips(&box, 1);
    return set_reciprocal(&box, use->depth) && pays(&box, 1)
               ? 0
               : scratch_bytes(use->width, use->height, sizeof(uint32_t));
}

// Blocks of equal width, as tall as leaves STRIP_FILL of them, or STRIP_FILL_TALL, or half as many that
// go down two strips; but for small pictures, as each begins with the sums of all rows around its first.
template <typename Columns, int STRIPS, int UNIT>
static cudaError_t strips_async(struct box *box, cudaStream_t stream)
{
    static void (*const kernels[VEC4])(struct box) = {
        box_strips<Columns, STRIPS, 0, UNIT>, box_strips<Columns, STRIPS, 1, UNIT>,
        box_strips<Columns, STRIPS, 2, UNIT>, box_strips<Columns, STRIPS, 3, UNIT>};
    void (*kernel)(struct box) = kernels[box->radius_x % VEC4];
    int width = box->sink.width, most = strip_columns_of(box, STRIPS);
    int strips = (width + most - 1) / most;
    box->columns = ((width + strips - 1) / strips + GROUP - 1) / GROUP * GROUP;
    bool tall = STRIPS == 1 && box->radius_y >= TALL_RADIUS;
    int fill = tall ? STRIP_FILL_TALL : STRIP_FILL / STRIPS;
    int bands = max(fill / (strips * box->sink.frames), 1);
    int rows = (box->sink.height + bands - 1) / bands;
    box->rows = (max(rows, max(box->radius_y / 2, BOX_ROWS)) + WARPS - 1) / WARPS * WARPS;
    dim3 grid = grid_shape(width, box->sink.height, box->sink.frames, box->columns, box->rows);
    size_t shared = strip_bytes(box);
    cudaError_t error = shared_memory_allow((const void *)kernel, shared);
    if (error)
        return error;
    kernel_launch(kernel, grid, block_shape(), shared, stream, *box);
    return cudaGetLastError();
}

// `narrow`: sums fit 32 bits, and their means the fast division.
static cudaError_t planes_async(struct box *box, bool narrow, const struct stencil *stencil,
                                cudaStream_t stream)
{
    int width = box->source.width, height = box->source.height;
    box->sums = (uint32_t *)stencil->scratch;
    box->stride = scratch_stride(width, sizeof(uint32_t)) / (int)sizeof(uint32_t);
    box->frame_stride = stencil->scratch_step / (ptrdiff_t)sizeof(uint32_t);
    box->rows = max(box->radius_y, BOX_ROWS);
    box->columns = PLANE_COLUMNS;
    assert((uintptr_t)stencil->scratch % 256 == 0);
    dim3 columns =
        grid_shape(width, height, box->sink.frames, WARP * VEC4, PLANE_WARPS * box->rows);
    dim3 rows = grid_shape(width, height, box->sink.frames, box->columns, WARPS);
    kernel_launch(box_columns, columns, dim3(WARP, PLANE_WARPS), 0, stream, *box);
    if (narrow)
        kernel_launch(box_rows<uint32_t>, rows, block_shape(), 0, stream, *box);
    else
        kernel_launch(box_rows<uint64_t>, rows, block_shape(), 0, stream, *box);
    return cudaGetLastError();
}

static cudaError_t box_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct source *source = &stencil->source;
    struct box box = box_of(&stencil->op->box);
    box.source = *source;
    box.sink = stencil->sink;
    bool narrow = set_reciprocal(&box, stencil->depth);
    bool words = stencil->depth == 8 && source->view.plain && source->view.bytes == 1 &&
                 has_whole_words(&box);
    lay_out_strips(&box, 1);
    bool strips = narrow && pays(&box, 1);
    int unit = words ? unit_of(&box) : 0;
    if (strips && unit == GROUP)
        return strips_async<struct word_columns, 1, GROUP>(&box, stream);
    if (strips && unit)
        return strips_async<struct word_columns, 1, VEC4>(&box, stream);
    if (strips && words)
        return strips_async<struct word_columns, 1, 0>(&box, stream);
    if (strips)
        return strips_async<struct any_columns, 1, 0>(&box, stream);
    lay_out_strips(&box, 2);
    if (narrow && unit == GROUP && pays(&box, 2) && has_room(&box))
        return strips_async<struct word_columns, 2, GROUP>(&box, stream);
    return planes_async(&box, narrow, stencil, stream);
}

const struct op_kernels box_kernels = {
    .kind = OP_BOX,
    .scratch = box_scratch,
    .stencil_async = box_async,
    .launches = true,
};
