// OP_WAVELET on the CPU, by the grids of stages/wavelet_grid.h: in steps, one after another, of
// parts that any threads may make at once.
//
//   cells      of the first level, then of the others
//   values     of the scales whose level is not the first
//   results    rows of the picture, with everything that is only of a row
//   energies
//
// The same comes of any number of threads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/op.h"
#include "stages/status.h"
#include "stages/wavelet_grid.h"

// A scale's taps, `radius` on both sides of the middle one.
struct wavelet_taps {
    const float *smooth, *bent;
    int radius;
};

// What rows.c compiles for each level of the instruction set. Rows begin anywhere, and may be read
// and written up to WAVELET_PAD floats beyond their width.
enum { WAVELET_PAD = 64 };

// Rows that are mixed at a time.
enum { WAVELET_MIX = 64 };

struct wavelet_kernels {
    // Samples less black.
    void (*load[2])(const void *from, float black, float *to, int width);

    // to[x] becomes (or, with `add`, grows by) the sum of tap[k] * row[k][x], k < count.
    void (*mix)(const float *const *row, const float *tap, int count, bool add, float *to,
                int width);

    // Both sums down the columns, for `rows` rows from row[0 .. 2 radius] on, `stride` apart.
    void (*columns)(const float *const *row, const struct wavelet_taps *taps, int rows,
                    float *smooth, float *bent, ptrdiff_t stride, int width);

    // Of these, values; they may take the place of the sums.
    void (*row)(const float *smooth, const float *bent, const struct wavelet_taps *taps, float *to,
                int width);

    // A row of cells of a row of samples.
    void (*cells)(const float *from, const struct wavelet_axis *axis, const float *tap, float *to);

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

// A picture's plane as it lies in memory: samples side by side, one byte each up to 8 bits, two
// above.
struct wavelet_plane {
    uint8_t *data;
    ptrdiff_t stride; // bytes
    int depth;
};

// One picture's work. `side` (optional): see op_side_bytes().
struct wavelet_work {
    struct wavelet_plane from, to; // `to` without data: not wanted
    void *side;
};

struct wavelet; // of a size

// A seat for pictures of one size, which `workers` threads work on. STATUS_MEMORY is the only
// failure; *wavelet is NULL then.
enum status wavelet_create(const struct op *op, int width, int height, int workers,
                           const struct wavelet_kernels *kernels, struct wavelet **wavelet);
void wavelet_destroy(struct wavelet **wavelet);

// How many steps there are, and parts of a step, maybe none.
enum { WAVELET_STEPS = 5 };
int wavelet_parts(const struct wavelet *wavelet, const struct wavelet_work *work, int step);

// Make a part. Parts of a step may be made by several threads, each as another worker; the next
// step may begin when all are made.
void wavelet_run(struct wavelet *wavelet, const struct wavelet_work *work, int step, int part,
                 int worker);
