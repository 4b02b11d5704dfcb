// OP_WAVELET: from samples to the cells of all levels.
#include "kernels/full_frame/wavelet.cuh"

enum {
    RUN_LOG = 5, // the largest D whose inner cells are a chain along the rows, a lane each
    OWN_LOG = 2, // the largest whose cells across edges are so, too
};
static_assert(1 << RUN_LOG == WAVELET_CHAINED_INSIDE && 1 << OWN_LOG == WAVELET_CHAINED, "as op.h");
static_assert((int)WARP == (int)WAVELET_SHARES && (int)WARPS == (int)WAVELET_PARTS, "as op.h");

// ---- samples ----

template <typename T> struct alignas(VEC4 * sizeof(T)) word {
    T sample[VEC4];
};

static __device__ inline float less_black(const struct wavelet *w, int sample)
{
    return (float)min(sample, w->max) - w->black;
}

// Four samples of a row of the picture from column x on, less black; where they are WORDS in one,
// else those behind the last are the last.
template <typename T, bool WORDS>
static __device__ inline float4 read_vec4(const struct wavelet *w, int y, int x)
{
    const T *row = (const T *)(w->from + (ptrdiff_t)y * w->from_stride);
    word<T> four;
    if (WORDS)
        four = *(const word<T> *)(row + x);
    else
        for (int i = 0; i < VEC4; i++)
            four.sample[i] = row[min(x + i, w->width - 1)];
    return make_float4(less_black(w, four.sample[0]), less_black(w, four.sample[1]),
                       less_black(w, four.sample[2]), less_black(w, four.sample[3]));
}

// Four cells of the row that a row of samples gives.
template <typename T, bool WORDS>
static __device__ inline void put_vec4(const struct wavelet *w, struct wavelet_cell row, int x,
                                       float *to)
{
    const struct level *level = w->level;
    int column = x - level->margin;
    if (row.count && column >= 0 && column + VEC4 <= w->width) {
        *(float4 *)to = read_vec4<T, WORDS>(w, row.first, column);
        return;
    }
    const T *from = (const T *)(w->from + (ptrdiff_t)row.first * w->from_stride);
    for (int i = 0; i < VEC4; i++) {
        bool there = row.count && x + i >= 0 && x + i < level->cells_x;
        struct wavelet_cell cell = {};
        if (there)
            cell = w->cell[level->cell_x + x + i];
        if (x + i >= 0)
            to[i] = there && cell.count ? less_black(w, from[cell.first]) : 0;
    }
}

// The whole plane, and zeros beyond it. A thread makes four neighbouring cells in each of four
// rows, in the picture those of four samples in a word.
template <typename T, bool WORDS>
static __global__ void __launch_bounds__(THREADS) samples(const __grid_constant__ struct wavelet w)
{
    const struct level *level = w.level;
    int aside = -level->margin & (VEC4 - 1); // what lies before the plane's first cell
    int x = (blockIdx.x * WARP + threadIdx.x % WARP) * VEC4 - aside;
    int first = blockIdx.y * VEC4 * WARPS + threadIdx.x / WARP;
    if (x >= level->cells.stride - aside)
        return;
    struct wavelet_cell row[VEC4] = {};
#pragma unroll
    for (int k = 0; k < VEC4; k++)
        if (first + k * WARPS < level->cells_y)
            row[k] = w.cell[level->cell_y + first + k * WARPS];
#pragma unroll
    for (int k = 0; k < VEC4; k++)
        if (first + k * WARPS < level->cells.rows)
            put_vec4<T, WORDS>(&w, row[k], x, plane_row(&w, level->cells, first + k * WARPS) + x);
}

// ---- cells by columns ----

static __device__ inline void add_vec4(float4 *sum, float tap, float4 value)
{
    sum->x = __fmaf_rn(tap, value.x, sum->x);
    sum->y = __fmaf_rn(tap, value.y, sum->y);
    sum->z = __fmaf_rn(tap, value.z, sum->z);
    sum->w = __fmaf_rn(tap, value.w, sum->w);
}

