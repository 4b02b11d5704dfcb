// Scores of small templates: the sums over windows are made on tensor cores, too, beside the
// products, and no sum leaves the kernel.
#include "kernels/full_frame/match_products.cuh"
#include "kernels/full_frame/match_windows.cuh"
#include "kernels/shared_memory.h"

// Rows of places that a warp makes of a template of so many slices of columns. Of narrow ones few,
// so that more warps find room: they have more to wait for than products.
static __host__ __device__ constexpr int rows_of(int steps)
{
    return steps == 1 ? ROWS / 2 : ROWS;
}

// ---- windows' sums ----

// Eight rows of limbs in shared memory, laid out as a tile is.
struct limbs {
    uint32_t *word;
    int stride;
};

static __device__ inline uint32_t *limb_row(const struct limbs *limbs, enum limb limb, int row)
{
    return limbs->word + (limb * 8 + row) * limbs->stride;
}

static __device__ inline void store_limbs(const struct limbs *limbs, int row, int word,
                                          const struct columns *columns)
{
    uint32_t limb[LIMBS];
    limbs_of(limb, columns);
    for (int k = 0; k < LIMBS; k++)
        limb_row(limbs, (enum limb)k, row)[word] = limb[k];
}

// The parts of a block's dynamic shared memory: tile; template, and a row of ones as wide as it;
// for each warp limbs and a map of candidates.
struct fused_layout {
    struct tile tile;
    struct taps taps;
    int slices;
    int rows; // of a warp
};

static __host__ __device__ inline struct fused_layout fused_layout_of(int height, int warps,
                                                                      int steps)
{
    struct fused_layout layout = {};
    layout.slices = slices_of(height);
    layout.rows = rows_of(steps);
    layout.tile = tile_of(warps * layout.rows, layout.slices, steps);
    layout.taps.stride = taps_words(steps);
    return layout;
}

static __host__ __device__ inline int fused_taps_words(const struct fused_layout *layout)
{
    return (SLICE_ROWS * layout->slices + 1) * layout->taps.stride;
}

static __host__ __device__ inline int fused_warp_words(const struct fused_layout *layout)
{
    return LIMBS * 8 * layout->tile.stride + layout->rows * SPAN / 32;
}

static size_t fused_bytes(const struct fused_layout *layout, int warps)
{
    return sizeof(uint32_t) * (size_t)(layout->tile.rows * layout->tile.stride +
                                       fused_taps_words(layout) + warps * fused_warp_words(layout));
}

// Bands of ones, which sum a window along the row.
template <int STEPS> struct ones {
    uint32_t band[STEPS][6];
};

// sum += the limb, or 64 times it, along the row, of one 48 columns: `at` is the lane's word in its
// row of limbs.
static __device__ inline void add_limb(int sum[4], const uint32_t band[6], const uint32_t *at)
{
    const uint32_t rest[4] = {band[4], band[5], 0, 0};
    multiply(sum, band, at[0], at[4]);
    multiply(sum, rest, at[8], 0);
}

static __device__ inline void add_limbs(int sum[4], const uint32_t band[6], const uint32_t *low,
                                        const uint32_t *high)
{
    const uint32_t first[4] = {band[4], band[5], band[0] << 6, band[1] << 6};
    const uint32_t second[4] = {band[2] << 6, band[3] << 6, band[4] << 6, band[5] << 6};
    multiply(sum, band, low[0], low[4]);
    multiply(sum, first, low[8], high[0]);
    multiply(sum, second, high[4], high[8]);
}

template <int STEPS>
static __device__ inline struct window_sums window_sums_of(const struct limbs *limbs,
                                                           const struct ones<STEPS> *ones, int c)
{
    struct window_sums sums = {};
    int lane = threadIdx.x, row = lane / 4;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        int word = SLICE_COLUMNS / 4 * step + 4 * c + lane % 4;
        add_limbs(sums.samples, ones->band[step], limb_row(limbs, SAMPLES_LOW, row) + word,
                  limb_row(limbs, SAMPLES_HIGH, row) + word);
        add_limbs(sums.squares, ones->band[step], limb_row(limbs, SQUARES_LOW, row) + word,
                  limb_row(limbs, SQUARES_MIDDLE, row) + word);
        add_limb(sums.squares_high, ones->band[step], limb_row(limbs, SQUARES_HIGH, row) + word);
    }
    return sums;
}

