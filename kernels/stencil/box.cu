// Means of a rectangle by running sums: of columns, which go down the picture, and along their row.
// The cost of a result does not grow with the radius, except for the first one of each stretch that
// a thread or warp goes along. Two ways:
//
//   strips  one pass: a block goes down some thousand columns, each thread with the sums of four in
//           registers; the rectangle's sum is the difference of two prefix sums of a row of them
//   planes  sums of columns through memory: where less than half of a strip would be results, and
//           where sums need more than 32 bits or their division a double
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
    int rows;    // that a thread of box_columns or box_strips makes
    int columns; // that a warp of box_rows or a block of box_strips makes
    struct sink sink;
    // The mean of n = (2 radius_x + 1)(2 radius_y + 1): see mean_of() below.
    int64_t n;
    uint32_t half; // n / 2, where sums fit 32 bits
    uint32_t reciprocal;
    int shift;
};

enum { BOX_ROWS = 16, BOX_COLUMNS = 1024, BOX_WARPS = 2 };

// Strips: warps of a block at most, and their columns; warps that fill an H100 or H200, which has
// 132 multiprocessors and registers for 32 of these warps on each.
enum { STRIP_WARPS = 16, STRIP = STRIP_WARPS * WARP * VEC4, STRIP_FILL = 4224 };

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

// Sums of all lanes' values, which may wrap.
static __device__ inline uint32_t lanes_total(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(0xffffffff, value);
#else
    return warp_sum(value);
#endif
}

// Samples of a thread's four columns in one row: any, or bytes of a word.
struct four_samples {
    int value[VEC4];
};

// The prefix sums of four columns change by those of a row that comes in, or leaves.
static __device__ inline void prefix_add(uint32_t prefix[VEC4], struct four_samples row)
{
    uint32_t sum = 0;
    for (int i = 0; i < VEC4; i++)
        prefix[i] += sum += (uint32_t)row.value[i];
}

static __device__ inline void prefix_take(uint32_t prefix[VEC4], struct four_samples row)
{
    uint32_t sum = 0;
    for (int i = 0; i < VEC4; i++)
        prefix[i] -= sum += (uint32_t)row.value[i];
}

static __device__ inline void prefix_add(uint32_t prefix[VEC4], uint32_t row)
{
    for (int i = 0; i < VEC4; i++)
        prefix[i] = __dp4a(row, 0x01010101u >> 8 * (VEC4 - 1 - i), prefix[i]);
}

// Products of bytes with minus one.
static __device__ inline void prefix_take(uint32_t prefix[VEC4], uint32_t row)
{
    for (int i = 0; i < VEC4; i++)
        asm("dp4a.u32.s32 %0, %1, %2, %0;"
            : "+r"(prefix[i])
            : "r"(row), "r"(0xffffffffu >> 8 * (VEC4 - 1 - i)));
}

// A thread's columns x .. x + 3 of the extended plane, read some rows at a time.
//
// any_columns    of any samples: those of the plane itself as others read them, others one by one
// word_columns   of plain bytes without a lookup, in rows of whole words: four columns, mirrored or
//                not, lie in two words at most
struct any_columns {
    enum { step = 2 }; // rows at a time
    typedef struct four_samples samples;
    int x, column[VEC4]; // -1: the border value
    bool within;
};

struct word_columns {
    enum { step = 4 };
    typedef uint32_t samples;
    const uint8_t *first, *second; // in row 0
    const uint8_t *ahead;          // what this lane fetches ahead of its warp
    int reads_second;
    uint32_t selector; // which bytes of both
    uint32_t fill;     // four times the border value, which `second` is where that is not read
};

static __device__ inline void columns_begin(struct any_columns *to, const struct source *source,
                                            int x)
{
    to->x = x;
    to->within = x >= 0 && x + VEC4 <= source->width;
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
    to->second = row + max(second, 0) * VEC4;
    to->reads_second = second >= 0;
    to->fill = (uint32_t)source->border_value * 0x1010101u;
    int sector = x - (int)threadIdx.x * VEC4 + threadIdx.x % VEC4 * 32;
    to->ahead = row + min(max(sector, 0), source->width - 1);
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+l"(to->first), "+l"(to->second), "+l"(to->ahead), "+r"(to->reads_second));
}

