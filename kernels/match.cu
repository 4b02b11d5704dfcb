// OP_MATCH and OP_MARK (stages/match.h).
//
//   products   sums of samples times a template's, on tensor cores: bytes times signed bytes, exact
//   scores     where a template is small, in the same kernel, with the windows' sums made beside;
//              else from planes of sums, some rows of the picture at a time
//   matches    candidates are bits of a map, and scores where such a bit is set: those that are the
//              greatest around become a list, the best of it are kept, refined and handed over
//
// Scores of a whole plane are stored only where the score map is asked for.
#include "kernels/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    LANES = 32,
    SPAN = 128, // columns that a warp makes ...
    ROWS = 32,  // ... and rows, but of narrow templates: rows_of()
    WIDE = SPAN / 16,
    SLICE_ROWS = 16,    // of a template that are multiplied at a time ...
    SLICE_COLUMNS = 48, // ... and columns, 15 of which may be zeros: of 16 results, the last ones
                        // need as many more samples
    GROUP_SLICES = 4,   // of rows of a larger template, one after another in shared memory
    FUSED_SIDE = 64,    // of templates whose scores are made with the products
    SORT = 1024,
};

typedef long long i64;
typedef unsigned long long u64;

// One template on the device: its samples less MATCH_BIAS, zeros where they do not count, in rows
// with 16 zeros before and as many behind as whole slices need; its mask alike.
struct pattern {
    const int8_t *sample, *mask; // mask: NULL: none
    int stride;                  // bytes from row to row
    int width, height, number;
    i64 count, sum;
    double norm;
};

// What kernels do with one template.
struct match {
    struct pattern pattern;
    const uint8_t *from;
    int from_stride;
    int width, height;
    int columns, rows; // places
    float least;
    float bound; // num^2 >= bound * var of each candidate
    // Candidates: bit x of row y, in words, and their scores. Of a map all scores.
    uint32_t *bits;
    int bit_words; // of a row
    float *score;
    uint4 *list; // of matches, see list_entry()
    int *listed;
};

// Rows of places that a warp makes of a template of so many slices of columns. Of narrow ones few,
// so that more warps find room: they have more to wait for than products.
static __host__ __device__ constexpr int rows_of(int steps)
{
    return steps == 1 ? ROWS / 2 : ROWS;
}

// ---- device helpers ----

// sum += a b: 16 rows of 32 signed bytes, and 32 rows of 8 bytes.
static __device__ inline void multiply(int sum[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++)
            asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+r"(sum[2 * k]), "+r"(sum[2 * k + 1])
                : "r"(a[2 * half + k]), "r"(half ? b1 : b0));
#endif
}

// Samples as bytes of shared memory, for some rows of places: `stride` words from row to row, an
// odd multiple of four, so that eight rows of four words lie in different banks.
struct tile {
    uint32_t *word;
    int stride, rows, words;
};

enum fill { FILL_SAMPLES, FILL_HIGH, FILL_LOW }; // the samples, or bytes of their squares

static __device__ inline uint32_t filled(uint32_t word, enum fill fill)
{
    if (fill == FILL_SAMPLES)
        return word;
    uint32_t made = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff, square = sample * sample;
        made |= (fill == FILL_HIGH ? square >> 8 : square & 0xff) << 8 * k;
    }
    return made;
}

// Four samples of the picture, zeros beyond it, in one read where they lie so.
static __device__ inline uint32_t read_four(const struct match *m, bool aligned, int x, int y)
{
    if (y >= m->height)
        return 0;
    const uint8_t *at = m->from + (i64)y * m->from_stride + x;
    if (aligned && x + 4 <= m->width)
        return __ldg((const uint32_t *)at);
    uint32_t word = 0;
    for (int k = 0; k < 4 && x + k < m->width; k++)
        word |= (uint32_t)__ldg(at + k) << 8 * k;
    return word;
}

// Words one by one.
static __device__ inline void fill_words(const struct match *m, const struct tile *tile, int x,
                                         int y, enum fill fill, int first)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 3) == 0;
    for (int k = threadIdx.y; k < tile->rows; k += blockDim.y)
        for (int w = first + threadIdx.x; w < tile->words; w += LANES)
            tile->word[k * tile->stride + w] =
                filled(read_four(m, aligned, x + 4 * w, y + k), fill);
}

enum { FILL_ROWS = 10 }; // that a lane asks for before it waits for the first

// All threads of a block fill its tile, half a warp a row, 16 bytes a lane, as far as these lie
// within the picture.
static __device__ inline void fill_tile(const struct match *m, const struct tile *tile, int x,
                                        int y, enum fill fill)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 15) == 0;
    int quads = aligned ? min(max(m->width - x, 0) / 16, tile->words / 4) : 0;
    int quad = threadIdx.x % 16, apart = 2 * blockDim.y;
    const uint8_t *from = m->from + x + 16 * quad;
    for (int first = 2 * threadIdx.y + threadIdx.x / 16; first < tile->rows && quad < quads;
         first += FILL_ROWS * apart) {
        uint4 four[FILL_ROWS];
#pragma unroll
        for (int k = 0; k < FILL_ROWS; k++)
            four[k] = __ldg((const uint4 *)(from + (i64)min(y + first + k * apart, m->height - 1) *
                                                       m->from_stride));
#pragma unroll
        for (int k = 0; k < FILL_ROWS; k++)
            if (first + k * apart < tile->rows)
                *(uint4 *)(tile->word + (first + k * apart) * tile->stride + 4 * quad) =
                    make_uint4(filled(four[k].x, fill), filled(four[k].y, fill),
                               filled(four[k].z, fill), filled(four[k].w, fill));
    }
    if (4 * quads < tile->words)
        fill_words(m, tile, x, y, fill, 4 * quads);
}

// Rows of a template's slices in shared memory: 16 bytes more than the slices' columns before them,
// and as many behind.
struct taps {
    uint32_t *word;
    int stride; // words
};

static __host__ __device__ inline int taps_words(int steps)
{
    return (SLICE_COLUMNS * steps + 32) / 4;
}

// `count` rows, and zeros in those that fill the last slice.
static __device__ inline void fill_taps(const struct taps *taps, const int8_t *from, int stride,
                                        int count, int slices)
{
    for (int k = threadIdx.y; k < slices * SLICE_ROWS; k += blockDim.y)
        for (int w = threadIdx.x; w < taps->stride; w += LANES)
            taps->word[k * taps->stride + w] =
                k < count ? __ldg((const uint32_t *)(from + (i64)k * stride) + w) : 0;
}

// A row of the template as left factors: result g of 16 takes sample c times tap c - g, so row g of
// the factor is the template's row moved by g, a band of a matrix that is alike along diagonals.
// In words: those of 16 columns each, of results g = lane / 4 and g + 8. Each is cut from two words
// of the row, as far apart for all lanes.
static __device__ inline void load_band(uint32_t to[6], const uint32_t *row)
{
    int lane = threadIdx.x, from = 16 + 4 * (lane % 4) - lane / 4;
    row += from / 4;
    for (int part = 0; part < 3; part++)
        for (int half = 0; half < 2; half++) {
            const uint32_t *at = row + 4 * part - 2 * half;
            to[2 * part + half] = __funnelshift_r(at[0], at[1], 8 * (from % 4));
        }
}

