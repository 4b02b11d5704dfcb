// Results that depend on one place only: tables, gathers and scatters, mixes, constants.
#define DEPENDENT_LAUNCHES
#include <assert.h>
#include <stdlib.h>

#include <algorithm>

#include "kernels/device.cuh"
#include "kernels/recording.cuh"

// ---- device helpers ----

enum { COPY_ROWS = 4 };

// Fours in sixteen bytes of the wider side.
template <typename From, typename To>
constexpr int copy_vec4s = sizeof(From) == 1 && sizeof(To) == 1 ? 4 : 2;

template <typename T, int VEC4S> struct alignas(sizeof(vec4<T>) * VEC4S) stretch {
    vec4<T> part[VEC4S];
};

template <typename From, typename To, int VEC4S>
static __device__ inline void copy_stretch(stretch<To, VEC4S> *to, const stretch<From, VEC4S> *from,
                                           const struct view *view, const struct lookup *lookup,
                                           const uint16_t *shared)
{
    stretch<To, VEC4S> made;
    for (int k = 0; k < VEC4S; k++) {
        int value[VEC4];
        vec4<From> units = plain_vec4(view, from->part[k]);
        for (int i = 0; i < VEC4; i++) {
            value[i] = vec4_get(units, i);
            if (sizeof(From) > 1)
                value[i] = look_up_one(lookup, value[i]);
            else if (lookup->table)
                value[i] = shared[value[i]];
        }
        vec4_set(&made.part[k], value);
    }
    *to = made;
}

// The columns of a row behind the last that fill a thread's `columns`, fewer than a warp has lanes:
// the last blocks take them one (or `each`) a lane. Returns this lane's first; false: it has none.
static __device__ inline bool last_columns(int width, int columns, int each, int *x)
{
    *x = width / columns * columns + threadIdx.x * each;
    return blockIdx.x + 1 == gridDim.x && *x < width;
}

// ---- copies ----

// A plane of bytes as another. The struct is small, as arguments are copied twice on their way to the GPU.
struct byte_copy {
    struct view from, to;
    struct lookup lookup;
    int width, height;
    uint32_t kept, filled; // bits of every word
};

// Four bytes as the copy has them.
static __device__ inline uint32_t copied_word(const struct byte_copy *copy, const uint16_t *shared,
                                              uint32_t word)
{
    uint32_t made = lookup_word(&copy->lookup, shared, word);
    return (made & ~copy->kept) | (word & copy->kept) | copy->filled;
}

// Bytes in, bytes out: as copy_plain() below, but computed where the lookup is arithmetic.
static __global__ void __launch_bounds__(WARP *WARPS)
    copy_bytes(const __grid_constant__ struct byte_copy copy)
{
    __shared__ uint16_t shared[256];
    if (copy.lookup.kind == LOOKUP_TABLE) {
        table_share(shared, copy.lookup.table);
        __syncthreads();
    }
    await_previous_kernel();
    int x = (blockIdx.x * WARP + threadIdx.x) * 16;
    int first = blockIdx.y * WARPS * COPY_ROWS + threadIdx.y;
    if (x + 16 <= copy.width) {
        uint4 from[COPY_ROWS];
        for (int k = 0; k < COPY_ROWS; k++) {
            int y = min(first + k * WARPS, copy.height - 1);
            from[k] = frame_load((const uint4 *)view_at(&copy.from, x, y));
        }
        for (int k = 0; k < COPY_ROWS && first + k * WARPS < copy.height; k++)
            *(uint4 *)view_at(&copy.to, x, first + k * WARPS) = make_uint4(
                copied_word(&copy, shared, from[k].x), copied_word(&copy, shared, from[k].y),
                copied_word(&copy, shared, from[k].z), copied_word(&copy, shared, from[k].w));
    }
    if (last_columns(copy.width, 16, 1, &x)) {
        uint8_t from[COPY_ROWS];
        for (int k = 0; k < COPY_ROWS; k++)
            from[k] = frame_load(view_at(&copy.from, x, min(first + k * WARPS, copy.height - 1)));
        for (int k = 0; k < COPY_ROWS && first + k * WARPS < copy.height; k++)
            *view_at(&copy.to, x, first + k * WARPS) =
                (uint8_t)(copied_word(&copy, shared, (uint32_t)from[k] << 8 * (x % VEC4)) >>
                          8 * (x % VEC4));
    }
}

