// OP_WAVELET by the grids of stages/wavelet_grid.h, in single precision:
//
//   samples    cells of the first level: the picture with what its border puts around it
//   lines      cells of the others, by columns ...
//   cells      ... and by rows
//   values     of the scales that have a grid
//   direct     W of the scales that have none, and what is shown of them
//   splines    W of those that have one, and what is shown of all
//   energies   of what blocks summed up
//
// No W is written unless side data asks for it. Sums are added up in one order: the same comes of
// every run.
#include "kernels/job.h"

extern "C" {
#include "stages/wavelet_grid.h"
}

#include <stdlib.h>
#include <string.h>

enum {
    LANES = 32,
    WARPS = 8,
    THREADS = LANES * WARPS,
    STRIP = 8,          // neighbouring results of a thread that filters
    TILE_COLUMNS = 128, // values of a block
    TILE_ROWS = LANES,
    ITEMS = TILE_COLUMNS / STRIP / WARPS, // strips of a thread along the rows
    SPLINE_COLUMNS = 128,
    SPLINE_ROWS = 32,
    SPLINE_LOGS = 6, // D = 1 .. 32: every phase of the rows is in every tile
    LINE_CELLS = 8,  // of a thread
    FOUR = 4,
    // What tiles read beyond the cells that there are; it is zero.
    PAD_ROWS = 64,
    PAD_COLUMNS = 256,
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
    struct reals cells, lines;
    int first, scales; // which of the order
};

struct filter {
    int level, radius;
    int smooth, bent;
    struct reals values; // of scales that have a grid
};

// Where things are, which is the same for all frames: tables in constant memory, by bytes, planes
// in scratch memory, by floats.
struct layout {
    int width, height, filters, levels;
    struct level level[WAVELET_LEVELS];
    struct filter filter[WAVELET_SCALES];
    int order[WAVELET_SCALES]; // scales by their levels
    int direct_radius, coarse_radius;
    int direct, coarse; // how many scales have no grid, and have one
    int lines, tiles;
    struct reals shown, winner; // what `direct` leaves for `splines`
    size_t energy;              // of each block of `direct`, then of `splines`: a float per scale
    int direct_blocks, spline_blocks;
    size_t level_table, filter_table, order_table, line_table, tile_table, cell_table, tap_table;
    size_t bytes, floats;
};

// Cells of a column that a thread makes: LINE_CELLS at most that have their taps in common, or one.
struct line {
    int level, first, count;
};

// Values that a block makes.
struct tile {
    int filter, x, y;
};

// What all kernels are told.
struct wavelet {
    const struct level *level;
    const struct filter *filter;
    const int *order;
    const struct line *line;
    const struct tile *tile;
    const struct wavelet_cell *cell;
    const float *tap;
    float *scratch;
    int width, height, filters, levels, lines;
    int limit; // how many of the scales are wanted
    int direct_radius, coarse_radius;
    struct reals shown, winner;
    float *energy, *spline_energy;
    const uint8_t *from;
    int from_stride;
    float black;
    uint8_t *to;
    int to_stride;
    float gain, middle;
    int high;
    double *side;
    int bytes; // of a sample of the result
};

// What of it is wanted.
enum wanted { SIDE_NONE, SIDE_ENERGY, SIDE_PLANES };

// Weights of splines by phase, D - 2 + phase, where kernels know the phase: of D = 2 .. 32.
struct splines {
    float weight[(2 << (SPLINE_LOGS - 1)) - 2][WAVELET_SPLINE];
};

// ---- device helpers ----

static __host__ __device__ inline int up(int value, int step)
{
    return (value + step - 1) / step * step;
}

static __device__ inline float *plane_row(const struct wavelet *w, struct reals plane, int y)
{
    return w->scratch + plane.place + (size_t)y * plane.stride;
}

// Taps that are used, in whole strips.
static __host__ __device__ inline int taps_of(int radius)
{
    return up(2 * radius + 1, STRIP);
}

// A row of sums in shared memory: an odd number of them, so that lanes may read a column.
static __host__ __device__ inline int sums_stride(int radius)
{
    return up(TILE_COLUMNS + taps_of(radius), LANES) + 1;
}

// Both lines of taps, with a strip of zeros before and behind.
static __host__ __device__ inline int shared_taps(int radius)
{
    return taps_of(radius) + 2 * STRIP;
}

static __host__ __device__ inline size_t tile_bytes(int radius)
{
    return (size_t)2 * shared_taps(radius) * sizeof(float) +
           (size_t)TILE_ROWS * sums_stride(radius) * sizeof(float2);
}

enum part { PART_HEAD, PART_MIDDLE, PART_TAIL };

// What STRIP inputs, input 0 being the one under tap `first` of result 0, add to STRIP results:
// input i meets tap first + i - p of result p. At the head there are none before the first tap, at
// the tail none behind the last.
template <enum part PART, typename Add>
static __device__ inline void add_strip(const float *smooth, const float *bent, int first, Add add)
{
    float s[2 * STRIP], b[2 * STRIP];
    for (int i = PART == PART_HEAD ? STRIP : 0; i < (PART == PART_TAIL ? STRIP : 2 * STRIP);
         i += FOUR) {
        *(float4 *)(s + i) = *(const float4 *)(smooth + first - STRIP + i);
        *(float4 *)(b + i) = *(const float4 *)(bent + first - STRIP + i);
    }
#pragma unroll
    for (int i = 0; i < STRIP; i++)
#pragma unroll
        for (int p = 0; p < STRIP; p++)
            if (PART == PART_MIDDLE || (PART == PART_HEAD) == (p <= i))
                add(i, p, s[STRIP + i - p], b[STRIP + i - p]);
}