// Products of a warp's places with 16 rows of a template at a time, and 48 columns.
//
// A result of a product is 16 neighbouring places of 8 rows; a lane's words of right factors are
// four neighbouring samples in each of 8 rows, as they lie in the tile: those of row offset j + 8
// are those of the places 8 rows further down of offset j. So rows j and j + 8 of the template are
// taken together, and words are read once for both and for all results that they count towards:
// 50 words serve 96 products.
template <int DEEP>
static __device__ inline void accumulate(int sum[DEEP][WIDE][4], const struct tile *tile,
                                         const struct taps *taps, int slices, int steps)
{
    int lane = threadIdx.x;
    for (int slice = 0; slice < slices; slice++)
        for (int step = 0; step < steps; step++)
#pragma unroll 1
            for (int j = 0; j < 8; j++) {
                uint32_t band[12], above[WIDE + 2], below[WIDE + 2];
                const uint32_t *tap =
                    taps->word + (SLICE_ROWS * slice + j) * taps->stride + SLICE_COLUMNS / 4 * step;
                load_band(band, tap);
                load_band(band + 6, tap + 8 * taps->stride);
                const uint32_t *row =
                    tile->word +
                    (threadIdx.y * 8 * DEEP + SLICE_ROWS * slice + j + lane / 4) * tile->stride +
                    SLICE_COLUMNS / 4 * step + lane % 4;
                for (int c = 0; c < WIDE + 2; c++)
                    above[c] = row[4 * c];
#pragma unroll
                for (int u = 0; u < DEEP; u++) {
                    row += 8 * tile->stride;
                    for (int c = 0; c < WIDE + 2; c++)
                        below[c] = row[4 * c];
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band, above[c], above[c + 1]);
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band + 4, above[c + 2], below[c]);
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band + 8, below[c + 1], below[c + 2]);
                    for (int c = 0; c < WIDE + 2; c++)
                        above[c] = below[c];
                }
            }
}

static __device__ inline float score_of(const struct pattern *p, i64 products, i64 samples,
                                        i64 squares)
{
    return match_score(p->count, p->sum, p->norm, products, samples, squares);
}

// ---- scores of small templates ----

// Sums of a window's rows in each of four neighbouring columns: of samples in packed halves, of
// their squares.
struct columns {
    uint32_t even, odd;
    uint32_t square[4];
};

static __device__ inline void columns_add(struct columns *to, uint32_t word)
{
    to->even += word & 0x00ff00ff;
    to->odd += word >> 8 & 0x00ff00ff;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff;
        to->square[k] += sample * sample;
    }
}

// Four rows at once: bytes that lie one above the other make a word.
static __device__ inline void columns_add_four(struct columns *to, const uint32_t row[4])
{
    uint32_t upper[2] = {__byte_perm(row[0], row[1], 0x5140), __byte_perm(row[0], row[1], 0x7362)};
    uint32_t lower[2] = {__byte_perm(row[2], row[3], 0x5140), __byte_perm(row[2], row[3], 0x7362)};
    uint32_t sum[4];
    for (int k = 0; k < 4; k++) {
        uint32_t column = __byte_perm(upper[k / 2], lower[k / 2], k % 2 ? 0x7632 : 0x5410);
        sum[k] = __dp4a(column, 0x01010101u, 0u);
        to->square[k] = __dp4a(column, column, to->square[k]);
    }
    to->even += sum[0] | sum[2] << 16;
    to->odd += sum[1] | sum[3] << 16;
}

static __device__ inline void columns_take(struct columns *to, uint32_t word)
{
    to->even -= word & 0x00ff00ff;
    to->odd -= word >> 8 & 0x00ff00ff;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff;
        to->square[k] -= sample * sample;
    }
}

// The same for tensor cores, which add them up along the rows: as bytes, of 6, 8 and 8 bits. Those
// of samples, up to 64 * 255, have two, those of squares three. Sums of the second are taken 64
// times, together with the first.
enum limb { SAMPLES_LOW, SAMPLES_HIGH, SQUARES_LOW, SQUARES_MIDDLE, SQUARES_HIGH, LIMBS };

// Eight rows of limbs in shared memory, laid out as a tile is.
struct limbs {
    uint32_t *word;
    int stride;
};

static __device__ inline uint32_t *limb_row(const struct limbs *limbs, enum limb limb, int row)
{
    return limbs->word + (limb * 8 + row) * limbs->stride;
}

static __device__ inline void store_limbs(const struct limbs *limbs, int row, int word,
                                          const struct columns *c)
{
    const uint32_t *q = c->square;
    uint32_t left = __byte_perm(q[0] >> 6, q[1] >> 6, 0x5140);
    uint32_t right = __byte_perm(q[2] >> 6, q[3] >> 6, 0x5140);
    uint32_t low =
        __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    limb_row(limbs, SAMPLES_LOW, row)[word] = (c->even & 0x003f003f) | (c->odd & 0x003f003f) << 8;
    limb_row(limbs, SAMPLES_HIGH, row)[word] =
        (c->even >> 6 & 0x00ff00ff) | (c->odd >> 6 & 0x00ff00ff) << 8;
    limb_row(limbs, SQUARES_LOW, row)[word] = low & 0x3f3f3f3f;
    limb_row(limbs, SQUARES_MIDDLE, row)[word] = __byte_perm(left, right, 0x5410);
    limb_row(limbs, SQUARES_HIGH, row)[word] = __byte_perm(left, right, 0x7632);
}

static __host__ __device__ inline int steps_of(int width)
{
    return (width + 15 + SLICE_COLUMNS - 1) / SLICE_COLUMNS;
}

static __host__ __device__ inline int slices_of(int height)
{
    return (height + SLICE_ROWS - 1) / SLICE_ROWS;
}

// For `rows` rows of places.
static __host__ __device__ inline struct tile tile_of(int rows, int slices, int steps)
{
    struct tile tile = {};
    tile.rows = rows + SLICE_ROWS * slices;
    tile.words = (SPAN + SLICE_COLUMNS * steps) / 4;
    tile.stride = tile.words / 8 * 8 + 4;
    tile.stride += tile.stride < tile.words ? 8 : 0;
    return tile;
}

// The parts of a block's dynamic shared memory: tile; template, and a row of ones as wide as it;
// for each warp limbs and a map of candidates.
struct fused_layout {
    struct tile tile;
    struct taps taps;
    int slices;
    int rows; // of a warp
};

static __host__ __device__ inline struct fused_layout fused_layout_of(int height, int warps,
                                                                      int steps)
{
    struct fused_layout layout = {};
    layout.slices = slices_of(height);
    layout.rows = rows_of(steps);
    layout.tile = tile_of(warps * layout.rows, layout.slices, steps);
    layout.taps.stride = taps_words(steps);
    return layout;
}

static __host__ __device__ inline int fused_taps_words(const struct fused_layout *layout)
{
    return (SLICE_ROWS * layout->slices + 1) * layout->taps.stride;
}

static __host__ __device__ inline int fused_warp_words(const struct fused_layout *layout)
{
    return LIMBS * 8 * layout->tile.stride + layout->rows * SPAN / 32;
}

static size_t fused_bytes(const struct fused_layout *layout, int warps)
{
    return sizeof(uint32_t) * (size_t)(layout->tile.rows * layout->tile.stride +
                                       fused_taps_words(layout) + warps * fused_warp_words(layout));
}

// Numbers of the test whether a place may be a match, by single precision: all its roundings take
// less than 2^-22 of what is rounded.
struct test {
    float count, sum; // of the template
    float near_count; // 2^-22 of it
    float count_less; // as much less
    float sum_less;   // less by 2^-22 of its size
    float bound;
};

