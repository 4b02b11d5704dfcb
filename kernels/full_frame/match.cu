// OP_MATCH: what templates are on the device, where things lie, and from candidates to matches.
#include "kernels/full_frame/match.cuh"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/op_kernels.h"

enum { SORT = 1024 }; // matches in shared memory at a time

// ---- the score map ----

// A thread makes a sample: the score of the place whose middle lies there, if it is greater than
// what is there.
template <typename T>
static __global__ void match_map(const __grid_constant__ struct match m, uint8_t *to, int stride,
                                 int white, bool first)
{
    int x = blockIdx.x * WARP + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= m.width || y >= m.height)
        return;
    T *at = (T *)(to + (i64)y * stride) + x;
    int shade = first ? 0 : *at;
    int column = x - m.pattern.width / 2, row = y - m.pattern.height / 2;
    if (column >= 0 && column < m.columns && row >= 0 && row < m.rows)
        shade = max(shade, match_shade(m.score[(i64)row * m.columns + column], white));
    *at = (T)shade;
}

// ---- matches ----

// A match as four words, of which the better one is less: first of all the complement of its score,
// which is above 0.
static __device__ inline uint4 list_entry(float score, int number, int x, int y)
{
    return make_uint4(~__float_as_uint(score), (uint32_t)number, (uint32_t)y, (uint32_t)x);
}

static __device__ inline bool is_better(uint4 a, uint4 b)
{
    if (a.x != b.x)
        return a.x < b.x;
    if (a.y != b.y)
        return a.y < b.y;
    return a.z != b.z ? a.z < b.z : a.w < b.w;
}

// The bits of word `w` of a row that lie in columns first .. last.
static __device__ inline uint32_t bits_within(uint32_t bits, int w, int first, int last)
{
    int low = max(first - 32 * w, 0), high = min(last - 32 * w, 31);
    return bits & (~0u << low) & (~0u >> (31 - high));
}

// True if this lane finds a better place among those of one word of candidates.
static __device__ inline bool word_has_better(const struct match *m, int w, int y, int first,
                                              int last, uint4 own)
{
    uint32_t bits = bits_within(__ldg(m->bits + (i64)y * m->bit_words + w), w, first, last);
    for (; bits; bits &= bits - 1) {
        int x = 32 * w + __ffs((int)bits) - 1;
        if (is_better(list_entry(m->score[(i64)y * m->columns + x], m->pattern.number, x, y), own))
            return true;
    }
    return false;
}

// True if a place is the greatest within `far` columns and rows, by all lanes, a word each.
static __device__ inline bool is_greatest(const struct match *m, int x, int y, int far_x, int far_y,
                                          uint4 own)
{
    int left = max(x - far_x, 0), right = min(x + far_x, m->columns - 1);
    int top = max(y - far_y, 0), bottom = min(y + far_y, m->rows - 1);
    int words = right / 32 - left / 32 + 1, all = words * (bottom - top + 1);
    for (int k = 0; k < all; k += WARP) {
        int n = k + (int)threadIdx.x;
        bool better =
            n < all && word_has_better(m, left / 32 + n % words, top + n / words, left, right, own);
        if (__any_sync(~0u, better))
            return false;
    }
    return true;
}

// A warp lists those of a word's candidates that are matches, one after another: first near it,
// where most that are not the greatest meet a greater one, then further and further. Of n places
// that are the greatest within d there are at most one in d^2 / 4, which bounds the work however
// many candidates there are.
static __device__ inline void list_word(const struct match *m, uint32_t bits, int word, int y)
{
    int max_x = m->pattern.width / 2, max_y = m->pattern.height / 2;
    for (; bits; bits &= bits - 1) {
        int x = word * 32 + __ffs((int)bits) - 1, far = 1;
        uint4 entry = list_entry(m->score[(i64)y * m->columns + x], m->pattern.number, x, y);
        bool greatest = is_greatest(m, x, y, min(far, max_x), min(far, max_y), entry);
        while (greatest && (far < max_x || far < max_y)) {
            far *= 4;
            greatest = is_greatest(m, x, y, min(far, max_x), min(far, max_y), entry);
        }
        if (greatest && threadIdx.x == 0)
            m->list[atomicAdd(m->listed, 1)] = entry;
    }
}

// A lane takes a word of candidates; the warp goes through those of its lanes that are not empty.
static __global__ void match_list(const __grid_constant__ struct match m)
{
    i64 first = ((i64)blockIdx.x * blockDim.y + threadIdx.y) * WARP, own = first + threadIdx.x;
    uint32_t bits = own < (i64)m.rows * m.bit_words ? __ldg(m.bits + own) : 0;
    for (uint32_t lanes = __ballot_sync(~0u, bits != 0); lanes; lanes &= lanes - 1) {
        int lane = __ffs((int)lanes) - 1;
        i64 word = first + lane;
        list_word(&m, __shfl_sync(~0u, bits, lane), (int)(word % m.bit_words),
                  (int)(word / m.bit_words));
    }
}