// Results of a strip: read(n) fetches STRIP inputs from number n on, add() uses them.
template <typename Read, typename Add>
static __device__ inline void filter_strip(const float *smooth, const float *bent, int taps,
                                           Read read, Add add)
{
    read(0);
    add_strip<PART_HEAD>(smooth, bent, 0, add);
    for (int n = STRIP; n < taps; n += STRIP) {
        read(n);
        add_strip<PART_MIDDLE>(smooth, bent, n, add);
    }
    read(taps);
    add_strip<PART_TAIL>(smooth, bent, taps, add);
}

// What a block has in shared memory: `smooth` and `bent` point at their first taps.
struct shared_tile {
    float *smooth, *bent;
    float2 *sums; // down the columns: by smooth, by bent
    int taps, stride;
};

static __device__ inline struct shared_tile tile_of(float4 *memory, int most_radius, int radius)
{
    float *smooth = (float *)memory + STRIP, *bent = smooth + shared_taps(most_radius);
    return {smooth, bent, (float2 *)((float *)memory + 2 * shared_taps(most_radius)),
            taps_of(radius), sums_stride(radius)};
}

// All threads fetch the taps of a scale; there are zeros around them where they come from.
static __device__ inline void tile_taps(const struct wavelet *w, const struct filter *filter,
                                        const struct shared_tile *tile)
{
    for (int k = (int)threadIdx.x - STRIP; k < tile->taps + STRIP; k += THREADS) {
        tile->smooth[k] = w->tap[filter->smooth + k];
        tile->bent[k] = w->tap[filter->bent + k];
    }
}

// Sums down the columns, for all rows of a tile whose first is under `cells`. A warp makes eight
// rows of 32 neighbouring columns; each input is read once for both sums of all that it is in.
static __device__ inline void tile_columns(const float *cells, int stride,
                                           const struct shared_tile *tile)
{
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int groups = (TILE_COLUMNS + tile->taps + LANES - 1) / LANES;
    for (int item = warp; item < groups * (TILE_ROWS / STRIP); item += WARPS) {
        int column = item % groups * LANES + lane, row = item / groups * STRIP;
        const float *from = cells + (size_t)row * stride + column;
        float s[STRIP] = {}, b[STRIP] = {}, input[STRIP];
        filter_strip(
            tile->smooth, tile->bent, tile->taps,
            [&](int n) {
#pragma unroll
                for (int i = 0; i < STRIP; i++)
                    input[i] = __ldg(from + (size_t)(n + i) * stride);
            },
            [&](int i, int p, float smooth, float bent) {
                s[p] += smooth * input[i];
                b[p] += bent * input[i];
            });
        for (int p = 0; p < STRIP; p++)
            tile->sums[(row + p) * tile->stride + column] = make_float2(s[p], b[p]);
    }
}

// Values: eight neighbours of row `lane` from column `column` of the tile on.
static __device__ inline void tile_row(const struct shared_tile *tile, int column,
                                       float value[STRIP])
{
    const float2 *from = tile->sums + threadIdx.x % LANES * tile->stride + column;
    float2 input[STRIP];
    for (int p = 0; p < STRIP; p++)
        value[p] = 0;
    filter_strip(
        tile->smooth, tile->bent, tile->taps,
        [&](int n) {
#pragma unroll
            for (int i = 0; i < STRIP; i++)
                input[i] = from[n + i];
        },
        [&](int i, int p, float smooth, float bent) {
            value[p] += bent * input[i].x;
            value[p] += smooth * input[i].y;
        });
}

// ---- cells ----

// The whole plane, and zeros beyond it. A thread makes one cell in each of four rows.
template <typename T>
static __global__ void __launch_bounds__(THREADS) samples(const __grid_constant__ struct wavelet w)
{
    const struct level *level = w.level;
    int x = blockIdx.x * LANES + threadIdx.x % LANES;
    if (x >= level->cells.stride)
        return;
    struct wavelet_cell column = {};
    if (x < level->cells_x)
        column = w.cell[level->cell_x + x];
    for (int k = 0; k < FOUR; k++) {
        int y = (blockIdx.y * FOUR + k) * WARPS + threadIdx.x / LANES;
        if (y >= level->cells.rows)
            return;
        struct wavelet_cell row = {};
        if (y < level->cells_y)
            row = w.cell[level->cell_y + y];
        bool there = column.count && row.count;
        const T *from = (const T *)(w.from + (ptrdiff_t)row.first * w.from_stride) + column.first;
        plane_row(&w, level->cells, y)[x] = there ? (float)*from - w.black : 0;
    }
}

static __device__ inline void add_four(float4 *sum, float tap, float4 value)
{
    sum->x += tap * value.x;
    sum->y += tap * value.y;
    sum->z += tap * value.z;
    sum->w += tap * value.w;
}