// Plain samples in, plain samples out. Each thread takes 16 bytes of four rows, eight rows apart,
// which it asks for before it needs any: a warp reads 512 bytes side by side, and a block of 256
// threads has 16 KiB under way. The table is copied to shared memory once for those 16,384 samples.
template <typename From, typename To>
static __global__ void __launch_bounds__(WARP *WARPS)
    copy_plain(const __grid_constant__ struct source source,
               const __grid_constant__ struct sink sink)
{
    constexpr int vec4s = copy_vec4s<From, To>, columns = VEC4 * vec4s;
    __shared__ uint16_t shared[256];
    if (sizeof(From) == 1) {
        table_share(shared, sink.lookup.table);
        __syncthreads();
    }
    await_previous_kernel();
    int x = (blockIdx.x * WARP + threadIdx.x) * columns;
    int first = blockIdx.y * WARPS * COPY_ROWS + threadIdx.y;
    if (x + columns <= sink.width) {
        stretch<From, vec4s> from[COPY_ROWS];
        for (int k = 0; k < COPY_ROWS; k++) {
            int y = min(first + k * WARPS, sink.height - 1);
            from[k] = *(const stretch<From, vec4s> *)view_at(&source.view, x, y);
        }
        for (int k = 0; k < COPY_ROWS; k++) {
            int y = first + k * WARPS;
            if (y < sink.height)
                copy_stretch((stretch<To, vec4s> *)view_at(&sink.view[0], x, y), &from[k],
                             &source.view, &sink.lookup, shared);
        }
    }
    if (last_columns(sink.width, columns, VEC4, &x))
        for (int y = first; y < min(first + WARPS * COPY_ROWS, sink.height); y += WARPS) {
            int value[VEC4];
            source_read(&source, x, y, value);
            sink_put(&sink, x, y, value);
        }
}

// Samples from and to anywhere: a thread gathers four neighbours and scatters them.
static __global__ void __launch_bounds__(WARP *WARPS)
    copy_any(const __grid_constant__ struct source source, const __grid_constant__ struct sink sink)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, y = blockIdx.y * WARPS + threadIdx.y;
    await_previous_kernel();
    if (x >= sink.width || y >= sink.height)
        return;
    int value[VEC4];
    source_read(&source, x, y, value);
    sink_put(&sink, x, y, value);
}

// Samples of pixels from and to anywhere, some of which are not looked up.
static __global__ void __launch_bounds__(WARP *WARPS)
    copy_spared(const __grid_constant__ struct source source,
                const __grid_constant__ struct sink sink, struct spared spared, int most)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, y = blockIdx.y * WARPS + threadIdx.y;
    await_previous_kernel();
    if (x >= sink.width || y >= sink.height)
        return;
    int value[VEC4], made[VEC4];
    source_read(&source, x, y, value);
    for (int i = 0; i < VEC4; i++)
        made[i] = value[i];
    look_up_vec4(&sink.lookup, made);
    for (int i = 0; i < VEC4; i++)
        made[i] = spared.kept >> i & 1 ? value[i] : spared.filled >> i & 1 ? most : made[i];
    sink_store(&sink, x, y, made);
}

// One value everywhere: a thread writes four neighbours.
static __global__ void __launch_bounds__(WARP *WARPS)
    fill(int value, const __grid_constant__ struct sink sink)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, y = blockIdx.y * WARPS + threadIdx.y;
    await_previous_kernel();
    if (x >= sink.width || y >= sink.height)
        return;
    int values[VEC4] = {value, value, value, value};
    sink_put(&sink, x, y, values);
}

