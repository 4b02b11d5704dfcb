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
    FOUR = 4, // floats of a vector
    WARPS = 8,
    THREADS = LANES * WARPS,
    STRIP = 8,          // neighbouring results of a thread that filters
    TILE_COLUMNS = 128, // values of a block
    TILE_ROWS = LANES,
    ITEMS = TILE_COLUMNS / STRIP / WARPS, // strips of a thread along the rows
    TURN_STRIDE = TILE_COLUMNS + FOUR,
    SPLINE_COLUMNS = 128,
    SPLINE_ROWS = 32,
    SPLINE_LOGS = 6, // D = 1 .. 32: every phase of the rows is in every tile
    LINE_CELLS = 8,  // of a thread
    LINE_LOG = 7,    // the largest D whose cells are made so
    RUN_LOG = 5,     // and along the rows by lanes side by side
    OWN_LOG = 2,     // the largest whose cells across edges are made so, a lane each
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
    int eights;        // of the taps that eight cells below each other have, a row after another
    int inner, inners; // the first of a row whose taps all lie in the picture, and how many do
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
    int bytes;       // of a sample of the result
    bool is_aligned; // rows of samples begin at multiples of four
    int run;         // floats of a warp's run of samples
};

// What of it is wanted.
enum wanted { SIDE_NONE, SIDE_ENERGY, SIDE_PLANES };

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
template <enum part PART, typename Input, typename Add>
static __device__ inline void add_strip(const float *smooth, const float *bent, int first,
                                        const Input input[STRIP], Add add)
{
    float s[2 * STRIP], b[2 * STRIP];
#pragma unroll
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
                add(p, s[STRIP + i - p], b[STRIP + i - p], input[i]);
}