// A warp makes cells of 128 columns, four neighbours a lane; blockIdx.y counts entries of the table
// of lines by warps. Inner cells are made eight at a time: each row of samples is read once for all
// that it is in.
static __global__ void __launch_bounds__(THREADS) lines(const __grid_constant__ struct wavelet w)
{
    int number = blockIdx.y * WARPS + threadIdx.x / LANES;
    int x = (blockIdx.x * LANES + threadIdx.x % LANES) * FOUR;
    if (number >= w.lines || x >= w.width)
        return;
    struct line line = w.line[number];
    const struct level *level = &w.level[line.level];
    struct wavelet_cell cell = w.cell[level->cell_y + line.first];
    const float *tap = w.tap + cell.tap;
    const struct reals *cells = &w.level->cells;
    const float *from = plane_row(&w, *cells, w.level->margin + cell.first) + w.level->margin + x;
    float4 sum[LINE_CELLS] = {};
    int d = 1 << level->decimate;
    int rows = line.count > 1 ? cell.count + (line.count - 1) * d : cell.count;
#pragma unroll 4
    for (int k = 0; k < rows; k++) {
        float4 value = __ldg((const float4 *)(from + (size_t)k * cells->stride));
        if (line.count == 1) {
            add_four(&sum[0], __ldg(tap + k), value);
            continue;
        }
#pragma unroll
        for (int c = 0; c < LINE_CELLS; c++)
            if ((unsigned)(k - c * d) < (unsigned)cell.count)
                add_four(&sum[c], __ldg(tap + k - c * d), value);
    }
#pragma unroll
    for (int c = 0; c < LINE_CELLS; c++)
        if (c < line.count)
            *(float4 *)(plane_row(&w, level->lines, line.first + c) + x) = sum[c];
}

static __device__ inline float warp_sum(float sum)
{
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

// The whole plane of a level (blockIdx.z) and zeros beyond it. Where D = 2 a thread makes a cell;
// else a warp makes one after another, its lanes every 32nd product.
static __global__ void __launch_bounds__(THREADS) cells(const __grid_constant__ struct wavelet w)
{
    const struct level *level = &w.level[1 + blockIdx.z];
    int y = blockIdx.y, lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int first = blockIdx.x * THREADS;
    if (y >= level->cells.rows || first >= level->cells.stride)
        return;
    const float *from = plane_row(&w, level->lines, y);
    float *to = plane_row(&w, level->cells, y);
    bool is_there = y < level->cells_y;
    if (level->decimate == 1) {
        int x = first + threadIdx.x;
        float sum = 0;
        if (x < level->cells_x && is_there) {
            struct wavelet_cell cell = w.cell[level->cell_x + x];
            for (int k = 0; k < cell.count; k++)
                sum += __ldg(w.tap + cell.tap + k) * __ldg(from + cell.first + k);
        }
        if (x < level->cells.stride)
            to[x] = sum;
        return;
    }
    for (int x = first + warp; x < min(first + THREADS, level->cells.stride); x += WARPS) {
        float sum = 0;
        if (x < level->cells_x && is_there) {
            struct wavelet_cell cell = w.cell[level->cell_x + x];
            for (int k = lane; k < cell.count; k += LANES)
                sum += __ldg(w.tap + cell.tap + k) * __ldg(from + cell.first + k);
            sum = warp_sum(sum);
        }
        if (lane == 0)
            to[x] = sum;
    }
}

// ---- values ----

// A block makes a tile of one scale, 128 x 32: sums down the columns in shared memory, then along
// the rows, a lane to a row, so that neighbours along the row are one thread's.
static __global__ void __launch_bounds__(THREADS, 3)
    values(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    struct tile at = w.tile[blockIdx.x];
    const struct filter *filter = &w.filter[at.filter];
    const struct level *level = &w.level[filter->level];
    struct shared_tile tile = tile_of(memory, w.coarse_radius, filter->radius);
    if (at.filter >= w.limit)
        return;
    int beside = level->margin - filter->radius;
    tile_taps(&w, filter, &tile);
    __syncthreads();
    tile_columns(plane_row(&w, level->cells, at.y + beside) + at.x + beside, level->cells.stride,
                 &tile);
    __syncthreads();
    int y = at.y + threadIdx.x % LANES;
    for (int k = 0; k < ITEMS; k++) {
        int column = (threadIdx.x / LANES * ITEMS + k) * STRIP;
        float value[STRIP];
        tile_row(&tile, column, value);
        float *to = plane_row(&w, filter->values, y) + at.x + column;
        if (y >= level->rows)
            continue;
        *(float4 *)to = make_float4(value[0], value[1], value[2], value[3]);
        *(float4 *)(to + FOUR) = make_float4(value[4], value[5], value[6], value[7]);
    }
}

// ---- results ----

// What is shown at a place, as scales come.
template <enum wavelet_show SHOW>
static __device__ inline void show(float value, int scale, float *shown, int *winner)
{
    if (SHOW == WAVELET_ABS) { // and WAVELET_SIGNED
        if (scale == 0)
            *shown = value;
    } else if (SHOW == WAVELET_MAX) {
        *shown = fmaxf(*shown, fabsf(value));
    } else if (fabsf(value) > *shown) {
        *shown = fabsf(value);
        *winner = scale;
    }
}

static __device__ inline float *side_plane(const struct wavelet *w, int scale)
{
    return (float *)(w->side + w->filters) + (size_t)scale * w->width * w->height;
}

// The sum of all threads' for a scale, by the first.
static __device__ inline void block_energy(const struct wavelet *w, float *energy, int block,
                                           int scale, float sum, float *shared)
{
    int warps = blockDim.x / LANES;
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % LANES == 0)
        shared[threadIdx.x / LANES] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int k = 1; k < warps; k++)
        sum += shared[k];
    energy[(size_t)block * w->filters + scale] = sum;
}

