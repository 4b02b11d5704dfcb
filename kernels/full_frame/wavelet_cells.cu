// OP_WAVELET: from samples to the cells of all levels.
#include "kernels/copies.cuh"
#include "kernels/full_frame/wavelet.cuh"
#include "kernels/recording.cuh"

enum {
    RUN_LOG = 5,     // the largest D whose inner cells are a chain along the rows, a lane each
    LINE_BLOCKS = 3, // a multiprocessor's
    CELL_BLOCKS = 4,
    WORDS_AHEAD = 2, // rows that `lines` fetches ahead of use, where they are no bytes
    RING = 3,        // times eight rows of bytes: one is read, two are on their way
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

// Four samples of a row of the picture from column x on; where they are WORDS in one, else those
// behind the last are the last.
template <typename T, bool WORDS>
static __device__ inline word<T> read_word(const struct wavelet *w, int y, int x)
{
    const T *row = (const T *)(w->from + (ptrdiff_t)y * w->from_stride);
    word<T> four;
    if (WORDS)
        four = *(const word<T> *)(row + x);
    else
        for (int i = 0; i < VEC4; i++)
            four.sample[i] = row[min(x + i, w->width - 1)];
    return four;
}

template <typename T>
static __device__ inline float4 word_less_black(const struct wavelet *w, word<T> four)
{
    return make_float4(less_black(w, four.sample[0]), less_black(w, four.sample[1]),
                       less_black(w, four.sample[2]), less_black(w, four.sample[3]));
}

template <typename T, bool WORDS>
static __device__ inline float4 read_vec4(const struct wavelet *w, int y, int x)
{
    return word_less_black(w, read_word<T, WORDS>(w, y, x));
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

static __device__ inline struct line line_at(const struct wavelet *w, int entry)
{
    const struct line *line = &w->line[entry];
    int4 rows = __ldg((const int4 *)line);
    ulonglong2 place = __ldg((const ulonglong2 *)line + 1);
    return {rows.x, rows.y, rows.z, rows.w, place.x, (int)(unsigned)place.y};
}

static __device__ inline void add(float4 *sum, float4 value)
{
    *sum = make_float4(sum->x + value.x, sum->y + value.y, sum->z + value.z, sum->w + value.w);
}

enum { OWN_THREADS = 4 * WARP };

// The rows of four neighbouring samples that a thread reads one after another, from row `begin` on,
// which get() gives less black, eight after each fetch(). Those behind row `last` are that.
template <typename T, bool WORDS> struct rows_ahead {
    static constexpr int TAPS_AHEAD = WORDS; // rows; without words there are no registers for them
    const struct wavelet *w;
    int x, y, last;
    word<T> next[WORDS_AHEAD];

    __device__ inline rows_ahead(const struct wavelet *w, int x, int begin, int)
        : w(w), x(x), y(begin), last(w->height - 1)
    {
#pragma unroll
        for (int r = 0; r < WORDS_AHEAD; r++)
            next[r] = read_word<T, WORDS>(w, min(begin + r, last), x);
    }
    __device__ inline void fetch()
    {
        y += WARPS;
    }
    __device__ inline float4 get(int r)
    {
        float4 four = word_less_black(w, next[r % WORDS_AHEAD]);
        next[r % WORDS_AHEAD] = read_word<T, WORDS>(w, min(y - WARPS + r + WORDS_AHEAD, last), x);
        return four;
    }
};

// Bytes less an integer: as the lowest bits of 2^23, they are floats after one subtraction. They
// come by way of shared memory, each thread's by themselves, as the compiler would put loads into
// registers off until they are waited for.
struct bytes;
template <> struct rows_ahead<struct bytes, true> {
    static constexpr int TAPS_AHEAD = 1;
    const uint8_t *first;
    float zero;
    int stride, y, end, last;
    uint32_t *ring;
    int slot; // that is read

    __device__ inline rows_ahead(const struct wavelet *w, int x, int begin, int end)
        : first(w->from + x), stride(w->from_stride), y(begin), end(end), last(w->height - 1),
          slot(RING - 1)
    {
        __shared__ uint32_t memory[RING][WARPS][OWN_THREADS];
        ring = &memory[0][0][threadIdx.x];
        zero = __uint_as_float(0x4b000000) + w->black;
        send(0);
        send(1);
    }
    __device__ inline void send(int to)
    {
        if (y < end)
#pragma unroll
            for (int r = 0; r < WARPS; r++)
                copy_word_ahead(ring + (to * WARPS + r) * OWN_THREADS,
                                first + (ptrdiff_t)min(y + r, last) * stride);
        copies_commit();
        y += WARPS;
    }
    __device__ inline void fetch()
    {
        copies_wait<1>();
        int free = slot; // read the last time
        slot = slot == RING - 1 ? 0 : slot + 1;
        send(free);
    }
    __device__ inline float4 get(int r)
    {
        const unsigned lift = 0x4b000000;
        uint32_t four = ring[(slot * WARPS + r) * OWN_THREADS];
        return make_float4(__uint_as_float(__byte_perm(four, lift, 0x7650)) - zero,
                           __uint_as_float(__byte_perm(four, lift, 0x7651)) - zero,
                           __uint_as_float(__byte_perm(four, lift, 0x7652)) - zero,
                           __uint_as_float(__byte_perm(four, lift, 0x7653)) - zero);
    }
};

// Sums of CELLS cells below each other over `count` rows from `first` on, in parts by y % 8:
// tap(k, t) gives the taps of row first + k, zeros where that is before or behind these rows.
template <typename T, bool WORDS, int CELLS, typename Tap>
static __device__ inline void own_lines(const struct wavelet *w, int x, int first, int count,
                                        float4 all[CELLS], Tap tap)
{
    float4 sum[CELLS][WARPS] = {};
    int begin = first & ~(WARPS - 1), end = first + count;
    rows_ahead<T, WORDS> ahead(w, x, begin, end);
    constexpr int AHEAD = rows_ahead<T, WORDS>::TAPS_AHEAD;
    float t[AHEAD + 1][CELLS];
    int k = begin - first;
    if (AHEAD)
        tap(k, t[0]);
#pragma unroll 1
    for (int y = begin; y < end; y += WARPS, k += WARPS) {
        ahead.fetch();
#pragma unroll
        for (int r = 0; r < WARPS; r++) {
            tap(k + r + AHEAD, t[(r + AHEAD) % (AHEAD + 1)]);
            float4 value = ahead.get(r);
#pragma unroll
            for (int c = 0; c < CELLS; c++)
                add_vec4(&sum[c][r], t[r % (AHEAD + 1)][c], value);
        }
    }
#pragma unroll
    for (int c = 0; c < CELLS; c++) {
        all[c] = float4{};
#pragma unroll
        for (int r = 0; r < WARPS; r++)
            add(&all[c], sum[c][r]);
    }
}

// A warp makes cells of 128 columns, four neighbours a lane, of an entry of the table of lines
// each; blockIdx.y counts entries. Inner cells are made four at a time, of rows that are read once,
// with a table of the taps that four cells have for each row.
template <typename T, bool WORDS>
static __global__ void __launch_bounds__(OWN_THREADS, LINE_BLOCKS)
    lines(const __grid_constant__ struct wavelet w)
{
    int entry = w.shared_lines + blockIdx.y * (OWN_THREADS / WARP) + threadIdx.x / WARP;
    int x = (blockIdx.x * WARP + threadIdx.x % WARP) * VEC4;
    if (entry >= w.lines || x >= w.width)
        return;
    struct line line = line_at(&w, entry);
    float *to = w.scratch + line.to + x;
    if (line.count > 1) {
        float4 all[OWN_CELLS];
        const float4 *taps = (const float4 *)(w.tap + line.tap);
        own_lines<T, WORDS, OWN_CELLS>(&w, x, line.row, line.rows, all,
                                       [&](int k, float t[OWN_CELLS]) {
                                           float4 tap = __ldg(taps + k);
                                           t[0] = tap.x;
                                           t[1] = tap.y;
                                           t[2] = tap.z;
                                           t[3] = tap.w;
                                       });
        static_assert((int)OWN_CELLS == (int)VEC4, "a vector of taps");
#pragma unroll
        for (int c = 0; c < OWN_CELLS; c++)
            if (c < line.count)
                *(float4 *)(to + (size_t)c * line.stride) = all[c];
    } else {
        float4 all[1];
        const float *taps = w.tap + line.tap;
        own_lines<T, WORDS, 1>(&w, x, line.row, line.rows, all, [&](int k, float t[1]) {
            t[0] = (unsigned)k < (unsigned)line.rows ? __ldg(taps + k) : 0;
        });
        *(float4 *)to = all[0];
    }
}

static __device__ inline void add_cells(float4 sum[LINE_CELLS], const float4 tap[2], float4 value)
{
    const float *t = (const float *)tap;
#pragma unroll
    for (int c = 0; c < LINE_CELLS; c++)
        add_vec4(&sum[c], t[c], value);
}

// The same where D is large, so that there are few cells of many rows: each warp of a block sums up
// every eighth row of the picture, and adds up what all have of one cell. Inner cells are made
// eight at a time.
template <typename T, bool WORDS>
static __global__ void __launch_bounds__(THREADS, 3)
    shared_lines(const __grid_constant__ struct wavelet w)
{
    __shared__ float4 part[LINE_CELLS][THREADS];
    static_assert((int)LINE_CELLS == (int)WARPS, "a warp for each cell");
    struct line line = line_at(&w, blockIdx.y);
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int x = (blockIdx.x * WARP + lane) * VEC4;
    bool is_there = x < w.width;
    float4 sum[LINE_CELLS] = {};
    int first = (warp - line.row) & (WARPS - 1); // its row is the warp's
    if (is_there && line.count > 1) {
        const float4 *taps = (const float4 *)(w.tap + line.tap);
#pragma unroll 4
        for (int k = first; k < line.rows; k += WARPS) {
            float4 tap[2] = {__ldg(taps + 2 * k), __ldg(taps + 2 * k + 1)};
            add_cells(sum, tap, read_vec4<T, WORDS>(&w, line.row + k, x));
        }
    } else if (is_there) {
#pragma unroll 4
        for (int k = first; k < line.rows; k += WARPS)
            add_vec4(&sum[0], __ldg(w.tap + line.tap + k),
                     read_vec4<T, WORDS>(&w, line.row + k, x));
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
    *(float4 *)(w.scratch + line.to + (size_t)warp * line.stride + x) = all;
}

// ---- and by rows ----

// Samples of CELLS times 32 neighbouring inner cells in shared memory, those of each phase by
// themselves, so that a lane's are its neighbours' neighbours and all places but the lane's are
// known when code is made. Phases lie an odd multiple of 32 / D apart: lanes that put samples one
// after another meet no bank twice.
template <int LOG, int CELLS> struct run {
    static constexpr int D = 1 << LOG;
    static constexpr int TAPS = (2 * WAVELET_REACH * D + VEC4) / VEC4 * VEC4;
    static constexpr int SAMPLES = ((CELLS * WARP - 1) * D + TAPS + WARP - 1) / WARP * WARP;
    static constexpr int STEP = WARP / D;
    static constexpr int STRIDE = (((SAMPLES + D - 1) / D + STEP - 1) / STEP | 1) * STEP;
    static constexpr int FLOATS = D * STRIDE;
};

// Neighbouring inner cells, of which the lanes have every 32nd, of a run of samples that the warp
// fetches. Behind the last tap there are zeros, for which any samples will do.
template <int LOG, int CELLS>
static __device__ inline void run_cells(const struct wavelet *w, const float *from,
                                        struct wavelet_cell first, float *memory, float sum[CELLS])
{
    typedef run<LOG, CELLS> run;
    int lane = threadIdx.x % WARP, left = w->width - first.first;
    const float4 *taps = (const float4 *)(w->tap + first.tap);
    float *to = memory + (lane & (run::D - 1)) * run::STRIDE + (lane >> LOG);
    from += first.first;
    if (left >= run::SAMPLES) {
#pragma unroll(LOG <= 4 ? run::SAMPLES / WARP : 14)
        for (int k = 0; k < run::SAMPLES; k += WARP)
            to[k >> LOG] = __ldg(from + lane + k);
    } else {
#pragma unroll 4
        for (int k = 0; k < run::SAMPLES; k += WARP)
            to[k >> LOG] = __ldg(from + min(k + lane, left - 1));
    }
    __syncwarp();
#pragma unroll
    for (int c = 0; c < CELLS; c++)
        sum[c] = 0;
#pragma unroll(LOG <= 4 ? run::TAPS / VEC4 : 8)
    for (int k = 0; k < run::TAPS; k += VEC4) {
        float4 four = __ldg(taps + k / VEC4);
        const float tap[VEC4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int i = 0; i < VEC4; i++) {
            const float *sample = memory + (k + i) % run::D * run::STRIDE + (k + i) / run::D + lane;
#pragma unroll
            for (int c = 0; c < CELLS; c++)
                sum[c] = __fmaf_rn(tap[i], sample[c * WARP], sum[c]);
        }
    }
}

// Floats that the longest run of a warp takes, D = 2^decimate.
static int run_floats(int decimate)
{
    switch (decimate) {
    case 1:
        return run<1, cells_of_warp(1) / WARP>::FLOATS;
    case 2:
        return run<2, cells_of_warp(2) / WARP>::FLOATS;
    case 3:
        return run<3, cells_of_warp(3) / WARP>::FLOATS;
    case 4:
        return run<4, cells_of_warp(4) / WARP>::FLOATS;
    case 5:
        return run<5, cells_of_warp(5) / WARP>::FLOATS;
    default:
        return 0;
    }
}

// A cell a lane, whose taps lie STEP apart.
template <int STEP>
static __device__ inline float own_cell(const struct wavelet *w, const struct level *level,
                                        const float *from, int x)
{
    if (x >= level->cells_x)
        return 0;
    struct wavelet_cell cell = w->cell[level->cell_x + x];
    const float *tap = w->tap + cell.tap;
    float sum = 0;
    from += cell.first;
#pragma unroll 8
    for (int left = cell.count; left > 0; left--, tap += STEP, from++)
        sum = __fmaf_rn(__ldg(tap), __ldg(from), sum);
    return sum;
}

static __device__ inline bool is_inner(const struct level *level, int x)
{
    return x >= level->inner && x < level->inner + level->inners;
}

enum { EACH = 4 }; // cells at a time

// The sums of all lanes', pairs that are farthest from each other first, of EACH numbers: lane k
// has that of number k / (32 / EACH).
static __device__ inline float warp_sums(float sum[EACH])
{
    int lane = threadIdx.x % WARP, lanes = WARP / 2;
#pragma unroll
    for (int count = EACH / 2; count > 0; count /= 2, lanes /= 2)
#pragma unroll
        for (int i = 0; i < count; i++) {
            bool upper = lane & lanes;
            float other = __shfl_xor_sync(~0u, upper ? sum[i] : sum[i + count], lanes);
            sum[i] = (upper ? sum[i + count] : sum[i]) + other;
        }
    for (; lanes > 0; lanes /= 2)
        sum[0] += __shfl_xor_sync(~0u, sum[0], lanes);
    return sum[0];
}

// Some cells after others, of which lanes make every 32nd product; none that is a chain.
static __device__ inline float each_cell(const struct wavelet *w, const struct level *level,
                                         const float *from, int x)
{
    int lane = threadIdx.x % WARP;
    float own = 0;
#pragma unroll 1
    for (int n = 0; n < WARP && x + n < level->cells_x; n += EACH) {
        const float *tap[EACH], *sample[EACH];
        int count[EACH];
        float sum[EACH] = {};
        int most = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            int at = x + n + i;
            bool is_chain = level->decimate <= RUN_LOG && is_inner(level, at);
            struct wavelet_cell cell = w->cell[level->cell_x + min(at, level->cells_x - 1)];
            count[i] = at >= level->cells_x || is_chain ? 0 : cell.count;
            tap[i] = w->tap + cell.tap + lane;
            sample[i] = from + cell.first + lane;
            most = max(most, count[i]);
        }
#pragma unroll 1
        for (int k = lane; k - lane < most; k += WARP) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                bool is_there = k < count[i];
                float t = is_there ? __ldg(tap[i]) : 0;
                sum[i] = __fmaf_rn(t, is_there ? __ldg(sample[i]) : 0, sum[i]);
                tap[i] += WARP;
                sample[i] += WARP;
            }
        }
        float all = __shfl_sync(~0u, warp_sums(sum), lane % EACH * (WARP / EACH));
        own = lane / EACH == n / EACH ? all : own;
    }
    return own;
}