// Results of a strip: read(n) gives input n, add() uses it. Inputs are fetched while those before
// them are used.
template <typename Input, typename Read, typename Add>
static __device__ inline void filter_strip(const float *smooth, const float *bent, int taps,
                                           Read read, Add add)
{
    Input input[STRIP], next[STRIP];
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        input[i] = read(i);
#pragma unroll
    for (int i = 0; i < STRIP; i++)
        next[i] = read(STRIP + i);
    add_strip<PART_HEAD>(smooth, bent, 0, input, add);
#pragma unroll 2
    for (int n = STRIP; n < taps; n += STRIP) {
#pragma unroll
        for (int i = 0; i < STRIP; i++) {
            input[i] = next[i];
            next[i] = read(n + STRIP + i);
        }
        add_strip<PART_MIDDLE>(smooth, bent, n, input, add);
    }
    add_strip<PART_TAIL>(smooth, bent, taps, next, add);
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
        float s[STRIP] = {}, b[STRIP] = {};
        filter_strip<float>(
            tile->smooth, tile->bent, tile->taps,
            [&](int n) { return __ldg(from + (size_t)n * stride); },
            [&](int p, float smooth, float bent, float input) {
                s[p] += smooth * input;
                b[p] += bent * input;
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
    for (int p = 0; p < STRIP; p++)
        value[p] = 0;
    filter_strip<float2>(
        tile->smooth, tile->bent, tile->taps, [&](int n) { return from[n]; },
        [&](int p, float smooth, float bent, float2 input) {
            value[p] += bent * input.x;
            value[p] += smooth * input.y;
        });
}

// Turn the values of a tile, so that lanes have neighbours along the rows: keep(row, column, four)
// gets four of them. They pass through the sums' memory, which nobody may need any more.
template <typename Keep>
static __device__ inline void tile_turn(const struct shared_tile *tile,
                                        const float value[ITEMS][STRIP], Keep keep)
{
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    float *turned = (float *)tile->sums;
    float *own = turned + lane * TURN_STRIDE + warp * ITEMS * STRIP;
    __syncthreads();
#pragma unroll
    for (int n = 0; n < ITEMS * STRIP; n += FOUR) {
        const float *from = &value[n / STRIP][n % STRIP];
        *(float4 *)(own + n) = make_float4(from[0], from[1], from[2], from[3]);
    }
    __syncthreads();
    for (int row = warp; row < TILE_ROWS; row += WARPS)
        keep(row, lane * FOUR, *(const float4 *)(turned + row * TURN_STRIDE + lane * FOUR));
}

// ---- cells ----

template <typename T> struct alignas(FOUR * sizeof(T)) word {
    T sample[FOUR];
};

// Four samples of a row of the picture from column x on, less black. Those in one word are read as
// one; those behind the last are the last.
template <typename T>
static __device__ inline float4 read_four(const struct wavelet *w, int y, int x)
{
    const T *row = (const T *)(w->from + (ptrdiff_t)y * w->from_stride);
    word<T> four;
    if (w->is_aligned && x + FOUR <= w->width)
        four = *(const word<T> *)(row + x);
    else
        for (int i = 0; i < FOUR; i++)
            four.sample[i] = row[min(x + i, w->width - 1)];
    return make_float4(four.sample[0] - w->black, four.sample[1] - w->black,
                       four.sample[2] - w->black, four.sample[3] - w->black);
}

// Four cells of the row that a row of samples gives.
template <typename T>
static __device__ inline void put_four(const struct wavelet *w, struct wavelet_cell row, int x,
                                       float *to)
{
    const struct level *level = w->level;
    int column = x - level->margin;
    if (row.count && column >= 0 && column + FOUR <= w->width) {
        *(float4 *)to = read_four<T>(w, row.first, column);
        return;
    }
    const T *from = (const T *)(w->from + (ptrdiff_t)row.first * w->from_stride);
    for (int i = 0; i < FOUR; i++) {
        bool there = row.count && x + i >= 0 && x + i < level->cells_x;
        struct wavelet_cell cell = {};
        if (there)
            cell = w->cell[level->cell_x + x + i];
        if (x + i >= 0)
            to[i] = there && cell.count ? (float)from[cell.first] - w->black : 0;
    }
}

// The whole plane, and zeros beyond it. A thread makes four neighbouring cells in each of four
// rows, in the picture those of four samples in a word.
template <typename T>
static __global__ void __launch_bounds__(THREADS) samples(const __grid_constant__ struct wavelet w)
{
    const struct level *level = w.level;
    int aside = -level->margin & (FOUR - 1); // what lies before the plane's first cell
    int x = (blockIdx.x * LANES + threadIdx.x % LANES) * FOUR - aside;
    int first = blockIdx.y * FOUR * WARPS + threadIdx.x / LANES;
    if (x >= level->cells.stride - aside)
        return;
    struct wavelet_cell row[FOUR] = {};
#pragma unroll
    for (int k = 0; k < FOUR; k++)
        if (first + k * WARPS < level->cells_y)
            row[k] = w.cell[level->cell_y + first + k * WARPS];
#pragma unroll
    for (int k = 0; k < FOUR; k++)
        if (first + k * WARPS < level->cells.rows)
            put_four<T>(&w, row[k], x, plane_row(&w, level->cells, first + k * WARPS) + x);
}

static __device__ inline void add_four(float4 *sum, float tap, float4 value)
{
    sum->x += tap * value.x;
    sum->y += tap * value.y;
    sum->z += tap * value.z;
    sum->w += tap * value.w;
}

static __device__ inline void add_cells(float4 sum[LINE_CELLS], const float4 tap[2], float4 value)
{
    const float *t = (const float *)tap;
#pragma unroll
    for (int c = 0; c < LINE_CELLS; c++)
        add_four(&sum[c], t[c], value);
}

// A block makes cells of 128 columns, four neighbours a lane; blockIdx.y counts entries of the
// table of lines. Its warps sum up every eighth row of samples, and each adds up what all have of
// one cell. Inner cells are made eight at a time, of rows that are read once, with a table of the
// taps that eight cells have for each row.
template <typename T>
static __global__ void __launch_bounds__(THREADS) lines(const __grid_constant__ struct wavelet w)
{
    __shared__ float4 part[LINE_CELLS][THREADS];
    static_assert((int)LINE_CELLS == (int)WARPS, "a warp for each cell");
    struct line line = w.line[blockIdx.y];
    const struct level *level = &w.level[line.level];
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES;
    int x = (blockIdx.x * LANES + lane) * FOUR;
    bool is_there = x < w.width;
    struct wavelet_cell cell = w.cell[level->cell_y + line.first];
    float4 sum[LINE_CELLS] = {};
    if (is_there && line.count > 1) {
        const float4 *taps = (const float4 *)(w.tap + level->eights);
        int rows = cell.count + ((line.count - 1) << level->decimate);
#pragma unroll 4
        for (int k = warp; k < rows; k += WARPS) {
            float4 tap[2] = {__ldg(taps + 2 * k), __ldg(taps + 2 * k + 1)};
            add_cells(sum, tap, read_four<T>(&w, cell.first + k, x));
        }
    } else if (is_there) {
#pragma unroll 4
        for (int k = warp; k < cell.count; k += WARPS)
            add_four(&sum[0], __ldg(w.tap + cell.tap + k), read_four<T>(&w, cell.first + k, x));
    }
#pragma unroll
    for (int c = 0; c < LINE_CELLS; c++)
        if (c < line.count)
            part[c][threadIdx.x] = sum[c];
    __syncthreads();
    if (warp >= line.count || !is_there)
        return;
    float4 all = {};
    for (int k = 0; k < WARPS; k++)
        add_four(&all, 1, part[warp][k * LANES + lane]);
    *(float4 *)(plane_row(&w, level->lines, line.first + warp) + x) = all;
}

static __device__ inline float warp_sum(float sum)
{
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(~0u, sum, lanes);
    return sum;
}

// Where sample k of a run lies in shared memory: lanes that read every Dth one meet no other's
// bank.
static __host__ __device__ inline int run_place(int k)
{
    return k + k / LANES;
}

// Neighbouring inner cells, a lane each, of a run of samples that the warp fetches. Behind the last
// tap there are zeros, for which there must be numbers.
static __device__ inline float run_cell(const struct wavelet *w, const struct level *level,
                                        const float *from, struct wavelet_cell first, float *run)
{
    int d = 1 << level->decimate, lane = threadIdx.x % LANES, count = up(first.count, FOUR);
    for (int k = lane; k < (LANES - 1) * d + count; k += LANES)
        run[run_place(k)] = first.first + k < w->width ? __ldg(from + first.first + k) : 0;
    __syncwarp();
    float sum = 0;
    for (int k = 0; k < count; k += FOUR) {
        float4 tap = __ldg((const float4 *)(w->tap + first.tap + k));
        sum += tap.x * run[run_place(lane * d + k)];
        sum += tap.y * run[run_place(lane * d + k + 1)];
        sum += tap.z * run[run_place(lane * d + k + 2)];
        sum += tap.w * run[run_place(lane * d + k + 3)];
    }
    return sum;
}

// A cell a lane.
static __device__ inline float own_cell(const struct wavelet *w, const struct level *level,
                                        const float *from, int x)
{
    float sum = 0;
    if (x >= level->cells_x)
        return 0;
    struct wavelet_cell cell = w->cell[level->cell_x + x];
#pragma unroll 4
    for (int k = 0; k < cell.count; k++)
        sum += __ldg(w->tap + cell.tap + k) * __ldg(from + cell.first + k);
    return sum;
}

// One cell after another, of which lanes make every 32nd product.
static __device__ inline float each_cell(const struct wavelet *w, const struct level *level,
                                         const float *from, int x)
{
    int lane = threadIdx.x % LANES;
    float own = 0;
    for (int i = 0; i < LANES && x + i < level->cells_x; i++) {
        struct wavelet_cell cell = w->cell[level->cell_x + x + i];
        float sum = 0;
        for (int k = lane; k < cell.count; k += LANES)
            sum += __ldg(w->tap + cell.tap + k) * __ldg(from + cell.first + k);
        sum = warp_sum(sum);
        own = lane == i ? sum : own;
    }
    return own;
}

// A warp makes 32 cells of a row, and zeros beyond those that there are; blockIdx.y counts the rows
// of all levels.
static __global__ void __launch_bounds__(THREADS) cells(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, y = blockIdx.y;
    const struct level *level = &w.level[1];
    while (y >= level->cells.rows)
        y -= level++->cells.rows;
    int x = (blockIdx.x * WARPS + warp) * LANES;
    if (x >= level->cells.stride)
        return;
    const float *from = plane_row(&w, level->lines, y);
    float *run = (float *)memory + warp * w.run, sum = 0;
    bool inner = x >= level->inner && x + LANES <= level->inner + level->inners;
    if (y < level->cells_y && inner && level->decimate <= RUN_LOG)
        sum = run_cell(&w, level, from, w.cell[level->cell_x + x], run);
    else if (y < level->cells_y && level->decimate <= OWN_LOG)
        sum = own_cell(&w, level, from, x + lane);
    else if (y < level->cells_y)
        sum = each_cell(&w, level, from, x);
    if (x + lane < level->cells.stride)
        plane_row(&w, level->cells, y)[x + lane] = sum;
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
    float value[ITEMS][STRIP];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        tile_row(&tile, (threadIdx.x / LANES * ITEMS + k) * STRIP, value[k]);
    tile_turn(&tile, value, [&](int row, int column, float4 four) {
        if (at.y + row < level->rows)
            *(float4 *)(plane_row(&w, filter->values, at.y + row) + at.x + column) = four;
    });
}

// ---- results ----

// What is shown at a place, as scales come.
template <enum wavelet_show SHOW>
static __device__ inline void show(float value, int scale, float *shown, float *winner)
{
    if (SHOW == WAVELET_ABS) { // and WAVELET_SIGNED
        if (scale == 0)
            *shown = value;
    } else if (SHOW == WAVELET_MAX) {
        *shown = fmaxf(*shown, fabsf(value));
    } else if (fabsf(value) > *shown) {
        *shown = fabsf(value);
        *winner = (float)scale;
    }
}

static __device__ inline float *side_plane(const struct wavelet *w, int scale)
{
    return (float *)(w->side + w->filters) + (size_t)scale * w->width * w->height;
}

static __device__ inline void keep_four(const struct wavelet *w, int scale, int x, int y,
                                        float4 four)
{
    float *to = side_plane(w, scale) + (size_t)y * w->width + x;
    const float value[FOUR] = {four.x, four.y, four.z, four.w};
    for (int i = 0; i < FOUR && y < w->height; i++)
        if (x + i < w->width)
            to[i] = value[i];
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
    float winner[ITEMS][STRIP] = {}; // numbers of scales
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
        float energy = 0, value[ITEMS][STRIP];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            tile_row(&tile, own + k * STRIP, value[k]);
#pragma unroll
            for (int p = 0; p < STRIP; p++) {
                show<SHOW>(value[k][p], scale, &shown[k][p], &winner[k][p]);
                bool inside = first_x + own + k * STRIP + p < w.width && y < w.height;
                energy += inside ? value[k][p] * value[k][p] : 0;
            }
        }
        if (SIDE == SIDE_PLANES)
            tile_turn(&tile, value, [&](int row, int column, float4 four) {
                keep_four(&w, scale, first_x + column, first_y + row, four);
            });
        if (SIDE != SIDE_NONE)
            block_energy(&w, w.energy, blockIdx.y * gridDim.x + blockIdx.x, scale, energy, partial);
    }
    struct shared_tile tile = tile_of(memory, w.direct_radius, w.direct_radius);
    tile_turn(&tile, shown, [&](int row, int column, float4 four) {
        if (first_y + row < w.height)
            *(float4 *)(plane_row(&w, w.shown, first_y + row) + first_x + column) = four;
    });
    if (SHOW == WAVELET_WINNER)
        tile_turn(&tile, winner, [&](int row, int column, float4 four) {
            if (first_y + row < w.height)
                *(float4 *)(plane_row(&w, w.winner, first_y + row) + first_x + column) = four;
        });
}