// ---- mix ----

// Along one axis: the source samples that make result sample i, and how many quarters the first and
// each of the others count.
struct quarters {
    int first, count;
    int of_first, of_others;
};

static __device__ inline struct quarters resampling(int i, int up, bool cosited)
{
    if (up < 0)
        return {i << -up, 1 << -up, 4 >> -up, 4 >> -up};
    int position = (8 * i - (cosited ? 0 : 4 * ((1 << up) - 1))) >> (up + 1);
    int rest = position & 3;
    return {position >> 2, rest ? 2 : 1, 4 - rest, rest};
}

// v_k of OP_MIX at result column x; `rows` are the quarters of its row.
static __device__ inline int resampled(const struct mix *mix, int k, int x, struct quarters rows)
{
    struct quarters columns = resampling(x, mix->up_x[k], mix->op.siting != SITING_CENTER);
    int sum = 0;
    for (int j = 0; j < rows.count; j++) {
        int y = extended_index(BORDER_REPLICATE, rows.first + j, mix->height[k]), row = 0;
        for (int i = 0; i < columns.count; i++) {
            int column = extended_index(BORDER_REPLICATE, columns.first + i, mix->width[k]);
            int weight = i ? columns.of_others : columns.of_first;
            row += weight * view_read(&mix->view[k], column, y);
        }
        sum += (j ? rows.of_others : rows.of_first) * row;
    }
    return sum;
}

// v_k of four neighbouring results.
static __device__ inline void resampled_vec4(const struct mix *mix, int k, int x, int y, int width,
                                             int value[VEC4])
{
    if (mix->up_x[k] == 0 && mix->up_y[k] == 0) {
        view_read_vec4(&mix->view[k], x, y, width, value);
        look_up_vec4(&mix->lookup[k], value);
        for (int i = 0; i < VEC4; i++)
            value[i] *= 16;
        return;
    }
    struct quarters rows = resampling(y, mix->up_y[k], mix->op.siting == SITING_TOP_LEFT);
    for (int i = 0; i < VEC4; i++)
        value[i] = resampled(mix, k, min(x + i, width - 1), rows);
}

// Four neighbouring results. Of every source their four samples are read if the grids are the same,
// else up to four samples (sixteen of a finer grid) for each; neighbours share them in the cache.
// Sums take 64 bits as OP_MIX demands.
static __device__ inline void mix_put(const struct mix *mix, const struct sink *sink, int x, int y)
{
    int64_t sum[VEC4];
    for (int i = 0; i < VEC4; i++)
        sum[i] = mix->op.offset + (1 << 19);
    int value[VEC4];
    for (int k = 0; k < mix->sources; k++) {
        resampled_vec4(mix, k, x, y, sink->width, value);
        for (int i = 0; i < VEC4; i++)
            sum[i] += (int64_t)mix->op.weight[k] * value[i];
    }
    for (int i = 0; i < VEC4; i++)
        value[i] = (int)min(max(sum[i] >> 20, (int64_t)mix->op.low), (int64_t)mix->op.high);
    sink_put(sink, x, y, value);
}

// A thread makes four neighbouring results.
static __global__ void __launch_bounds__(WARP *WARPS, 4)
    mix_any(const __grid_constant__ struct mix mix, const __grid_constant__ struct sink sink)
{
    int x = (blockIdx.x * WARP + threadIdx.x) * VEC4, y = blockIdx.y * WARPS + threadIdx.y;
    await_previous_kernel();
    if (x < sink.width && y < sink.height)
        mix_put(&mix, &sink, x, y);
}

// Three bytes of a pixel that are mixed, as the weights of all of its bytes.
struct packed {
    int weight[VEC4]; // Q20: times 16, as samples are Q4; 0 for a byte that is not mixed
    int before;       // bytes from the pixel's first to source 0
};

static __device__ inline int mix_limit(const struct op_mix *op, int sum)
{
    return min(max(sum >> 20, op->low), op->high);
}