template <int ROWS>
static __device__ inline void columns_read(const struct any_columns *from,
                                           const struct source *source, const int y[ROWS],
                                           struct four_samples samples[ROWS])
{
    int value[ROWS][VEC4];
    if (from->within)
        source_read_rows<ROWS>(source, from->x, y, value);
    for (int k = 0; k < ROWS; k++) {
        int row = extended_index(source->border, y[k], source->height);
        if (!from->within) {
            for (int i = 0; i < VEC4; i++)
                value[k][i] = view_read(&source->view, max(from->column[i], 0), max(row, 0));
            look_up_vec4(&source->lookup, value[k]);
            for (int i = 0; i < VEC4; i++)
                if (row < 0 || from->column[i] < 0)
                    value[k][i] = source->border_value;
        }
        for (int i = 0; i < VEC4; i++)
            samples[k].value[i] = value[k][i];
    }
}

template <int ROWS>
static __device__ inline void columns_read(const struct word_columns *from,
                                           const struct source *source, const int y[ROWS],
                                           uint32_t word[ROWS])
{
    uint32_t other[ROWS];
    int row[ROWS];
    bool outside = false;
    for (int k = 0; k < ROWS; k++) {
        row[k] = y[k];
        outside |= (unsigned)y[k] >= (unsigned)source->height;
    }
    if (outside)
        for (int k = 0; k < ROWS; k++)
            row[k] = extended_index(source->border, y[k], source->height);
    for (int k = 0; k < ROWS; k++) {
        word[k] =
            __ldg((const uint32_t *)(from->first + (int64_t)max(row[k], 0) * source->view.stride));
        other[k] = from->fill;
    }
    if (from->reads_second)
        for (int k = 0; k < ROWS; k++)
            other[k] = __ldg(
                (const uint32_t *)(from->second + (int64_t)max(row[k], 0) * source->view.stride));
    for (int k = 0; k < ROWS; k++)
        word[k] = __byte_perm(word[k], other[k], from->selector);
    if (outside)
        for (int k = 0; k < ROWS; k++)
            if (row[k] < 0)
                word[k] = from->fill;
}

static __device__ inline void columns_expect(const struct any_columns *, const struct source *, int)
{
}

// A step's rows from y on will be read: a lane asks for 32 bytes of one of them.
static __device__ inline void columns_expect(const struct word_columns *from,
                                             const struct source *source, int y)
{
    int row = min(y + (int)threadIdx.x / VEC4, source->height - 1);
    if (threadIdx.x < VEC4 * word_columns::step)
        asm volatile("prefetch.global.L2 [%0];"
                     :
                     : "l"(from->ahead + (int64_t)row * source->view.stride));
}

// The four words that begin SHIFT words after the vector at `from`. SHIFT -1: anywhere.
template <int SHIFT>
static __device__ inline void words_read(const uint32_t *from, uint32_t word[VEC4])
{
    if (SHIFT < 0) {
        for (int i = 0; i < VEC4; i++)
            word[i] = from[i];
        return;
    }
    uint4 first = *(const uint4 *)from, second = *(const uint4 *)(from + VEC4);
    const uint32_t both[2 * VEC4] = {first.x,  first.y,  first.z,  first.w,
                                     second.x, second.y, second.z, second.w};
    for (int i = 0; i < VEC4; i++)
        word[i] = both[SHIFT + i];
}

// ---- kernels ----

