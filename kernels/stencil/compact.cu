// Separable filters, convolutions and boxes of up to five columns and rows on bytes at any address, and on
// pixels of up to four of them.
//
// A warp goes down a strip of 128 columns, a lane four of them, two rows at a time: what a stencil keeps
// of the rows above is each lane's own, in registers, and neighbours along a row come from the lanes
// beside it by shuffles. The outermost lanes have columns around the 120 of results only. A row of results
// goes by way of shared memory, so that a warp writes words side by side.
//
//   separable    two rows' samples of a column side by side in a word: dp2a multiplies both with their
//                taps. Then along the row in 32 bits.
//   convolve     each row adds to the sums of all results that it is within reach of: two sums in a
//                word, with room for weights whose sizes sum to 128
//   box          each row's own sums are added in the same way
//
// Two numbers in a word: H. S. Warren, Hacker's Delight, 2012, section 2-18.
#define DEPENDENT_LAUNCHES
#include "kernels/stencil/compact.h"

#include <assert.h>
#include <stdlib.h>

#include <algorithm>

#include "kernels/pixels.cuh"
#include "kernels/recording.cuh"
#include "kernels/stencil/convolve.cuh"

enum {
    STRIP_COLUMNS = (WARP - 2) * VEC4, // of results
    COMPACT_RADIUS = 2,                // at most
    MOST_WEIGHTS = (2 * COMPACT_RADIUS + 1) * (2 * COMPACT_RADIUS + 1),
    WEIGHT_SIZES = 128, // of all weights, at most
    LEAST_ROWS = 4,     // of results that a warp makes ...
    MOST_ROWS = 16,     // ... as many as leave so many warps
    COMPACT_WARPS = 132 * 24,
};

struct compact {
    struct source source;
    struct sink sink;
    unsigned kept, filled;
    int rows; // of results that a warp makes, an even number
    // Separable: 2 radius + 1 taps from first to last, with zeros before and behind.
    const int32_t *tap_x, *tap_y;
    int shift_x, shift_y;
    // Convolve: row by row, of a square of 2 radius + 1.
    int16_t weight[MOST_WEIGHTS];
    struct convolve_end end;
    bool whole; // results are the sums, or their sizes, within limits
    // Box.
    uint32_t half, reciprocal;
};

// ---- rows in ----

// A lane's four pixels.
struct lane {
    int x;
    bool inner;        // all of them are the picture's
    int column[VEC4];  // else: those that the border rule puts there; -1: the border value
    uint32_t beyond;   // bytes of ones where there is the border value
    const uint8_t *at; // in row 0, if it is an inner one
};

// The words of four pixels in a row, as they were asked for; `shift` bytes belong to what is before them.
template <int SAMPLES> struct row_words {
    uint32_t word[SAMPLES + 1];
    int shift;
    bool outside; // the row is beyond the picture, and of the border value
};

static __device__ inline struct lane lane_of(const struct compact *n, int samples)
{
    struct lane lane = {.x = (int)(blockIdx.x * STRIP_COLUMNS + threadIdx.x * VEC4) - VEC4};
    lane.inner = lane.x >= 0 && lane.x + VEC4 <= n->source.width;
    for (int i = 0; i < VEC4; i++) {
        int x = lane.x + i;
        lane.column[i] = lane.inner ? x : extended_index(n->source.border, x, n->source.width);
        lane.beyond |= lane.column[i] < 0 ? 0xffu << 8 * i : 0;
    }
    lane.at = view_at(&n->source.view, lane.x * samples, 0);
    return lane;
}

