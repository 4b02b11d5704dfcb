// OP_WAVELET: from cells to W at each scale, and what is shown of it.
#include "kernels/full_frame/wavelet_tile.cuh"

// The part of the analysis that is wanted.
enum wanted { ANALYSIS_NONE, ANALYSIS_ENERGY, ANALYSIS_PLANES };

// ---- values ----

// A block makes a tile of one scale, 128 x 32: sums down the columns in shared memory, then along
// the rows, a lane to a row, so that neighbours along the row are one thread's.
static __global__ void __launch_bounds__(THREADS, 3)
    values(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    struct tile at = w.tile[blockIdx.x];
    const struct filter *filter = &w.filter[at.number];
    const struct level *level = &w.level[filter->level];
    struct shared_tile tile = tile_of(memory, w.coarse_radius, filter->radius);
    if (at.number >= w.limit)
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
        tile_row(&tile, (threadIdx.x / WARP * ITEMS + k) * STRIP, value[k]);
    tile_transpose(&tile, value, [&](int row, int column, float4 four) {
        if (at.y + row < level->rows)
            *(float4 *)(plane_row(&w, filter->values, at.y + row) + at.x + column) = four;
    });
}

// ---- results ----

// Update what is shown at a place with the next scale.
template <enum wavelet_show SHOW>
static __device__ inline void show(float value, int scale, float *shown, float *winner)
{
    if (SHOW == WAVELET_ABS) { // and WAVELET_SIGNED
        if (scale == 0)
            *shown = value;
    } else if (SHOW == WAVELET_MAX) {
        *shown = fmaxf(*shown, fabsf(value));
    } else if (fabsf(value) > *shown || (fabsf(value) == *shown && scale < *winner)) {
        *shown = fabsf(value); // levels come before scales: the first of equal ones wins
        *winner = (float)scale;
    }
}

static __device__ inline float *side_plane(const struct wavelet *w, int scale)
{
    return (float *)(w->analysis + w->filters) + (size_t)scale * w->width * w->height;
}

static __device__ inline void keep_vec4(const struct wavelet *w, int scale, int x, int y,
                                        float4 four)
{
    float *to = side_plane(w, scale) + (size_t)y * w->width + x;
    const float value[VEC4] = {four.x, four.y, four.z, four.w};
    for (int i = 0; i < VEC4 && y < w->height; i++)
        if (x + i < w->width)
            to[i] = value[i];
}

// Add the square of a value in whole steps: adding 3 * 2^22 leaves an integer in the lower bits. In
// assembly, as the compiler would add up squares two by two and keep all of them for that.
static __device__ inline void add_energy(unsigned long long *energy, float value, float step)
{
    const float integers = 12582912;
    int steps = __float_as_int(__fmaf_rn(value, step, integers)) - __float_as_int(integers);
    asm("mad.wide.s32 %0, %1, %1, %0;" : "+l"(*energy) : "r"(steps));
}

// The sum of all threads' for a scale, by the first.
static __device__ inline void block_energy(const struct wavelet *w, unsigned long long *energy,
                                           int block, int scale, unsigned long long sum,
                                           unsigned long long *shared)
{
    int warps = blockDim.x / WARP;
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int k = 1; k < warps; k++)
        sum += shared[k];
    energy[(size_t)block * w->filters + scale] = sum;
}