// A block makes a tile of the picture, all scales without a grid one after another, and keeps what
// is shown in registers.
template <enum wavelet_show SHOW, enum wanted SIDE>
static __global__ void __launch_bounds__(THREADS, 2)
    direct(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    __shared__ float partial[WARPS];
    const struct level *level = w.level;
    int first_x = blockIdx.x * TILE_COLUMNS, first_y = blockIdx.y * TILE_ROWS;
    int y = first_y + threadIdx.x % LANES, own = threadIdx.x / LANES * ITEMS * STRIP;
    float shown[ITEMS][STRIP] = {};
    int winner[ITEMS][STRIP] = {};
    for (int n = level->first; n < level->first + level->scales; n++) {
        int scale = w.order[n];
        if (scale >= w.limit)
            break;
        const struct filter *filter = &w.filter[scale];
        struct shared_tile tile = tile_of(memory, w.direct_radius, filter->radius);
        int beside = level->margin - filter->radius;
        __syncthreads();
        tile_taps(&w, filter, &tile);
        __syncthreads();
        tile_columns(plane_row(&w, level->cells, first_y + beside) + first_x + beside,
                     level->cells.stride, &tile);
        __syncthreads();
        float energy = 0;
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            float value[STRIP];
            tile_row(&tile, own + k * STRIP, value);
#pragma unroll
            for (int p = 0; p < STRIP; p++) {
                show<SHOW>(value[p], scale, &shown[k][p], &winner[k][p]);
                int x = first_x + own + k * STRIP + p;
                bool inside = SIDE != SIDE_NONE && x < w.width && y < w.height;
                energy += inside ? value[p] * value[p] : 0;
                if (SIDE == SIDE_PLANES && inside)
                    side_plane(&w, scale)[(size_t)y * w.width + x] = value[p];
            }
        }
        if (SIDE != SIDE_NONE)
            block_energy(&w, w.energy, blockIdx.y * gridDim.x + blockIdx.x, scale, energy, partial);
    }
    if (y >= w.height)
        return;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
        for (int p = 0; p < STRIP; p++) {
            int x = first_x + own + k * STRIP + p;
            plane_row(&w, w.shown, y)[x] = shown[k][p];
            if (SHOW == WAVELET_WINNER)
                plane_row(&w, w.winner, y)[x] = (float)winner[k][p];
        }
}

// One column of a tile of the picture.
template <enum wavelet_show SHOW, enum wanted SIDE>
struct column {
    int x, y; // its first place
    bool is_there; float shown[SPLINE_ROWS]; int winner[SHOW == WAVELET_WINNER ? SPLINE_ROWS : 1];
    float energy;

    __device__ inline void take(const struct wavelet *w, int scale, int row, float value){
        show<SHOW>(value, scale, &shown[row], &winner[SHOW == WAVELET_WINNER ? row : 0]);
        bool inside = SIDE != SIDE_NONE && is_there && y + row < w->height;
        energy += inside ? value * value : 0;
        if (SIDE == SIDE_PLANES && inside) side_plane(w, scale)[(size_t)(y + row) * w->width + x] =
            value;}
}
;

// A spline along a row of values, and down six of them.
static __device__ inline float spline_row(const float *value, const float weight[WAVELET_SPLINE])
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        sum += weight[n] * __ldg(value + n);
    return sum;
}

static __device__ inline float spline_column(const float row[WAVELET_SPLINE],
                                             const float weight[WAVELET_SPLINE])
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        sum += weight[n] * row[n];
    return sum;
}

// W of a scale with D = 2^LOG <= 32, whose first place is the first of D rows: weights are
// constants of the code.
template <int LOG, typename Column>
static __device__ inline void spline_scale(const struct wavelet *w, const struct splines *splines,
                                           const float *from, int stride, int scale,
                                           const float weight[WAVELET_SPLINE], Column *column)
{
    float row[WAVELET_SPLINE];
#pragma unroll
    for (int n = 1; n < WAVELET_SPLINE; n++)
        row[n] = spline_row(from + (size_t)(n - 1) * stride, weight);
#pragma unroll
    for (int m = 0; m < SPLINE_ROWS >> LOG; m++) {
#pragma unroll
        for (int n = 1; n < WAVELET_SPLINE; n++)
            row[n - 1] = row[n];
        row[WAVELET_SPLINE - 1] =
            spline_row(from + (size_t)(m + WAVELET_SPLINE - 1) * stride, weight);
#pragma unroll
        for (int p = 0; p < 1 << LOG; p++)
            column->take(w, scale, (m << LOG) + p,
                         spline_column(row, splines->weight[(1 << LOG) - 2 + p]));
    }
}