// A row's pixels byte by byte, from columns and rows that the border rule puts there.
template <int SAMPLES>
static __device__ inline void row_gather(const struct compact *n, const struct lane *lane, int y,
                                         struct row_words<SAMPLES> *to)
{
    int row = extended_index(n->source.border, y, n->source.height);
    const uint8_t *at = view_at(&n->source.view, 0, max(row, 0));
    to->outside = row < 0;
    to->shift = 0;
    for (int k = 0; k < SAMPLES; k++) {
        to->word[k] = 0;
        for (int i = 0; i < 4; i++) {
            int column = max(lane->column[(4 * k + i) / SAMPLES], 0);
            to->word[k] |= (uint32_t)frame_load(at + column * SAMPLES + (4 * k + i) % SAMPLES)
                           << 8 * i;
        }
    }
}

// Rows y and y + 1. Words around pixels are the picture's own but for those of its first and last row.
template <int SAMPLES>
static __device__ inline void rows_load(const struct compact *n, const struct lane *lane, int y,
                                        struct row_words<SAMPLES> to[2])
{
    bool within = y >= 1 && y + 2 < n->source.height;
    if (!within || !lane->inner) {
        for (int k = 0; k < 2; k++)
            row_gather(n, lane, y + k, &to[k]);
        return;
    }
    const uint8_t *at = lane->at + (int64_t)y * n->source.view.stride;
    for (int k = 0; k < 2; k++) {
        to[k].outside = false;
        to[k].shift = (int)((uintptr_t)at & 3);
        for (int i = 0; i <= SAMPLES; i++)
            to[k].word[i] = frame_load((const uint32_t *)(at - to[k].shift) + i);
        at += n->source.view.stride;
    }
}

// A word of each component, and the border value where that is.
template <int SAMPLES>
static __device__ inline void row_take(const struct compact *n, const struct lane *lane,
                                       const struct row_words<SAMPLES> *from,
                                       uint32_t plane[SAMPLES])
{
    uint32_t word[SAMPLES], border = (uint32_t)n->source.border_value * 0x1010101u;
    uint32_t beyond = from->outside ? ~0u : lane->beyond;
    for (int k = 0; k < SAMPLES; k++)
        word[k] = __funnelshift_r(from->word[k], from->word[k + 1], 8 * from->shift);
    for (int k = 0; k < SAMPLES; k++)
        plane[k] = (word_of_samples<uint8_t>(word, k, SAMPLES) & ~beyond) | (border & beyond);
}

// ---- neighbours along a row ----

static __device__ inline uint32_t left_of(uint32_t word)
{
    return __shfl_up_sync(~0u, word, 1);
}

static __device__ inline uint32_t right_of(uint32_t word)
{
    return __shfl_down_sync(~0u, word, 1);
}

// Samples 0 and 2 from column k - RADIUS on, in lanes of 16 bits, for all k up to 2 RADIUS + 1: those of
// k + 1 are 1 and 3 of k.
template <int RADIUS>
static __device__ inline void row_lanes(uint32_t word, uint32_t lanes[2 * RADIUS + 2])
{
    uint32_t left = left_of(word), right = right_of(word);
    for (int k = 0; k < 2 * RADIUS + 2; k++) {
        int x = k - RADIUS;
        uint32_t from = x < 0 ? __funnelshift_r(left, word, 32 + 8 * x)
                        : x   ? __funnelshift_r(word, right, 8 * x)
                              : word;
        lanes[k] = from & 0x00ff00ff;
    }
}

// ---- stencils: what they keep of a component, and two rows of results from two rows more ----
//
// take() has the rows y and y + 1, and makes y - radius and y - radius + 1, two words; the first ones, before
// as many rows have come, are nothing. What stays as it is goes through delay() instead.