static __device__ inline struct test test_of(const struct match *m)
{
    const float near = 1.0f / (1 << 22);
    float count = (float)m->pattern.count, sum = (float)m->pattern.sum;
    return {count, sum, near * count, count - near * count, sum - near * fabsf(sum), m->bound};
}

// n sum(f t) - sum(f) sum(t), as large as it may be, is positive, and its square above the bound
// times n sum(f^2) - sum(f)^2, as small as that may be; both are 0 where all is black.
static __device__ inline bool may_match(const struct test *test, int products, int samples,
                                        int squares)
{
    float p = (float)products, s = (float)samples, q = (float)squares;
    float difference = test->count * p - s * test->sum_less + fabsf(p) * test->near_count;
    float variance = test->count_less * q - s * s;
    return difference * fabsf(difference) - test->bound * variance > 0;
}

// Bands of ones, which sum a window along the row.
template <int STEPS> struct ones {
    uint32_t band[STEPS][6];
};

// Sums over windows: those of eight rows and 16 columns as a product has them.
struct window_sums {
    int samples[4], squares[4], squares_high[4];
};

// sum += the limb, or 64 times it, along the row, of one 48 columns: `at` is the lane's word in its
// row of limbs.
static __device__ inline void add_limb(int sum[4], const uint32_t band[6], const uint32_t *at)
{
    const uint32_t rest[4] = {band[4], band[5], 0, 0};
    multiply(sum, band, at[0], at[4]);
    multiply(sum, rest, at[8], 0);
}

static __device__ inline void add_limbs(int sum[4], const uint32_t band[6], const uint32_t *low,
                                        const uint32_t *high)
{
    const uint32_t first[4] = {band[4], band[5], band[0] << 6, band[1] << 6};
    const uint32_t second[4] = {band[2] << 6, band[3] << 6, band[4] << 6, band[5] << 6};
    multiply(sum, band, low[0], low[4]);
    multiply(sum, first, low[8], high[0]);
    multiply(sum, second, high[4], high[8]);
}

template <int STEPS>
static __device__ inline struct window_sums window_sums_of(const struct limbs *limbs,
                                                           const struct ones<STEPS> *ones, int c)
{
    struct window_sums sums = {};
    int lane = threadIdx.x, row = lane / 4;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        int word = SLICE_COLUMNS / 4 * step + 4 * c + lane % 4;
        add_limbs(sums.samples, ones->band[step], limb_row(limbs, SAMPLES_LOW, row) + word,
                  limb_row(limbs, SAMPLES_HIGH, row) + word);
        add_limbs(sums.squares, ones->band[step], limb_row(limbs, SQUARES_LOW, row) + word,
                  limb_row(limbs, SQUARES_MIDDLE, row) + word);
        add_limb(sums.squares_high, ones->band[step], limb_row(limbs, SQUARES_HIGH, row) + word);
    }
    return sums;
}

static __device__ inline int squares_of(const struct window_sums *sums, int k)
{
    return sums->squares[k] + (sums->squares_high[k] << 14);
}

// The place at (column, row) of a span, whose windows' sums are known: keep its score, and mark it
// in the span's map, if it is enough. Few places get here, unless there is a map.
template <int STEPS, bool MAP>
static __device__ __noinline__ void take_place(const struct match *m, int x, int y, int products,
                                               int samples, int squares, uint32_t *bits)
{
    if (x >= m->columns || y >= m->rows)
        return;
    float score = score_of(&m->pattern, products, samples, squares);
    if (MAP || score >= m->least)
        m->score[(i64)y * m->columns + x] = score;
    if (score >= m->least)
        atomicOr(&bits[y % rows_of(STEPS) * (SPAN / 32) + x % SPAN / 32], 1u << x % 32);
}

// Take those of eight rows of places that a lane has found: bit 4 c + k is result k of product c.
template <int STEPS, bool MAP>
static __device__ inline void take_found(const struct match *m, const struct limbs *limbs,
                                         const struct ones<STEPS> *ones, const int sum[WIDE][4],
                                         uint32_t found, int left, int top, uint32_t *bits)
{
    int x = left + threadIdx.x / 4, y = top + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
        struct window_sums sums = window_sums_of<STEPS>(limbs, ones, c);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (found >> (4 * c + k) & 1)
                take_place<STEPS, MAP>(m, x + 16 * c + 8 * (k / 2), y + k % 2, sum[c][k],
                                       sums.samples[k], squares_of(&sums, k), bits);
    }
}

// Eight rows of places from row `top` on. Few are taken, which is done in a second go, so that the
// first has nothing to wait for.
template <int STEPS, bool MAP>
static __device__ inline void score_rows(const struct match *m, const struct test *test,
                                         const struct limbs *limbs, const struct ones<STEPS> *ones,
                                         const int sum[WIDE][4], int left, int top, uint32_t *bits)
{
    uint32_t found = MAP ? ~0u : 0;
#pragma unroll
    for (int c = 0; c < WIDE && !MAP; c++) {
        struct window_sums sums = window_sums_of<STEPS>(limbs, ones, c);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (may_match(test, sum[c][k], sums.samples[k], squares_of(&sums, k)))
                found |= 1u << (4 * c + k);
    }
    if (__any_sync(~0u, found != 0))
        take_found<STEPS, MAP>(m, limbs, ones, sum, found, left, top, bits);
}

static __device__ inline void column_sums(struct columns *to, const uint32_t *row, int stride,
                                          int height)
{
    int j = 0;
    for (; j + 4 <= height; j += 4, row += 4 * stride) {
        const uint32_t four[4] = {row[0], row[stride], row[2 * stride], row[3 * stride]};
        columns_add_four(to, four);
    }
    for (; j < height; j++, row += stride)
        columns_add(to, *row);
}

// What enters a column's window and what leaves it, of a lane's two words of columns.
struct slide {
    uint32_t in[2], out[2];
};

static __device__ inline struct slide slide_of(const uint32_t *row, const uint32_t *next, int apart)
{
    return {{next[0], next[apart]}, {row[0], row[apart]}};
}

// Windows' sums go down the columns of a warp's places: what enters is added and what leaves is
// taken off. Eight rows of them are laid in shared memory for tensor cores to sum along the row,
// which leaves them with the lanes that have the products. A lane has two words of columns; of the
// second ones there are fewer, and the last of them is made by several lanes alike.
template <int STEPS, bool MAP>
static __device__ inline void score_span(const struct match *m, const struct tile *tile,
                                         const struct limbs *limbs, const struct ones<STEPS> *ones,
                                         int sum[rows_of(STEPS) / 8][WIDE][4], int left, int top,
                                         uint32_t *bits)
{
    int lane = threadIdx.x, height = m->pattern.height;
    int apart = min((int)LANES, tile->words - 1 - lane);
    const uint32_t *row = tile->word + threadIdx.y * rows_of(STEPS) * tile->stride + lane;
    struct columns column[2] = {};
    struct test test = test_of(m);
    for (int k = 0; k < 2; k++)
        column_sums(&column[k], row + k * apart, tile->stride, height);
#pragma unroll
    for (int u = 0; u < rows_of(STEPS) / 8; u++) {
#pragma unroll 2
        for (int k = 0; k < 8; k++, row += tile->stride) {
            struct slide slide = slide_of(row, row + height * tile->stride, apart);
            for (int n = 0; n < 2; n++) {
                store_limbs(limbs, k, lane + n * apart, &column[n]);
                columns_add(&column[n], slide.in[n]);
                columns_take(&column[n], slide.out[n]);
            }
        }
        __syncwarp();
        score_rows<STEPS, MAP>(m, &test, limbs, ones, sum[u], left, top + 8 * u, bits);
        __syncwarp();
    }
}

