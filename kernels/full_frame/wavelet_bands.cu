// OP_WAVELET: from cells to W at each scale, and what is shown of it.
#include "kernels/full_frame/wavelet_tile.cuh"
#include "kernels/recording.cuh"
#include "kernels/shared_memory.h"

// The part of the analysis that is wanted.
enum wanted { ANALYSIS_NONE, ANALYSIS_ENERGY, ANALYSIS_PLANES };

// ---- values ----

// A block makes a tile of one scale, COLUMNS x 32: sums down the columns in shared memory, then
// along the rows, a lane to a row, so that neighbours along the row are one thread's.
template <int COLUMNS>
static __global__ void __launch_bounds__(THREADS, 2)
    values(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    struct tile at = w.tile[blockIdx.x];
    const struct filter *filter = &w.filter[at.number];
    const struct level *level = &w.level[filter->level];
    constexpr int ITEMS = shared_tile<COLUMNS>::ITEMS;
    if (at.number >= w.limit)
        return;
    int beside = level->margin - filter->radius;
    const float *first = plane_row(&w, level->cells, at.y + beside) + at.x + beside;
    shared_tile<COLUMNS> tile = tile_of<COLUMNS>(memory, w.coarse_radius, filter->radius, first);
    tile_taps(&w, filter, &tile);
    __syncthreads();
    tile_columns(first, level->cells.stride, &tile);
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

// The same where scales come one after another, so that the first of equal ones stays: byte `place`
// of four becomes the number of the scale that wins.
template <enum wavelet_show SHOW>
static __device__ inline void show_next(float value, int scale, float *shown, unsigned *winners,
                                        int place)
{
    if (SHOW != WAVELET_SHOW_SCALE) {
        show<SHOW>(value, scale, shown, NULL);
    } else if (fabsf(value) > *shown) {
        *shown = fabsf(value);
        *winners = __byte_perm(*winners, scale, 0x3210 ^ (place ^ 4) << 4 * place);
    }
}
static_assert(WAVELET_SCALES <= 256, "numbers of scales are bytes");

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

// The sum of all threads' of a block, which the first gets.
static __device__ inline unsigned long long block_sum(unsigned long long sum,
                                                      unsigned long long shared[WARPS])
{
    sum = warp_sum(sum);
    __syncthreads();
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = sum;
    __syncthreads();
    for (int k = 1; k < WARPS && threadIdx.x == 0; k++)
        sum += shared[k];
    return sum;
}

// The first thread leaves a block's sum for `energies`, those of a scale side by side.
static __device__ inline void keep_energy(const struct wavelet *w, int scale,
                                          unsigned long long sum)
{
    int blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0)
        w->energy[(size_t)scale * blocks + block] = sum;
}