template <int RADIUS_> struct compact_separable {
    enum { RADIUS = RADIUS_, PAIRS = RADIUS + 1 };
    uint32_t pair[PAIRS][2]; // two rows' samples side by side: columns 0 and 1, 2 and 3

    // Taps down the columns for the first row of a pair, and for the second.
    struct constants {
        uint32_t first[PAIRS], second[PAIRS];
        int x[RADIUS + 1];
    };

    static __device__ inline struct constants constants_of(const struct compact *n)
    {
        struct constants c;
        for (int k = 0; k < PAIRS; k++) {
            const int32_t *tap = n->tap_y + 2 * k;
            c.first[k] = (uint32_t)__ldg(tap) | (uint32_t)__ldg(tap + 1) << 16;
            c.second[k] = (uint32_t)__ldg(tap - 1) | (uint32_t)__ldg(tap) << 16;
        }
        for (int k = 0; k <= RADIUS; k++)
            c.x[k] = __ldg(n->tap_x + RADIUS + k);
        return c;
    }

    __device__ inline void shift()
    {
        for (int k = 0; k + 1 < PAIRS; k++)
            for (int i = 0; i < 2; i++)
                pair[k][i] = pair[k + 1][i];
    }

    __device__ inline void delay(uint32_t above, uint32_t below, uint32_t made[2])
    {
        shift();
        pair[RADIUS][0] = above;
        pair[RADIUS][1] = below;
        for (int k = 0; k < 2; k++)
            made[k] = pair[(RADIUS + k) / 2][(RADIUS + k) % 2];
    }

    // Four columns of t in two words.
    __device__ inline void down(const struct compact *n, const uint32_t taps[PAIRS],
                                uint32_t t[2]) const
    {
        uint32_t sum[VEC4], half = 1u << n->shift_y >> 1;
        for (int i = 0; i < VEC4; i++)
            sum[i] = half;
        for (int k = 0; k < PAIRS; k++)
            for (int i = 0; i < 2; i++) {
                sum[2 * i] = __dp2a_lo(taps[k], pair[k][i], sum[2 * i]);
                sum[2 * i + 1] = __dp2a_hi(taps[k], pair[k][i], sum[2 * i + 1]);
            }
        for (int i = 0; i < 2; i++)
            t[i] = __byte_perm(sum[2 * i] >> n->shift_y, sum[2 * i + 1] >> n->shift_y, 0x5410);
    }

    __device__ inline uint32_t along(const struct compact *n, const struct constants *c,
                                     const uint32_t t[2]) const
    {
        const uint32_t word[4] = {left_of(t[1]), t[0], t[1], right_of(t[0])};
        uint32_t value[2 * VEC4], sum[VEC4];
        for (int k = 0; k < 4; k++) {
            value[2 * k] = word[k] & 0xffff;
            value[2 * k + 1] = word[k] >> 16;
        }
        for (int i = 0; i < VEC4; i++) {
            sum[i] = (1u << n->shift_x >> 1) + (uint32_t)c->x[0] * value[2 + i];
            for (int k = 1; k <= RADIUS; k++)
                sum[i] += (uint32_t)c->x[k] * (value[2 + i - k] + value[2 + i + k]);
        }
        int made[VEC4];
        for (int i = 0; i < VEC4; i++)
            made[i] = (int)(sum[i] >> n->shift_x);
        vec4<uint8_t> four;
        vec4_set(&four, made);
        return four.word;
    }

    __device__ inline void take(const struct compact *n, const struct constants *c, uint32_t above,
                                uint32_t below, uint32_t made[2])
    {
        shift();
        pair[RADIUS][0] = __byte_perm(above, below, 0x5140);
        pair[RADIUS][1] = __byte_perm(above, below, 0x7362);
        uint32_t t[2][2];
        down(n, c->first, t[0]);
        down(n, c->second, t[1]);
        for (int k = 0; k < 2; k++)
            made[k] = along(n, c, t[k]);
    }
};