// Cells of a row, D = 2^LOG or, if LOG is 6, any larger one: CELLS times 32 of them, and zeros
// beyond those that there are.
template <int LOG, int CELLS>
static __device__ inline void row_cells(const struct wavelet *w, const struct level *level, int x,
                                        int y, float *memory)
{
    const float *from = plane_row(w, level->lines, y);
    float *to = plane_row(w, level->cells, y) + x + threadIdx.x % WARP;
    float sum[CELLS] = {};
    bool inner = is_inner(level, x) && is_inner(level, x + CELLS * WARP - 1);
    bool there = y < level->cells_y;
    if (LOG <= RUN_LOG && there && inner)
        run_cells<(LOG <= RUN_LOG ? LOG : 0), CELLS>(w, from, w->cell[level->cell_x + x], memory,
                                                     sum);
    else if (CELLS > 1)
        return;
    else if (there && LOG <= OWN_LOG)
        sum[0] = own_cell<WARP>(w, level, from, x + threadIdx.x % WARP);
    else if (there) {
        sum[0] = each_cell(w, level, from, x);
        if (LOG <= RUN_LOG && is_inner(level, x + threadIdx.x % WARP))
            sum[0] = own_cell<1>(w, level, from, x + threadIdx.x % WARP);
    }
#pragma unroll
    for (int c = 0; c < CELLS; c++)
        if (x + c * WARP < level->cells.stride)
            to[c * WARP] = sum[c];
}