// Sort `count` entries, of which there is room for a power of two, by all threads of a block.
static __device__ inline void sort(uint4 *entry, int count)
{
    int size = 2, thread = threadIdx.x;
    while (size < count)
        size *= 2;
    for (int k = count + thread; k < size; k += SORT)
        entry[k] = make_uint4(~0u, ~0u, ~0u, ~0u);
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            int low = 2 * thread - (thread & (step - 1)), high = low + step;
            if (thread >= size / 2)
                continue;
            bool descending = low & run;
            uint4 a = entry[low], b = entry[high];
            if (is_better(b, a) != descending) {
                entry[low] = b;
                entry[high] = a;
            }
        }
    __syncthreads();
}

// One block: the list in portions of as many as it has threads; what is better than the worst of
// those that are kept joins them, and all are sorted.
static __global__ void __launch_bounds__(SORT)
    match_best(const uint4 *list, const int *listed, int max_matches, int line, uint4 *best,
               struct op_matches *matches)
{
    __shared__ uint4 entry[2 * SORT];
    __shared__ int joined;
    int thread = threadIdx.x, count = *listed, kept = 0;
    for (int first = 0; first < count; first += SORT) {
        if (thread == 0)
            joined = 0;
        __syncthreads();
        bool joins = false;
        uint4 own = {};
        if (first + thread < count) {
            own = list[first + thread];
            joins = kept < max_matches || is_better(own, entry[kept - 1]);
        }
        if (joins)
            entry[kept + atomicAdd(&joined, 1)] = own;
        __syncthreads();
        int all = kept + joined;
        if (joined)
            sort(entry, all);
        kept = min(all, max_matches);
        __syncthreads();
    }
    if (thread < kept)
        best[thread] = entry[thread];
    if (thread == 0) {
        matches->count = kept;
        matches->line = line;
    }
}

// Sums over the window at a place, as far as one thread has come.
struct window {
    i64 products, samples, squares;
};

enum { NEIGHBOURS = 4, NEIGHBOUR_WARPS = 4 }; // left, right, above, below

// A warp's rows of a window.
static __device__ inline struct window window_of(const struct match *m, int x, int y, int warp)
{
    const struct pattern *p = &m->pattern;
    struct window own = {};
    for (int j = warp; j < p->height; j += NEIGHBOUR_WARPS)
        for (int i = threadIdx.x; i < p->width; i += WARP) {
            i64 at = (i64)j * p->stride + 16 + i;
            int f = __ldg(m->from + (i64)(y + j) * m->from_stride + x + i);
            if (p->mask && !__ldg(p->mask + at))
                f = 0;
            own.products += f * __ldg(p->sample + at);
            own.samples += f;
            own.squares += f * f;
        }
    return {warp_sum(own.products), warp_sum(own.samples), warp_sum(own.squares)};
}

// The scores of the places around one, as far as there are both on an axis: four warps make each.
static __device__ inline void neighbour_scores(const struct match *m, int x, int y,
                                               float score[NEIGHBOURS])
{
    __shared__ struct window part[NEIGHBOURS][NEIGHBOUR_WARPS];
    int side = threadIdx.y / NEIGHBOUR_WARPS, warp = threadIdx.y % NEIGHBOUR_WARPS;
    bool there = side < 2 ? x > 0 && x < m->columns - 1 : y > 0 && y < m->rows - 1;
    int step = side % 2 ? 1 : -1;
    struct window own = {};
    if (there)
        own = window_of(m, side < 2 ? x + step : x, side < 2 ? y : y + step, warp);
    if (threadIdx.x == 0)
        part[side][warp] = own;
    __syncthreads();
    for (int n = 0; n < NEIGHBOURS && threadIdx.x == 0 && threadIdx.y == 0; n++) {
        struct window all = part[n][0];
        for (int k = 1; k < NEIGHBOUR_WARPS; k++) {
            all.products += part[n][k].products;
            all.samples += part[n][k].samples;
            all.squares += part[n][k].squares;
        }
        score[n] = score_of(&m->pattern, all.products, all.samples, all.squares);
    }
}

