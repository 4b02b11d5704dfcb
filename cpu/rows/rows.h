// Row kernels: loops over one row of samples, without a branch inside.
//
// rows.c is compiled once for each level of the processor's instruction set, by the plain C
// compiler, and each gives one table of functions; rows_select() picks the best that this processor
// runs. Functions come in pairs for 8-bit samples in bytes [0] and deeper ones in 16 bits [1].
//
// All widths are in samples. Rows may overlap only where a comment says so; none needs alignment.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu/rows/point.h"
#include "cpu/rows/wavelet.h"
#include "plan/op.h"

// A sample of two bytes at any address: a uint16_t may be taken for one that lies at an even one.
typedef uint16_t sample16 __attribute__((aligned(1)));

// One axis of OP_SEPARABLE. Taps of at most 15 bits are also laid out as a line, tap[radius] ..
// tap[0] .. tap[radius], with ROW_TAPS_MARGIN zeros at both ends. An axis of OP_CONVOLVE has a line
// alone, of any 2 radius + 1 taps.
struct row_taps {
    const int32_t *tap;
    int radius, bits, bias;
    int sum;             // what the line's taps add up to
    const int16_t *line; // to its first tap; NULL when they do not fit
};

// A weight of a convolution, 32768 high + low, and the samples that the first column takes it of.
struct convolve_tap {
    const void *from;
    int16_t low, high;
};

// Two taps of a convolution of bytes: the row of the window and the column from the result's that
// each is of.
struct convolve_pair {
    int row[2], column[2];
    int8_t weight[2];
};

enum { CONVOLVE_PAIRS = 128, CONVOLVE_BYTES_SIDE = 15 };

// y = clamp(base + r + w, low, high), w the sum of the pairs from `scaled` on; r is (scale * s +
// offset) >> bits, s the sum of those before. Without these r = 0, w is (w or |w| if absolute, plus
// offset) >> bits. Sums and r + w fit 16 bits, as s << step does, scale * s + offset 32 bits.
struct convolve_bytes {
    struct convolve_pair pair[CONVOLVE_PAIRS];
    int scaled, pairs;
    int scale, step; // scale is below 2^(15 + step)
    int bits, offset;
    bool absolute;
    int base, low, high;
};

// Pixels of `count` components, 2 to 4: rows of samples of each, but for those of the bits of `kept`,
// which are those of `source`'s pixels. Lines of the cache are asked for, to be written, `ahead` bytes
// before that, those of the next row among them; 0: not.
struct pixels {
    int count;
    const void *from[FORMAT_COMPONENTS]; // of those that are kept any
    unsigned kept;
    const uint8_t *source; // (optional)
    int ahead;
};

enum { MAX_ROWS_AT_ONCE = 4, MAX_VERTICAL_ROWS = 8, ROW_TAPS_MARGIN = MAX_ROWS_AT_ONCE };

// Narrow sums of boxes are less by BOX_BIAS, and means of BOX_NARROW samples at most are made of them.
enum { BOX_BIAS = 32768, BOX_NARROW = 43690 };

// Rows that match_products makes at once, and the samples that it may read, and results that it may
// write, behind the last.
enum { MATCH_ROWS = 4, MATCH_MARGIN = 128 };

struct row_kernels {
    const char *name;
    int rows_at_once; // 1, 2 or 4: how many are best made together

    // Gather a component's samples from a row of its plane, native-endian and shifted down; those
    // above `most` read as that.
    void (*load[2])(const uint8_t *from, const struct component *at, int most, void *to, int width);

    // load[] of bytes of `count` components of the same pixels, which begin at `from`; false, and
    // nothing is done, where they lie in another way than side by side, are fewer than a vector
    // has, or are best loaded one by one. NULL: there is none.
    bool (*load_pixels)(const uint8_t *from, const struct component *const *at, int count,
                        void *const *to, int width);

    // True if any plain sample of 16 bits has one of the bits of `mask`.
    bool (*any_bit)(const sample16 *from, uint16_t mask, int width);

    // Scatter samples into a row of a component's plane.
    void (*store[2])(const void *from, const struct component *at, uint8_t *to, int width);