// A block makes a tile of the picture, all scales without a grid one after another, and keeps what
// is shown in registers.
template <enum wavelet_show SHOW, enum wanted WANTED>
static __global__ void __launch_bounds__(THREADS, 2)
    direct(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    __shared__ unsigned long long partial[WARPS];
    const struct level *level = w.level;
    int first_x = blockIdx.x * TILE_COLUMNS, first_y = blockIdx.y * TILE_ROWS;
    int y = first_y + threadIdx.x % WARP, own = threadIdx.x / WARP * ITEMS * STRIP;
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
        unsigned long long energy = 0;
        float value[ITEMS][STRIP];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            tile_row(&tile, own + k * STRIP, value[k]);
#pragma unroll
            for (int p = 0; p < STRIP; p++) {
                show<SHOW>(value[k][p], scale, &shown[k][p], &winner[k][p]);
                bool inside = first_x + own + k * STRIP + p < w.width && y < w.height;
                if (WANTED != ANALYSIS_NONE)
                    add_energy(&energy, inside ? value[k][p] : 0, filter->step);
            }
        }
        if (WANTED == ANALYSIS_PLANES)
            tile_transpose(&tile, value, [&](int row, int column, float4 four) {
                keep_vec4(&w, scale, first_x + column, first_y + row, four);
            });
        if (WANTED != ANALYSIS_NONE)
            block_energy(&w, w.energy, blockIdx.y * gridDim.x + blockIdx.x, scale, energy, partial);
    }
    struct shared_tile tile = tile_of(memory, w.direct_radius, w.direct_radius);
    tile_transpose(&tile, shown, [&](int row, int column, float4 four) {
        if (first_y + row < w.height)
            *(float4 *)(plane_row(&w, w.shown, first_y + row) + first_x + column) = four;
    });
    if (SHOW == WAVELET_SHOW_SCALE)
        tile_transpose(&tile, winner, [&](int row, int column, float4 four) {
            if (first_y + row < w.height)
                *(float4 *)(plane_row(&w, w.winner, first_y + row) + first_x + column) = four;
        });
}

// One column of a tile of the picture.
template <int SHOW, int WANTED> struct column {
    int x, y; // its first place
    bool is_there;
    float step;
    unsigned long long energy;
    float shown[SPLINE_ROWS];
    float winner[SHOW == WAVELET_SHOW_SCALE ? SPLINE_ROWS : 1];

    __device__ inline void take(const struct wavelet *w, int scale, int row, float value)
    {
        show<(enum wavelet_show)SHOW>(value, scale, &shown[row],
                                      &winner[SHOW == WAVELET_SHOW_SCALE ? row : 0]);
        bool inside = WANTED != ANALYSIS_NONE && is_there && y + row < w->height;
        if (WANTED != ANALYSIS_NONE)
            add_energy(&energy, inside ? value : 0, step);
        if (WANTED == ANALYSIS_PLANES && inside)
            side_plane(w, scale)[(size_t)(y + row) * w->width + x] = value;
    }
};

// A spline along a row of values, and down six of them.
static __device__ inline float spline_row(const float *value, const float weight[WAVELET_SPLINE])
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        sum = __fmaf_rn(weight[n], __ldg(value + n), sum);
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
    float start = __fmaf_rn((float)weight_at(d, 0, 0), row[0] + row[4], 0);
    start = __fmaf_rn((float)weight_at(d, 0, 1), row[1] + row[3], start);
    take(0, __fmaf_rn((float)weight_at(d, 0, 2), row[2], start));
#pragma unroll
    for (int p = 1; p <= d / 2; p++) {
        float even = 0, odd = 0;
#pragma unroll
        for (int n = 0; n < 3; n++) {
            double a = weight_at(d, p, n), b = weight_at(d, p, 5 - n);
            even = __fmaf_rn((float)((a + b) / 2), sum[n], even);
            odd = __fmaf_rn((float)((a - b) / 2), rest[n], odd);
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

// Splines of a larger D: all rows are between the same values, at any phase.
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
            value = __fmaf_rn(__ldg(down + n * period + k), row[n], value);
        column->take(w, scale, k, value);
    }
}