template <int LOG>
static __device__ inline void warp_cells(const struct wavelet *w, const struct level *level, int x,
                                         int y, float *memory)
{
    constexpr int columns = cells_of_warp(LOG);
    if (columns > WARP && y < level->cells_y && is_inner(level, x) &&
        is_inner(level, x + columns - 1))
        return row_cells<LOG, columns / WARP>(w, level, x, y, memory);
#pragma unroll 1
    for (int c = 0; c < columns && x + c < level->cells.stride; c += WARP) {
        __syncwarp();
        row_cells<LOG, 1>(w, level, x + c, y, memory);
    }
}

// A warp makes cells of a row, the warps of a block those of eight rows.
static __global__ void __launch_bounds__(THREADS, CELL_BLOCKS)
    cells(const __grid_constant__ struct wavelet w)
{
    extern __shared__ float4 memory[];
    struct tile at = w.row[blockIdx.x];
    const struct level *level = &w.level[at.number];
    int y = at.y + threadIdx.x / WARP;
    float *own = (float *)memory + threadIdx.x / WARP * w.run;
    if (y >= level->cells.rows)
        return;
    switch (level->decimate) {
    case 1:
        return warp_cells<1>(&w, level, at.x, y, own);
    case 2:
        return warp_cells<2>(&w, level, at.x, y, own);
    case 3:
        return warp_cells<3>(&w, level, at.x, y, own);
    case 4:
        return warp_cells<4>(&w, level, at.x, y, own);
    case 5:
        return warp_cells<5>(&w, level, at.x, y, own);
    default:
        return warp_cells<6>(&w, level, at.x, y, own);
    }
}