    // (optional) store[] of bytes of components that fill pixels; false, and nothing is done, where
    // they are fewer than a vector has. Writes nothing else.
    bool (*store_pixels)(const struct pixels *pixels, uint8_t *to, int width);

    // Plain samples of 16 bits of components that fill pixels: all of `from`, nothing of `source`.
    void (*store_pixels_16)(const struct pixels *pixels, sample16 *to, int width);

    // The bits of `from` that the pattern keeps instead of those that `to` has, and those that it fills.
    void (*spare)(const uint8_t *from, const struct spared *spared, uint8_t *to, int bytes);

    // point[] of bytes and spare() in one go, of a row of whole pixels; false, and nothing is done, where
    // the step is not one for it, or the row too short. NULL: there is none.
    bool (*point_spared)(const uint8_t *from, const struct point *f, const struct spared *spared,
                         uint8_t *to, int width);

    // A pointwise step between samples of one size, and tables from 8 bits to more and back.
    // Arithmetic reads samples of 16 bits above `most` as that; tables have to hold them.
    void (*point[2])(const void *from, const struct point *f, void *to, int width);
    void (*widen)(const void *from, const uint16_t *table, void *to, int width);
    void (*narrow)(const void *from, const uint16_t *table, void *to, int width);

    // to[x] = sum of weight[k] * row[k][x], k < count, weights 0 to 4, count up to 4.
    void (*weigh[2])(const void *const *row, const int *weight, int count, uint32_t *to, int width);

    // The horizontal half of a mix: sum[x] += weight * v, v from quarters of vertical sums. The
    // source's grid is 2^up times coarser (finer when negative).
    void (*mix_add)(const uint32_t *from, int from_width, int up, bool cosited, int weight,
                    int64_t *sum, int width);
    void (*mix_finish[2])(const int64_t *sum, const struct op_mix *mix, void *to, int width);

    // A mix of three sources on the result's own grid, whose sums fit 32 bits. A source that there
    // is not has weight 0, and a row all the same.
    void (*mix_near[2])(const void *const *row, const struct op_mix *mix, void *to, int width);

    // t of OP_SEPARABLE less the bias, for vertical_rows rows: row[0 .. 2 radius] are around the
    // first. shift = bits - fraction. After the rows that are needed, `row` holds as many again as
    // are made, which the next call will ask for: they are fetched, not read.
    int vertical_rows; // a multiple of rows_at_once
    void (*vertical[2])(const void *const *row, const struct row_taps *taps, int shift,
                        int16_t *const *to, int width);

    // y of OP_SEPARABLE from t less the bias, which has `radius` samples on both sides and room for
    // one more.
    void (*horizontal[2])(const int16_t *from, const struct row_taps *taps, int shift, void *to,
                          int width);

    // The row `center` sharpened, from its blurred values at 16 bits.
    void (*sharpen[2])(const uint16_t *blurred, const struct op_separable *f, int depth,
                       const void *center, void *to, int width);

    // The coarse form: sum[x] += weight * row[x]; then grid samples by the horizontal tent, sum
    // reaching from (first - 1) << decimate on; then the interpolation of a vertical blend back.
    void (*tent_add[2])(const void *row, uint32_t weight, uint32_t *sum, int width);
    void (*tent_finish)(const uint32_t *sum, int decimate, int fraction, int shift, uint16_t *to,
                        int width);
    void (*blend)(const uint16_t *above, const uint16_t *below, uint32_t weight_above,
                  uint32_t weight_below, uint32_t *to, int width);
    void (*interpolate[2])(const uint32_t *from, int decimate, int shift, void *to, int width);

    // sum[x] += entering[x] - leaving[x]; a NULL row counts as zeros.
    void (*box_slide[2])(const void *entering, const void *leaving, uint32_t *sum, int width);
    // Means of (2 radius + 1) columns of sums, which have `radius` on both sides, over `count`
    // samples in all.
    void (*box_finish[2])(const uint32_t *sum, int radius, int64_t count, void *to, int width);