static __device__ inline int code(const struct wavelet *w, bool wins, float shown, float winner)
{
    if (wins)
        return shown * w->gain < 0.5f ? 0 : min((int)winner + 1, w->high);
    float value = __fmaf_rn(w->middle ? shown : fabsf(shown), w->gain, w->middle);
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
template <int SHOW, int WANTED>
static constexpr int SPLINE_BLOCKS = WANTED == ANALYSIS_PLANES    ? 3
                                     : SHOW == WAVELET_SHOW_SCALE ? 4
                                     : SHOW == WAVELET_MAX        ? 6
                                                                  : 5;

// A thread makes a column of 32 rows, so that what it reads of a scale it reads once, and keeps
// what is shown in registers; neighbouring threads read neighbouring values, or the same.
template <enum wavelet_show SHOW, enum wanted WANTED>
static __global__ void __launch_bounds__(SPLINE_COLUMNS, SPLINE_BLOCKS<SHOW, WANTED>)
    splines(const __grid_constant__ struct wavelet w)
{
    __shared__ unsigned long long partial[SPLINE_COLUMNS / WARP];
    struct column<SHOW, WANTED> column;
    int x = column.x = blockIdx.x * SPLINE_COLUMNS + threadIdx.x;
    int y = column.y = blockIdx.y * SPLINE_ROWS;
    column.is_there = x < w.width;
    x = min(x, w.width - 1);
#pragma unroll
    for (int k = 0; k < SPLINE_ROWS; k++) {
        int row = min(y + k, w.height - 1);
        column.shown[k] = w.level->scales ? plane_row(&w, w.shown, row)[x] : 0;
        if (SHOW == WAVELET_SHOW_SCALE)
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
            column.step = w.filter[scale].step;
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
            if (WANTED != ANALYSIS_NONE)
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
                       code(&w, SHOW == WAVELET_SHOW_SCALE, column.shown[k],
                            column.winner[SHOW == WAVELET_SHOW_SCALE ? k : 0]));
}

// A block adds up one scale's sums, each thread every 256th.
static __global__ void __launch_bounds__(THREADS)
    energies(const __grid_constant__ struct wavelet w, int direct_blocks, int spline_blocks)
{
    __shared__ unsigned long long partial[THREADS];
    int scale = blockIdx.x;
    const struct filter *filter = &w.filter[scale];
    const unsigned long long *from = filter->level ? w.spline_energy : w.energy;
    unsigned long long sum = 0;
    for (int k = threadIdx.x; k < (filter->level ? spline_blocks : direct_blocks); k += THREADS)
        sum += from[(size_t)k * w.filters + scale];
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int k = 1; k < THREADS; k++)
        sum += partial[k];
    w.analysis[scale] = (double)sum / filter->step / filter->step / ((double)w.width * w.height);
}

// ---- launchers ----

// A kernel may take more shared memory than it is given unasked.
template <typename Kernel> static cudaError_t allow(Kernel kernel, size_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

template <enum wavelet_show SHOW, enum wanted WANTED>
static cudaError_t make_results(const struct wavelet *w, const struct layout *layout,
                                cudaStream_t stream)
{
    size_t shared = tile_bytes(layout->direct_radius);
    cudaError_t error = allow(direct<SHOW, WANTED>, shared);
    if (error)
        return error;
    if (layout->direct)
        direct<SHOW, WANTED>
            <<<tiles_of(w->width, w->height, TILE_COLUMNS, TILE_ROWS), THREADS, shared, stream>>>(
                *w);
    splines<SHOW, WANTED>
        <<<tiles_of(w->width, w->height, SPLINE_COLUMNS, SPLINE_ROWS), SPLINE_COLUMNS, 0, stream>>>(
            *w);
    if (WANTED != ANALYSIS_NONE)
        energies<<<(unsigned)w->filters, THREADS, 0, stream>>>(*w, layout->direct_blocks,
                                                               layout->spline_blocks);
    return cudaGetLastError();
}

template <enum wavelet_show SHOW>
static cudaError_t make_shown(const struct wavelet *w, const struct layout *layout, bool planes,
                              cudaStream_t stream)
{
    return !w->analysis ? make_results<SHOW, ANALYSIS_NONE>(w, layout, stream)
           : planes     ? make_results<SHOW, ANALYSIS_PLANES>(w, layout, stream)
                        : make_results<SHOW, ANALYSIS_ENERGY>(w, layout, stream);
}

static cudaError_t make_values(const struct wavelet *w, const struct layout *layout,
                               cudaStream_t stream)
{
    size_t shared = tile_bytes(layout->coarse_radius);
    cudaError_t error = allow(values, shared);
    if (error || !layout->tiles)
        return error;
    values<<<(unsigned)layout->tiles, THREADS, shared, stream>>>(*w);
    return cudaGetLastError();
}

cudaError_t wavelet_bands_async(const struct wavelet *w, const struct layout *layout,
                                const struct op_wavelet *op, cudaStream_t stream)
{
    cudaError_t error = make_values(w, layout, stream);
    if (error)
        return error;
    if (op->show == WAVELET_MAX)
        return make_shown<WAVELET_MAX>(w, layout, op->planes, stream);
    if (op->show == WAVELET_SHOW_SCALE)
        return make_shown<WAVELET_SHOW_SCALE>(w, layout, op->planes, stream);
    return make_shown<WAVELET_ABS>(w, layout, op->planes, stream);
}