// One column of a tile of the picture.
template <int SHOW, int SIDE> struct column {
    int x, y; // its first place
    bool is_there;
    float energy;
    float shown[SPLINE_ROWS];
    float winner[SHOW == WAVELET_WINNER ? SPLINE_ROWS : 1];

    __device__ inline void take(const struct wavelet *w, int scale, int row, float value)
    {
        show<(enum wavelet_show)SHOW>(value, scale, &shown[row],
                                      &winner[SHOW == WAVELET_WINNER ? row : 0]);
        bool inside = SIDE != SIDE_NONE && is_there && y + row < w->height;
        energy += inside ? value * value : 0;
        if (SIDE == SIDE_PLANES && inside)
            side_plane(w, scale)[(size_t)(y + row) * w->width + x] = value;
    }
};

// A spline along a row of values, and down six of them.
static __device__ inline float spline_row(const float *value, const float weight[WAVELET_SPLINE])
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        sum += weight[n] * __ldg(value + n);
    return sum;
}

// The quintic B-spline at a place 0 <= x < 3 from its middle.
static __host__ __device__ constexpr double power(double x)
{
    return x > 0 ? x * x * x * x * x : 0;
}

static __host__ __device__ constexpr double spline_at(double x)
{
    x = x < 0 ? -x : x;
    return (power(3 - x) - 6 * power(2 - x) + 15 * power(1 - x)) / 120;
}