static __device__ inline void add(float4 *sum, float4 value)
{
    *sum = make_float4(sum->x + value.x, sum->y + value.y, sum->z + value.z, sum->w + value.w);
}

static __device__ inline void add_cells(float4 sum[LINE_CELLS], const float4 tap[2], float4 value)
{
    const float *t = (const float *)tap;
#pragma unroll
    for (int c = 0; c < LINE_CELLS; c++)
        add_vec4(&sum[c], t[c], value);
}

// A block makes cells of 128 columns, four neighbours a lane; blockIdx.y counts entries of the
// table of lines. Each of its warps sums up every eighth row of the picture, and adds up what all
// have of one cell. Inner cells are made eight at a time, of rows that are read once, with a table
// of the taps that eight cells have for each row.
template <typename T, bool WORDS>
static __global__ void __launch_bounds__(THREADS, 3) lines(const __grid_constant__ struct wavelet w)
{
    __shared__ float4 part[LINE_CELLS][THREADS];
    static_assert((int)LINE_CELLS == (int)WARPS, "a warp for each cell");
    struct line line = w.line[blockIdx.y];
    const struct level *level = &w.level[line.level];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int x = (blockIdx.x * WARP + lane) * VEC4;
    bool is_there = x < w.width;
    struct wavelet_cell cell = w.cell[level->cell_y + line.first];
    float4 sum[LINE_CELLS] = {};
    int first = (warp - cell.first) & (WARPS - 1); // its row is the warp's
    if (is_there && line.count > 1) {
        const float4 *taps = (const float4 *)(w.tap + level->eights);
        int rows = cell.count + ((line.count - 1) << level->decimate);
#pragma unroll 4
        for (int k = first; k < rows; k += WARPS) {
            float4 tap[2] = {__ldg(taps + 2 * k), __ldg(taps + 2 * k + 1)};
            add_cells(sum, tap, read_vec4<T, WORDS>(&w, cell.first + k, x));
        }
    } else if (is_there) {
#pragma unroll 4
        for (int k = first; k < cell.count; k += WARPS)
            add_vec4(&sum[0], __ldg(w.tap + cell.tap + k),
                     read_vec4<T, WORDS>(&w, cell.first + k, x));
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
        add(&all, part[warp][k * WARP + lane]);
    *(float4 *)(plane_row(&w, level->lines, line.first + warp) + x) = all;
}

// ---- and by rows ----

// Where sample k of a run lies in shared memory: lanes that read every Dth one meet no other's
// bank.
static __host__ __device__ inline int run_place(int k)
{
    return k + k / WARP;
}

// Neighbouring inner cells, a lane each, of a run of samples that the warp fetches. Behind the last
// tap there are zeros, for which there must be numbers.
static __device__ inline float run_cell(const struct wavelet *w, const struct level *level,
                                        const float *from, struct wavelet_cell first, float *run)
{
    int d = 1 << level->decimate, lane = threadIdx.x % WARP, count = up(first.count, VEC4);
#pragma unroll 4
    for (int k = lane; k < (WARP - 1) * d + count; k += WARP)
        run[run_place(k)] = first.first + k < w->width ? __ldg(from + first.first + k) : 0;
    __syncwarp();
    float sum = 0;
    for (int k = 0; k < count; k += VEC4) {
        float4 tap = __ldg((const float4 *)(w->tap + first.tap + k));
        sum = __fmaf_rn(tap.x, run[run_place(lane * d + k)], sum);
        sum = __fmaf_rn(tap.y, run[run_place(lane * d + k + 1)], sum);
        sum = __fmaf_rn(tap.z, run[run_place(lane * d + k + 2)], sum);
        sum = __fmaf_rn(tap.w, run[run_place(lane * d + k + 3)], sum);
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
        sum = __fmaf_rn(__ldg(w->tap + cell.tap + k), __ldg(from + cell.first + k), sum);
    return sum;
}

static __device__ inline bool is_inner(const struct level *level, int x)
{
    return x >= level->inner && x < level->inner + level->inners;
}

// One cell after another, of which lanes make every 32nd product; none that is a chain.
static __device__ inline float each_cell(const struct wavelet *w, const struct level *level,
                                         const float *from, int x)
{
    int lane = threadIdx.x % WARP;
    float own = 0;
    for (int i = 0; i < WARP && x + i < level->cells_x; i++) {
        if (level->decimate <= RUN_LOG && is_inner(level, x + i))
            continue;
        struct wavelet_cell cell = w->cell[level->cell_x + x + i];
        float sum = 0;
        for (int k = lane; k < cell.count; k += WARP)
            sum = __fmaf_rn(__ldg(w->tap + cell.tap + k), __ldg(from + cell.first + k), sum);
        sum = warp_sum(sum);
        own = lane == i ? sum : own;
    }
    return own;
}

// A warp makes 32 cells of a row, and zeros beyond those that there are.
static __global__ void __launch_bounds__(THREADS) cells(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    struct tile at = w.row[blockIdx.x];
    const struct level *level = &w.level[at.number];
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, y = at.y;
    int x = at.x + warp * WARP;
    if (x >= level->cells.stride)
        return;
    const float *from = plane_row(&w, level->lines, y);
    float *run = (float *)memory + warp * w.run, sum = 0;
    bool inner = is_inner(level, x) && is_inner(level, x + WARP - 1);
    if (y < level->cells_y && inner && level->decimate <= RUN_LOG)
        sum = run_cell(&w, level, from, w.cell[level->cell_x + x], run);
    else if (y < level->cells_y && level->decimate <= OWN_LOG)
        sum = own_cell(&w, level, from, x + lane);
    else if (y < level->cells_y) {
        sum = each_cell(&w, level, from, x);
        if (level->decimate <= RUN_LOG && is_inner(level, x + lane))
            sum = own_cell(&w, level, from, x + lane);
    }
    if (x + lane < level->cells.stride)
        plane_row(&w, level->cells, y)[x + lane] = sum;
}

// ---- launchers ----

int wavelet_cells_run(const struct layout *layout)
{
    int max_words = 0;
    for (int k = 1; k < layout->levels; k++) {
        int d = 1 << layout->level[k].decimate;
        int samples = (WARP - 1) * d + up(2 * WAVELET_REACH * d + 1, VEC4);
        if (layout->level[k].decimate <= RUN_LOG && layout->level[k].inners >= WARP)
            max_words = up(run_place(samples) + 1, VEC4);
    }
    return max_words;
}

template <typename T, bool WORDS>
static void make_cells(const struct wavelet *w, const struct layout *layout, cudaStream_t stream)
{
    const struct reals *plane = &layout->level[0].cells;
    if (layout->direct)
        samples<T, WORDS><<<tiles_of(plane->stride, plane->rows, WARP * VEC4, WARPS * VEC4),
                            THREADS, 0, stream>>>(*w);
    if (!layout->coarse)
        return;
    lines<T, WORDS>
        <<<tiles_of(layout->width, layout->lines, WARP * VEC4, 1), THREADS, 0, stream>>>(*w);
    cells<<<(unsigned)layout->rows, THREADS, WARPS *(size_t)w->run * sizeof(float), stream>>>(*w);
}

template <typename T>
static void make_all_cells(const struct wavelet *w, const struct layout *layout,
                           cudaStream_t stream)
{
    uintptr_t places = (uintptr_t)w->from | (uintptr_t)w->from_stride;
    if (places % (VEC4 * sizeof(T)) == 0 && w->width % VEC4 == 0)
        make_cells<T, true>(w, layout, stream);
    else
        make_cells<T, false>(w, layout, stream);
}

cudaError_t wavelet_cells_async(const struct wavelet *w, const struct layout *layout,
                                cudaStream_t stream)
{
    if (w->bytes > 1)
        make_all_cells<uint16_t>(w, layout, stream);
    else
        make_all_cells<uint8_t>(w, layout, stream);
    return cudaGetLastError();
}