static __device__ inline uint8_t lookup_byte(const struct lookup *lookup, const uint16_t *shared,
                                             int byte)
{
    return (uint8_t)lookup_word(lookup, shared, (uint32_t)byte);
}

// Four pixels of STEP bytes as four results.
template <int STEP>
static __device__ inline uint32_t mix_words(const struct mix *mix, const struct packed *packed,
                                            const uint32_t word[STEP])
{
    int value[VEC4];
    for (int i = 0; i < VEC4; i++) {
        int sum = (int)mix->op.offset + (1 << 19);
        for (int k = 0; k < STEP; k++)
            sum += packed->weight[k] *
                   (int)(word[(i * STEP + k) / 4] >> 8 * ((i * STEP + k) % 4) & 0xff);
        value[i] = mix_limit(&mix->op, sum);
    }
    vec4<uint8_t> made;
    vec4_set(&made, value);
    return made.word;
}

// Words side by side, by one load or store.
template <int WORDS> static __device__ inline void words_load(const uint8_t *at, uint32_t *word)
{
    if constexpr (WORDS == 4) {
        uint4 four = frame_load((const uint4 *)at);
        word[0] = four.x;
        word[1] = four.y;
        word[2] = four.z;
        word[3] = four.w;
    } else {
        word[0] = frame_load((const uint32_t *)at);
    }
}

template <int WORDS> static __device__ inline void words_store(uint8_t *at, const uint32_t *word)
{
    if constexpr (WORDS == 4)
        *(uint4 *)at = make_uint4(word[0], word[1], word[2], word[3]);
    else
        *(uint32_t *)at = word[0];
}

// Pixels of STEP bytes in, bytes out: a thread takes FOURS times four pixels of a row by loads of
// as many words, and of rows so many that all threads ask for as much before they need any.
template <int STEP, int FOURS>
static __global__ void __launch_bounds__(WARP *WARPS)
    mix_packed(const __grid_constant__ struct mix mix, const __grid_constant__ struct packed packed,
               const __grid_constant__ struct sink sink)
{
    constexpr int columns = VEC4 * FOURS, rows = COPY_ROWS / FOURS;
    __shared__ uint16_t before[256], shared[256];
    table_share(before, mix.lookup[0].table);
    table_share(shared, sink.lookup.table);
    __syncthreads();
    await_previous_kernel();
    int x = (blockIdx.x * WARP + threadIdx.x) * columns;
    int first = blockIdx.y * WARPS * rows + threadIdx.y;
    if (x + columns <= sink.width) {
        uint32_t from[rows][STEP * FOURS];
        for (int k = 0; k < rows; k++) {
            int y = min(first + k * WARPS, sink.height - 1);
            const uint8_t *at = view_at(&mix.view[0], x, y) - packed.before;
            for (int j = 0; j < STEP; j++)
                words_load<FOURS>(at + j * VEC4 * FOURS, &from[k][j * FOURS]);
        }
        for (int k = 0; k < rows && first + k * WARPS < sink.height; k++) {
            uint32_t made[FOURS];
            for (int j = 0; j < STEP * FOURS; j++)
                from[k][j] = lookup_word(&mix.lookup[0], before, from[k][j]);
            for (int n = 0; n < FOURS; n++)
                made[n] = lookup_word(&sink.lookup, shared,
                                      mix_words<STEP>(&mix, &packed, &from[k][n * STEP]));
            words_store<FOURS>(view_at(&sink.view[0], x, first + k * WARPS), made);
        }
    }
    if (last_columns(sink.width, columns, 1, &x))
#pragma unroll 1
        for (int y = first; y < min(first + WARPS * rows, sink.height); y += WARPS) {
            const uint8_t *pixel = view_at(&mix.view[0], x, y) - packed.before;
            int sum = (int)mix.op.offset + (1 << 19);
            for (int k = 0; k < STEP; k++)
                if (packed.weight[k]) // else it may be beside the pixel
                    sum += packed.weight[k] * (int)lookup_byte(&mix.lookup[0], before, pixel[k]);
            *view_at(&sink.view[0], x, y) =
                lookup_byte(&sink.lookup, shared, mix_limit(&mix.op, sum));
        }
}