// A block's warps stand one below the other, each with 128 columns of places, and share a tile of
// samples and the template. STEPS: of the template's columns. MAP: all scores are stored.
template <int STEPS, bool MAP>
static __global__ void __launch_bounds__(LANES * 4, STEPS == 1 ? 3 : 2)
    match_fused(const __grid_constant__ struct match m)
{
    extern __shared__ uint4 memory[];
    constexpr int rows = rows_of(STEPS);
    int warps = blockDim.y, left = blockIdx.x * SPAN, top = blockIdx.y * warps * rows;
    struct fused_layout layout = fused_layout_of(m.pattern.height, warps, STEPS);
    layout.tile.word = (uint32_t *)memory;
    layout.taps.word = layout.tile.word + layout.tile.rows * layout.tile.stride;
    uint32_t *own =
        layout.taps.word + fused_taps_words(&layout) + threadIdx.y * fused_warp_words(&layout);
    uint32_t *ones_row = layout.taps.word + SLICE_ROWS * layout.slices * layout.taps.stride;
    struct limbs limbs = {own, layout.tile.stride};
    uint32_t *bits = own + LIMBS * 8 * layout.tile.stride;
    for (int k = threadIdx.x; k < rows * SPAN / 32; k += LANES)
        bits[k] = 0;
    for (int k = threadIdx.y * LANES + threadIdx.x; k < 4 * layout.taps.stride; k += warps * LANES)
        ((uint8_t *)ones_row)[k] = k >= 16 && k < 16 + m.pattern.width;
    fill_tile(&m, &layout.tile, left, top, FILL_SAMPLES);
    fill_taps(&layout.taps, m.pattern.sample, m.pattern.stride, m.pattern.height, layout.slices);
    __syncthreads();
    int sum[rows / 8][WIDE][4] = {};
    accumulate<rows / 8>(sum, &layout.tile, &layout.taps, layout.slices, STEPS);
    struct ones<STEPS> ones;
    for (int step = 0; step < STEPS; step++)
        load_band(ones.band[step], ones_row + SLICE_COLUMNS / 4 * step);
    top += threadIdx.y * rows;
    score_span<STEPS, MAP>(&m, &layout.tile, &limbs, &ones, sum, left, top, bits);
    int y = top + threadIdx.x;
    if (threadIdx.x < rows && y < m.rows)
        *(uint4 *)(m.bits + (i64)y * m.bit_words + blockIdx.x * (SPAN / 32)) =
            *(uint4 *)(bits + threadIdx.x * (SPAN / 32));
}

// ---- sums of others ----

// Sums of products with some rows of a template, in a plane: places of rows `top` to `end`. Samples
// that are summed are at most MATCH_NARROW, which 32 bits hold.
struct products {
    const int8_t *taps; // the pattern's samples or mask, from row `first` on
    int first, count, steps;
    enum fill fill;
    int top, end;
    i64 *plane; // of `columns` numbers a row
    int factor;
    bool add; // to what is there
};

// As match_fused(), but that the template comes 64 rows and 48 columns at a time, with the samples
// that it needs, and that sums are stored.
static __global__ void __launch_bounds__(LANES * 4, 2)
    match_products(const __grid_constant__ struct match m,
                   const __grid_constant__ struct products products)
{
    extern __shared__ uint4 memory[];
    struct tile tile = tile_of(blockDim.y * ROWS, GROUP_SLICES, 1);
    struct taps taps = {};
    tile.word = (uint32_t *)memory;
    taps.word = tile.word + tile.rows * tile.stride;
    taps.stride = taps_words(1);
    int left = blockIdx.x * SPAN, top = products.top + blockIdx.y * blockDim.y * ROWS;
    int sum[ROWS / 8][WIDE][4] = {}, lane = threadIdx.x;
    for (int skip = 0; skip < products.count; skip += GROUP_SLICES * SLICE_ROWS)
        for (int step = 0; step < products.steps; step++) {
            int count = products.count - skip, slices = min((int)GROUP_SLICES, slices_of(count));
            __syncthreads();
            fill_tile(&m, &tile, left + step * SLICE_COLUMNS, top + products.first + skip,
                      products.fill);
            fill_taps(&taps, products.taps + (i64)skip * m.pattern.stride + step * SLICE_COLUMNS,
                      m.pattern.stride, count, slices);
            __syncthreads();
            accumulate<ROWS / 8>(sum, &tile, &taps, slices, 1);
        }
#pragma unroll
    for (int u = 0; u < ROWS / 8; u++)
#pragma unroll
        for (int c = 0; c < WIDE; c++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int x = left + 16 * c + 8 * (k / 2) + lane / 4;
                int y = top + threadIdx.y * ROWS + 8 * u + 2 * (lane % 4) + k % 2;
                if (x >= m.columns || y >= products.end)
                    continue;
                i64 *to = products.plane + (i64)(y - products.top) * m.columns + x;
                *to = (products.add ? *to : 0) + (i64)products.factor * sum[u][c][k];
            }
}

// Sums over the windows of a template without a mask, and those of columns that they are made of,
// for places of rows `top` to `end`.
struct windows {
    uint32_t *column, *column_square; // `width` numbers a row
    i64 *samples, *squares;           // `columns` numbers a row
    int top, end;
};

enum { RUN = 32 }; // rows that a thread goes on to slide

// A thread slides down a column: a warp reads 32 neighbouring samples.
static __global__ void match_columns(const __grid_constant__ struct match m,
                                     const __grid_constant__ struct windows w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, first = w.top + blockIdx.y * RUN;
    int height = m.pattern.height;
    if (x >= m.width)
        return;
    uint32_t samples = 0, squares = 0;
    const uint8_t *at = m.from + (i64)first * m.from_stride + x;
    for (int j = 0; j < height - 1; j++) {
        uint32_t sample = __ldg(at + (i64)j * m.from_stride);
        samples += sample;
        squares += sample * sample;
    }
    for (int y = first; y < min(first + RUN, w.end); y++, at += m.from_stride) {
        uint32_t in = __ldg(at + (i64)(height - 1) * m.from_stride), out = __ldg(at);
        samples += in;
        squares += in * in;
        w.column[(i64)(y - w.top) * m.width + x] = samples;
        w.column_square[(i64)(y - w.top) * m.width + x] = squares;
        samples -= out;
        squares -= out * out;
    }
}

// A lane's difference, and those of all lanes before it, added up; `all` is what they come to.
static __device__ inline i64 before_lane(i64 value, i64 *all)
{
    i64 sum = value;
    for (int lanes = 1; lanes < LANES; lanes *= 2) {
        i64 before = __shfl_up_sync(~0u, sum, lanes);
        sum += (int)threadIdx.x >= lanes ? before : 0;
    }
    *all = __shfl_sync(~0u, sum, LANES - 1);
    return sum - value;
}

static __device__ inline i64 warp_sum(i64 value)
{
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        value += __shfl_xor_sync(~0u, value, lanes);
    return value;
}

