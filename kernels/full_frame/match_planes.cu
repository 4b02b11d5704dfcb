// Scores of templates that are large, or have a mask: sums of products and of windows are stored in
// planes, for some rows of places at a time.
#include "kernels/full_frame/match_products.cuh"
#include "kernels/shared_memory.h"

enum {
    GROUP_SLICES = 4, // of rows of a template, one after another in shared memory
    TILE_ROWS = 4 * ROWS,
    SUMS_BYTES = 3 * 8 + 2 * 4,
    BAND_BYTES = 128 << 20,
};

// ---- products ----

// Sums of products with some rows of a template, in a plane: places of rows `top` to `end`. Samples
// that are summed are at most MATCH_NARROW, which 32 bits hold.
struct products {
    const int8_t *taps; // the pattern's samples or mask, from row `first` on
    int first, count, steps;
    enum fill fill;
    int top, end;
    i64 *plane; // of `columns` numbers a row
    int factor;
    bool add; // to what is there
};

// Products as match_fused() makes them, but that the template comes 64 rows and 48 columns at a
// time, with the samples that it needs, and that sums are stored.
static __global__ void __launch_bounds__(WARP * 4, 2)
    match_products(const __grid_constant__ struct match m,
                   const __grid_constant__ struct products products)
{
    extern __shared__ uint4 memory[];
    struct tile tile = tile_of(blockDim.y * ROWS, GROUP_SLICES, 1);
    struct taps taps = {};
    tile.word = (uint32_t *)memory;
    taps.word = tile.word + tile.rows * tile.stride;
    taps.stride = taps_words(1);
    int left = blockIdx.x * SPAN, top = products.top + blockIdx.y * blockDim.y * ROWS;
    int sum[ROWS / 8][WIDE][4] = {}, lane = threadIdx.x;
    for (int skip = 0; skip < products.count; skip += GROUP_SLICES * SLICE_ROWS)
        for (int step = 0; step < products.steps; step++) {
            int count = products.count - skip, slices = min((int)GROUP_SLICES, slices_of(count));
            __syncthreads();
            fill_tile(&m, &tile, left + step * SLICE_COLUMNS, top + products.first + skip,
                      products.fill);
            fill_taps(&taps, products.taps + (i64)skip * m.pattern.stride + step * SLICE_COLUMNS,
                      m.pattern.stride, count, slices);
            __syncthreads();
            accumulate<ROWS / 8>(sum, &tile, &taps, slices, 1);
        }
#pragma unroll
    for (int u = 0; u < ROWS / 8; u++)
#pragma unroll
        for (int c = 0; c < WIDE; c++)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                int x = left + 16 * c + 8 * (k / 2) + lane / 4;
                int y = top + threadIdx.y * ROWS + 8 * u + 2 * (lane % 4) + k % 2;
                if (x >= m.columns || y >= products.end)
                    continue;
                i64 *to = products.plane + (i64)(y - products.top) * m.columns + x;
                *to = (products.add ? *to : 0) + (i64)products.factor * sum[u][c][k];
            }
}

// ---- windows' sums ----

// Sums over the windows of a template without a mask, and those of columns that they are made of,
// for places of rows `top` to `end`.
struct windows {
    uint32_t *column, *column_square; // `width` numbers a row
    i64 *samples, *squares;           // `columns` numbers a row
    int top, end;
};

enum { RUN = 32 }; // rows that a thread goes on to slide

// A thread slides down a column: a warp reads 32 neighbouring samples.
static __global__ void match_columns(const __grid_constant__ struct match m,
                                     const __grid_constant__ struct windows w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, first = w.top + blockIdx.y * RUN;
    int height = m.pattern.height;
    if (x >= m.width)
        return;
    uint32_t samples = 0, squares = 0;
    const uint8_t *at = m.from + (i64)first * m.from_stride + x;
    for (int j = 0; j < height - 1; j++) {
        uint32_t sample = __ldg(at + (i64)j * m.from_stride);
        samples += sample;
        squares += sample * sample;
    }
    for (int y = first; y < min(first + RUN, w.end); y++, at += m.from_stride) {
        uint32_t in = __ldg(at + (i64)(height - 1) * m.from_stride), out = __ldg(at);
        samples += in;
        squares += in * in;
        w.column[(i64)(y - w.top) * m.width + x] = samples;
        w.column_square[(i64)(y - w.top) * m.width + x] = squares;
        samples -= out;
        squares -= out * out;
    }
}

