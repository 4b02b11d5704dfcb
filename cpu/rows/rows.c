// Compiled once per instruction-set level with ROWS_TABLE naming the table and ROWS_NAME its level.
#include "cpu/rows/rows.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/rows/lanes.h"
#include "cpu/rows/packed.h"

// Functions that row kernels are made of: inlined, so that their constants are known.
#define INLINE static inline __attribute__((always_inline))

// Before a loop whose rows are the same or apart.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

// In a loop over weights around one over samples. GCC would join the loops over samples of two
// weights and not make vectors of that one. Elsewhere lanes do what the plain loops do here.
#ifdef __aarch64__
#define ONE_BY_ONE __asm__ volatile("")
#else
#define ONE_BY_ONE
#endif

// Filters, gradients, mixes and convolutions are made of lanes where the sum of two products is one
// instruction. Of NEON's it takes four, and plain loops take fewer for all of the kernel
// (tests/reference/predictions-cpu.md).
#if defined(SIMD_LANES) && !defined(ROWS_SIMDE)
#define LANES_SUMS
#endif

enum {
    BLOCK = 64,
// Sums that stay in registers: as many rows as these have room for.
#if !defined(LANES_SUMS)
    VERTICAL_ROWS = 1,
#elif SIMD_LANES == 32
    VERTICAL_ROWS = 4,
#else
    VERTICAL_ROWS = 2,
#endif
#ifdef LANES_ADD_SOME
    VERTICAL_TALL = 2 * VERTICAL_ROWS,
#else
    VERTICAL_TALL = VERTICAL_ROWS,
#endif
};