static __device__ inline float excess_of(const struct match *m, const struct window_sums *sums,
                                         const int products[4], int k)
{
    return match_excess(&m->test, products[k], sums->samples[k], squares_of(sums, k));
}

// Take those of eight rows of places that a lane has found: bit c is set where any result of product
// c may be a match.
template <int STEPS, bool MAP>
static __device__ inline void take_found(const struct match *m, const struct limbs *limbs,
                                         const struct ones<STEPS> *ones, const int sum[WIDE][4],
                                         uint32_t found, int left, int top, uint32_t *bits)
{
    int x = left + threadIdx.x / 4, y = top + 2 * (threadIdx.x % 4);
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
        struct window_sums sums = window_sums_of<STEPS>(limbs, ones, c);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (found >> c & 1 && (MAP || excess_of(m, &sums, sum[c], k) > 0))
                take_place<MAP>(m, x + 16 * c + 8 * (k / 2), y + k % 2, sum[c][k], sums.samples[k],
                                squares_of(&sums, k),
                                bits + (y + k % 2) % rows_of(STEPS) * (SPAN / 32));
    }
}

// Eight rows of places from row `top` on. Few are taken, which is done in a second go, so that the
// first has nothing to wait for.
template <int STEPS, bool MAP>
static __device__ inline void score_rows(const struct match *m, const struct limbs *limbs,
                                         const struct ones<STEPS> *ones, const int sum[WIDE][4],
                                         int left, int top, uint32_t *bits)
{
    uint32_t found = MAP ? ~0u : 0;
#pragma unroll
    for (int c = 0; c < WIDE && !MAP; c++) {
        struct window_sums sums = window_sums_of<STEPS>(limbs, ones, c);
        float excess = excess_of(m, &sums, sum[c], 0);
#pragma unroll
        for (int k = 1; k < 4; k++)
            excess = fmaxf(excess, excess_of(m, &sums, sum[c], k));
        if (excess > 0)
            found |= 1u << c;
    }
    if (__any_sync(~0u, found != 0))
        take_found<STEPS, MAP>(m, limbs, ones, sum, found, left, top, bits);
}

static __device__ inline void column_sums(struct columns *to, const uint32_t *row, int stride,
                                          int height)
{
    int j = 0;
    for (; j + 4 <= height; j += 4, row += 4 * stride) {
        const uint32_t four[4] = {row[0], row[stride], row[2 * stride], row[3 * stride]};
        columns_add_vec4(to, four);
    }
    for (; j < height; j++, row += stride)
        columns_add(to, *row);
}

// Samples that enter and leave a column's window, for a lane's two words of columns.
struct slide {
    uint32_t in[2], out[2];
};

static __device__ inline struct slide slide_of(const uint32_t *row, const uint32_t *next, int apart)
{
    return {{next[0], next[apart]}, {row[0], row[apart]}};
}

// Windows' sums go down the columns of a warp's places: what enters is added and what leaves is
// taken off. Eight rows of them are laid in shared memory for tensor cores to sum along the row,
// which leaves them with the lanes that have the products. A lane has two words of columns; of the
// second ones there are fewer, and the last of them is made by several lanes alike.
template <int STEPS, bool MAP>
static __device__ inline void score_span(const struct match *m, const struct tile *tile,
                                         const struct limbs *limbs, const struct ones<STEPS> *ones,
                                         int sum[rows_of(STEPS) / 8][WIDE][4], int left, int top,
                                         uint32_t *bits)
{
    int lane = threadIdx.x, height = m->pattern.height;
    int apart = min((int)WARP, tile->words - 1 - lane);
    const uint32_t *row = tile->word + threadIdx.y * rows_of(STEPS) * tile->stride + lane;
    struct columns column[2] = {};
    for (int k = 0; k < 2; k++)
        column_sums(&column[k], row + k * apart, tile->stride, height);
#pragma unroll
    for (int u = 0; u < rows_of(STEPS) / 8; u++) {
#pragma unroll 2
        for (int k = 0; k < 8; k++, row += tile->stride) {
            struct slide slide = slide_of(row, row + height * tile->stride, apart);
            for (int n = 0; n < 2; n++) {
                store_limbs(limbs, k, lane + n * apart, &column[n]);
                columns_add(&column[n], slide.in[n]);
                columns_take(&column[n], slide.out[n]);
            }
        }
        __syncwarp();
        score_rows<STEPS, MAP>(m, limbs, ones, sum[u], left, top + 8 * u, bits);
        __syncwarp();
    }
}