// A lane's difference, and those of all lanes before it, added up; `all` is what they come to.
static __device__ inline i64 before_lane(i64 value, i64 *all)
{
    i64 sum = value;
    for (int lanes = 1; lanes < WARP; lanes *= 2) {
        i64 before = __shfl_up_sync(~0u, sum, lanes);
        sum += (int)threadIdx.x >= lanes ? before : 0;
    }
    *all = __shfl_sync(~0u, sum, WARP - 1);
    return sum - value;
}

// A warp makes a run of places of a row: it sums the columns of the first window, and from there on
// what the windows of 32 neighbours gain and lose.
static __device__ inline void slide_row(const uint32_t *column, int width, int x, int end, i64 *to)
{
    i64 sum = 0;
    for (int i = threadIdx.x; i < width; i += WARP)
        sum += column[x + i];
    sum = warp_sum(sum);
    for (x += threadIdx.x; __any_sync(~0u, x < end); x += WARP) {
        i64 all, gain = x + 1 < end ? (i64)column[x + width] - (i64)column[x] : 0;
        i64 before = before_lane(gain, &all);
        if (x < end)
            to[x] = sum + before;
        sum += all;
    }
}

enum { ROW_RUN = 512 };

static __global__ void match_windows(const __grid_constant__ struct match m,
                                     const __grid_constant__ struct windows w)
{
    int x = blockIdx.x * ROW_RUN, y = blockIdx.y * blockDim.y + threadIdx.y;
    int end = min(x + ROW_RUN, m.columns);
    if (y >= w.end - w.top)
        return;
    slide_row(w.column + (i64)y * m.width, m.pattern.width, x, end, w.samples + (i64)y * m.columns);
    slide_row(w.column_square + (i64)y * m.width, m.pattern.width, x, end,
              w.squares + (i64)y * m.columns);
}

// ---- scores ----

struct planes {
    const i64 *products, *samples, *squares; // `columns` numbers a row
    int top, end;
};

// A thread scores a place, a warp 32 neighbours, whose bits make a word.
template <bool MAP>
static __global__ void match_scores(const __grid_constant__ struct match m,
                                    const __grid_constant__ struct planes planes)
{
    int x = blockIdx.x * WARP + threadIdx.x, y = planes.top + blockIdx.y * blockDim.y + threadIdx.y;
    bool inside = x < m.columns && y < planes.end;
    float score = 0;
    if (inside) {
        i64 at = (i64)(y - planes.top) * m.columns + x;
        score = score_of(&m.pattern, planes.products[at], planes.samples[at], planes.squares[at]);
    }
    bool found = inside && score >= m.min_score;
    if (MAP ? inside : found)
        m.score[(i64)y * m.columns + x] = score;
    uint32_t bits = __ballot_sync(~0u, found);
    if (threadIdx.x == 0 && y < planes.end)
        m.bits[(i64)y * m.bit_words + blockIdx.x] = bits;
}

// ---- launchers ----