// The weight of value n at phase p / d, a constant of the code.
static __host__ __device__ constexpr double weight_at(int d, int p, int n)
{
    return spline_at((double)p / d - (n - 2));
}

// W in the D = 2^LOG rows between six values: take(p, W). Phases p and D - p have weights in
// opposite order, so that what values have in common, and what not, serves both.
template <int LOG, typename Take>
static __device__ inline void spline_phases(const float row[WAVELET_SPLINE], Take take)
{
    constexpr int d = 1 << LOG;
    float sum[3], rest[3];
#pragma unroll
    for (int n = 0; n < 3; n++) {
        sum[n] = row[n] + row[5 - n];
        rest[n] = row[n] - row[5 - n];
    }
    take(0, (float)weight_at(d, 0, 0) * (row[0] + row[4]) +
                (float)weight_at(d, 0, 1) * (row[1] + row[3]) + (float)weight_at(d, 0, 2) * row[2]);
#pragma unroll
    for (int p = 1; p <= d / 2; p++) {
        float even = 0, odd = 0;
#pragma unroll
        for (int n = 0; n < 3; n++) {
            double a = weight_at(d, p, n), b = weight_at(d, p, 5 - n);
            even += (float)((a + b) / 2) * sum[n];
            odd += (float)((a - b) / 2) * rest[n];
        }
        if (p == d / 2) {
            take(p, even);
            break;
        }
        take(p, even + odd);
        take(d - p, even - odd);
    }
}