// A warp makes a run of places of a row: it sums the columns of the first window, and from there on
// what the windows of 32 neighbours gain and lose.
static __device__ inline void slide_row(const uint32_t *column, int width, int x, int end, i64 *to)
{
    i64 sum = 0;
    for (int i = threadIdx.x; i < width; i += LANES)
        sum += column[x + i];
    sum = warp_sum(sum);
    for (x += threadIdx.x; __any_sync(~0u, x < end); x += LANES) {
        i64 all, gain = x + 1 < end ? (i64)column[x + width] - (i64)column[x] : 0;
        i64 before = before_lane(gain, &all);
        if (x < end)
            to[x] = sum + before;
        sum += all;
    }
}

enum { ROW_RUN = 512 };

static __global__ void match_windows(const __grid_constant__ struct match m,
                                     const __grid_constant__ struct windows w)
{
    int x = blockIdx.x * ROW_RUN, y = blockIdx.y * blockDim.y + threadIdx.y;
    int end = min(x + ROW_RUN, m.columns);
    if (y >= w.end - w.top)
        return;
    slide_row(w.column + (i64)y * m.width, m.pattern.width, x, end, w.samples + (i64)y * m.columns);
    slide_row(w.column_square + (i64)y * m.width, m.pattern.width, x, end,
              w.squares + (i64)y * m.columns);
}

struct planes {
    const i64 *products, *samples, *squares; // `columns` numbers a row
    int top, end;
};

// A thread scores a place, a warp 32 neighbours, whose bits make a word.
template <bool MAP>
static __global__ void match_scores(const __grid_constant__ struct match m,
                                    const __grid_constant__ struct planes planes)
{
    int x = blockIdx.x * LANES + threadIdx.x,
        y = planes.top + blockIdx.y * blockDim.y + threadIdx.y;
    bool inside = x < m.columns && y < planes.end;
    float score = 0;
    if (inside) {
        i64 at = (i64)(y - planes.top) * m.columns + x;
        score = score_of(&m.pattern, planes.products[at], planes.samples[at], planes.squares[at]);
    }
    bool found = inside && score >= m.least;
    if (MAP ? inside : found)
        m.score[(i64)y * m.columns + x] = score;
    uint32_t bits = __ballot_sync(~0u, found);
    if (threadIdx.x == 0 && y < planes.end)
        m.bits[(i64)y * m.bit_words + blockIdx.x] = bits;
}

// ---- the score map ----

// A thread makes a sample: the score of the place whose middle lies there, if it is greater than
// what is there.
template <typename T>
static __global__ void match_map(const __grid_constant__ struct match m, uint8_t *to, int stride,
                                 int white, bool first)
{
    int x = blockIdx.x * LANES + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= m.width || y >= m.height)
        return;
    T *at = (T *)(to + (i64)y * stride) + x;
    int shade = first ? 0 : *at;
    int column = x - m.pattern.width / 2, row = y - m.pattern.height / 2;
    if (column >= 0 && column < m.columns && row >= 0 && row < m.rows)
        shade = max(shade, match_shade(m.score[(i64)row * m.columns + column], white));
    *at = (T)shade;
}

// ---- matches ----

// A match as four words, of which the better one is less: first of all the complement of its score,
// which is above 0.
static __device__ inline uint4 list_entry(float score, int number, int x, int y)
{
    return make_uint4(~__float_as_uint(score), (uint32_t)number, (uint32_t)y, (uint32_t)x);
}

static __device__ inline bool is_better(uint4 a, uint4 b)
{
    if (a.x != b.x)
        return a.x < b.x;
    if (a.y != b.y)
        return a.y < b.y;
    return a.z != b.z ? a.z < b.z : a.w < b.w;
}

// The bits of word `w` of a row that lie in columns first .. last.
static __device__ inline uint32_t bits_within(uint32_t bits, int w, int first, int last)
{
    int low = max(first - 32 * w, 0), high = min(last - 32 * w, 31);
    return bits & (~0u << low) & (~0u >> (31 - high));
}

// Whether this lane finds a better place among those of one word of candidates.
static __device__ inline bool word_has_better(const struct match *m, int w, int y, int first,
                                              int last, uint4 own)
{
    uint32_t bits = bits_within(__ldg(m->bits + (i64)y * m->bit_words + w), w, first, last);
    for (; bits; bits &= bits - 1) {
        int x = 32 * w + __ffs((int)bits) - 1;
        if (is_better(list_entry(m->score[(i64)y * m->columns + x], m->pattern.number, x, y), own))
            return true;
    }
    return false;
}

// Whether a place is the greatest within `far` columns and rows, by all lanes, a word each.
static __device__ inline bool is_greatest(const struct match *m, int x, int y, int far_x, int far_y,
                                          uint4 own)
{
    int left = max(x - far_x, 0), right = min(x + far_x, m->columns - 1);
    int top = max(y - far_y, 0), bottom = min(y + far_y, m->rows - 1);
    int words = right / 32 - left / 32 + 1, all = words * (bottom - top + 1);
    for (int k = 0; k < all; k += LANES) {
        int n = k + (int)threadIdx.x;
        bool better =
            n < all && word_has_better(m, left / 32 + n % words, top + n / words, left, right, own);
        if (__any_sync(~0u, better))
            return false;
    }
    return true;
}

// A warp lists those of a word's candidates that are matches, one after another: first near it,
// where most that are not the greatest meet a greater one, then further and further. Of n places
// that are the greatest within d there are at most one in d^2 / 4, which bounds the work however
// many candidates there are.
static __device__ inline void list_word(const struct match *m, uint32_t bits, int word, int y)
{
    int most_x = m->pattern.width / 2, most_y = m->pattern.height / 2;
    for (; bits; bits &= bits - 1) {
        int x = word * 32 + __ffs((int)bits) - 1, far = 1;
        uint4 entry = list_entry(m->score[(i64)y * m->columns + x], m->pattern.number, x, y);
        bool greatest = is_greatest(m, x, y, min(far, most_x), min(far, most_y), entry);
        while (greatest && (far < most_x || far < most_y)) {
            far *= 4;
            greatest = is_greatest(m, x, y, min(far, most_x), min(far, most_y), entry);
        }
        if (greatest && threadIdx.x == 0)
            m->list[atomicAdd(m->listed, 1)] = entry;
    }
}

// A lane takes a word of candidates; the warp goes through those of its lanes that are not empty.
static __global__ void match_list(const __grid_constant__ struct match m)
{
    i64 first = ((i64)blockIdx.x * blockDim.y + threadIdx.y) * LANES, own = first + threadIdx.x;
    uint32_t bits = own < (i64)m.rows * m.bit_words ? __ldg(m.bits + own) : 0;
    for (uint32_t lanes = __ballot_sync(~0u, bits != 0); lanes; lanes &= lanes - 1) {
        int lane = __ffs((int)lanes) - 1;
        i64 word = first + lane;
        list_word(&m, __shfl_sync(~0u, bits, lane), (int)(word % m.bit_words),
                  (int)(word / m.bit_words));
    }
}

// Sort `count` entries, of which there is room for a power of two, by all threads of a block.
static __device__ inline void sort(uint4 *entry, int count)
{
    int size = 2, thread = threadIdx.x;
    while (size < count)
        size *= 2;
    for (int k = count + thread; k < size; k += SORT)
        entry[k] = make_uint4(~0u, ~0u, ~0u, ~0u);
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            int low = 2 * thread - (thread & (step - 1)), high = low + step;
            if (thread >= size / 2)
                continue;
            bool descending = low & run;
            uint4 a = entry[low], b = entry[high];
            if (is_better(b, a) != descending) {
                entry[low] = b;
                entry[high] = a;
            }
        }
    __syncthreads();
}