// Rows of sums: whole tiles, as many as a part of the memory holds.
static int band_rows(int width, int height)
{
    size_t max_rows = BAND_BYTES / ((size_t)width * SUMS_BYTES) / TILE_ROWS * TILE_ROWS;
    size_t rows = (size_t)(height + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    max_rows = max_rows < TILE_ROWS ? TILE_ROWS : max_rows;
    return (int)(rows < max_rows ? rows : max_rows);
}

size_t match_planes_scratch(int width, int height)
{
    return (size_t)band_rows(width, height) * (size_t)width * SUMS_BYTES;
}

// Sums of products of some rows of places, a few rows of the template after the other: as many as
// 32 bits hold.
static cudaError_t products_async(const struct match *m, const int8_t *taps, enum fill fill,
                                  int factor, bool add, i64 *plane, int top, int end,
                                  cudaStream_t stream)
{
    const struct pattern *p = &m->pattern;
    struct tile tile = tile_of(TILE_ROWS, GROUP_SLICES, 1);
    size_t words = (size_t)tile.rows * (size_t)tile.stride +
                   (size_t)GROUP_SLICES * SLICE_ROWS * (size_t)taps_words(1);
    int together = MATCH_NARROW / p->width > 1 ? MATCH_NARROW / p->width : 1;
    cudaError_t error = shared_memory_allow((const void *)match_products, words * sizeof(uint32_t));
    for (int row = 0; row < p->height && !error; row += together) {
        int rows = p->height - row < together ? p->height - row : together;
        struct products products = {.taps = taps + (ptrdiff_t)row * p->stride,
                                    .first = row,
                                    .count = rows,
                                    .steps = steps_of(p->width),
                                    .fill = fill,
                                    .top = top,
                                    .end = end,
                                    .plane = plane,
                                    .factor = factor,
                                    .add = add || row};
        dim3 grid = blocks_of(m->columns, end - top, SPAN, TILE_ROWS);
        match_products<<<grid, dim3(WARP, 4), words * sizeof(uint32_t), stream>>>(*m, products);
        error = cudaGetLastError();
    }
    return error;
}

static cudaError_t masked_sums_async(const struct match *m, i64 *samples, i64 *squares, int top,
                                     int end, cudaStream_t stream)
{
    const int8_t *mask = m->pattern.mask;
    cudaError_t error = products_async(m, mask, FILL_SAMPLES, 1, false, samples, top, end, stream);
    if (!error)
        error = products_async(m, mask, FILL_HIGH, 256, false, squares, top, end, stream);
    return error ? error : products_async(m, mask, FILL_LOW, 1, true, squares, top, end, stream);
}

static cudaError_t window_sums_async(const struct match *m, const struct windows *w,
                                     cudaStream_t stream)
{
    int rows = w->end - w->top;
    match_columns<<<blocks_of(m->width, rows, 128, RUN), 128, 0, stream>>>(*m, *w);
    cudaError_t error = cudaGetLastError();
    if (error)
        return error;
    match_windows<<<blocks_of(m->columns, rows, ROW_RUN, 8), dim3(WARP, 8), 0, stream>>>(*m, *w);
    return cudaGetLastError();
}

// The scores of some rows of places, by way of planes of sums.
static cudaError_t band_async(const struct match *m, bool map, uint8_t *memory, int band, int top,
                              cudaStream_t stream)
{
    int end = top + band < m->rows ? top + band : m->rows;
    size_t plane = (size_t)band * (size_t)m->width;
    i64 *products = (i64 *)memory, *samples = products + plane, *squares = samples + plane;
    uint32_t *column = (uint32_t *)(squares + plane);
    struct windows windows = {column, column + plane, samples, squares, top, end};
    struct planes planes = {products, samples, squares, top, end};
    cudaError_t error =
        products_async(m, m->pattern.sample, FILL_SAMPLES, 1, false, products, top, end, stream);
    if (!error)
        error = m->pattern.mask ? masked_sums_async(m, samples, squares, top, end, stream)
                                : window_sums_async(m, &windows, stream);
    if (error)
        return error;
    dim3 grid = blocks_of(32 * m->bit_words, end - top, WARP, 8);
    if (map)
        match_scores<true><<<grid, dim3(WARP, 8), 0, stream>>>(*m, planes);
    else
        match_scores<false><<<grid, dim3(WARP, 8), 0, stream>>>(*m, planes);
    return cudaGetLastError();
}

cudaError_t match_planes_async(const struct match *m, bool map, void *memory, cudaStream_t stream)
{
    int band = band_rows(m->width, m->height);
    cudaError_t error = cudaSuccess;
    for (int top = 0; top < m->rows && !error; top += band)
        error = band_async(m, map, (uint8_t *)memory, band, top, stream);
    return error;
}