// A block's warps stand one below the other, each with 128 columns of places, and share a tile of
// samples and the template. STEPS: of the template's columns. MAP: all scores are stored.
template <int STEPS, bool MAP>
static __global__ void __launch_bounds__(WARP * 4, STEPS == 1 ? 3 : 2)
    match_fused(const __grid_constant__ struct match m)
{
    extern __shared__ uint4 memory[];
    constexpr int rows = rows_of(STEPS);
    int warps = blockDim.y, left = blockIdx.x * SPAN, top = blockIdx.y * warps * rows;
    struct fused_layout layout = fused_layout_of(m.pattern.height, warps, STEPS);
    layout.tile.word = (uint32_t *)memory;
    layout.taps.word = layout.tile.word + layout.tile.rows * layout.tile.stride;
    uint32_t *own =
        layout.taps.word + fused_taps_words(&layout) + threadIdx.y * fused_warp_words(&layout);
    uint32_t *ones_row = layout.taps.word + SLICE_ROWS * layout.slices * layout.taps.stride;
    struct limbs limbs = {own, layout.tile.stride};
    uint32_t *bits = own + LIMBS * 8 * layout.tile.stride;
    for (int k = threadIdx.x; k < rows * SPAN / 32; k += WARP)
        bits[k] = 0;
    for (int k = threadIdx.y * WARP + threadIdx.x; k < 4 * layout.taps.stride; k += warps * WARP)
        ((uint8_t *)ones_row)[k] = k >= 16 && k < 16 + m.pattern.width;
    fill_tile(&m, &layout.tile, left, top, FILL_SAMPLES);
    fill_taps(&layout.taps, m.pattern.sample, m.pattern.stride, m.pattern.height, layout.slices);
    __syncthreads();
    int sum[rows / 8][WIDE][4] = {};
    accumulate<rows / 8>(sum, &layout.tile, &layout.taps, layout.slices, STEPS);
    struct ones<STEPS> ones;
    for (int step = 0; step < STEPS; step++)
        load_band(ones.band[step], ones_row + SLICE_COLUMNS / 4 * step);
    top += threadIdx.y * rows;
    score_span<STEPS, MAP>(&m, &layout.tile, &limbs, &ones, sum, left, top, bits);
    int y = top + threadIdx.x;
    if (threadIdx.x < rows && y < m.rows)
        *(uint4 *)(m.bits + (i64)y * m.bit_words + blockIdx.x * (SPAN / 32)) =
            *(uint4 *)(bits + threadIdx.x * (SPAN / 32));
}

// ---- launchers ----

// Warps of a block: as many as its shared memory allows.
static int warps_within(const struct match *m, int steps)
{
    int device = 0, max_shared = 48 << 10;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&max_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    int warps = 4;
    for (; warps > 1; warps /= 2) {
        struct fused_layout layout = fused_layout_of(m->pattern.height, warps, steps);
        if (fused_bytes(&layout, warps) <= (size_t)max_shared)
            break;
    }
    return warps;
}

template <int STEPS, bool MAP>
static cudaError_t fused_steps_async(const struct match *m, cudaStream_t stream)
{
    int warps = warps_within(m, STEPS);
    struct fused_layout layout = fused_layout_of(m->pattern.height, warps, STEPS);
    size_t bytes = fused_bytes(&layout, warps);
    auto *kernel = match_fused<STEPS, MAP>;
    cudaError_t error = shared_memory_allow((const void *)kernel, bytes);
    if (error)
        return error;
    dim3 grid = blocks_of(m->columns, m->rows, SPAN, warps * rows_of(STEPS));
    kernel<<<grid, dim3(WARP, (unsigned)warps), bytes, stream>>>(*m);
    return cudaGetLastError();
}

cudaError_t match_fused_async(const struct match *m, bool map, cudaStream_t stream)
{
    if (steps_of(m->pattern.width) == 1)
        return map ? fused_steps_async<1, true>(m, stream) : fused_steps_async<1, false>(m, stream);
    return map ? fused_steps_async<2, true>(m, stream) : fused_steps_async<2, false>(m, stream);
}