// One block: the list in portions of as many as it has threads; what is better than the worst of
// those that are kept joins them, and all are sorted.
static __global__ void __launch_bounds__(SORT)
    match_best(const uint4 *list, const int *listed, int most, int line, uint4 *best,
               struct op_matches *matches)
{
    __shared__ uint4 entry[2 * SORT];
    __shared__ int joined;
    int thread = threadIdx.x, count = *listed, kept = 0;
    for (int first = 0; first < count; first += SORT) {
        if (thread == 0)
            joined = 0;
        __syncthreads();
        bool joins = false;
        uint4 own = {};
        if (first + thread < count) {
            own = list[first + thread];
            joins = kept < most || is_better(own, entry[kept - 1]);
        }
        if (joins)
            entry[kept + atomicAdd(&joined, 1)] = own;
        __syncthreads();
        int all = kept + joined;
        if (joined)
            sort(entry, all);
        kept = min(all, most);
        __syncthreads();
    }
    if (thread < kept)
        best[thread] = entry[thread];
    if (thread == 0) {
        matches->count = kept;
        matches->line = line;
    }
}

// Sums over the window at a place, as far as one thread has come.
struct window {
    i64 products, samples, squares;
};

enum { NEIGHBOURS = 4, NEIGHBOUR_WARPS = 4 }; // left, right, above, below

// A warp's rows of a window.
static __device__ inline struct window window_of(const struct match *m, int x, int y, int warp)
{
    const struct pattern *p = &m->pattern;
    struct window own = {};
    for (int j = warp; j < p->height; j += NEIGHBOUR_WARPS)
        for (int i = threadIdx.x; i < p->width; i += LANES) {
            i64 at = (i64)j * p->stride + 16 + i;
            int f = __ldg(m->from + (i64)(y + j) * m->from_stride + x + i);
            if (p->mask && !__ldg(p->mask + at))
                f = 0;
            own.products += f * __ldg(p->sample + at);
            own.samples += f;
            own.squares += f * f;
        }
    return {warp_sum(own.products), warp_sum(own.samples), warp_sum(own.squares)};
}

// The scores of the places around one, as far as there are both on an axis: four warps make each.
static __device__ inline void neighbour_scores(const struct match *m, int x, int y,
                                               float score[NEIGHBOURS])
{
    __shared__ struct window part[NEIGHBOURS][NEIGHBOUR_WARPS];
    int side = threadIdx.y / NEIGHBOUR_WARPS, warp = threadIdx.y % NEIGHBOUR_WARPS;
    bool there = side < 2 ? x > 0 && x < m->columns - 1 : y > 0 && y < m->rows - 1;
    int step = side % 2 ? 1 : -1;
    struct window own = {};
    if (there)
        own = window_of(m, side < 2 ? x + step : x, side < 2 ? y : y + step, warp);
    if (threadIdx.x == 0)
        part[side][warp] = own;
    __syncthreads();
    for (int n = 0; n < NEIGHBOURS && threadIdx.x == 0 && threadIdx.y == 0; n++) {
        struct window all = part[n][0];
        for (int k = 1; k < NEIGHBOUR_WARPS; k++) {
            all.products += part[n][k].products;
            all.samples += part[n][k].samples;
            all.squares += part[n][k].squares;
        }
        score[n] = score_of(&m->pattern, all.products, all.samples, all.squares);
    }
}

// A block refines one of the matches that are kept, if it is the template's, and clears what lies
// behind the last.
static __global__ void __launch_bounds__(LANES *NEIGHBOURS *NEIGHBOUR_WARPS)
    match_refine(const __grid_constant__ struct match m, const uint4 *best,
                 struct op_matches *matches)
{
    int k = blockIdx.x;
    bool writes = threadIdx.x == 0 && threadIdx.y == 0;
    if (k >= matches->count) {
        if (writes)
            matches->found[k] = {};
        return;
    }
    uint4 entry = best[k];
    if ((int)entry.y != m.pattern.number)
        return;
    int x = (int)entry.w, y = (int)entry.z;
    float score = __uint_as_float(~entry.x), around[NEIGHBOURS];
    neighbour_scores(&m, x, y, around);
    if (!writes)
        return;
    double right = 0, down = 0;
    if (x > 0 && x < m.columns - 1)
        right = match_peak(around[0], score, around[1]);
    if (y > 0 && y < m.rows - 1)
        down = match_peak(around[2], score, around[3]);
    matches->found[k] = {(float)(x + right), (float)(y + down), score, m.pattern.number};
}

// ---- marks ----

struct mark {
    const uint8_t *from;
    uint8_t *to;
    int from_stride, to_stride;
    int width, height;
    int shift_x, shift_y;
    const struct op_matches *matches;
    const int3 *shape; // width, height and value of each template
};

template <typename T> static __global__ void mark_copy(const __grid_constant__ struct mark m)
{
    int x = blockIdx.x * LANES + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < m.width && y < m.height)
        ((T *)(m.to + (i64)y * m.to_stride))[x] =
            __ldg((const T *)(m.from + (i64)y * m.from_stride) + x);
}

static __device__ inline bool is_framed(const struct mark *m, int k, int x, int y)
{
    const struct op_found *found = &m->matches->found[k];
    int3 shape = m->shape[found->number];
    return match_is_framed(match_box_of(found, shape.x, shape.y), m->matches->line, x, y,
                           m->shift_x, m->shift_y);
}

// Blocks draw one frame each, blockIdx.y those rows of it that are its own. A sample that belongs
// to a better one, too, is left to that.
template <typename T> static __global__ void mark_frames(const __grid_constant__ struct mark m)
{
    int k = blockIdx.x;
    if (k >= m.matches->count)
        return;
    const struct op_found *found = &m.matches->found[k];
    int3 shape = m.shape[found->number];
    struct match_box box = match_box_of(found, shape.x, shape.y);
    int line = m.matches->line;
    int left = max((box.left - line) >> m.shift_x, 0);
    int right = min(((box.right + line - 1) >> m.shift_x) + 1, m.width);
    int top = max((box.top - line) >> m.shift_y, 0);
    int bottom = min(((box.bottom + line - 1) >> m.shift_y) + 1, m.height);
    for (int y = top + blockIdx.y; y < bottom; y += gridDim.y)
        for (int x = left + threadIdx.x; x < right; x += blockDim.x) {
            bool own = is_framed(&m, k, x, y);
            for (int better = 0; better < k && own; better++)
                own = !is_framed(&m, better, x, y);
            if (own)
                ((T *)(m.to + (i64)y * m.to_stride))[x] = (T)shape.z;
        }
}

// ---- what templates are on the device ----

