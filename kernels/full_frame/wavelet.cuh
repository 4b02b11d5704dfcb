// Shared by the parts of OP_WAVELET. Sums are in the order that plan/op.h says, and every product
// is added by __fmaf_rn(): compilers contract nothing then.
//
//   wavelet_cells.cu
//     samples    cells of the first level: the picture with what its border puts around it
//     lines      cells of the others, by columns, each thread by itself, or ...
//     shared_lines   ... where D is large, a block together ...
//     cells      ... and by rows
//   wavelet_bands.cu
//     values     of the scales that have a grid
//     direct     W of the scales that have none, and what is shown of them
//     splines    W of those that have one, each warp by itself, and what is shown of all
//     energies   of what blocks and warps summed up
//   wavelet.cu
//     where all of it lies, and tables
//
// No W is written unless analysis asks for it.
#pragma once

#include "kernels/launch.h"

extern "C" {
#include "plan/wavelet_grid.h"
}

enum {
    WARP = 32,
    VEC4 = 4, // floats of a vector
    WARPS = 8,
    THREADS = WARP * WARPS,
    WIDE = 256,   // columns of a block's values, where that makes blocks enough
    NARROW = 128, // and elsewhere
    TILE_ROWS = WARP,
    SPLINE_COLUMNS = 128, // W of a block
    SPLINE_ROWS = 32,
    OWN_CELLS = 4,    // that a thread makes of a column by itself
    OWN_LINE_LOG = 4, // the largest D whose cells are made so
    LINE_CELLS = 8,   // that warps make of a column together
    LINE_LOG = 7,     // the largest D whose cells are made so
    OWN_LOG = 2,      // the largest D whose cells across edges, along the rows, are a chain
};

// A plane of floats in scratch memory: its place there, in floats, and its stride.
struct reals {
    size_t place;
    int stride, rows;
};

// A level; cells and spline are places in the tables.
struct level {
    int decimate, margin;
    int columns, rows;
    int cells_x, cells_y;
    int cell_x, cell_y;
    int spline, period;
    int together;      // taps that cells below each other have, a row after another
    int inner, inners; // the first of a row whose taps all lie in the picture, and how many do
    struct reals cells, lines;
    int first, scales; // which of the order
};

struct filter {
    int level, radius;
    int smooth, bent;
    float step;          // of energies
    struct reals values; // of scales that have a grid
    int decimate;        // and of their level
    int spline, period;
};

// Where things are, which is the same for all frames: tables in constant memory, by bytes, planes
// in scratch memory, by floats.
struct layout {
    int width, height, filters, levels;
    struct level level[WAVELET_LEVELS];
    struct filter filter[WAVELET_SCALES];
    int order[WAVELET_SCALES]; // scales by their levels
    int direct_radius, coarse_radius;
    int direct, coarse;      // how many scales have no grid, and have one
    int lines, shared_lines; // the first of them are made by warps together
    int tiles, rows;
    struct reals shown, winner; // what `direct` leaves for `splines`
    size_t energy; // per scale, of each block of `direct`, then of each warp of `splines`: 64 bits
    int direct_blocks, spline_blocks, spline_sums;
    int direct_columns, tile_columns; // a block's, `direct` and `values`
    size_t level_table, filter_table, order_table, band_table, line_table, tile_table, row_table,
        cell_table, tap_table;
    size_t bytes, floats;
};

// Cells of a column that are made at a time: those that have their taps in common, or one. Two
// vectors, so that a warp knows all of its work after one wait.
struct alignas(16) line {
    int row, rows; // the picture's first row that has a tap, and how many have one
    int tap;       // place of the first row's
    int count;     // cells
    size_t to;     // place of the first in scratch memory
    int stride;    // from one to the next
};

// The work of a block: values of a filter, or cells of a level, and the first of them.
struct tile {
    int number, x, y;
};

// A scale that has a grid, as `splines` reads it, in one vector: its values lie at PLACE times `place`
// in scratch memory.
struct alignas(16) band {
    int scale, level;
    unsigned place;
    float step;
};
enum { PLACE = 64 };

// Arguments of all kernels.
struct wavelet {
    const struct level *level;
    const struct filter *filter;
    const int *order;
    const struct line *line;
    const struct tile *tile, *row;
    const struct wavelet_cell *cell;
    const struct band *band; // those that are wanted, by their levels
    int bands;
    const float *tap;
    float *scratch;
    int width, height, filters, levels, lines, shared_lines;
    int limit; // how many of the scales are wanted
    int direct_radius, coarse_radius;
    struct reals shown, winner;
    unsigned long long *energy, *spline_energy; // squares of steps
    const uint8_t *from;
    int from_stride;
    int max; // the largest sample; what is above reads as that
    float black;
    bool is_whole; // black is an integer that leaves room below 2^23
    uint8_t *to;
    int to_stride;
    float gain, middle;
    int high;
    double *analysis;
    int bytes; // of a sample, of the picture as of the result
    int run;   // wavelet_cells_run()
};

// ---- helpers ----

static __host__ __device__ inline int up(int value, int step)
{
    return (value + step - 1) / step * step;
}

static __device__ inline float *plane_row(const struct wavelet *w, struct reals plane, int y)
{
    return w->scratch + plane.place + (size_t)y * plane.stride;
}

static inline int divided(int value, int step)
{
    return (value + step - 1) / step;
}

// Blocks that make `columns` x `rows` each.
static inline dim3 tiles_of(int width, int height, int columns, int rows)
{
    return dim3((unsigned)divided(width, columns), (unsigned)divided(height, rows));
}

// The sum of all lanes', pairs that are farthest from each other first.
template <typename Number> static __device__ inline Number warp_sum(Number sum)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

// ---- the steps of a frame, which return before the GPU is done ----

// Make the cells of all levels that have a scale, and the zeros beyond them.
cudaError_t wavelet_cells_async(const struct wavelet *w, const struct layout *layout,
                                cudaStream_t stream);

// How many floats of shared memory a warp needs there for its longest run of samples.
int wavelet_cells_run(const struct layout *layout);

// How many cells of a row a warp makes, D = 2^decimate.
static __host__ __device__ constexpr int cells_of_warp(int decimate)
{
    return decimate <= 2 ? 4 * WARP : decimate == 3 ? 2 * WARP : WARP;
}

// Make W of these cells, the picture that shows it, where w->to, and analysis, where w->analysis.
cudaError_t wavelet_bands_async(const struct wavelet *w, const struct layout *layout,
                                const struct op_wavelet *op, cudaStream_t stream);