// W of a scale with D = 2^LOG <= 32, whose first place is the first of D rows.
template <int LOG, typename Column>
static __device__ inline void spline_scale(const struct wavelet *w, const float *from, int stride,
                                           int scale, const float weight[WAVELET_SPLINE],
                                           Column *column)
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
        spline_phases<LOG>(
            row, [&](int p, float value) { column->take(w, scale, (m << LOG) + p, value); });
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

static __device__ inline int code(const struct wavelet *w, bool wins, float shown, float winner)
{
    if (wins)
        return shown * w->gain < 0.5f ? 0 : min((int)winner + 1, w->high);
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

// Blocks of a multiprocessor, by what their threads keep in registers.
template <int SHOW, int SIDE>
static constexpr int SPLINE_BLOCKS = SIDE == SIDE_PLANES      ? 3
                                     : SHOW == WAVELET_WINNER ? 4
                                     : SHOW == WAVELET_MAX    ? 6
                                                              : 5;

// A thread makes a column of 32 rows, so that what it reads of a scale it reads once, and keeps
// what is shown in registers; neighbouring threads read neighbouring values, or the same.
template <enum wavelet_show SHOW, enum wanted SIDE>
static __global__ void __launch_bounds__(SPLINE_COLUMNS, SPLINE_BLOCKS<SHOW, SIDE>)
    splines(const __grid_constant__ struct wavelet w)
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
            column.winner[k] = w.level->scales ? plane_row(&w, w.winner, row)[x] : 0;
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
                spline_scale<1>(&w, from, values.stride, scale, weight, &column);
            else if (level->decimate == 2)
                spline_scale<2>(&w, from, values.stride, scale, weight, &column);
            else if (level->decimate == 3)
                spline_scale<3>(&w, from, values.stride, scale, weight, &column);
            else if (level->decimate == 4)
                spline_scale<4>(&w, from, values.stride, scale, weight, &column);
            else if (level->decimate == 5)
                spline_scale<5>(&w, from, values.stride, scale, weight, &column);
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

// Entries of the table of lines for inner cells.
static int lines_of(int decimate, int inner)
{
    return decimate <= LINE_LOG ? divided(inner, LINE_CELLS) : inner;
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
    level->inners = inner_cells(from, grid->width, &level->inner);
    level->lines = take_plane(layout, grid->width, level->cells_y);
    layout->lines += lines_of(level->decimate, inner) + level->cells_y - inner;
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
        int step = level->decimate <= LINE_LOG ? LINE_CELLS : 1;
        for (int c = 0; c < inner; c += step)
            *line++ = {k, first + c, inner - c < step ? inner - c : step};
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

// The taps that LINE_CELLS cells have for each row that any of them reads.
static size_t eights_of(const struct wavelet_level *level)
{
    size_t d = (size_t)1 << level->decimate;
    return level->decimate > LINE_LOG ? 0 : (2 * WAVELET_REACH * d + 1 + 7 * d) * LINE_CELLS;
}

static void put_eights(const struct wavelet_level *level, const float *tap, float *to)
{
    int d = 1 << level->decimate, count = 2 * WAVELET_REACH * d + 1;
    for (size_t n = 0; n < eights_of(level); n++) {
        int k = (int)(n / LINE_CELLS) - (int)(n % LINE_CELLS) * d;
        to[n] = k >= 0 && k < count ? tap[k] : 0;
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
        layout->level[k].eights = place;
        put_eights(level, grid->tap + level->prefilter, tap + place);
        place += (int)eights_of(level);
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
        taps += WAVELET_SPLINE * (size_t)grid->level[k].period + eights_of(&grid->level[k]);
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

// The longest run that a warp fetches for its cells.
static int run_floats(const struct layout *layout)
{
    int most = 0;
    for (int k = 1; k < layout->levels; k++) {
        int d = 1 << layout->level[k].decimate;
        int samples = (LANES - 1) * d + up(2 * WAVELET_REACH * d + 1, FOUR);
        if (layout->level[k].decimate <= RUN_LOG && layout->level[k].inners >= LANES)
            most = up(run_place(samples) + 1, FOUR);
    }
    return most;
}

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
    w.limit = one && !whole->side_is_wanted ? 1 : layout->filters;
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
    w.side = whole->side_is_wanted ? (double *)whole->side : NULL;
    w.bytes = whole->depth > 8 ? 2 : 1;
    w.is_aligned = ((uintptr_t)w.from | (uintptr_t)w.from_stride) % (uintptr_t)(4 * w.bytes) == 0;
    w.run = run_floats(layout);
    return w;
}

static dim3 tiles_of(int width, int height, int columns, int rows)
{
    return dim3((unsigned)divided(width, columns), (unsigned)divided(height, rows));
}

template <typename T>
static void make_cells(const struct wavelet *w, const struct layout *layout, cudaStream_t stream)
{
    const struct reals *plane = &layout->level[0].cells;
    if (layout->direct)
        samples<T><<<tiles_of(plane->stride, plane->rows, LANES * FOUR, WARPS * FOUR), THREADS, 0,
                     stream>>>(*w);
    if (!layout->coarse)
        return;
    lines<T><<<tiles_of(layout->width, layout->lines, LANES * FOUR, 1), THREADS, 0, stream>>>(*w);
    int rows = 0;
    for (int k = 1; k < layout->levels; k++)
        rows += layout->level[k].cells.rows;
    cells<<<tiles_of(layout->level[1].cells.stride, rows, THREADS, 1), THREADS,
            WARPS *(size_t)w->run * sizeof(float), stream>>>(*w);
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
    cudaError_t error = allow(direct<SHOW, SIDE>, shared);
    if (error)
        return error;
    if (layout->direct)
        direct<SHOW, SIDE>
            <<<tiles_of(w->width, w->height, TILE_COLUMNS, TILE_ROWS), THREADS, shared, stream>>>(
                *w);
    splines<SHOW, SIDE>
        <<<tiles_of(w->width, w->height, SPLINE_COLUMNS, SPLINE_ROWS), SPLINE_COLUMNS, 0, stream>>>(
            *w);
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
    if (whole->depth > 8)
        make_cells<uint16_t>(&w, &layout, stream);
    else
        make_cells<uint8_t>(&w, &layout, stream);
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