static size_t aligned(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static size_t pattern_stride(const struct op_template *t)
{
    return (size_t)(SLICE_COLUMNS * steps_of(t->width) + 32);
}

static size_t pattern_bytes(const struct op_template *t)
{
    return aligned(pattern_stride(t) * (size_t)t->height);
}

static void put_pattern(const struct op_template *t, int8_t *samples, int8_t *mask)
{
    size_t stride = pattern_stride(t);
    memset(samples, 0, pattern_bytes(t));
    if (mask)
        memset(mask, 0, pattern_bytes(t));
    for (int y = 0; y < t->height; y++)
        for (int x = 0; x < t->width; x++) {
            size_t from = (size_t)y * (size_t)t->width + (size_t)x,
                   to = (size_t)y * stride + 16 + (size_t)x;
            samples[to] = (int8_t)(t->sample[from] - MATCH_BIAS);
            if (mask)
                mask[to] = (int8_t)t->mask[from];
        }
}

extern "C" size_t match_constants(const struct op_match *op, void *to)
{
    size_t bytes = 0;
    for (int k = 0; k < op->count; k++) {
        const struct op_template *t = &op->templates[k];
        size_t one = pattern_bytes(t);
        int8_t *at = (int8_t *)to + bytes;
        if (to)
            put_pattern(t, at, t->mask ? at + one : NULL);
        bytes += t->mask ? 2 * one : one;
    }
    return bytes;
}

static struct pattern pattern_of(const struct op_match *op, int number, const int8_t *constants)
{
    for (int k = 0; k < number; k++)
        constants += (op->templates[k].mask ? 2 : 1) * pattern_bytes(&op->templates[k]);
    const struct op_template *t = &op->templates[number];
    return {.sample = constants,
            .mask = t->mask ? constants + pattern_bytes(t) : NULL,
            .stride = (int)pattern_stride(t),
            .width = t->width,
            .height = t->height,
            .number = number,
            .count = t->count,
            .sum = t->sum,
            .norm = t->norm};
}

// ---- where things lie in scratch memory ----

// Of one operation: the candidates of one template after another, and the matches of all.
struct room {
    size_t listed, best, list, bits, score, planes, bytes;
    int band; // rows of places whose sums there is room for
};

enum { SUMS_BYTES = 3 * 8 + 2 * 4, BAND_BYTES = 128 << 20, TILE_ROWS = 4 * ROWS };

// Whether its scores are made with its products.
static bool is_fused(const struct op_template *t)
{
    return !t->mask && t->width <= FUSED_SIDE && t->height <= FUSED_SIDE;
}

// Words of a row of candidates: whole spans.
static int bit_words(int columns)
{
    return (columns + SPAN - 1) / SPAN * (SPAN / 32);
}

// Rows of sums: whole tiles, as many as a part of the memory holds.
static int band_rows(int width, int height)
{
    size_t most = BAND_BYTES / ((size_t)width * SUMS_BYTES) / TILE_ROWS * TILE_ROWS;
    size_t rows = (size_t)(height + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    most = most < TILE_ROWS ? TILE_ROWS : most;
    return (int)(rows < most ? rows : most);
}

static size_t take(struct room *room, size_t bytes)
{
    size_t at = room->bytes;
    room->bytes += (bytes + 255) / 256 * 256;
    return at;
}

// Of two matches of a template one lies outside of the other's half, so that each of the cells
// which are half a template large holds one at most.
static size_t list_entries(const struct op_match *op, int width, int height)
{
    size_t entries = 1;
    for (int k = 0; k < op->count; k++) {
        const struct op_template *t = &op->templates[k];
        size_t columns = (size_t)match_places(width, t->width), across = (size_t)t->width / 2 + 1;
        size_t rows = (size_t)match_places(height, t->height), down = (size_t)t->height / 2 + 1;
        entries += (columns + across - 1) / across * ((rows + down - 1) / down);
    }
    return entries;
}

static struct room room_of(const struct op_match *op, int width, int height)
{
    struct room room = {};
    size_t places = (size_t)width * (size_t)height;
    bool fused = true;
    for (int k = 0; k < op->count; k++)
        fused = fused && is_fused(&op->templates[k]);
    room.band = fused ? 0 : band_rows(width, height);
    room.listed = take(&room, sizeof(int));
    room.best = take(&room, sizeof(uint4) * (size_t)op->most);
    room.list = take(&room, sizeof(uint4) * list_entries(op, width, height));
    room.bits = take(&room, sizeof(uint32_t) * (size_t)bit_words(width) * (size_t)height);
    room.score = take(&room, sizeof(float) * places);
    room.planes = take(&room, (size_t)room.band * (size_t)width * SUMS_BYTES);
    return room;
}

extern "C" size_t match_scratch(const struct op_match *op, int width, int height)
{
    return room_of(op, width, height).bytes;
}

// ---- launchers ----

static dim3 blocks_of(int columns, int rows, int across, int down)
{
    return dim3((unsigned)((columns + across - 1) / across), (unsigned)((rows + down - 1) / down));
}

// As many warps a block as its shared memory allows.
static int warps_within(const struct match *m, int steps)
{
    int device = 0, most = 48 << 10;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    int warps = 4;
    for (; warps > 1; warps /= 2) {
        struct fused_layout layout = fused_layout_of(m->pattern.height, warps, steps);
        if (fused_bytes(&layout, warps) <= (size_t)most)
            break;
    }
    return warps;
}

template <int STEPS, bool MAP>
static cudaError_t fused_steps_async(const struct match *m, cudaStream_t stream)
{
    int warps = warps_within(m, STEPS);
    struct fused_layout layout = fused_layout_of(m->pattern.height, warps, STEPS);
    size_t bytes = fused_bytes(&layout, warps);
    auto *kernel = match_fused<STEPS, MAP>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error)
        return error;
    dim3 grid = blocks_of(m->columns, m->rows, SPAN, warps * rows_of(STEPS));
    kernel<<<grid, dim3(LANES, (unsigned)warps), bytes, stream>>>(*m);
    return cudaGetLastError();
}

static cudaError_t fused_async(const struct match *m, bool map, cudaStream_t stream)
{
    if (steps_of(m->pattern.width) == 1)
        return map ? fused_steps_async<1, true>(m, stream) : fused_steps_async<1, false>(m, stream);
    return map ? fused_steps_async<2, true>(m, stream) : fused_steps_async<2, false>(m, stream);
}

// Sums of products of some rows of places, a few rows of the template after the other: as many as
// 32 bits hold.
static cudaError_t products_async(const struct match *m, const int8_t *taps, enum fill fill,
                                  int factor, bool add, i64 *plane, int top, int end,
                                  cudaStream_t stream)
{
    const struct pattern *p = &m->pattern;
    struct tile tile = tile_of(TILE_ROWS, GROUP_SLICES, 1);
    size_t words = (size_t)tile.rows * (size_t)tile.stride +
                   (size_t)GROUP_SLICES * SLICE_ROWS * (size_t)taps_words(1);
    int together = MATCH_NARROW / p->width > 1 ? MATCH_NARROW / p->width : 1;
    cudaError_t error =
        cudaFuncSetAttribute(match_products, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)(words * sizeof(uint32_t)));
    for (int row = 0; row < p->height && !error; row += together) {
        int rows = p->height - row < together ? p->height - row : together;
        struct products products = {.taps = taps + (ptrdiff_t)row * p->stride,
                                    .first = row,
                                    .count = rows,
                                    .steps = steps_of(p->width),
                                    .fill = fill,
                                    .top = top,
                                    .end = end,
                                    .plane = plane,
                                    .factor = factor,
                                    .add = add || row};
        dim3 grid = blocks_of(m->columns, end - top, SPAN, TILE_ROWS);
        match_products<<<grid, dim3(LANES, 4), words * sizeof(uint32_t), stream>>>(*m, products);
        error = cudaGetLastError();
    }
    return error;
}

