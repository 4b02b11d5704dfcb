// Row kernels of OP_WAVELET, whose sums are in the order that plan/op.h says. Rows begin
// anywhere, and may be read and written up to WAVELET_PAD floats beyond their width.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/wavelet_grid.h"

// A scale's taps, `radius` on both sides of the middle one.
struct wavelet_taps {
    const float *smooth, *bent;
    int radius;
};

enum { WAVELET_PAD = 64 };

struct wavelet_kernels {
    // Samples less black; those above `most` read as that.
    void (*load[2])(const void *from, int most, float black, float *to, int width);

    // to[x] = the sum down the column of a cell, whose taps are `tap`; its first row is `from`.
    void (*down)(const float *from, ptrdiff_t stride, const struct wavelet_cell *cell,
                 const float *tap, float *to, int width);

    // Both sums down the columns, for `rows` rows from row[0 .. 2 radius] on, `stride` apart.
    void (*columns)(const float *const *row, const struct wavelet_taps *taps, int rows,
                    float *smooth, float *bent, ptrdiff_t stride, int width);

    // Values from these sums, whose place they may take.
    void (*row)(const float *smooth, const float *bent, const struct wavelet_taps *taps, float *to,
                int width);

    // A row of a level's cells of a row of samples. There is room for the samples in `apart`, and
    // for WAVELET_CHAINED_INSIDE times WAVELET_PAD more.
    void (*cells)(const float *from, const struct wavelet_level *level, const float *tap,
                  float *apart, float *to);

    // Each value D times; splines along such.
    void (*widen)(const float *from, int decimate, float *to, int width);
    void (*spline)(const float *wide, const struct wavelet_level *level, float *to, int width);

    // W in `rows` rows `stride` apart, at phases from `first` on, between six rows of splines.
    void (*between)(const float *const *row, const struct wavelet_level *level, int first, int rows,
                    float *to, ptrdiff_t stride, int width);

    // most[x] becomes the larger of it and |from[x]|, and winner[x] `number` where that is larger.
    void (*most)(const float *from, float *most, int width);
    void (*winner)(const float *from, float number, float *most, float *winner, int width);

    // The sum of the squares of from[x] * step, rounded to integers; below 2^53.
    uint64_t (*energy)(const float *from, float step, int width);

    // Codes: fma(from[x], gain, middle), limited to 0 .. high and rounded.
    void (*finish[2])(const float *from, float gain, float middle, int high, void *to, int width);
};