// Sums of results that rows are still to come for, the uppermost first: of samples 0 and 2, 1 and 3.
template <int RADIUS_> struct compact_sums {
    enum { RADIUS = RADIUS_, SIDE = 2 * RADIUS + 1 };
    uint32_t sum[SIDE][2];

    __device__ inline void delay(uint32_t above, uint32_t below, uint32_t made[2])
    {
        const uint32_t word[2] = {above, below};
        for (int k = 0; k < 2; k++) {
            for (int j = 0; j < RADIUS; j++)
                sum[j][0] = sum[j + 1][0];
            sum[RADIUS][0] = word[k];
            made[k] = sum[0][0];
        }
    }

    // The uppermost sums, which are whole; those of a new row of results begin.
    __device__ inline void finish(uint32_t whole[2])
    {
        for (int i = 0; i < 2; i++) {
            whole[i] = sum[0][i];
            for (int j = 0; j + 1 < SIDE; j++)
                sum[j][i] = sum[j + 1][i];
            sum[SIDE - 1][i] = 0;
        }
    }
};

template <int RADIUS_> struct compact_convolve : compact_sums<RADIUS_> {
    enum { RADIUS = RADIUS_, SIDE = 2 * RADIUS + 1 };
    struct constants {
    };

    static __device__ inline struct constants constants_of(const struct compact *)
    {
        return {};
    }

    // Two sums with a sign, of which the lower one has borrowed from the upper one where it is negative.
    static __device__ inline uint32_t apart(uint32_t sums)
    {
        return sums + ((sums & 0x8000) << 1);
    }

    // Two results of sums that nothing is added to, nor shifted out of.
    static __device__ inline uint32_t limited(const struct compact *n, uint32_t sums)
    {
        uint32_t lanes = apart(sums);
        if (n->end.absolute)
            lanes = __vmaxs2(lanes, apart(0 - sums));
        return lanes_clamp(lanes, n->end.low, n->end.high);
    }

    __device__ inline uint32_t row(const struct compact *n, uint32_t word)
    {
        uint32_t lanes[2 * RADIUS + 2], whole[2];
        row_lanes<RADIUS>(word, lanes);
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++) {
                int weight = n->weight[(SIDE - 1 - j) * SIDE + k];
                this->sum[j][0] += (uint32_t)weight * lanes[k];
                this->sum[j][1] += (uint32_t)weight * lanes[k + 1];
            }
        this->finish(whole);
        if (n->whole)
            return pairs_word({limited(n, whole[0]), limited(n, whole[1])});
        int value[VEC4];
        for (int i = 0; i < VEC4; i++) {
            uint32_t lanes = apart(whole[i % 2]);
            value[i] = convolved(&n->end, (int32_t)(i < 2 ? (int16_t)lanes : (int)lanes >> 16));
        }
        vec4<uint8_t> four;
        vec4_set(&four, value);
        return four.word;
    }

    __device__ inline void take(const struct compact *n, const struct constants *, uint32_t above,
                                uint32_t below, uint32_t made[2])
    {
        made[0] = row(n, above);
        made[1] = row(n, below);
    }
};

template <int RADIUS_> struct compact_box : compact_sums<RADIUS_> {
    enum { RADIUS = RADIUS_, SIDE = 2 * RADIUS + 1 };
    struct constants {
    };

    static __device__ inline struct constants constants_of(const struct compact *)
    {
        return {};
    }

    __device__ inline uint32_t row(const struct compact *n, uint32_t word)
    {
        uint32_t lanes[2 * RADIUS + 2], along[2] = {0, 0}, whole[2];
        row_lanes<RADIUS>(word, lanes);
        for (int k = 0; k < SIDE; k++)
            along[0] += lanes[k];
        along[1] = along[0] - lanes[0] + lanes[SIDE];
        for (int j = 0; j < SIDE; j++)
            for (int i = 0; i < 2; i++)
                this->sum[j][i] += along[i];
        this->finish(whole);
        int value[VEC4];
        for (int i = 0; i < VEC4; i++) {
            uint32_t sum = i < 2 ? whole[i % 2] & 0xffff : whole[i % 2] >> 16;
            value[i] = (int)__umulhi(sum + n->half, n->reciprocal);
        }
        vec4<uint8_t> four;
        vec4_set(&four, value);
        return four.word;
    }

    __device__ inline void take(const struct compact *n, const struct constants *, uint32_t above,
                                uint32_t below, uint32_t made[2])
    {
        made[0] = row(n, above);
        made[1] = row(n, below);
    }
};