// The same of a larger D: all rows are between the same values, at any phase.
template <typename Column>
static __device__ inline void spline_scale_large(const struct wavelet *w, const float *down,
                                                 int period, const float *from, int stride,
                                                 int scale, const float weight[WAVELET_SPLINE],
                                                 Column *column)
{
    float row[WAVELET_SPLINE];
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        row[n] = spline_row(from + (size_t)n * stride, weight);
#pragma unroll
    for (int k = 0; k < SPLINE_ROWS; k++) {
        float value = 0;
#pragma unroll
        for (int n = 0; n < WAVELET_SPLINE; n++)
            value += __ldg(down + n * period + k) * row[n];
        column->take(w, scale, k, value);
    }
}

static __device__ inline int code(const struct wavelet *w, bool wins, float shown, int winner)
{
    if (wins)
        return shown * w->gain < 0.5f ? 0 : min(winner + 1, w->high);
    float value = (w->middle ? shown : fabsf(shown)) * w->gain + w->middle;
    value = fminf(fmaxf(value, 0), (float)w->high);
    return (int)(value + 0.5f);
}

static __device__ inline void write_code(const struct wavelet *w, int x, int y, int value)
{
    uint8_t *row = w->to + (ptrdiff_t)y * w->to_stride;
    if (w->bytes == 1)
        row[x] = (uint8_t)value;
    else
        ((uint16_t *)row)[x] = (uint16_t)value;
}

// A thread makes a column of 32 rows, so that what it reads of a scale it reads once, and keeps
// what is shown in registers; neighbouring threads read neighbouring values, or the same.
template <enum wavelet_show SHOW, enum wanted SIDE>
static __global__ void __launch_bounds__(SPLINE_COLUMNS)
    splines(const __grid_constant__ struct wavelet w,
            const __grid_constant__ struct splines splines)
{
    __shared__ float partial[SPLINE_COLUMNS / LANES];
    struct column<SHOW, SIDE> column;
    int x = column.x = blockIdx.x * SPLINE_COLUMNS + threadIdx.x;
    int y = column.y = blockIdx.y * SPLINE_ROWS;
    column.is_there = x < w.width;
    x = min(x, w.width - 1);
#pragma unroll
    for (int k = 0; k < SPLINE_ROWS; k++) {
        int row = min(y + k, w.height - 1);
        column.shown[k] = w.level->scales ? plane_row(&w, w.shown, row)[x] : 0;
        if (SHOW == WAVELET_WINNER)
            column.winner[k] = w.level->scales ? (int)plane_row(&w, w.winner, row)[x] : 0;
    }
    for (int l = 1; l < w.levels; l++) {
        const struct level *level = &w.level[l];
        int d = 1 << level->decimate;
        float weight[WAVELET_SPLINE];
        const float *table = w.tap + level->spline;
        for (int n = 0; n < WAVELET_SPLINE; n++)
            weight[n] = __ldg(table + n * level->period + x % d);
        for (int n = level->first; n < level->first + level->scales; n++) {
            int scale = w.order[n];
            if (scale >= w.limit)
                break;
            struct reals values = w.filter[scale].values;
            const float *from = plane_row(&w, values, y / d) + x / d;
            column.energy = 0;
            if (level->decimate == 1)
                spline_scale<1>(&w, &splines, from, values.stride, scale, weight, &column);
            else if (level->decimate == 2)
                spline_scale<2>(&w, &splines, from, values.stride, scale, weight, &column);
            else if (level->decimate == 3)
                spline_scale<3>(&w, &splines, from, values.stride, scale, weight, &column);
            else if (level->decimate == 4)
                spline_scale<4>(&w, &splines, from, values.stride, scale, weight, &column);
            else if (level->decimate == 5)
                spline_scale<5>(&w, &splines, from, values.stride, scale, weight, &column);
            else
                spline_scale_large(&w, table + y % d, level->period, from, values.stride, scale,
                                   weight, &column);
            if (SIDE != SIDE_NONE)
                block_energy(&w, w.spline_energy, blockIdx.y * gridDim.x + blockIdx.x, scale,
                             column.energy, partial);
        }
    }
    if (!column.is_there || !w.to)
        return;
#pragma unroll
    for (int k = 0; k < SPLINE_ROWS; k++)
        if (y + k < w.height)
            write_code(&w, column.x, y + k,
                       code(&w, SHOW == WAVELET_WINNER, column.shown[k],
                            column.winner[SHOW == WAVELET_WINNER ? k : 0]));
}

// A block adds up one scale's sums, each thread every 256th.
static __global__ void __launch_bounds__(THREADS)
    energies(const __grid_constant__ struct wavelet w, int direct_blocks, int spline_blocks)
{
    __shared__ double partial[THREADS];
    int scale = blockIdx.x;
    bool is_direct = w.filter[scale].level == 0;
    const float *from = is_direct ? w.energy : w.spline_energy;
    double sum = 0;
    for (int k = threadIdx.x; k < (is_direct ? direct_blocks : spline_blocks); k += THREADS)
        sum += from[(size_t)k * w.filters + scale];
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int k = 1; k < THREADS; k++)
        sum += partial[k];
    w.side[scale] = sum / ((double)w.width * w.height);
}