// A block refines one of the matches that are kept, if it is the template's, and clears what lies
// behind the last.
static __global__ void __launch_bounds__(WARP *NEIGHBOURS *NEIGHBOUR_WARPS)
    match_refine(const __grid_constant__ struct match m, const uint4 *best,
                 struct op_matches *matches)
{
    int k = blockIdx.x;
    bool writes = threadIdx.x == 0 && threadIdx.y == 0;
    if (k >= matches->count) {
        if (writes)
            matches->found[k] = {};
        return;
    }
    uint4 entry = best[k];
    if ((int)entry.y != m.pattern.number)
        return;
    int x = (int)entry.w, y = (int)entry.z;
    float score = __uint_as_float(~entry.x), around[NEIGHBOURS];
    neighbour_scores(&m, x, y, around);
    if (!writes)
        return;
    double right = 0, down = 0;
    if (x > 0 && x < m.columns - 1)
        right = match_peak(around[0], score, around[1]);
    if (y > 0 && y < m.rows - 1)
        down = match_peak(around[2], score, around[3]);
    matches->found[k] = {(float)(x + right), (float)(y + down), score, m.pattern.number};
}

// ---- what templates are on the device ----

static size_t aligned(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static size_t pattern_stride(const struct op_template *t)
{
    return (size_t)(SLICE_COLUMNS * steps_of(t->width) + 32);
}

static size_t pattern_bytes(const struct op_template *t)
{
    return aligned(pattern_stride(t) * (size_t)t->height);
}

static void put_pattern(const struct op_template *t, int8_t *samples, int8_t *mask)
{
    size_t stride = pattern_stride(t);
    memset(samples, 0, pattern_bytes(t));
    if (mask)
        memset(mask, 0, pattern_bytes(t));
    for (int y = 0; y < t->height; y++)
        for (int x = 0; x < t->width; x++) {
            size_t from = (size_t)y * (size_t)t->width + (size_t)x,
                   to = (size_t)y * stride + 16 + (size_t)x;
            samples[to] = (int8_t)(t->sample[from] - MATCH_BIAS);
            if (mask)
                mask[to] = (int8_t)t->mask[from];
        }
}

// The templates and their masks, one after another at `to`, which may be NULL. Returns their bytes.
static size_t put_patterns(const struct op_match *op, void *to)
{
    size_t bytes = 0;
    for (int k = 0; k < op->count; k++) {
        const struct op_template *t = &op->templates[k];
        size_t one = pattern_bytes(t);
        int8_t *at = (int8_t *)to + bytes;
        if (to)
            put_pattern(t, at, t->mask ? at + one : NULL);
        bytes += t->mask ? 2 * one : one;
    }
    return bytes;
}

static struct pattern pattern_of(const struct op_match *op, int number, const int8_t *constants)
{
    for (int k = 0; k < number; k++)
        constants += (op->templates[k].mask ? 2 : 1) * pattern_bytes(&op->templates[k]);
    const struct op_template *t = &op->templates[number];
    return {.sample = constants,
            .mask = t->mask ? constants + pattern_bytes(t) : NULL,
            .stride = (int)pattern_stride(t),
            .width = t->width,
            .height = t->height,
            .number = number,
            .count = t->count,
            .sum = t->sum,
            .norm = t->norm};
}

// ---- where things lie in scratch memory ----

// Scratch memory of an operation: the candidates of one template after another, the matches of all.
struct room {
    size_t listed, best, list, bits, score, planes, bytes;
};

// Words of a row of candidates: whole spans.
static int bit_words(int columns)
{
    return (columns + SPAN - 1) / SPAN * (SPAN / 32);
}

static size_t take(struct room *room, size_t bytes)
{
    size_t at = room->bytes;
    room->bytes += (bytes + 255) / 256 * 256;
    return at;
}

// Two matches of a template lie outside of each other's half, so that each of the cells which are
// half a template large holds one at most.
static size_t list_entries(const struct op_match *op, int width, int height)
{
    size_t entries = 1;
    for (int k = 0; k < op->count; k++) {
        const struct op_template *t = &op->templates[k];
        size_t columns = (size_t)match_places(width, t->width), across = (size_t)t->width / 2 + 1;
        size_t rows = (size_t)match_places(height, t->height), down = (size_t)t->height / 2 + 1;
        entries += (columns + across - 1) / across * ((rows + down - 1) / down);
    }
    return entries;
}

static struct room room_of(const struct op_match *op, int width, int height)
{
    struct room room = {};
    size_t places = (size_t)width * (size_t)height;
    bool small = true;
    for (int k = 0; k < op->count; k++)
        small = small && match_is_small(&op->templates[k]);
    room.listed = take(&room, sizeof(int));
    room.best = take(&room, sizeof(uint4) * (size_t)op->most);
    room.list = take(&room, sizeof(uint4) * list_entries(op, width, height));
    room.bits = take(&room, sizeof(uint32_t) * (size_t)bit_words(width) * (size_t)height);
    room.score = take(&room, sizeof(float) * places);
    room.planes = take(&room, small ? 0 : match_planes_scratch(width, height));
    return room;
}

static size_t match_scratch(const struct op_use *use)
{
    return room_of(&use->op->match, use->width, use->height).bytes;
}

// ---- launchers ----

static cudaError_t map_async(const struct match *m, const struct full_frame *frame,
                             cudaStream_t stream)
{
    int white = frame->op->match.white;
    bool first = m->pattern.number == 0;
    dim3 grid = blocks_of(m->width, m->height, WARP, 8);
    if (white > 255)
        match_map<uint16_t>
            <<<grid, dim3(WARP, 8), 0, stream>>>(*m, frame->to, frame->to_stride, white, first);
    else
        match_map<uint8_t>
            <<<grid, dim3(WARP, 8), 0, stream>>>(*m, frame->to, frame->to_stride, white, first);
    return cudaGetLastError();
}

static cudaError_t list_async(const struct match *m, cudaStream_t stream)
{
    i64 words = (i64)m->rows * m->bit_words;
    unsigned blocks = (unsigned)((words + 8 * WARP - 1) / (8 * WARP));
    match_list<<<blocks, dim3(WARP, 8), 0, stream>>>(*m);
    return cudaGetLastError();
}

static struct match_test test_of(const struct match *m)
{
    const struct pattern *p = &m->pattern;
    double count = (double)p->count, sum = (double)p->sum, limit = (double)m->min_score * p->norm;
    double bound = limit * limit / count * (1 - 1.0 / 65536); // scores are rounded, too
    double squares = (p->norm * p->norm + sum * sum) / count;
    double slack = ldexp(p->norm * sqrt(squares / count), -19) + ldexp(squares, -43);
    return {.mean = (float)(sum / count),
            .share = (float)(bound / count),
            .squares = (float)(bound - slack)};
}

static struct match match_of(const struct full_frame *frame, const struct room *room, int number)
{
    const struct op_match *op = &frame->op->match;
    uint8_t *scratch = (uint8_t *)frame->scratch;
    struct match m = {.pattern = pattern_of(op, number, (const int8_t *)frame->constants),
                      .from = frame->from,
                      .from_stride = frame->from_stride,
                      .width = frame->width,
                      .height = frame->height,
                      .min_score = op->least,
                      .bits = (uint32_t *)(scratch + room->bits),
                      .score = (float *)(scratch + room->score),
                      .list = (uint4 *)(scratch + room->list),
                      .listed = (int *)(scratch + room->listed)};
    m.columns = match_places(m.width, m.pattern.width);
    m.rows = match_places(m.height, m.pattern.height);
    if (!m.columns || !m.rows)
        m.columns = m.rows = 0;
    m.bit_words = bit_words(m.columns);
    m.test = test_of(&m);
    return m;
}

static cudaError_t template_async(const struct full_frame *frame, const struct room *room,
                                  int number, cudaStream_t stream)
{
    struct match m = match_of(frame, room, number);
    bool map = frame->op->match.map && frame->to;
    cudaError_t error = cudaSuccess;
    if (m.rows && match_is_small(&frame->op->match.templates[number]))
        error = !map && match_wgmma_runs() ? match_wgmma_async(&m, stream)
                                           : match_fused_async(&m, map, stream);
    else if (m.rows)
        error = match_planes_async(&m, map, (uint8_t *)frame->scratch + room->planes, stream);
    if (!error && map)
        error = map_async(&m, frame, stream);
    return error || !m.rows ? error : list_async(&m, stream);
}

static cudaError_t match_async(const struct full_frame *frame, cudaStream_t stream)
{
    const struct op_match *op = &frame->op->match;
    struct room room = room_of(op, frame->width, frame->height);
    uint8_t *scratch = (uint8_t *)frame->scratch;
    struct op_matches *matches = (struct op_matches *)frame->analysis;
    assert(matches);
    uint4 *best = (uint4 *)(scratch + room.best);
    cudaError_t error = cudaMemsetAsync(scratch + room.listed, 0, sizeof(int), stream);
    for (int k = 0; k < op->count && !error; k++)
        error = template_async(frame, &room, k, stream);
    if (error)
        return error;
    match_best<<<1, SORT, 0, stream>>>((const uint4 *)(scratch + room.list),
                                       (const int *)(scratch + room.listed), op->most,
                                       match_line(frame->width, frame->height), best, matches);
    error = cudaGetLastError();
    for (int k = 0; k < op->count && !error; k++) {
        struct match m = match_of(frame, &room, k);
        match_refine<<<(unsigned)op->most, dim3(WARP, NEIGHBOURS * NEIGHBOUR_WARPS), 0, stream>>>(
            m, best, matches);
        error = cudaGetLastError();
    }
    return error;
}

static void match_constants(const struct op_use *use, struct constants *memory,
                            struct op_constants *to)
{
    void *host;
    to->full_frame = constants_take(memory, put_patterns(&use->op->match, NULL), &host);
    if (host)
        put_patterns(&use->op->match, host);
}

const struct op_kernels match_kernels = {
    .kind = OP_MATCH,
    .constants = match_constants,
    .scratch = match_scratch,
    .full_frame_async = match_async,
};