// ---- results out ----

// Bytes from <= k < to of a word at `at`, a multiple of four.
static __device__ inline void store_word(uint8_t *at, uint32_t word, int from, int to)
{
    if (from <= 0 && to >= 4) {
        *(uint32_t *)at = word;
        return;
    }
    for (int k = 0; k < 4; k++)
        if (k >= from && k < to)
            at[k] = (uint8_t)(word >> 8 * k);
}

// A strip's row of pixels in shared memory, a warp's own: those of its first lane, which are none of
// the results, are where it begins.
template <int SAMPLES> struct strip_row {
    uint32_t word[(WARP + 1) * SAMPLES];
};

// Store a row of results, `count` bytes from `to` on, in words of memory side by side.
template <int SAMPLES>
static __device__ inline void row_store(struct strip_row<SAMPLES> *strip, uint8_t *to, int count,
                                        const uint32_t own[SAMPLES])
{
    __syncwarp(); // nobody reads the row before any more
    for (int k = 0; k < SAMPLES; k++)
        strip->word[threadIdx.x * SAMPLES + k] = own[k];
    __syncwarp();
    int shift = (int)((uintptr_t)to & 3), words = (count + shift + 3) / 4;
    if (((shift | count) & 3) == 0) {
        for (int k = 0; k < SAMPLES; k++) {
            int at = k * WARP + (int)threadIdx.x;
            if (at < words)
                ((uint32_t *)to)[at] = strip->word[SAMPLES + at];
        }
        return;
    }
    for (int k = 0; k < SAMPLES; k++) {
        int at = k * WARP + (int)threadIdx.x;
        const uint32_t *word = strip->word + SAMPLES + at;
        if (at < words)
            store_word(to - shift + 4 * at, __funnelshift_l(word[-1], word[0], 8 * shift),
                       shift - 4 * at, count + shift - 4 * at);
    }
}

// ---- kernel ----

// Two rows of results of each component. Of pixels of two or four samples the last may be one that
// stays, or a filler.
template <int SAMPLES, typename Stencil>
static __device__ inline void make_rows(const struct compact *n,
                                        const typename Stencil::constants *constants,
                                        Stencil stencil[SAMPLES], uint32_t plane[2][SAMPLES],
                                        uint32_t made[2][SAMPLES])
{
#pragma unroll
    for (int c = 0; c < SAMPLES; c++) {
        uint32_t both[2] = {~0u, ~0u};
        bool spared = SAMPLES % 2 == 0 && c == SAMPLES - 1 && (n->kept || n->filled);
        if (!spared)
            stencil[c].take(n, constants, plane[0][c], plane[1][c], both);
        else if (n->kept)
            stencil[c].delay(plane[0][c], plane[1][c], both);
        made[0][c] = both[0];
        made[1][c] = both[1];
    }
}