// ---- where things are ----

static int divided(int value, int step)
{
    return (value + step - 1) / step;
}

static struct reals take_plane(struct layout *layout, int columns, int rows)
{
    struct reals plane = {layout->floats, up(columns, 64), rows};
    layout->floats += (size_t)plane.stride * (size_t)rows;
    return plane;
}

static size_t take_table(struct layout *layout, size_t bytes)
{
    size_t place = layout->bytes;
    layout->bytes += (bytes + 255) / 256 * 256;
    return place;
}

// Cells whose taps all lie in the picture: how many there are, and the first.
static int inner_cells(const struct wavelet_level *level, int length, int *first)
{
    int before = level->margin + (level->decimate ? WAVELET_SPLINE / 2 - 1 : 0);
    int last = ((length - 1) >> level->decimate) - WAVELET_REACH;
    *first = before + WAVELET_REACH;
    return last < WAVELET_REACH ? 0 : last - WAVELET_REACH + 1;
}

static void lay_out_level(struct layout *layout, const struct wavelet_grid *grid, int number,
                          int *cells)
{
    const struct wavelet_level *from = &grid->level[number];
    struct level *level = &layout->level[number];
    int first, inner = inner_cells(from, grid->height, &first);
    *level = {from->decimate, from->margin,  from->columns, from->rows,
              from->x.cells,  from->y.cells, *cells,        *cells + from->x.cells};
    *cells += from->x.cells + from->y.cells;
    // The first cell that the picture itself stands in lies at a multiple of four.
    size_t aside = number ? 0 : (size_t)(-from->margin & (FOUR - 1));
    level->cells = take_plane(layout, level->cells_x + PAD_COLUMNS, level->cells_y + PAD_ROWS);
    level->cells.place += aside;
    if (!number) {
        layout->floats += FOUR;
        layout->floats = (layout->floats + 63) / 64 * 64;
        return;
    }
    level->lines = take_plane(layout, grid->width, level->cells_y);
    layout->lines += divided(inner, LINE_CELLS) + level->cells_y - inner;
}

static void lay_out_filter(struct layout *layout, const struct wavelet_grid *grid, int number)
{
    struct filter *filter = &layout->filter[number];
    *filter = {grid->filter[number].level, grid->filter[number].radius};
    const struct level *level = &layout->level[filter->level];
    int *most = filter->level ? &layout->coarse_radius : &layout->direct_radius;
    *most = filter->radius > *most ? filter->radius : *most;
    if (!filter->level)
        return;
    layout->tiles += divided(level->columns, TILE_COLUMNS) * divided(level->rows, TILE_ROWS);
    filter->values =
        take_plane(layout, up(level->columns, TILE_COLUMNS) + 64, level->rows + PAD_ROWS);
}

static void put_in_order(struct layout *layout)
{
    int count = 0;
    for (int l = 0; l < layout->levels; l++) {
        layout->level[l].first = count;
        for (int k = 0; k < layout->filters; k++)
            if (layout->filter[k].level == l)
                layout->order[count++] = k;
        layout->level[l].scales = count - layout->level[l].first;
    }
    layout->direct = layout->level[0].scales;
    layout->coarse = layout->filters - layout->direct;
}

static void lay_out_results(struct layout *layout, const struct op_wavelet *op)
{
    int columns = divided(layout->width, TILE_COLUMNS);
    layout->direct_blocks = columns * divided(layout->height, TILE_ROWS);
    layout->spline_blocks =
        divided(layout->width, SPLINE_COLUMNS) * divided(layout->height, SPLINE_ROWS);
    int rows = layout->direct ? layout->height : 0;
    layout->shown = take_plane(layout, columns * TILE_COLUMNS, rows);
    layout->winner =
        take_plane(layout, columns * TILE_COLUMNS, op->show == WAVELET_WINNER ? rows : 0);
    layout->energy = layout->floats;
    layout->floats +=
        (size_t)(layout->direct_blocks + layout->spline_blocks) * (size_t)layout->filters;
}

static void lay_out(struct layout *layout, const struct op *op, int width, int height)
{
    struct wavelet_grid grid;
    int cells = 0;
    wavelet_grid_outline(op, width, height, &grid);
    *layout = {width, height, grid.filters, grid.levels};
    for (int k = 0; k < grid.levels; k++)
        lay_out_level(layout, &grid, k, &cells);
    for (int k = 0; k < grid.filters; k++)
        lay_out_filter(layout, &grid, k);
    put_in_order(layout);
    lay_out_results(layout, &op->wavelet);
    layout->level_table = take_table(layout, sizeof layout->level);
    layout->filter_table = take_table(layout, sizeof layout->filter);
    layout->order_table = take_table(layout, sizeof layout->order);
    layout->line_table = take_table(layout, (size_t)layout->lines * sizeof(struct line));
    layout->tile_table = take_table(layout, (size_t)layout->tiles * sizeof(struct tile));
    layout->cell_table = take_table(layout, (size_t)cells * sizeof(struct wavelet_cell));
    layout->tap_table = layout->bytes; // as many as the grid has, and the splines
}

