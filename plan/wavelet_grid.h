// The parts of OP_WAVELET (op.h) for one picture size: its grids, taps and weights, the same
// bits on every machine.
//
// W_s is 2 pi s^2 C / N(s) times the picture filtered by s^2 (g''(x) g(y) + g(x) g''(y)), g being
// the Gaussian of deviation s that sums to 1. A large one leaves nothing of fine detail, so it is
// made on grids of D = 2, 4, 8, ... samples, each the level of the scales s with 2.5 <= s / D < 5;
// scales below 5 have D = 1:
//
//   cell     the picture, as its border extends it, filtered by a Gaussian of deviation 0.9 D at
//            every Dth sample (D = 1: the sample itself)
//   value    cells filtered by the scale's two pairs of taps, which add what is missing to s
//   W_s      quintic B-splines between values (D = 1: the value itself)
//
// Taps are those whose frequency response is that of W_s over those of the Gaussian and the spline:
// what the three do together is W_s but for what the grid aliases. That is less than 4e-5 of the
// full scale (op.h), the worst over all pictures and places; what taps beyond 5.2 deviations are
// left out for adds 1.5e-5. P. J. Burt, "Fast filter transforms for image processing", CGIP 16
// (1981); M. Unser, A. Aldroubi, M. Eden, "B-spline signal processing", IEEE Trans. Signal
// Processing 41 (1993).
//
// The border is part of the cells' sums, so nothing after them knows borders.
//
// Thread-safety: immutable once created.
#pragma once

#include "base/status.h"
#include "plan/op.h"

enum {
    WAVELET_REACH = 5,  // of the cells' Gaussian, in cells
    WAVELET_SPLINE = 6, // values that one of W_s is made of, along each axis
    WAVELET_LEVELS = 16,
    WAVELET_RADIUS = 26, // the most of a filter
    WAVELET_ZEROS = 16,
    WAVELET_PERIOD = 16, // the least

    // The order of sums, which is part of the reference (op.h).
    WAVELET_PARTS = 8,           // of a cell's sum down a column
    WAVELET_SHARES = 32,         // of some cells' sums along a row
    WAVELET_CHAINED = 4,         // the largest D whose cells have none
    WAVELET_CHAINED_INSIDE = 32, // the same where all samples are in the picture
    WAVELET_PAIRED = 32,         // the largest D whose splines are made in pairs of rows
};

// A cell along one axis: the sum of tap[k] times sample first + k of the picture, k < count.
struct wavelet_cell {
    int first, count;
    int tap; // its place in the grid's `tap`
};

struct wavelet_axis {
    int cells;
    int inner, inners; // the first whose samples are all in the picture, and how many are so
    struct wavelet_cell *cell;
};

// Values are columns x rows: those of all the level's scales, whatever their radius, are made of
// cells alike. Value (i, j) is in the middle of cell (i + margin, j + margin). W_s at column x of
// the picture is made of values x / D + n, n = 0 .. 5, times spline[n][x % D]; alike at row y.
struct wavelet_level {
    int decimate; // log2 D
    int margin;
    struct wavelet_axis x, y;
    int columns, rows;
    int prefilter; // place of the taps that inner cells have in common
    int period;    // of the columns of `spline`: D, or more where that is less than a vector
    float *spline; // WAVELET_SPLINE rows of `period`; NULL where D = 1

    // Where D <= WAVELET_PAIRED, at phase y <= D / 2: halves of the sum and of the difference of
    // the weights of values n and 5 - n.
    float even[WAVELET_PAIRED / 2 + 1][WAVELET_SPLINE / 2];
    float odd[WAVELET_PAIRED / 2 + 1][WAVELET_SPLINE / 2];
};

// A scale's work on its level's cells:
//
//   value(i, j) = sum of (bent[a] smooth[b] + smooth[a] bent[b]) cell(i + margin - radius + a,
//                 j + margin - radius + b), 0 <= a, b <= 2 radius
//
// There are WAVELET_ZEROS zeros before and behind each line of taps.
struct wavelet_filter {
    int level, radius;
    int smooth, bent; // places of the first taps in the grid's `tap`
    float step;       // W is counted in 1 / step, a power of two, where energies are summed up
};

struct wavelet_grid {
    int width, height;
    struct wavelet_level level[WAVELET_LEVELS]; // fine to coarse; the first has D = 1
    int levels;
    struct wavelet_filter filter[WAVELET_SCALES]; // one per scale, in the operation's order
    int filters;
    float *tap;
    int taps;
};

// Fill in what takes no memory: all but taps, their places, cells and the weights of splines.
void wavelet_grid_outline(const struct op *op, int width, int height, struct wavelet_grid *grid);

// On success the caller owns *grid. STATUS_MEMORY is the only failure; *grid is NULL then.
enum status wavelet_grid_create(const struct op *op, int width, int height,
                                struct wavelet_grid **grid);
void wavelet_grid_destroy(struct wavelet_grid **grid);