static inline int clamp_int(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

// The largest integer whose square is at most `value` < 2^62, from the double root and a mend.
static inline int64_t square_root(int64_t value)
{
    int64_t root = (int64_t)sqrt((double)value);
    root -= root * root > value;
    root += (root + 1) * (root + 1) <= value;
    return root;
}

static void mix_add(const uint32_t *from, int from_width, int up, bool cosited, int weight,
                    int64_t *sum, int width)
{
    if (up == 0) {
        for (int x = 0; x < width; x++)
            sum[x] += (int64_t)weight * (4 * (int64_t)from[x]);
        return;
    }
    for (int x = 0; x < width; x++) {
        int64_t v = 0;
        if (up > 0) {
            int position = (8 * x - (cosited ? 0 : 4 * ((1 << up) - 1))) >> (up + 1);
            int m = position >> 2, f = position & 3;
            v = (int64_t)(4 - f) * from[clamp_int(m, 0, from_width - 1)] +
                (int64_t)f * from[clamp_int(m + 1, 0, from_width - 1)];
        } else {
            for (int k = 0; k < 1 << -up; k++)
                v += (4 >> -up) * (int64_t)from[clamp_int((x << -up) + k, 0, from_width - 1)];
        }
        sum[x] += weight * v;
    }
}

// Grid samples of `cells` at most BLOCK, where all fits 32 bits. What a sample adds to the grid
// place before it and to the one after it adds up to d times the sample.
INLINE void tent_block(const uint32_t *sum, int decimate, int fraction, int shift,
                       uint16_t *restrict to, int cells)
{
    int d = 1 << decimate;
    uint32_t before[BLOCK], after[BLOCK + 1], half = UINT32_C(1) << shift >> 1;
    for (int m = 0; m <= cells; m++) {
        uint32_t total = 0, later = 0;
        for (int a = 0; a < d; a++) {
            total += sum[m * d + a];
            later += (uint32_t)a * sum[m * d + a];
        }
        if (m > 0)
            before[m - 1] = (uint32_t)d * total - later;
        after[m] = later;
    }
    for (int m = 0; m < cells; m++)
        to[m] = (uint16_t)((((before[m] + after[m]) << fraction) + half) >> shift);
}

static void tent_finish_wide(const uint32_t *sum, int decimate, int fraction, int shift,
                             uint16_t *to, int width)
{
    int d = 1 << decimate;
    uint64_t half = shift ? UINT64_C(1) << (shift - 1) : 0;
    for (int m = 0; m < width; m++) {
        const uint32_t *center = sum + (size_t)(m + 1) * (size_t)d;
        uint64_t total = (uint64_t)d * center[0];
        for (int a = 1; a < d; a++)
            total += (uint64_t)(d - a) * ((uint64_t)center[-a] + center[a]);
        to[m] = (uint16_t)(((total << fraction) + half) >> shift);
    }
}

// A sample at 16 bits grows by `shift` bits.
static void tent_finish(const uint32_t *sum, int decimate, int fraction, int shift, uint16_t *to,
                        int width)
{
    if (shift > 16 || decimate > 3) {
        tent_finish_wide(sum, decimate, fraction, shift, to, width);
        return;
    }
    for (int m = 0; m < width; m += BLOCK) {
        const uint32_t *from = sum + ((size_t)m << decimate);
        int cells = min_int(BLOCK, width - m);
        if (decimate == 1)
            tent_block(from, 1, fraction, shift, to + m, cells);
        else if (decimate == 2)
            tent_block(from, 2, fraction, shift, to + m, cells);
        else
            tent_block(from, decimate, fraction, shift, to + m, cells);
    }
}

static void blend(const uint16_t *above, const uint16_t *below, uint32_t weight_above,
                  uint32_t weight_below, uint32_t *to, int width)
{
    for (int x = 0; x < width; x++)
        to[x] = weight_above * above[x] + weight_below * below[x];
}

// Sums of neighbours as they slide along a row: what enters, what leaves after it, and `running`
// what is there before. Returns what is there at the end.
INLINE uint32_t slide(const uint32_t *entering, const uint32_t *leaving, uint32_t running,
                      uint32_t *restrict total, int columns)
{
    int x = 0;
#ifdef SIMD_LANES
    lanes32 before = lanes_all(running);
    for (; x + SIMD_LANES / 2 <= columns; x += SIMD_LANES / 2) {
        lanes32 out = (lanes32)lanes_load(leaving + x);
        lanes32 change = lanes_running((lanes32)lanes_load(entering + x) - out);
        lanes_store(total + x, (lanes16)(before + change + out));
        before += lanes_last(change);
    }
    running = before[0];
#endif
    for (; x < columns; x++) {
        running += entering[x];
        total[x] = running;
        running -= leaving[x];
    }
    return running;
}

#ifdef SIMD_LANES
// Sums of even and odd columns in turn.
struct turns {
    lanes32 even[4], odd[4];
};

// Weighted sums of SIMD_LANES bytes in 32 bits, in the order of lanes_low() and lanes_high().
struct weighed {
    lanes32 low, high;
};

static inline bool weight_fits(int weight)
{
    return weight < 1 << 22 && weight >= -(1 << 22);
}

// Add values of bytes, by sums of two products: weight = 128 coarse + fine.
INLINE void weigh_lanes(struct weighed *sum, lanes16 value, int weight)
{
    lanes16 taps = (lanes16)lanes_all((uint32_t)(weight & 127) | (uint32_t)(weight >> 7) << 16);
    lanes16 fine = value, coarse = value << 7;
    sum->low = lanes_madd(sum->low, lanes_low(fine, coarse), taps);
    sum->high = lanes_madd(sum->high, lanes_high(fine, coarse), taps);
}

// The sums without 16 bits of fraction.
INLINE lanes16 weighed_lanes(const struct weighed *sum, int low, int high)
{
    lanes16 least = (lanes16){0} + (uint16_t)low, most = (lanes16){0} + (uint16_t)high;
    lanes16 y = lanes_pack((lanes32s)sum->low >> 16, (lanes32s)sum->high >> 16);
    return lanes_min(lanes_max(y, least), most);
}

// POINT_RANGES of bytes. `plain` says that nothing is flipped or added.
INLINE lanes8x2 lanes_point(const struct point *f, bool plain, lanes8x2 value)
{
    lanes8x2 y = plain ? value : (value ^ (uint8_t)f->flip) + (uint8_t)f->add;
    y = lanes_choose_8(value, lanes_all_8(f->low), lanes_all_8(f->below), y);
    return lanes_choose_8(lanes_all_8(f->high), value, lanes_all_8(f->above), y);
}

// A value's limits where the constants at both ends carry the slope on, as a saturating sum's do: they
// are what the slope makes of the limits.
struct limits_8 {
    lanes8x2 least, most, flip, add;
};

INLINE bool limits_of_point(const struct point *f, struct limits_8 *limits)
{
    int least = ((f->below - f->add) & 255) ^ f->flip, most = ((f->above - f->add) & 255) ^ f->flip;
    *limits = (struct limits_8){lanes_all_8(least), lanes_all_8(most), lanes_all_8(f->flip),
                                lanes_all_8(f->add)};
    return f->low <= f->high && (least == f->low || least == f->low - 1) &&
           (most == f->high || most == f->high + 1);
}

INLINE lanes8x2 lanes_limit(const struct limits_8 *f, lanes8x2 value)
{
    return (lanes_min_8(lanes_max_8(value, f->least), f->most) ^ f->flip) + f->add;
}

enum { CACHE_LINE = 64 };

// How many bytes behind `to` a vector's boundary is: at least one, at most a vector.
INLINE int first_boundary(const uint8_t *to)
{
    const int lanes = 2 * SIMD_LANES;
    return lanes - (int)((uintptr_t)to % (unsigned)lanes);
}

// `count` vectors side by side.
INLINE void lanes_point_store(const struct point *f, const struct limits_8 *limits,
                              const uint8_t *from, uint8_t *to, int count)
{
    const int lanes = 2 * SIMD_LANES;
    lanes8x2 value[4];
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
        value[k] = (lanes8x2)lanes_load(from + k * lanes);
#pragma GCC unroll 4
    for (int k = 0; k < count; k++)
        lanes_store(to + k * lanes, (lanes16)(limits ? lanes_limit(limits, value[k])
                                                     : lanes_point(f, false, value[k])));
}

// POINT_RANGES of a row of a vector's bytes or more; `limits` are its, or NULL, and `between` those of
// vectors between the first and the last, which may begin at another place in a pixel. First and last
// vector lie anywhere, those between on a vector's boundary: stores across lines of the cache, of which
// arrays of other programs have one a vector, take a tenth longer. Four vectors at once take as long as
// memcpy(); one at a time takes up to 1.7 times as long out of the second cache at some times of a
// virtual machine. Samples that both of two vectors have are made twice. Lines of this row alone are
// asked for ahead: those behind it may be another thread's.
INLINE void lanes_point_row(const struct point *ranges, const struct limits_8 *limits,
                            const struct limits_8 *between, const uint8_t *restrict from,
                            uint8_t *restrict to, int width)
{
    const struct point f = *ranges;
    const int lanes = 2 * SIMD_LANES, last = width - lanes;
    int x = first_boundary(to);
    lanes_point_store(&f, limits, from, to, 1);
    for (; f.ahead && x < last - 3 * lanes - f.ahead; x += 4 * lanes) {
        for (int line = 0; line < 4 * lanes; line += CACHE_LINE)
            __builtin_prefetch(to + x + f.ahead + line, 1);
        lanes_point_store(&f, between, from + x, to + x, 4);
    }
    for (; x < last - 3 * lanes; x += 4 * lanes)
        lanes_point_store(&f, between, from + x, to + x, 4);
    for (; x < last; x += lanes)
        lanes_point_store(&f, between, from + x, to + x, 1);
    lanes_point_store(&f, limits, from + last, to + last, 1);
}

// The limits of a vector that begins `first` bytes into a pattern: what is kept has none, and nothing is
// flipped or added there; what is filled is limited to all bits.
INLINE struct limits_8 limits_of_spared(const struct limits_8 *f, const struct spared *spared,
                                        int first)
{
    uint8_t kept[2 * SPARED_BYTES], filled[2 * SPARED_BYTES];
    memcpy(kept, spared->kept, SPARED_BYTES);
    memcpy(kept + SPARED_BYTES, spared->kept, SPARED_BYTES);
    memcpy(filled, spared->filled, SPARED_BYTES);
    memcpy(filled + SPARED_BYTES, spared->filled, SPARED_BYTES);
    lanes8x2 stays = (lanes8x2)lanes_load(kept + first);
    lanes8x2 fills = (lanes8x2)lanes_load(filled + first), both = stays | fills;
    return (struct limits_8){(f->least & ~stays) | fills, f->most | both, f->flip & ~both,
                             f->add & ~both};
}

static bool point_spared(const uint8_t *from, const struct point *f, const struct spared *spared,
                         uint8_t *to, int width)
{
    struct limits_8 limits;
    if (f->kind != POINT_RANGES || width < 2 * SIMD_LANES || from == to ||
        !limits_of_point(f, &limits))
        return false;
    const struct limits_8 ends = limits_of_spared(&limits, spared, 0);
    const struct limits_8 between =
        limits_of_spared(&limits, spared, first_boundary(to) % SPARED_BYTES);
    lanes_point_row(f, &ends, &between, from, to, width);
    return true;
}
#endif

#ifdef PACKED_BYTES
// Loops of their own for each distance, in which it is a constant.
static void gather_bytes(const uint8_t *from, int step, int offset, uint8_t *to, int width)
{
    if (step == 2)
        packed_gather(from, 2, offset, to, width);
    else if (step == 3)
        packed_gather(from, 3, offset, to, width);
    else
        packed_gather(from, 4, offset, to, width);
}

static bool load_pixels(const uint8_t *from, const struct component *const *at, int count,
                        void *const *to, int width)
{
    int offset[PACKED_STEPS], step = at[0]->step;
    for (int c = 0; c < count; c++) {
        offset[c] = at[c]->offset;
        if (at[c]->bytes != 1 || at[c]->shift || at[c]->step != step ||
            !packed_fits(step, offset[c], width))
            return false;
    }
    if (step == 3 && count == 3)
        packed_gather_some(from, 3, 3, offset, to, width);
    else if (step == 4 && count == 3)
        packed_gather_some(from, 4, 3, offset, to, width);
    else if (step == 4 && count == 4)
        packed_gather_some(from, 4, 4, offset, to, width);
    else if (step == 2 && count == 2)
        packed_gather_some(from, 2, 2, offset, to, width);
    else
        return false;
    return true;
}

static bool store_pixels(const struct pixels *pixels, uint8_t *to, int width)
{
    if (width < PACKED_SAMPLES)
        return false;
    if (pixels->count == 2)
        packed_interleave(pixels, 2, to, width);
    else if (pixels->count == 3)
        packed_interleave(pixels, 3, to, width);
    else
        packed_interleave(pixels, 4, to, width);
    return true;
}

static void scatter_bytes(const uint8_t *from, uint8_t *to, int step, int offset, int width)
{
    if (step == 2)
        packed_scatter(from, to, 2, offset, width);
    else if (step == 3)
        packed_scatter(from, to, 3, offset, width);
    else
        packed_scatter(from, to, 4, offset, width);
}
#endif

INLINE void store_some_16(const struct pixels *pixels, int count, sample16 *restrict to, int width)
{
    const uint16_t *restrict from[FORMAT_COMPONENTS];
    for (int c = 0; c < count; c++)
        from[c] = pixels->from[c];
    for (int x = 0; x < width; x++)
        for (int c = 0; c < count; c++)
            to[x * count + c] = from[c][x];
}

static void store_pixels_16(const struct pixels *pixels, sample16 *to, int width)
{
    if (pixels->count == 2)
        store_some_16(pixels, 2, to, width);
    else if (pixels->count == 3)
        store_some_16(pixels, 3, to, width);
    else
        store_some_16(pixels, 4, to, width);
}

// Whole patterns are loops of a constant length, which become vectors.
static void spare(const uint8_t *restrict from, const struct spared *spared, uint8_t *restrict to,
                  int bytes)
{
    const struct spared f = *spared;
    int x = 0;
    for (; x + SPARED_BYTES <= bytes; x += SPARED_BYTES) {
        INDEPENDENT
        for (int k = 0; k < SPARED_BYTES; k++)
            to[x + k] =
                (uint8_t)((to[x + k] & ~f.kept[k]) | (from[x + k] & f.kept[k]) | f.filled[k]);
    }
    for (int k = 0; x + k < bytes; k++)
        to[x + k] = (uint8_t)((to[x + k] & ~f.kept[k]) | (from[x + k] & f.kept[k]) | f.filled[k]);
}

#define SAMPLE uint8_t
#define DIFFERENCE int16_t
#define ROOT float
#define ROOT_OF(value) sqrtf(value)
#define ROWS(name) name##_8
#include "cpu/rows/rows.inc"
#include "cpu/rows/pointwise.inc"
#include "cpu/rows/separable.inc"
#include "cpu/rows/lines.inc"
#include "cpu/rows/gradient.inc"
#define SUM float
#define FLOOR floorf
#define SUMS(name) name##_8_single
#include "cpu/rows/convolve.inc"
#undef SUM
#undef FLOOR
#undef SUMS
#define SUM double
#define FLOOR floor
#define SUMS(name) name##_8_double
#include "cpu/rows/convolve.inc"
#undef SUM
#undef FLOOR
#undef SUMS
#undef SAMPLE
#undef DIFFERENCE
#undef ROOT
#undef ROOT_OF
#undef ROWS

#define SAMPLE sample16
#define DIFFERENCE int32_t
#define ROOT double
#define ROOT_OF(value) sqrt(value)
#define ROWS(name) name##_16
#include "cpu/rows/rows.inc"
#include "cpu/rows/pointwise.inc"
#include "cpu/rows/separable.inc"
#include "cpu/rows/lines.inc"
#include "cpu/rows/gradient.inc"
#define SUM float
#define FLOOR floorf
#define SUMS(name) name##_16_single
#include "cpu/rows/convolve.inc"
#undef SUM
#undef FLOOR
#undef SUMS
#define SUM double
#define FLOOR floor
#define SUMS(name) name##_16_double
#include "cpu/rows/convolve.inc"
#undef SUM
#undef FLOOR
#undef SUMS
#undef SAMPLE
#undef DIFFERENCE
#undef ROOT
#undef ROOT_OF
#undef ROWS

#include "cpu/rows/wavelet.inc"

// Between depths of different sample types.
static void widen(const void *from_, const uint16_t *table, void *to_, int width)
{
    const uint8_t *from = from_;
    sample16 *restrict to = to_;
    for (int x = 0; x < width; x++)
        to[x] = table[from[x]];
}

static bool any_bit(const sample16 *from, uint16_t mask, int width)
{
    uint16_t any = 0;
    int x = 0;
#ifdef SIMD_LANES
    lanes16 all[4] = {{0}};
    for (; x + 4 * SIMD_LANES <= width; x += 4 * SIMD_LANES)
        UNROLL
    for (int k = 0; k < 4; k++)
        all[k] |= lanes_load(from + x + k * SIMD_LANES);
    all[0] |= all[1] | all[2] | all[3];
    for (int k = 0; k < SIMD_LANES; k++)
        any |= all[0][k];
#endif
    for (; x < width; x++)
        any |= from[x];
    return any & mask;
}

static void narrow(const void *from_, const uint16_t *table, void *to_, int width)
{
    const sample16 *from = from_;
    uint8_t *restrict to = to_;
    for (int x = 0; x < width; x++)
        to[x] = (uint8_t)table[from[x]];
}

#include "cpu/rows/match.inc"
#ifdef SIMD_LANES
#include "cpu/rows/box.inc"
#endif
#ifdef LANES_BYTES
#include "cpu/rows/convolve_bytes.inc"
#endif

#define BOTH(name)          \
    {                       \
        name##_8, name##_16 \
    }
#define BOTH_SUMS(name)                       \
    {                                         \
        {name##_8_single, name##_16_single},  \
        {                                     \
            name##_8_double, name##_16_double \
        }                                     \
    }
extern const struct row_kernels ROWS_TABLE;
const struct row_kernels ROWS_TABLE = {
    .name = ROWS_NAME,
    .load = BOTH(load),
    .any_bit = any_bit,
    .store_pixels_16 = store_pixels_16,
    .spare = spare,
#ifdef SIMD_LANES
    .point_spared = point_spared,
#endif
    .store = BOTH(store),
    .point = BOTH(point),
    .widen = widen,
    .narrow = narrow,
#ifdef PACKED_BYTES
    .load_pixels = load_pixels,
    .store_pixels = store_pixels,
#endif
    .weigh = BOTH(weigh),
    .mix_add = mix_add,
    .mix_finish = BOTH(mix_finish),
    .mix_near = BOTH(mix_near),
    .rows_at_once = VERTICAL_ROWS,
    .vertical_rows = VERTICAL_TALL,
    .vertical = BOTH(vertical),
    .horizontal = BOTH(horizontal),
    .sharpen = BOTH(sharpen),
    .tent_add = BOTH(tent_add),
    .tent_finish = tent_finish,
    .blend = blend,
    .interpolate = BOTH(interpolate),
    .box_slide = BOTH(box_slide),
    .box_finish = BOTH(box_finish),
#ifdef SIMD_LANES
    .box_slide_narrow = box_slide_narrow,
    .box_finish_narrow = box_finish_narrow,
#endif
    .convolve = BOTH(convolve),
#ifdef LANES_BYTES
    .convolve_bytes_width = 2 * SIMD_LANES,
    .convolve_bytes = convolve_bytes,
#endif
    .convolve_real = BOTH_SUMS(convolve_real),
    .line_y = BOTH_SUMS(line_y),
    .line_x = BOTH_SUMS(line_x),
    .words_y = BOTH(words_y),
    .words_x = BOTH(words_x),
    .gradient = BOTH(gradient),
    .wavelet = {.load = BOTH(wavelet_load),
                .down = wavelet_down,
                .columns = wavelet_columns,
                .row = wavelet_row,
                .cells = wavelet_cells,
                .widen = wavelet_widen,
                .spline = wavelet_splines,
                .between = wavelet_between,
                .most = max_wavelet,
                .winner = wavelet_winner,
                .energy = wavelet_energy,
                .finish = BOTH(wavelet_finish)},
    .match_group = MATCH_GROUP,
    .match_load = match_load,
    .match_products = match_products,
    .match_slide = match_slide,
    .match_window = match_window,
    .match_round = match_round,
    .match_scores = match_scores,
};