// ---- tables ----

static void put_cells(struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    struct wavelet_cell *cell = (struct wavelet_cell *)(to + layout->cell_table);
    for (int k = 0; k < grid->levels; k++) {
        const struct wavelet_level *level = &grid->level[k];
        memcpy(cell + layout->level[k].cell_x, level->x.cell,
               (size_t)level->x.cells * sizeof *cell);
        memcpy(cell + layout->level[k].cell_y, level->y.cell,
               (size_t)level->y.cells * sizeof *cell);
    }
}

// Large cells first: they take longest.
static void put_lines(const struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    struct line *line = (struct line *)(to + layout->line_table);
    for (int k = grid->levels - 1; k > 0; k--) {
        const struct wavelet_level *level = &grid->level[k];
        int first, inner = inner_cells(level, grid->height, &first);
        for (int c = 0; c < level->y.cells; c++)
            if (!inner || c < first || c >= first + inner)
                *line++ = {k, c, 1};
        for (int c = 0; c < inner; c += LINE_CELLS)
            *line++ = {k, first + c, inner - c < LINE_CELLS ? inner - c : LINE_CELLS};
    }
}

static void put_tiles(const struct layout *layout, uint8_t *to)
{
    struct tile *tile = (struct tile *)(to + layout->tile_table);
    for (int n = layout->direct; n < layout->filters; n++) {
        int k = layout->order[n];
        const struct level *level = &layout->level[layout->filter[k].level];
        for (int y = 0; y < level->rows; y += TILE_ROWS)
            for (int x = 0; x < level->columns; x += TILE_COLUMNS)
                *tile++ = {k, x, y};
    }
}

static void put_taps(struct layout *layout, const struct wavelet_grid *grid, uint8_t *to)
{
    float *tap = (float *)(to + layout->tap_table);
    int place = grid->taps;
    memcpy(tap, grid->tap, (size_t)grid->taps * sizeof *tap);
    for (int k = 1; k < grid->levels; k++) {
        const struct wavelet_level *level = &grid->level[k];
        memcpy(tap + place, level->spline, WAVELET_SPLINE * (size_t)level->period * sizeof *tap);
        layout->level[k].spline = place;
        layout->level[k].period = level->period;
        place += WAVELET_SPLINE * level->period;
    }
    for (int k = 0; k < grid->filters; k++) {
        layout->filter[k].smooth = grid->filter[k].smooth;
        layout->filter[k].bent = grid->filter[k].bent;
    }
}

static size_t tap_bytes(const struct wavelet_grid *grid)
{
    size_t taps = (size_t)grid->taps;
    for (int k = 1; k < grid->levels; k++)
        taps += WAVELET_SPLINE * (size_t)grid->level[k].period;
    return taps * sizeof(float);
}

extern "C" size_t wavelet_constants(const struct op *op, int width, int height, void *to)
{
    struct layout *layout = (struct layout *)malloc(sizeof *layout);
    struct wavelet_grid *grid = NULL;
    size_t bytes = 0;
    if (layout && !wavelet_grid_create(op, width, height, &grid)) {
        lay_out(layout, op, width, height);
        bytes = layout->bytes + tap_bytes(grid);
    }
    if (bytes && to) {
        put_cells(layout, grid, (uint8_t *)to);
        put_lines(layout, grid, (uint8_t *)to);
        put_tiles(layout, (uint8_t *)to);
        put_taps(layout, grid, (uint8_t *)to);
        memcpy((uint8_t *)to + layout->level_table, layout->level, sizeof layout->level);
        memcpy((uint8_t *)to + layout->filter_table, layout->filter, sizeof layout->filter);
        memcpy((uint8_t *)to + layout->order_table, layout->order, sizeof layout->order);
    }
    wavelet_grid_destroy(&grid);
    free(layout);
    return bytes;
}

extern "C" size_t wavelet_scratch(const struct op *op, int width, int height)
{
    struct layout layout;
    lay_out(&layout, op, width, height);
    return layout.floats * sizeof(float);
}

// ---- launchers ----

static struct wavelet kernel_arguments(const struct whole *whole, const struct layout *layout)
{
    const struct op_wavelet *op = &whole->op->wavelet;
    const uint8_t *tables = (const uint8_t *)whole->constants;
    float *scratch = (float *)whole->scratch;
    bool one = op->show == WAVELET_ABS || op->show == WAVELET_SIGNED;
    struct wavelet w = {};
    w.level = (const struct level *)(tables + layout->level_table);
    w.filter = (const struct filter *)(tables + layout->filter_table);
    w.order = (const int *)(tables + layout->order_table);
    w.line = (const struct line *)(tables + layout->line_table);
    w.tile = (const struct tile *)(tables + layout->tile_table);
    w.cell = (const struct wavelet_cell *)(tables + layout->cell_table);
    w.tap = (const float *)(tables + layout->tap_table);
    w.scratch = scratch;
    w.width = layout->width;
    w.height = layout->height;
    w.filters = layout->filters;
    w.levels = layout->levels;
    w.lines = layout->lines;
    w.limit = one && !whole->side ? 1 : layout->filters;
    w.direct_radius = layout->direct_radius;
    w.coarse_radius = layout->coarse_radius;
    w.shown = layout->shown;
    w.winner = layout->winner;
    w.energy = scratch + layout->energy;
    w.spline_energy = w.energy + (size_t)layout->direct_blocks * layout->filters;
    w.from = whole->from;
    w.from_stride = whole->from_stride;
    w.black = (float)op->black;
    w.to = whole->to;
    w.to_stride = whole->to_stride;
    w.gain = (float)op->gain;
    w.middle = op->show == WAVELET_SIGNED ? (float)op->high / 2 : 0;
    w.high = op->high;
    w.side = (double *)whole->side;
    w.bytes = whole->depth > 8 ? 2 : 1;
    return w;
}