// ---- launchers ----

int wavelet_cells_run(const struct layout *layout)
{
    int most = 0;
    for (int k = 1; k < layout->levels; k++)
        if (layout->level[k].inners >= WARP && run_floats(layout->level[k].decimate) > most)
            most = run_floats(layout->level[k].decimate);
    return most;
}

template <typename T, bool WORDS>
static void make_lines(const struct wavelet *w, const struct layout *layout, cudaStream_t stream)
{
    int own = layout->lines - layout->shared_lines;
    if (own)
        kernel_launch(lines<T, WORDS>,
                      tiles_of(layout->width, own, WARP * VEC4, OWN_THREADS / WARP), OWN_THREADS, 0,
                      stream, *w);
}

template <typename T, bool WORDS>
static void make_cells(const struct wavelet *w, const struct layout *layout, cudaStream_t stream)
{
    const struct reals *plane = &layout->level[0].cells;
    if (layout->direct)
        kernel_launch(samples<T, WORDS>,
                      tiles_of(plane->stride, plane->rows, WARP * VEC4, WARPS * VEC4), THREADS, 0,
                      stream, *w);
    if (!layout->coarse)
        return;
    if (layout->shared_lines)
        kernel_launch(shared_lines<T, WORDS>,
                      tiles_of(layout->width, layout->shared_lines, WARP * VEC4, 1), THREADS, 0,
                      stream, *w);
    if (sizeof(T) == 1 && WORDS && w->is_whole)
        make_lines<struct bytes, true>(w, layout, stream);
    else
        make_lines<T, WORDS>(w, layout, stream);
    kernel_launch(cells, (unsigned)layout->rows, THREADS, WARPS * (size_t)w->run * sizeof(float),
                  stream, *w);
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
