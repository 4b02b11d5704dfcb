// Row kernels of OP_WAVELET, in single precision (stages/wavelet_grid.h). Rows begin anywhere, and
// may be read and written up to WAVELET_PAD floats beyond their width.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/wavelet_grid.h"

// A scale's taps, `radius` on both sides of the middle one.
struct wavelet_taps {
    const float *smooth, *bent;
    int radius;
};

enum { WAVELET_PAD = 64 };

// Rows that are mixed at a time, and the largest D whose cells are made side by side.
enum { WAVELET_MIX = 64, WAVELET_PHASES = 16 };

struct wavelet_kernels {
    // Samples less black; those above `most` read as that.
    void (*load[2])(const void *from, int most, float black, float *to, int width);

    // to[x] becomes (or, with `add`, grows by) the sum of tap[k] * row[k][x], k < count.
    void (*mix)(const float *const *row, const float *tap, int count, bool add, float *to,
                int width);

    // Both sums down the columns, for `rows` rows from row[0 .. 2 radius] on, `stride` apart.
    void (*columns)(const float *const *row, const struct wavelet_taps *taps, int rows,
                    float *smooth, float *bent, ptrdiff_t stride, int width);

    // Of these, values; they may take the place of the sums.
    void (*row)(const float *smooth, const float *bent, const struct wavelet_taps *taps, float *to,
                int width);

    // A row of a level's cells of a row of samples. There is room for the samples in `apart`, and
    // for WAVELET_PHASES times WAVELET_PAD more.
    void (*cells)(const float *from, const struct wavelet_level *level, const float *tap,
                  float *apart, float *to);

    // Each value D times; splines of such.
    void (*widen)(const float *from, int decimate, float *to, int width);
    void (*spline)(const float *wide, const struct wavelet_level *level, float *to, int width);

    // most[x] becomes the larger of it and |from[x]|, and winner[x] `number` where that is larger.
    void (*most)(const float *from, float *most, int width);
    void (*winner)(const float *from, float number, float *most, float *winner, int width);

    // The sum of squares.
    double (*energy)(const float *from, int width);

    // Codes: from[x] * gain + middle, rounded and limited to 0 .. high.
    void (*finish[2])(const float *from, float gain, float middle, int high, void *to, int width);
};