static void fill_splines(struct splines *splines, const struct layout *layout)
{
    for (int k = 1; k < layout->levels; k++) {
        int decimate = layout->level[k].decimate, d = 1 << decimate;
        for (int p = 0; p < d && decimate < SPLINE_LOGS; p++)
            for (int n = 0; n < WAVELET_SPLINE; n++)
                splines->weight[d - 2 + p][n] = wavelet_spline(decimate, p, n);
    }
}

static dim3 tiles_of(int width, int height, int columns, int rows)
{
    return dim3((unsigned)divided(width, columns), (unsigned)divided(height, rows));
}

static void make_cells(const struct wavelet *w, const struct layout *layout, int depth,
                       cudaStream_t stream)
{
    dim3 blocks =
        tiles_of(layout->level[0].cells.stride, layout->level[0].cells.rows, LANES, WARPS * FOUR);
    if (depth > 8)
        samples<uint16_t><<<blocks, THREADS, 0, stream>>>(*w);
    else
        samples<uint8_t><<<blocks, THREADS, 0, stream>>>(*w);
    if (!layout->coarse)
        return;
    lines<<<tiles_of(layout->width, layout->lines, LANES * FOUR, WARPS), THREADS, 0, stream>>>(*w);
    int columns = 0, rows = 0;
    for (int k = 1; k < layout->levels; k++) {
        const struct reals *plane = &layout->level[k].cells;
        columns = plane->stride > columns ? plane->stride : columns;
        rows = plane->rows > rows ? plane->rows : rows;
    }
    blocks = tiles_of(columns, rows, THREADS, 1);
    blocks.z = (unsigned)layout->levels - 1;
    cells<<<blocks, THREADS, 0, stream>>>(*w);
}

// A kernel may take more shared memory than it is given unasked.
template <typename Kernel> static cudaError_t allow(Kernel kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <enum wavelet_show SHOW, enum wanted SIDE>
static cudaError_t make_results(const struct wavelet *w, const struct layout *layout,
                                cudaStream_t stream)
{
    size_t shared = tile_bytes(layout->direct_radius);
    struct splines weights = {};
    fill_splines(&weights, layout);
    cudaError_t error = allow(direct<SHOW, SIDE>, shared);
    if (error)
        return error;
    if (layout->direct)
        direct<SHOW, SIDE>
            <<<tiles_of(w->width, w->height, TILE_COLUMNS, TILE_ROWS), THREADS, shared, stream>>>(
                *w);
    splines<SHOW, SIDE>
        <<<tiles_of(w->width, w->height, SPLINE_COLUMNS, SPLINE_ROWS), SPLINE_COLUMNS, 0, stream>>>(
            *w, weights);
    if (SIDE != SIDE_NONE)
        energies<<<(unsigned)w->filters, THREADS, 0, stream>>>(*w, layout->direct_blocks,
                                                               layout->spline_blocks);
    return cudaGetLastError();
}

template <enum wavelet_show SHOW>
static cudaError_t make_shown(const struct wavelet *w, const struct layout *layout, bool planes,
                              cudaStream_t stream)
{
    return !w->side ? make_results<SHOW, SIDE_NONE>(w, layout, stream)
           : planes ? make_results<SHOW, SIDE_PLANES>(w, layout, stream)
                    : make_results<SHOW, SIDE_ENERGY>(w, layout, stream);
}

extern "C" cudaError_t wavelet_async(const struct whole *whole, cudaStream_t stream)
{
    if (!whole->constants)
        return cudaErrorMemoryAllocation;
    struct layout layout;
    lay_out(&layout, whole->op, whole->width, whole->height);
    struct wavelet w = kernel_arguments(whole, &layout);
    make_cells(&w, &layout, whole->depth, stream);
    size_t shared = tile_bytes(layout.coarse_radius);
    cudaError_t error = allow(values, shared);
    if (error)
        return error;
    if (layout.tiles)
        values<<<(unsigned)layout.tiles, THREADS, shared, stream>>>(w);
    const struct op_wavelet *op = &whole->op->wavelet;
    if (op->show == WAVELET_MAX)
        return make_shown<WAVELET_MAX>(&w, &layout, op->planes, stream);
    if (op->show == WAVELET_WINNER)
        return make_shown<WAVELET_WINNER>(&w, &layout, op->planes, stream);
    return make_shown<WAVELET_ABS>(&w, &layout, op->planes, stream);
}