// A block makes `rows` rows of `columns` columns, a step of them at a time, and sums up
// `margin` columns more on each side, margin being a multiple of four above the radius. SHIFT is
// the radius modulo four: the ends of a vec4's rectangles lie so in the vectors of the row; -1: any.
//
// With S(c) the sum of columns up to c of a row, the rectangle around x has S(x + radius) -
// S(x - radius - 1). Prefix sums of a thread's four columns, of its warp's by shuffles, of the
// block's by sixteen warps' totals; they may wrap, differences do not. G. E. Blelloch, "Prefix sums
// and their applications", CMU-CS-90-190, 1990; F. C. Crow, "Summed-area tables for texture
// mapping", SIGGRAPH 1984, of one row.
template <typename Columns, int SHIFT>
static __global__ void __launch_bounds__(WARP *STRIP_WARPS, 2)
    box_strips(const __grid_constant__ struct box b)
{
    enum { STEP = Columns::step };
    __shared__ __align__(16) uint32_t prefix[STEP][STRIP + 2 * VEC4];
    __shared__ uint32_t total[STEP][STRIP_WARPS];
    int lane = threadIdx.x, warp = threadIdx.y, at = (warp * WARP + lane) * VEC4;
    int margin = (b.radius_x / VEC4 + 1) * VEC4;
    int first_x = blockIdx.x * b.columns, x = first_x - margin + at;
    bool makes = x >= first_x && x < min(first_x + b.columns, b.sink.width);
    int first = blockIdx.y * b.rows, last = min(first + b.rows, b.sink.height);
    int row[2 * STEP];
    typename Columns::samples samples[2 * STEP];
    uint32_t sum[VEC4] = {0};
    Columns columns;
    columns_begin(&columns, &b.source, x);
    outlet<uint8_t> outlet = outlet_of<uint8_t>(&b.sink, x);
    bool straight = SHIFT >= 0 && outlet.whole && !b.sink.lookup.table;
    // Around the row above the first.
    for (int k = -b.radius_y - 1; k < b.radius_y; k += 2 * STEP) {
        for (int j = 0; j < 2 * STEP; j++)
            row[j] = first + k + j;
        columns_read<2 * STEP>(&columns, &b.source, row, samples);
        for (int j = 0; j < 2 * STEP && k + j < b.radius_y; j++)
            prefix_add(sum, samples[j]);
    }
    for (int y = first; y < last; y += STEP) {
        uint32_t own[STEP][VEC4], scan[STEP];
        for (int k = 0; k < STEP; k++) {
            row[2 * k] = y + k + b.radius_y;
            row[2 * k + 1] = y + k - b.radius_y - 1;
        }
        columns_read<2 * STEP>(&columns, &b.source, row, samples);
        columns_expect(&columns, &b.source, y + STEP + b.radius_y);
        for (int k = 0; k < STEP; k++) {
            prefix_add(sum, samples[2 * k]);
            prefix_take(sum, samples[2 * k + 1]);
            for (int i = 0; i < VEC4; i++)
                own[k][i] = sum[i];
            scan[k] = warp_scan(own[k][VEC4 - 1]);
            if (lane == WARP - 1)
                total[k][warp] = scan[k];
        }
        __syncthreads(); // totals are there, and nobody reads the rows before any more
        for (int k = 0; k < STEP; k++) {
            uint32_t before = lanes_total(lane < warp ? total[k][lane % STRIP_WARPS] : 0) +
                              scan[k] - own[k][VEC4 - 1];
            *(uint4 *)&prefix[k][at] = make_uint4(before + own[k][0], before + own[k][1],
                                                  before + own[k][2], before + own[k][3]);
        }
        __syncthreads(); // prefix sums are there, and nobody reads these totals any more
        if (!makes)
            continue;
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            if (y + k >= last)
                break;
            uint32_t begin[VEC4], end[VEC4];
            int mean[VEC4];
            if (SHIFT < 0) {
                words_read<-1>(&prefix[k][at - b.radius_x - 1], begin);
                words_read<-1>(&prefix[k][at + b.radius_x], end);
            } else {
                words_read<VEC4 - 1 - SHIFT>(&prefix[k][at - margin], begin);
                words_read<SHIFT>(&prefix[k][at + b.radius_x - SHIFT], end);
            }
            for (int i = 0; i < VEC4; i++)
                mean[i] = mean_of(&b, end[i] - begin[i]);
            if (straight)
                vec4_set((vec4<uint8_t> *)(outlet.at + (int64_t)(y + k) * b.sink.view[0].stride),
                         mean);
            else
                sink_put(&b.sink, x, y + k, mean);
        }
    }
}

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
    box->half = (uint32_t)(n / 2);
    box->shift = 0;
    while (INT64_C(2) << box->shift <= n)
        box->shift++;
    box->reciprocal = (uint32_t)((UINT64_C(1) << (32 + box->shift)) / (uint64_t)n + 1);
    return (double)max_dividend * (double)n < (double)(UINT64_C(1) << (32 + box->shift));
}