static cudaError_t masked_sums_async(const struct match *m, i64 *samples, i64 *squares, int top,
                                     int end, cudaStream_t stream)
{
    const int8_t *mask = m->pattern.mask;
    cudaError_t error = products_async(m, mask, FILL_SAMPLES, 1, false, samples, top, end, stream);
    if (!error)
        error = products_async(m, mask, FILL_HIGH, 256, false, squares, top, end, stream);
    return error ? error : products_async(m, mask, FILL_LOW, 1, true, squares, top, end, stream);
}

static cudaError_t window_sums_async(const struct match *m, const struct windows *w,
                                     cudaStream_t stream)
{
    int rows = w->end - w->top;
    match_columns<<<blocks_of(m->width, rows, 128, RUN), 128, 0, stream>>>(*m, *w);
    cudaError_t error = cudaGetLastError();
    if (error)
        return error;
    match_windows<<<blocks_of(m->columns, rows, ROW_RUN, 8), dim3(LANES, 8), 0, stream>>>(*m, *w);
    return cudaGetLastError();
}

// The scores of some rows of places, by way of planes of sums.
static cudaError_t band_async(const struct match *m, bool map, uint8_t *memory, int band, int top,
                              cudaStream_t stream)
{
    int end = top + band < m->rows ? top + band : m->rows;
    size_t plane = (size_t)band * (size_t)m->width;
    i64 *products = (i64 *)memory, *samples = products + plane, *squares = samples + plane;
    uint32_t *column = (uint32_t *)(squares + plane);
    struct windows windows = {column, column + plane, samples, squares, top, end};
    struct planes planes = {products, samples, squares, top, end};
    cudaError_t error =
        products_async(m, m->pattern.sample, FILL_SAMPLES, 1, false, products, top, end, stream);
    if (!error)
        error = m->pattern.mask ? masked_sums_async(m, samples, squares, top, end, stream)
                                : window_sums_async(m, &windows, stream);
    if (error)
        return error;
    dim3 grid = blocks_of(32 * m->bit_words, end - top, LANES, 8);
    if (map)
        match_scores<true><<<grid, dim3(LANES, 8), 0, stream>>>(*m, planes);
    else
        match_scores<false><<<grid, dim3(LANES, 8), 0, stream>>>(*m, planes);
    return cudaGetLastError();
}

static cudaError_t map_async(const struct match *m, const struct whole *whole, cudaStream_t stream)
{
    int white = whole->op->match.white;
    bool first = m->pattern.number == 0;
    dim3 grid = blocks_of(m->width, m->height, LANES, 8);
    if (white > 255)
        match_map<uint16_t>
            <<<grid, dim3(LANES, 8), 0, stream>>>(*m, whole->to, whole->to_stride, white, first);
    else
        match_map<uint8_t>
            <<<grid, dim3(LANES, 8), 0, stream>>>(*m, whole->to, whole->to_stride, white, first);
    return cudaGetLastError();
}

static cudaError_t list_async(const struct match *m, cudaStream_t stream)
{
    i64 words = (i64)m->rows * m->bit_words;
    unsigned blocks = (unsigned)((words + 8 * LANES - 1) / (8 * LANES));
    match_list<<<blocks, dim3(LANES, 8), 0, stream>>>(*m);
    return cudaGetLastError();
}

static struct match match_of(const struct whole *whole, const struct room *room, int number)
{
    const struct op_match *op = &whole->op->match;
    uint8_t *scratch = (uint8_t *)whole->scratch;
    struct match m = {.pattern = pattern_of(op, number, (const int8_t *)whole->constants),
                      .from = whole->from,
                      .from_stride = whole->from_stride,
                      .width = whole->width,
                      .height = whole->height,
                      .least = op->least,
                      .bits = (uint32_t *)(scratch + room->bits),
                      .score = (float *)(scratch + room->score),
                      .list = (uint4 *)(scratch + room->list),
                      .listed = (int *)(scratch + room->listed)};
    m.columns = match_places(m.width, m.pattern.width);
    m.rows = match_places(m.height, m.pattern.height);
    if (!m.columns || !m.rows)
        m.columns = m.rows = 0;
    m.bit_words = bit_words(m.columns);
    double limit = (double)m.least * m.pattern.norm;
    m.bound = (float)(limit * limit * (1 - 1.0 / 65536));
    return m;
}

static cudaError_t template_async(const struct whole *whole, const struct room *room, int number,
                                  cudaStream_t stream)
{
    struct match m = match_of(whole, room, number);
    bool map = whole->op->match.map && whole->to;
    cudaError_t error = cudaSuccess;
    if (m.rows && is_fused(&whole->op->match.templates[number]))
        error = fused_async(&m, map, stream);
    else
        for (int top = 0; top < m.rows && !error; top += room->band)
            error = band_async(&m, map, (uint8_t *)whole->scratch + room->planes, room->band, top,
                               stream);
    if (!error && map)
        error = map_async(&m, whole, stream);
    return error || !m.rows ? error : list_async(&m, stream);
}

extern "C" cudaError_t match_async(const struct whole *whole, cudaStream_t stream)
{
    const struct op_match *op = &whole->op->match;
    struct room room = room_of(op, whole->width, whole->height);
    uint8_t *scratch = (uint8_t *)whole->scratch;
    struct op_matches *matches = (struct op_matches *)whole->side;
    uint4 *best = (uint4 *)(scratch + room.best);
    cudaError_t error = cudaMemsetAsync(scratch + room.listed, 0, sizeof(int), stream);
    for (int k = 0; k < op->count && !error; k++)
        error = template_async(whole, &room, k, stream);
    if (error)
        return error;
    match_best<<<1, SORT, 0, stream>>>((const uint4 *)(scratch + room.list),
                                       (const int *)(scratch + room.listed), op->most,
                                       match_line(whole->width, whole->height), best, matches);
    error = cudaGetLastError();
    for (int k = 0; k < op->count && !error; k++) {
        struct match m = match_of(whole, &room, k);
        match_refine<<<(unsigned)op->most, dim3(LANES, NEIGHBOURS * NEIGHBOUR_WARPS), 0, stream>>>(
            m, best, matches);
        error = cudaGetLastError();
    }
    return error;
}

extern "C" size_t mark_constants(const struct op_mark *op, void *to)
{
    int3 *shape = (int3 *)to;
    for (int k = 0; k < op->count && to; k++)
        shape[k] = make_int3(op->templates[k].width, op->templates[k].height, op->value[k]);
    return sizeof *shape * (size_t)op->count;
}

extern "C" cudaError_t mark_async(const struct whole *whole, cudaStream_t stream)
{
    const struct op_mark *op = &whole->op->mark;
    struct mark m = {.from = whole->from,
                     .to = whole->to,
                     .from_stride = whole->from_stride,
                     .to_stride = whole->to_stride,
                     .width = whole->width,
                     .height = whole->height,
                     .shift_x = op->shift_x,
                     .shift_y = op->shift_y,
                     .matches = (const struct op_matches *)whole->reads,
                     .shape = (const int3 *)whole->constants};
    const dim3 grid = blocks_of(m.width, m.height, LANES, 8), block = dim3(LANES, 8);
    const dim3 frames = dim3((unsigned)op->most, 8);
    if (whole->depth > 8) {
        mark_copy<uint16_t><<<grid, block, 0, stream>>>(m);
        mark_frames<uint16_t><<<frames, 128, 0, stream>>>(m);
    } else {
        mark_copy<uint8_t><<<grid, block, 0, stream>>>(m);
        mark_frames<uint8_t><<<frames, 128, 0, stream>>>(m);
    }
    return cudaGetLastError();
}