// A block makes a tile of the picture, all scales without a grid one after another, and keeps what
// is shown in registers.
template <enum wavelet_show SHOW, enum wanted WANTED, int COLUMNS>
static __global__ void __launch_bounds__(THREADS, 2)
    direct(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    __shared__ unsigned long long partial[WARPS];
    constexpr int ITEMS = shared_tile<COLUMNS>::ITEMS;
    const struct level *level = w.level;
    int first_x = blockIdx.x * COLUMNS, first_y = blockIdx.y * TILE_ROWS;
    int y = first_y + threadIdx.x % WARP, own = threadIdx.x / WARP * ITEMS * STRIP;
    float shown[ITEMS][STRIP] = {};
    unsigned winners[ITEMS][STRIP / 4] = {}; // numbers of scales, four in one
    for (int n = level->first; n < level->first + level->scales; n++) {
        int scale = w.order[n];
        if (scale >= w.limit)
            break;
        const struct filter *filter = &w.filter[scale];
        int beside = level->margin - filter->radius;
        const float *first = plane_row(&w, level->cells, first_y + beside) + first_x + beside;
        shared_tile<COLUMNS> tile =
            tile_of<COLUMNS>(memory, w.direct_radius, filter->radius, first);
        __syncthreads();
        tile_taps(&w, filter, &tile);
        __syncthreads();
        tile_columns(first, level->cells.stride, &tile);
        __syncthreads();
        unsigned long long energy = 0;
        float value[ITEMS][STRIP];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            tile_row(&tile, own + k * STRIP, value[k]);
#pragma unroll
            for (int p = 0; p < STRIP; p++) {
                show_next<SHOW>(value[k][p], scale, &shown[k][p], &winners[k][p / 4], p % 4);
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
            keep_energy(&w, scale, block_sum(energy, partial));
    }
    shared_tile<COLUMNS> tile = tile_of<COLUMNS>(memory, w.direct_radius, w.direct_radius, NULL);
    tile_transpose(&tile, shown, [&](int row, int column, float4 four) {
        if (first_y + row < w.height)
            *(float4 *)(plane_row(&w, w.shown, first_y + row) + first_x + column) = four;
    });
    if constexpr (SHOW == WAVELET_SHOW_SCALE) {
#pragma unroll
        for (int n = 0; n < ITEMS * STRIP; n++)
            shown[n / STRIP][n % STRIP] =
                (float)(winners[n / STRIP][n % STRIP / 4] >> n % 4 * 8 & 255);
        tile_transpose(&tile, shown, [&](int row, int column, float4 four) {
            if (first_y + row < w.height)
                *(float4 *)(plane_row(&w, w.winner, first_y + row) + first_x + column) = four;
        });
    }
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

// ---- values in shared memory ----

// The values that a warp's W of one scale are made of, D = 2^LOG or, if LOG is 6, any larger one,
// in shared memory of its own, so that no warp waits for another: two copies of them, the second
// without the first value, so that six values from anywhere on are three aligned pairs of one copy.
// Copies lie 16 banks apart: a warp that starts at up to 16 places meets no bank twice. Rows begin
// at a vector, up to BEFORE values before the warp's first.
template <int LOG> struct staged {
    static constexpr int DECIMATE = LOG;
    static constexpr int FIRSTS = LOG <= 5 ? WARP >> LOG : 1; // places where a lane's six begin
    static constexpr int BEFORE = FIRSTS >= VEC4 ? 0 : VEC4 - FIRSTS;
    static constexpr int COLUMNS = BEFORE + FIRSTS + WAVELET_SPLINE - 1;
    static constexpr int VECTORS = (COLUMNS + VEC4 - 1) / VEC4; // a row's
    static constexpr int ROWS =
        (SPLINE_ROWS > 1 << LOG ? SPLINE_ROWS >> LOG : 1) + WAVELET_SPLINE - 1;
    static constexpr int STRIDE = VECTORS * VEC4;
    static constexpr int COPY = (ROWS * STRIDE + WARP / 2 + WARP - 1) / WARP * WARP - WARP / 2;
    static constexpr int HELD = (ROWS * VECTORS + WARP - 1) / WARP; // vectors of a lane
};
enum {
    STAGED = staged<1>::COPY + staged<1>::ROWS * staged<1>::STRIDE, // floats, the most of all D
    HELD = staged<1>::HELD,
};
static_assert(STAGED % VEC4 == 0, "vectors");

// Where the values are that a lane fetches, from the warp's first on.
template <int LOG> static __device__ inline void places_of(int stride, unsigned places[HELD])
{
    typedef staged<LOG> tile;
#pragma unroll
    for (int k = 0; k < tile::HELD; k++) {
        int item = k * WARP + (int)threadIdx.x % WARP, row = item / tile::VECTORS;
        places[k] = row * stride + (item - row * tile::VECTORS) * VEC4;
    }
}

// Fetch values, the first of the warp's of which is at `from`.
template <int LOG>
static __device__ inline void fetch_values(const float *from, const unsigned places[HELD],
                                           float4 held[HELD])
{
    typedef staged<LOG> tile;
#pragma unroll
    for (int k = 0; k < tile::HELD; k++)
        if ((k + 1) * WARP <= tile::ROWS * tile::VECTORS ||
            k * WARP + (int)threadIdx.x % WARP < tile::ROWS * tile::VECTORS)
            held[k] = __ldg((const float4 *)(from + places[k]));
}

// And put them into shared memory.
template <int LOG> static __device__ inline void stage_values(const float4 held[HELD], float *to)
{
    typedef staged<LOG> tile;
#pragma unroll
    for (int k = 0; k < tile::HELD; k++) {
        int item = k * WARP + (int)threadIdx.x % WARP;
        float *first = to + item * VEC4, *second = first + tile::COPY;
        if (item >= tile::ROWS * tile::VECTORS)
            break;
        *(float4 *)first = held[k];
        if (item)
            second[-1] = held[k].x; // behind the row before, which nobody reads, or in its place
        *(float2 *)second = make_float2(held[k].y, held[k].z);
        second[2] = held[k].w;
    }
}

// Call act with staged<LOG> for D = 2^LOG.
template <typename Act> static __device__ inline void for_decimate(int decimate, Act act)
{
    switch (decimate) {
    case 1:
        return act(staged<1>());
    case 2:
        return act(staged<2>());
    case 3:
        return act(staged<3>());
    case 4:
        return act(staged<4>());
    case 5:
        return act(staged<5>());
    default:
        return act(staged<6>());
    }
}

// ---- splines ----

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

// A spline along a row of staged values.
static __device__ inline float spline_row(const float *from, const float weight[WAVELET_SPLINE])
{
    float sum = 0;
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n += 2) {
        float2 pair = *(const float2 *)(from + n);
        sum = __fmaf_rn(weight[n], pair.x, sum);
        sum = __fmaf_rn(weight[n + 1], pair.y, sum);
    }
    return sum;
}

// W of a scale with D = 2^LOG <= 32 from its staged values: each six rows of them give D rows.
template <int LOG, typename Take>
static __device__ inline void spline_column(const float *from, const float weight[WAVELET_SPLINE],
                                            Take take)
{
    float row[WAVELET_SPLINE];
#pragma unroll
    for (int n = 1; n < WAVELET_SPLINE; n++)
        row[n] = spline_row(from + (n - 1) * staged<LOG>::STRIDE, weight);
#pragma unroll
    for (int m = 0; m < SPLINE_ROWS >> LOG; m++) {
#pragma unroll
        for (int n = 1; n < WAVELET_SPLINE; n++)
            row[n - 1] = row[n];
        row[WAVELET_SPLINE - 1] =
            spline_row(from + (m + WAVELET_SPLINE - 1) * staged<LOG>::STRIDE, weight);
        spline_phases<LOG>(row, [&](int p, float value) { take((m << LOG) + p, value); });
    }
}

// The same of a larger D: all rows are between the same values, at any phase. `down` has the
// weights of the first row.
template <int LOG, typename Take>
static __device__ inline void spline_column_large(const float *down, int period, const float *from,
                                                  const float weight[WAVELET_SPLINE], Take take)
{
    float row[WAVELET_SPLINE];
#pragma unroll
    for (int n = 0; n < WAVELET_SPLINE; n++)
        row[n] = spline_row(from + n * staged<LOG>::STRIDE, weight);
#pragma unroll
    for (int k = 0; k < SPLINE_ROWS; k++) {
        float value = 0;
#pragma unroll
        for (int n = 0; n < WAVELET_SPLINE; n++)
            value = __fmaf_rn(__ldg(down + n * period + k), row[n], value);
        take(k, value);
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

// Blocks of a multiprocessor, by what their threads keep in registers. More of the lightest would
// fit, but then a picture of 4K takes a little more than three turns of them.
enum { LIGHT_BLOCKS = 4, HEAVY_BLOCKS = 3 };

static constexpr int blocks_of_splines(int show, int wanted)
{
    bool is_light = show == WAVELET_MAX ? wanted != ANALYSIS_PLANES
                                        : show == WAVELET_SHOW_SCALE && wanted == ANALYSIS_NONE;
    return is_light ? LIGHT_BLOCKS : HEAVY_BLOCKS;
}

static __device__ inline struct band band_of(const struct wavelet *w, int n)
{
    int4 four = __ldg((const int4 *)(w->band + min(n, w->bands - 1)));
    return {four.x, four.y, (unsigned)four.z, __int_as_float(four.w)};
}

// The same as keep_energy(), of a warp.
static __device__ inline void keep_spline_energy(const struct wavelet *w, int scale,
                                                 unsigned long long sum)
{
    constexpr int warps = SPLINE_COLUMNS / WARP;
    int blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x % WARP == 0)
        w->spline_energy[((size_t)scale * blocks + block) * warps + threadIdx.x / WARP] = sum;
}

// W of the scales of a level, D = 2^LOG or, if LOG is 6, any larger one, from band n on, which is
// `next`. While the warp makes one, values of the next are fetched; they pass through shared
// memory, as each is read by many lanes. What is known of a band is fetched two of them ahead, so
// that nothing waits for it. Leaves the first band of the next level.
template <int LOG, int SHOW, int WANTED>
static __device__ inline void spline_level(const struct wavelet *w, int *n, struct band *next,
                                           int *turn, float *memory,
                                           struct column<SHOW, WANTED> *column)
{
    typedef staged<LOG> tile;
    const struct filter *filter = &w->filter[next->scale];
    int level = next->level, log = LOG <= 5 ? LOG : filter->decimate, phases = (1 << log) - 1;
    int stride = filter->values.stride, period = filter->period;
    int first = (column->x & -WARP) >> log & -VEC4, start = (column->x >> log) - first;
    const float *table = w->tap + filter->spline;
    const float *values = w->scratch + (size_t)(column->y >> log) * stride + first;
    unsigned places[HELD];
    float4 held[HELD];
    float weight[WAVELET_SPLINE];
    places_of<LOG>(stride, places);
    fetch_values<LOG>(values + (size_t)next->place * PLACE, places, held);
#pragma unroll
    for (int k = 0; k < WAVELET_SPLINE; k++)
        weight[k] = __ldg(table + k * period + (column->x & phases));
    struct band then = band_of(w, *n + 1);
    for (bool more = true; more; *turn ^= 1) {
        float *staging = memory + *turn * STAGED;
        const float *from = staging + (start & ~1) + (start & 1) * tile::COPY;
        stage_values<LOG>(held, staging);
        __syncwarp();
        int own = next->scale;
        column->energy = 0;
        column->step = next->step;
        ++*n;
        *next = then;
        more = *n < w->bands && next->level == level;
        if (more)
            fetch_values<LOG>(values + (size_t)next->place * PLACE, places, held);
        then = band_of(w, *n + 1);
        auto take = [&](int row, float value) { column->take(w, own, row, value); };
        if constexpr (LOG <= 5)
            spline_column<LOG>(from, weight, take);
        else
            spline_column_large<LOG>(table + (column->y & phases), period, from, weight, take);
        if (WANTED != ANALYSIS_NONE)
            keep_spline_energy(w, own, warp_sum(column->energy));
    }
}

// A thread makes a column of 32 rows, so that what it reads of a scale it reads once, and keeps
// what is shown in registers.
template <enum wavelet_show SHOW, enum wanted WANTED>
static __global__ void __launch_bounds__(SPLINE_COLUMNS, blocks_of_splines(SHOW, WANTED))
    splines(const __grid_constant__ struct wavelet w)
{
    __shared__ __align__(16) float memory[SPLINE_COLUMNS / WARP][2][STAGED];
    struct column<SHOW, WANTED> column;
    int x = column.x = blockIdx.x * SPLINE_COLUMNS + threadIdx.x;
    int y = column.y = blockIdx.y * SPLINE_ROWS;
    int n = 0, turn = 0;
    column.is_there = x < w.width;
    if (w.level->scales) {
#pragma unroll
        for (int k = 0; k < SPLINE_ROWS; k++) {
            int row = min(y + k, w.height - 1);
            column.shown[k] = plane_row(&w, w.shown, row)[x];
            if (SHOW == WAVELET_SHOW_SCALE)
                column.winner[k] = plane_row(&w, w.winner, row)[x];
        }
    } else {
#pragma unroll
        for (int k = 0; k < SPLINE_ROWS; k++)
            column.shown[k] = column.winner[SHOW == WAVELET_SHOW_SCALE ? k : 0] = 0;
    }
    if (w.bands) {
        struct band next = band_of(&w, 0);
        while (n < w.bands)
            for_decimate(w.filter[next.scale].decimate, [&](auto tile) {
                spline_level<decltype(tile)::DECIMATE>(&w, &n, &next, &turn,
                                                       memory[threadIdx.x / WARP][0], &column);
            });
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
    energies(const __grid_constant__ struct wavelet w, int direct_blocks, int spline_sums)
{
    __shared__ unsigned long long partial[WARPS];
    int scale = blockIdx.x;
    const struct filter *filter = &w.filter[scale];
    int sums = filter->level ? spline_sums : direct_blocks;
    const unsigned long long *from = filter->level ? w.spline_energy : w.energy;
    unsigned long long sum = 0;
    from += (size_t)scale * sums;
#pragma unroll 8
    for (int k = threadIdx.x; k < sums; k += THREADS)
        sum += __ldg(from + k);
    sum = block_sum(sum, partial);
    if (threadIdx.x == 0)
        w.analysis[scale] =
            (double)sum / filter->step / filter->step / ((double)w.width * w.height);
}

// ---- launchers ----

template <enum wavelet_show SHOW, enum wanted WANTED, int COLUMNS>
static cudaError_t make_direct(const struct wavelet *w, const struct layout *layout,
                               cudaStream_t stream)
{
    size_t shared = tile_bytes(COLUMNS, layout->direct_radius);
    cudaError_t error = shared_memory_allow((const void *)direct<SHOW, WANTED, COLUMNS>, shared);
    if (!error)
        kernel_launch(direct<SHOW, WANTED, COLUMNS>,
                      tiles_of(w->width, w->height, COLUMNS, TILE_ROWS), THREADS, shared, stream,
                      *w);
    return error;
}

template <enum wavelet_show SHOW, enum wanted WANTED>
static cudaError_t make_results(const struct wavelet *w, const struct layout *layout,
                                cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    if (layout->direct)
        error = layout->direct_columns == WIDE
                    ? make_direct<SHOW, WANTED, WIDE>(w, layout, stream)
                    : make_direct<SHOW, WANTED, NARROW>(w, layout, stream);
    if (error)
        return error;
    kernel_launch(splines<SHOW, WANTED>, tiles_of(w->width, w->height, SPLINE_COLUMNS, SPLINE_ROWS),
                  SPLINE_COLUMNS, 0, stream, *w);
    if (WANTED != ANALYSIS_NONE)
        kernel_launch(energies, (unsigned)w->filters, THREADS, 0, stream, *w, layout->direct_blocks,
                      layout->spline_sums);
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

template <int COLUMNS>
static cudaError_t make_values(const struct wavelet *w, const struct layout *layout,
                               cudaStream_t stream)
{
    size_t shared = tile_bytes(COLUMNS, layout->coarse_radius);
    cudaError_t error = shared_memory_allow((const void *)values<COLUMNS>, shared);
    if (error || !layout->tiles)
        return error;
    kernel_launch(values<COLUMNS>, (unsigned)layout->tiles, THREADS, shared, stream, *w);
    return cudaGetLastError();
}

cudaError_t wavelet_bands_async(const struct wavelet *w, const struct layout *layout,
                                const struct op_wavelet *op, cudaStream_t stream)
{
    cudaError_t error = layout->tile_columns == WIDE ? make_values<WIDE>(w, layout, stream)
                                                     : make_values<NARROW>(w, layout, stream);
    if (error)
        return error;
    if (op->show == WAVELET_MAX)
        return make_shown<WAVELET_MAX>(w, layout, op->planes, stream);
    if (op->show == WAVELET_SHOW_SCALE)
        return make_shown<WAVELET_SHOW_SCALE>(w, layout, op->planes, stream);
    return make_shown<WAVELET_ABS>(w, layout, op->planes, stream);
}