// Half of a strip is results, at least.
static bool fits_strips(const struct box *box, int depth)
{
    struct box reciprocal = *box;
    return box->radius_x <= STRIP / 4 - VEC4 && set_reciprocal(&reciprocal, depth);
}

static struct box box_of(const struct op_box *op)
{
    return {
        .radius_x = op->radius_x,
        .radius_y = op->radius_y,
        .n = (2 * (int64_t)op->radius_x + 1) * (2 * (int64_t)op->radius_y + 1),
    };
}

static size_t box_scratch(const struct op_use *use)
{
    struct box box = box_of(&use->op->box);
    return fits_strips(&box, use->depth) ? 0
                                         : scratch_bytes(use->width, use->height, sizeof(uint32_t));
}

// Strips of equal width, of eight warps, whose barriers cost less than those of sixteen, unless such
// a strip had most of its columns beyond its results; as tall as fills the GPU once, but for small
// pictures, as each begins with the sums of all rows around its first.
static cudaError_t strips_async(struct box *box, cudaStream_t stream)
{
    int width = box->sink.width, beyond = 2 * (box->radius_x / VEC4 + 1) * VEC4;
    int most = beyond < STRIP / 4 ? STRIP / 2 : STRIP;
    int strips = (width + most - beyond - 1) / (most - beyond);
    box->columns = ((width + strips - 1) / strips + VEC4 - 1) / VEC4 * VEC4;
    int warps = (box->columns + beyond + WARP * VEC4 - 1) / (WARP * VEC4);
    int rows = (int)((int64_t)box->sink.height * strips * box->sink.frames * warps / STRIP_FILL);
    int least = max(box->radius_y, BOX_ROWS);
    box->rows = (max(rows + 1, least) + VEC4 - 1) / VEC4 * VEC4;
    static void (*const of_words[VEC4])(struct box) = {
        box_strips<struct word_columns, 0>, box_strips<struct word_columns, 1>,
        box_strips<struct word_columns, 2>, box_strips<struct word_columns, 3>};
    const struct source *source = &box->source;
    bool words = source->view.plain && source->view.bytes == 1 && !source->lookup.table &&
                 source->width % VEC4 == 0;
    dim3 grid = grid_shape(width, box->sink.height, box->sink.frames, box->columns, box->rows);
    void (*kernel)(struct box) =
        words ? of_words[box->radius_x % VEC4] : box_strips<struct any_columns, -1>;
    kernel<<<grid, dim3(WARP, (unsigned)warps), 0, stream>>>(*box);
    return cudaGetLastError();
}

static cudaError_t box_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_box *op = &stencil->op->box;
    int width = stencil->source.width, height = stencil->source.height;
    struct box box = box_of(op);
    box.source = stencil->source;
    box.sink = stencil->sink;
    bool strips = fits_strips(&box, stencil->depth), narrow = set_reciprocal(&box, stencil->depth);
    if (strips)
        return strips_async(&box, stream);
    box.sums = (uint32_t *)stencil->scratch;
    box.stride = scratch_stride(width, sizeof(uint32_t)) / (int)sizeof(uint32_t);
    box.frame_stride = stencil->scratch_step / (ptrdiff_t)sizeof(uint32_t);
    box.rows = op->radius_y > BOX_ROWS ? op->radius_y : BOX_ROWS;
    box.columns = BOX_COLUMNS;
    assert((uintptr_t)stencil->scratch % 256 == 0);
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