// Planes of bytes in, bytes out, in the same way.
template <int FOURS>
static __global__ void __launch_bounds__(WARP *WARPS)
    mix_planes(const __grid_constant__ struct mix mix, const __grid_constant__ struct sink sink)
{
    constexpr int sources = 3, columns = VEC4 * FOURS, rows = COPY_ROWS / FOURS;
    __shared__ uint16_t before[256], shared[256];
    table_share(before, mix.lookup[0].table);
    table_share(shared, sink.lookup.table);
    __syncthreads();
    await_previous_kernel();
    int x = (blockIdx.x * WARP + threadIdx.x) * columns;
    int first = blockIdx.y * WARPS * rows + threadIdx.y;
    if (x + columns <= sink.width) {
        uint32_t from[rows][sources][FOURS] = {};
        for (int k = 0; k < rows; k++)
            for (int s = 0; s < sources && s < mix.sources; s++)
                words_load<FOURS>(view_at(&mix.view[s], x, min(first + k * WARPS, sink.height - 1)),
                                  from[k][s]);
        for (int k = 0; k < rows && first + k * WARPS < sink.height; k++) {
            uint32_t made[FOURS];
            for (int n = 0; n < FOURS; n++) {
                int sum[VEC4], value[VEC4];
                for (int i = 0; i < VEC4; i++)
                    sum[i] = (int)mix.op.offset + (1 << 19);
                for (int s = 0; s < sources && s < mix.sources; s++) {
                    vec4<uint8_t> units = {lookup_word(&mix.lookup[0], before, from[k][s][n])};
                    for (int i = 0; i < VEC4; i++)
                        sum[i] += 16 * mix.op.weight[s] * vec4_get(units, i);
                }
                for (int i = 0; i < VEC4; i++)
                    value[i] = mix_limit(&mix.op, sum[i]);
                vec4<uint8_t> four;
                vec4_set(&four, value);
                made[n] = lookup_word(&sink.lookup, shared, four.word);
            }
            words_store<FOURS>(view_at(&sink.view[0], x, first + k * WARPS), made);
        }
    }
    if (last_columns(sink.width, columns, 1, &x))
#pragma unroll 1
        for (int y = first; y < min(first + WARPS * rows, sink.height); y += WARPS) {
            int sum = (int)mix.op.offset + (1 << 19);
            for (int s = 0; s < sources && s < mix.sources; s++)
                sum += 16 * mix.op.weight[s] *
                       (int)lookup_byte(&mix.lookup[0], before, *view_at(&mix.view[s], x, y));
            *view_at(&sink.view[0], x, y) =
                lookup_byte(&sink.lookup, shared, mix_limit(&mix.op, sum));
        }
}

// ---- launchers ----

// Launch a kernel of this file. `frames_alone`: it reads no table, so its views are all it touches.
template <typename Kernel, typename... Arguments>
static void launch(bool frames_alone, Kernel kernel, dim3 grid, cudaStream_t stream,
                   const Arguments &...argument)
{
    kernel_launch_dependent(kernel, grid, block_shape(), 0, stream, argument...);
    if (frames_alone)
        recording_mark_frames_alone();
}

// True if copy_bytes() computes what it does not leave as it is.
static bool copies_without_table(const struct sink *sink)
{
    return !sink->lookup.table || sink->lookup.kind != LOOKUP_TABLE;
}

static bool mixes_without_table(const struct mix *mix, const struct sink *sink)
{
    bool none = !sink->lookup.table;
    for (int k = 0; k < mix->sources; k++)
        none = none && !mix->lookup[k].table;
    return none;
}

// True if `columns` samples side by side may be read or written at once.
static bool is_plain(const struct view *view, int columns)
{
    return view->plain && view_is_aligned(view, columns * view->bytes);
}