template <int SAMPLES, typename Stencil>
static __global__ void __launch_bounds__(WARP *WARPS, SAMPLES > 3 ? 2 : 3)
    compact_pixels(const __grid_constant__ struct compact n)
{
    __shared__ struct strip_row<SAMPLES> strips[WARPS];
    const struct lane lane = lane_of(&n, SAMPLES);
    int first = (blockIdx.y * WARPS + threadIdx.y) * n.rows;
    int last = min(first + n.rows, n.sink.height);
    if (first >= last)
        return; // the block's first warp has a row, and waits
    const typename Stencil::constants constants = Stencil::constants_of(&n);
    int column = blockIdx.x * STRIP_COLUMNS;
    int count = min(n.sink.width - column, (int)STRIP_COLUMNS) * SAMPLES;
    uint8_t *to = view_at(&n.sink.view[0], column * SAMPLES, first);
    Stencil stencil[SAMPLES] = {};
    struct row_words<SAMPLES> next[2];
    await_previous_kernel();
    for (int y = first - 2 * Stencil::RADIUS - 2; y < last; y += 2) {
        uint32_t plane[2][SAMPLES], made[2][SAMPLES];
        bool begun = y >= first - 2 * Stencil::RADIUS;
        for (int k = 0; k < 2 && begun; k++)
            row_take(&n, &lane, &next[k], plane[k]);
        if (y + 2 < last)
            rows_load(&n, &lane, y + 2 + Stencil::RADIUS, next);
        if (!begun)
            continue;
        make_rows(&n, &constants, stencil, plane, made);
        for (int k = 0; k < 2 && y >= first && y + k < last; k++) {
            uint32_t pixels[SAMPLES];
            for (int i = 0; i < SAMPLES; i++)
                pixels[i] = word_of_pixels<uint8_t, SAMPLES>(made[k], 1, i);
            row_store<SAMPLES>(&strips[threadIdx.y], to, count, pixels);
            to += n.sink.view[0].stride;
        }
    }
}

// ---- which stencils ----

static bool are_taps(const int32_t *tap, int radius)
{
    for (int k = 0; k <= radius; k++)
        if (tap[k] < 0 || tap[k] > UINT16_MAX)
            return false;
    return true;
}

static bool takes_separable(const struct op_separable *op)
{
    return op->bits >= op->fraction && op->radius_x == op->radius_y && op->radius_x >= 1 &&
           op->radius_x <= COMPACT_RADIUS && !op->decimate_x && !op->decimate_y && !op->amount &&
           op->fraction <= 8 && op->bits <= 15 && are_taps(op->tap_x, op->radius_x) &&
           are_taps(op->tap_y, op->radius_y);
}

static int64_t weight_of(const struct op_convolve *op, int row, int column)
{
    int64_t weight = op->rank ? 0 : op->weight[row * op->width + column];
    for (int r = 0; r < op->rank; r++)
        weight += (int64_t)op->line_y[r][row] * op->line_x[r][column];
    return weight;
}

// Weights that all divide by two say the same with a bit less of fraction. Returns the radius of the
// square around a result's place that has them, as small as they can be; 0: they do not fit.
static int set_weights(const struct op_convolve *op, struct compact *n)
{
    int radius = max(max(op->origin_x, op->width - 1 - op->origin_x),
                     max(op->origin_y, op->height - 1 - op->origin_y));
    int side = 2 * radius + 1, shift = 0;
    int64_t sizes = 0, all = 0;
    if (radius > COMPACT_RADIUS || op->column_shift || llabs(op->offset) > 1 << 30)
        return 0;
    for (int k = 0; k < op->width * op->height; k++)
        all |= weight_of(op, k / op->width, k % op->width);
    while (shift < op->bits && !(all >> shift & 1))
        shift++;
    for (int k = 0; k < op->width * op->height; k++) {
        int row = k / op->width, column = k % op->width;
        int64_t weight = weight_of(op, row, column) >> shift;
        sizes += llabs(weight);
        if (sizes > WEIGHT_SIZES)
            return 0;
        n->weight[(row - op->origin_y + radius) * side + column - op->origin_x + radius] =
            (int16_t)weight;
    }
    n->end = convolve_end_of(op);
    n->end.bits -= shift;
    if (n->end.bits > 31)
        return 0;
    n->end.offset >>= shift;
    n->whole = !n->end.bits && !n->end.offset && !n->end.base;
    return radius;
}

static bool is_of_bytes(const struct view *view)
{
    return view->bytes == 1 && view->step == 1;
}

// A box's sums are divided by a product with the reciprocal of how many samples they have: exact for
// odd numbers of these, up to 2^15.
static void set_reciprocal(int radius, struct compact *n)
{
    uint32_t count = (uint32_t)((2 * radius + 1) * (2 * radius + 1));
    n->half = count / 2;
    n->reciprocal = UINT32_MAX / count + 1;
}