    // (optional) The same of bytes, whose sums are less BOX_BIAS and modulo 2^16; both rows are
    // there. `count` is at most BOX_NARROW, and sums have `radius` + 1 on the left.
    void (*box_slide_narrow)(const uint8_t *entering, const uint8_t *leaving, int16_t *sum,
                             int width);
    void (*box_finish_narrow)(const int16_t *sum, int radius, int count, uint8_t *to, int width);

    // Rows have as much on both sides as the kernel reaches. `taps` is room for one more than there
    // are weights. Sums fit 32 bits.
    void (*convolve[2])(const void *const *row, const struct op_convolve *f,
                        struct convolve_tap *taps, void *to, int width);

    // (optional) The same of bytes, of rows of at least `convolve_bytes_width`.
    int convolve_bytes_width;
    void (*convolve_bytes)(const void *const *row, const struct convolve_bytes *f, uint8_t *to,
                           int width);

    // The same, first index, in sums that float [0] or double [1] hold; and in two steps of lines:
    // sums down the columns from `first` on, then samples from those of every pair, whose first
    // column is origin_x before that of the result.
    void (*convolve_real[2][2])(const void *const *row, const struct op_convolve *f, void *to,
                                int width);
    void (*line_y[2][2])(const void *const *row, const int32_t *line, int length, int first,
                         void *to, int columns);
    void (*line_x[2][2])(const void *const *columns, const struct op_convolve *f, void *to,
                         int width);

    // Lines whose products fit words: t for vertical_rows rows of `width` columns, from rows as
    // vertical() has them; then samples from the t of every pair, whose first column is origin_x
    // before that of the result, with room for a vector behind the last.
    void (*words_y[2])(const void *const *row, const struct row_taps *taps, int shift,
                       int16_t *const *to, int width);
    void (*words_x[2])(const int16_t *const *t, const struct row_taps *taps,
                       const struct op_convolve *f, void *to, int width);

    // `count` rows, at most rows_at_once, from two more, which have one sample on both sides.
    // `after` (optional) is a step of POINT_RANGES on the result.
    void (*gradient[2])(const void *const *row, const struct op_gradient *f,
                        const struct point *after, void *const *to, int count, int width);

    struct wavelet_kernels wavelet;
    // OP_MATCH. Samples of a row lie in units of 4 / match_group bytes, as match_load() makes them.
    // to[r][x] = sum of tap[j][i] * row[r + j][x + i], for MATCH_ROWS rows, j < rows, of sums that
    // fit 32 bits. match_group taps make a word of `taps`, the first in its low bits; `words` make
    // a row of them, and MATCH_ROWS - 1 rows of zeros are before and behind those.
    int match_group; // 2 or 4
    void (*match_load)(const uint8_t *from, void *to, int width);
    void (*match_products)(const void *const *row, const int32_t *taps, int words, int rows,
                           int32_t *const *to, int width);
    // Sums of samples and of their squares down the columns: what enters, and what leaves.
    void (*match_slide)(const uint8_t *entering, const uint8_t *leaving, uint32_t *samples,
                        uint32_t *squares, int width);
    // to[x] = column[x] + .. + column[x + columns - 1], modulo 2^32.
    void (*match_window)(const uint32_t *column, int columns, uint32_t *to, int width);
    // Whole numbers of 32 bits.
    void (*match_round)(const double *from, int32_t *to, int width);
    // match_score() of a template of `count` samples, up to MATCH_NARROW. Returns the greatest.
    float (*match_scores)(int64_t count, int64_t sum, double norm, const int32_t *products,
                          const uint32_t *samples, const uint32_t *squares, float *to, int width);
};

// Levels of this architecture, in words. On x86-64 those of its psABI follow the base, and "vnni"; on
// aarch64 "neon", whose box means, convolutions of bytes, affine steps, ranges of bytes and template
// matching are made of intrinsics (lanes.h). Both of that architecture run on each of its processors.
extern const char rows_names[];

// The kernels for this processor, or for the level that `name` asks for: NULL if it is unknown or
// the processor lacks it. A NULL name asks for the best.
const struct row_kernels *rows_select(const char *name);

// How many bytes before a row of results is written its lines of the cache are best asked for, to be
// written: 0, not at all, where that takes longer than what the processor asks for by itself.
int rows_ahead(void);