// Bytes of ones for bits.
static uint32_t word_of(unsigned bits)
{
    return 255u * ((bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21);
}

// Launches nothing, and says so, if source and sink are not of this kind.
template <typename From, typename To>
static bool copy_plain_async(const struct source *source, const struct sink *sink,
                             struct spared spared, cudaStream_t stream)
{
    bool bytes = sizeof(From) == 1 && sizeof(To) == 1;
    constexpr int columns = VEC4 * copy_vec4s<From, To>;
    if (source->view.bytes != sizeof(From) || sink->view[0].bytes != sizeof(To) ||
        sink->views > 1 || source->lookup.table || !is_plain(&source->view, columns) ||
        !is_plain(&sink->view[0], columns) || (!bytes && (spared.kept || spared.filled)))
        return false;
    dim3 grid =
        grid_shape(sink->width, sink->height, sink->frames, WARP * columns, WARPS * COPY_ROWS);
    if constexpr (sizeof(From) == 1 && sizeof(To) == 1) {
        const struct byte_copy copy = {.from = source->view,
                                       .to = sink->view[0],
                                       .lookup = sink->lookup,
                                       .width = sink->width,
                                       .height = sink->height,
                                       .kept = word_of(spared.kept),
                                       .filled = word_of(spared.filled)};
        launch(copies_without_table(sink), copy_bytes, grid, stream, copy);
    } else {
        launch(!sink->lookup.table, copy_plain<From, To>, grid, stream, *source, *sink);
    }
    return true;
}

static bool sink_is_valid(const struct sink *sink)
{
    return sink->views >= 1 && sink->views <= FORMAT_COMPONENTS && sink->frames >= 1 &&
           sink->frames <= FRAMES;
}

// ---- rows that follow each other ----

// How many rows of so many samples make up sixteens.
static int rows_of_sixteens(int width)
{
    int rows = 1;
    while (rows * width % 16)
        rows *= 2;
    return rows;
}

// True if rows of `width` samples, or of a sample of as many pixels, have nothing between them.
static bool is_seamless(const struct view *view, int width)
{
    return view->stride == width * view->step;
}

static void take_rows_as_one(struct view *view, int rows)
{
    view->stride *= rows;
    view->padded = false;
    view->adjacent = view_is_adjacent(view);
    view->plain = view->adjacent && !view->swapped && view->shift == 0;
}

// How many rows of a sink are best taken as one, where its sources are seamless: kernels take sixteens of
// rows that begin at such.
static int rows_as_one(const struct sink *sink)
{
    int rows = sink->width % 16 ? rows_of_sixteens(sink->width) : 1;
    return sink->views == 1 && is_seamless(&sink->view[0], sink->width) && sink->height % rows == 0
               ? rows
               : 1;
}

static void take_sink_rows_as_one(struct sink *sink, int rows)
{
    take_rows_as_one(&sink->view[0], rows);
    sink->width *= rows;
    sink->height /= rows;
}

static dim3 grid_of_vec4s(const struct sink *sink)
{
    return grid_shape(sink->width, sink->height, sink->frames, WARP * VEC4, WARPS);
}

static cudaError_t copy_async(const struct source *source, const struct sink *sink,
                              struct spared spared, cudaStream_t stream)
{
    if (copy_plain_async<uint8_t, uint8_t>(source, sink, spared, stream) ||
        copy_plain_async<uint8_t, uint16_t>(source, sink, spared, stream) ||
        copy_plain_async<uint16_t, uint8_t>(source, sink, spared, stream) ||
        copy_plain_async<uint16_t, uint16_t>(source, sink, spared, stream))
        return cudaGetLastError();
    if (spared.kept || spared.filled)
        launch(!sink->lookup.table, copy_spared, grid_of_vec4s(sink), stream, *source, *sink,
               spared, source->view.max);
    else
        launch(!source->lookup.table && !sink->lookup.table, copy_any, grid_of_vec4s(sink), stream,
               *source, *sink);
    return cudaGetLastError();
}

cudaError_t pointwise_copy_async(const struct source *source, const struct sink *sink,
                                 struct spared spared, cudaStream_t stream)
{
    assert(sink_is_valid(sink));
    int rows = rows_as_one(sink);
    if (rows == 1 || !is_seamless(&source->view, sink->width))
        return copy_async(source, sink, spared, stream);
    struct source from = *source;
    struct sink to = *sink;
    take_rows_as_one(&from.view, rows);
    from.width *= rows;
    from.height /= rows;
    take_sink_rows_as_one(&to, rows);
    return copy_async(&from, &to, spared, stream);
}

// Where source `k` of picture `n` is in pixels that begin at multiples of four bytes; -1: nowhere.
static int place_in_pixel(const struct mix *mix, int k, int n, int before)
{
    const uint8_t *pixel = mix->view[0].data[n] - before;
    ptrdiff_t place = mix->view[k].data[n] - pixel;
    return (uintptr_t)pixel % 4 == 0 && place >= 0 && place < mix->view[0].step ? (int)place : -1;
}

// True if all sources are bytes of one pixel, which lie alike in all pictures.
static bool pack(const struct mix *mix, int frames, struct packed *packed)
{
    const struct view *view = mix->view;
    int before =
        (int)((uintptr_t)view->data[0] % 4); // pixels of four bytes begin at such multiples
    if (view->step == 3)
        before =
            (int)(view->data[0] - std::min({view[0].data[0], view[1].data[0], view[2].data[0]}));
    *packed = {.before = before};
    for (int k = 0; k < mix->sources; k++) {
        int place = place_in_pixel(mix, k, 0, before);
        for (int n = 0; n < frames; n++)
            if (place < 0 || place_in_pixel(mix, k, n, before) != place)
                return false;
        packed->weight[place] += 16 * mix->op.weight[k];
    }
    return true;
}

static bool is_byte_view(const struct view *view, const struct view *like)
{
    return view->bytes == 1 && view->shift == 0 && view->step == like->step &&
           view->stride == like->stride;
}

// True if sums of bytes fit into 32 bits, and results into bytes.
static bool fits_bytes(const struct op_mix *op)
{
    int64_t most = llabs(op->offset) + (1 << 19);
    for (int weight : op->weight)
        most += (int64_t)abs(weight) * 16 * UINT8_MAX;
    return most <= INT32_MAX && op->low >= 0 && op->high <= UINT8_MAX;
}

// True if all sources have the result's grid and the lookup of the first.
static bool is_near(const struct mix *mix)
{
    bool near = true;
    for (int k = 0; k < mix->sources; k++)
        near = near && mix->up_x[k] == 0 && mix->up_y[k] == 0 &&
               mix->lookup[k].table == mix->lookup[0].table;
    return near;
}

static dim3 mix_grid(const struct sink *sink, bool wide)
{
    return wide ? grid_shape(sink->width, sink->height, sink->frames, WARP * VEC4 * 4, WARPS)
                : grid_shape(sink->width, sink->height, sink->frames, WARP * VEC4,
                             WARPS * COPY_ROWS);
}

// Launches nothing, and says so, if this is no mix of three bytes of each pixel.
static bool mix_packed_async(const struct mix *mix, const struct sink *sink, cudaStream_t stream)
{
    const struct view *view = mix->view;
    struct packed packed;
    bool alike = mix->sources == 3 && (view->step == 3 || view->step == 4) &&
                 view->stride % 4 == 0 && is_near(mix);
    for (int k = 0; k < 3 && alike; k++)
        alike = is_byte_view(&view[k], view);
    if (!alike || sink->views > 1 || sink->view[0].bytes != 1 || !is_plain(&sink->view[0], VEC4) ||
        !fits_bytes(&mix->op) || !pack(mix, sink->frames, &packed))
        return false;
    bool wide = view->stride % 16 == 0 && is_plain(&sink->view[0], 4 * VEC4);
    for (int n = 0; n < sink->frames; n++)
        wide = wide && (uintptr_t)(view->data[n] - packed.before) % 16 == 0;
    auto *kernel = view->step == 3 ? wide ? mix_packed<3, 4> : mix_packed<3, 1>
                   : wide ? mix_packed<4, 4>
                                   : mix_packed<4, 1>;
    launch(mixes_without_table(mix, sink), kernel, mix_grid(sink, wide), stream, *mix, packed,
           *sink);
    return true;
}

// Launches nothing, and says so, if this is no mix of planes of bytes.
static bool mix_planes_async(const struct mix *mix, const struct sink *sink, cudaStream_t stream)
{
    bool plain = sink->views == 1 && sink->view[0].bytes == 1 && is_plain(&sink->view[0], VEC4);
    bool wide = is_plain(&sink->view[0], 4 * VEC4);
    for (int k = 0; k < mix->sources; k++) {
        plain = plain && mix->view[k].bytes == 1 && is_plain(&mix->view[k], VEC4);
        wide = wide && is_plain(&mix->view[k], 4 * VEC4);
    }
    if (!plain || !is_near(mix) || !fits_bytes(&mix->op))
        return false;
    auto *kernel = wide ? mix_planes<4> : mix_planes<1>;
    launch(mixes_without_table(mix, sink), kernel, mix_grid(sink, wide), stream, *mix, *sink);
    return true;
}

static cudaError_t mix_async(const struct mix *mix, const struct sink *sink, cudaStream_t stream)
{
    if (!mix_packed_async(mix, sink, stream) && !mix_planes_async(mix, sink, stream))
        launch(mixes_without_table(mix, sink), mix_any, grid_of_vec4s(sink), stream, *mix, *sink);
    return cudaGetLastError();
}

cudaError_t pointwise_mix_async(const struct mix *mix, const struct sink *sink, cudaStream_t stream)
{
    assert(sink_is_valid(sink) && mix->sources >= 1 && mix->sources <= 3);
    int rows = is_near(mix) ? rows_as_one(sink) : 1;
    for (int k = 0; k < mix->sources; k++)
        rows = is_seamless(&mix->view[k], sink->width) ? rows : 1;
    if (rows == 1)
        return mix_async(mix, sink, stream);
    struct mix from = *mix;
    struct sink to = *sink;
    for (int k = 0; k < mix->sources; k++) {
        take_rows_as_one(&from.view[k], rows);
        from.width[k] *= rows;
        from.height[k] /= rows;
    }
    take_sink_rows_as_one(&to, rows);
    return mix_async(&from, &to, stream);
}

cudaError_t pointwise_fill_async(int value, const struct sink *sink, cudaStream_t stream)
{
    assert(sink_is_valid(sink));
    launch(!sink->lookup.table, fill, grid_of_vec4s(sink), stream, value, *sink);
    return cudaGetLastError();
}

cudaError_t pointwise_probe(int *version)
{
    struct cudaFuncAttributes attributes = {};
    cudaError_t error = cudaFuncGetAttributes(&attributes, copy_any);
    *version = attributes.ptxVersion;
    return error;
}

// ---- full frames ----

static struct view frame_view(const uint8_t *data, int stride, int depth)
{
    struct view view = view_plain((uint8_t *)data, 0, stride, depth > 8 ? 2 : 1);
    view.max = max_sample(depth);
    view.padded = false;
    return view;
}

cudaError_t pointwise_copy_frame_async(const struct full_frame *frame, cudaStream_t stream)
{
    const struct source source = {.view = frame_view(frame->from, frame->from_stride, frame->depth),
                                  .width = frame->width,
                                  .height = frame->height};
    const struct sink sink = {.view = {frame_view(frame->to, frame->to_stride, frame->depth)},
                              .views = 1,
                              .width = frame->width,
                              .height = frame->height,
                              .frames = 1};
    return pointwise_copy_async(&source, &sink, {}, stream);
}