// Kernels by the number of a pixel's samples.
typedef void compact_kernel(struct compact n);
#define KERNELS(...)                                                       \
    {                                                                      \
        compact_pixels<1, __VA_ARGS__>, compact_pixels<2, __VA_ARGS__>,    \
            compact_pixels<3, __VA_ARGS__>, compact_pixels<4, __VA_ARGS__> \
    }

// Choose the kernel of a stencil, and set what it needs of it but taps; NULL: there is none.
static compact_kernel *choose_kernel(const struct op *op, int samples, struct compact *n)
{
    static compact_kernel *const separable[COMPACT_RADIUS][FORMAT_COMPONENTS] = {
        KERNELS(compact_separable<1>), KERNELS(compact_separable<2>)};
    static compact_kernel *const convolve[COMPACT_RADIUS][FORMAT_COMPONENTS] = {
        KERNELS(compact_convolve<1>), KERNELS(compact_convolve<2>)};
    static compact_kernel *const box[COMPACT_RADIUS][FORMAT_COMPONENTS] = {KERNELS(compact_box<1>),
                                                                           KERNELS(compact_box<2>)};
    if (op->kind == OP_SEPARABLE && takes_separable(&op->separable)) {
        n->shift_y = op->separable.bits - op->separable.fraction;
        n->shift_x = op->separable.bits + op->separable.fraction;
        return separable[op->separable.radius_x - 1][samples - 1];
    }
    if (op->kind == OP_CONVOLVE) {
        int radius = set_weights(&op->convolve, n);
        return radius ? convolve[radius - 1][samples - 1] : NULL;
    }
    if (op->kind == OP_BOX && op->box.radius_x == op->box.radius_y && op->box.radius_x >= 1 &&
        op->box.radius_x <= COMPACT_RADIUS) {
        set_reciprocal(op->box.radius_x, n);
        return box[op->box.radius_x - 1][samples - 1];
    }
    return NULL;
}

bool compact_takes(const struct op *op, int samples, unsigned spared)
{
    struct compact n = {};
    bool last = samples % 2 == 0 && spared == 1u << (samples - 1);
    return (!spared || last) && choose_kernel(op, samples, &n);
}

// As many rows of results as leave enough warps, an even number.
static int rows_of_warp(const struct sink *sink)
{
    int strips = (sink->width + STRIP_COLUMNS - 1) / STRIP_COLUMNS * sink->frames;
    int rows = (sink->height * strips / COMPACT_WARPS + 2) / 2 * 2;
    return std::min(std::max(rows, (int)LEAST_ROWS), (int)MOST_ROWS);
}

cudaError_t compact_async(const struct compact_stencil *compact, cudaStream_t stream)
{
    const struct stencil *stencil = &compact->stencil;
    struct compact n = {
        .source = stencil->source,
        .sink = stencil->sink,
        .kept = compact->kept,
        .filled = compact->filled,
        .tap_x = stencil->constants[0],
        .tap_y = stencil->constants[1],
    };
    compact_kernel *kernel = choose_kernel(stencil->op, compact->samples, &n);
    assert(kernel && stencil->depth == 8 && stencil->sink.views == 1);
    assert(compact_takes(stencil->op, compact->samples, compact->kept | compact->filled));
    assert(is_of_bytes(&stencil->source.view) && is_of_bytes(&stencil->sink.view[0]));
    assert(!stencil->source.lookup.table && !stencil->sink.lookup.table);
    n.rows = rows_of_warp(&n.sink);
    kernel_launch_dependent(
        kernel,
        grid_shape(n.sink.width, n.sink.height, n.sink.frames, STRIP_COLUMNS, WARPS * n.rows),
        block_shape(), (size_t)0, stream, n);
    if (stencil->op->kind != OP_SEPARABLE)
        recording_mark_frames_alone();
    return cudaGetLastError();
}
