// Stencils in one go, what their kernels share: shapes, samples on their way in, results on theirs
// out.
//
// A block makes 128 columns of some rows for each of its warps. The samples around them come into
// shared memory as they lie in memory, by copies that no thread waits for: while a block computes
// one tile, the samples of its next one are under way. Each warp then makes its band of rows by
// itself, 16 columns at a time, and stores them through a few rows of shared memory of its own. Where
// it pays the next tile lies to the right, so that a warp goes on along its rows with what it has.
//
// A filter along an axis is a product with a band matrix on tensor cores. Down the columns, taps
// times samples:
//
//   t (16 rows x 8 columns) = band (16 x K) samples (K x 8),      K = 16 + 2 REACH
//
// whose result, rounded and packed, is laid out among the lanes as the left factor of the product
// along the rows, t (16 x K) band (K x 8): that one needs no memory between. Cost does not grow
// with the radius but in steps. The numbers that go into one product may be permuted at will if
// both factors are: the order here is the one in which samples come from memory.
#pragma once

#include "kernels/shared_memory.h"
#include "kernels/stencil/fused.h"

#include "kernels/recording.cuh"
#include "kernels/stencil/products.cuh"

enum {
    BAND = 16,                     // rows of a product
    GROUP = 16,                    // columns of t made at once
    STAGE_BYTES = 128,             // of a row of results that a warp stores at once
    LEAST_SHARED_BYTES = 64 << 10, // that any GPU lets a block have
    GRADIENT_OFFSET = 4,           // columns from filtered samples to their gradient
};

// The products along the rows make two halves of each 16 columns, eight each, from groups first ..
// last, counted from the one where the filter begins. What a gradient needs begins earlier than its
// results: it then takes no more than two halves itself.
static __host__ __device__ constexpr int first_group(int reach, int left, bool gradient, int half)
{
    return (left - (gradient ? GRADIENT_OFFSET : 0) + 8 * half - reach) / GROUP;
}

static __host__ __device__ constexpr int last_group(int reach, int left, bool gradient, int half)
{
    return (left - (gradient ? GRADIENT_OFFSET : 0) + 8 * half + 7 + reach) / GROUP;
}

// REACH: how far above and below a result the products go, at least the radius. LEFT: as far to the
// left, from where groups of t are made. BYTES: of a sample. GRADIENT: one follows. WARPS: of a
// block. BLOCKS: that are to share a multiprocessor: as many as there are registers for. HIGH: how far
// products with the high bytes of taps go, which outer taps may not have.
template <int REACH_, int LEFT_, int BYTES_, bool GRADIENT_, int WARPS_, int BLOCKS_,
          int HIGH_ = REACH_>
struct shape {
    static constexpr int REACH = REACH_, LEFT = LEFT_, BYTES = BYTES_, HIGH = HIGH_;
    static constexpr bool GRADIENT = GRADIENT_;
    static constexpr int warps = WARPS_, threads = WARP * warps, BLOCKS = BLOCKS_;
    // Groups of the left half and of the right one.
    static constexpr int first_left = first_group(REACH, LEFT, GRADIENT, 0);
    static constexpr int first_right = first_group(REACH, LEFT, GRADIENT, 1);
    static constexpr int last_left = last_group(REACH, LEFT, GRADIENT, 0);
    static constexpr int last_right = last_group(REACH, LEFT, GRADIENT, 1);
    static constexpr int max_groups = last_right + 1; // of them in a product, or fewer
    // Whether two of them make one product of bytes.
    static constexpr bool pairs = !GRADIENT && REACH >= 16;
    // Groups that are made ahead: a gradient begins with the left half of the next 16 columns.
    static constexpr int ahead =
        GRADIENT && last_left + 1 > last_right ? last_left + 1 : last_right;
    static constexpr int made = FUSED_COLUMNS / GROUP; // pairs of halves
    // Columns whose t a warp keeps for the tile to the right. Of one group, which only samples of two
    // bytes have, it does not pay: it takes registers that another block would have.
    static constexpr int carried = ahead >= 2 ? ahead * GROUP : 0;
    // Tiles of a block, at most: the more the better where products bind, few where memory does.
    static constexpr int most = !carried ? 2 : GRADIENT ? 8 : REACH > 16 ? 64 : 3;
    // Matrices of eight rows that make the rows a band needs.
    static constexpr int matrices = (BAND + 2 * REACH) / 8;
    // Matrices at either end that no high byte of a tap falls on, and the others.
    static constexpr int outer = (REACH - HIGH) / 8, high_matrices = matrices - 2 * outer;
    static_assert(!outer || matrices % 2 == 0, "they are taken in pairs");
    // Rows of results that a warp makes: a gradient needs one more above and below.
    static constexpr int each = GRADIENT ? BAND - 2 : BAND, results = each * warps;
    static constexpr int rows = each * (warps - 1) + BAND + 2 * REACH;
    static constexpr int above = REACH + (GRADIENT ? 1 : 0);
    static constexpr int columns = (made + ahead) * GROUP;
    static constexpr int chunk = 16 / BYTES; // samples fetched at once
    // An odd number of 16 bytes, so that eight rows begin in different banks.
    static constexpr int stride = (columns * BYTES / 16 | 1) * 16;
    static constexpr int samples_bytes = rows * stride, stage_bytes = BAND * STAGE_BYTES;
    // Two tiles at once where that leaves room for all blocks, which take a KiB more each.
    static constexpr int max_bytes = 228 << 10, block_bytes = warps * stage_bytes + (1 << 10);
    static constexpr int buffers = (2 * samples_bytes + block_bytes) * BLOCKS <= max_bytes ? 2 : 1;
    static constexpr size_t shared_bytes = buffers * samples_bytes + warps * stage_bytes;
};

struct corner {
    int x, y;
};

static __device__ inline int thread_of_block(void)
{
    return threadIdx.y * WARP + threadIdx.x;
}

// ---- samples in ----

// How threads are dealt out to the chunks of a tile of S but for its first KNOWN columns: to whole
// rows of them, several rows at a time, so that each keeps its column.
template <typename S, int KNOWN> struct deal {
    static constexpr int chunks = (S::columns - KNOWN) / S::chunk;
    static constexpr int at_once = S::threads / chunks;
    static constexpr int turns = (S::rows + at_once - 1) / at_once;

    // A thread's column, and the row of its first chunk; threads left over have none.
    static __device__ int column()
    {
        return KNOWN + thread_of_block() % chunks * S::chunk;
    }
    static __device__ int row()
    {
        int row = thread_of_block() / chunks;
        return row < at_once ? row : S::rows;
    }
};

// Whether all samples of a tile lie within the picture.
template <typename S>
static __device__ inline bool is_inside(const struct fused *f, struct corner at)
{
    return at.x >= 0 && at.y >= 0 && at.x + S::columns <= f->source.width &&
           at.y + S::rows <= f->source.height;
}

// Send for a thread's chunks of a tile that lies within the picture.
template <typename S, int KNOWN>
static __device__ inline void fetch_inside(const struct fused *f, uint8_t *samples,
                                           struct corner at)
{
    using D = deal<S, KNOWN>;
    int first = D::row(), column = D::column();
    uint8_t *to = samples + first * S::stride + column * S::BYTES;
    const uint8_t *source = view_at(&f->source.view, at.x + column, at.y + first);
    int64_t step = (int64_t)f->source.view.stride * D::at_once;
    if (first == S::rows)
        return;
#pragma unroll
    for (int turn = 0; turn < D::turns; turn++) {
        if ((turn + 1) * D::at_once <= S::rows || first + turn * D::at_once < S::rows)
            copy_ahead(to + turn * D::at_once * S::stride, source);
        source += step;
    }
}

// Send for a thread's chunks of the tile at `at`, as far as they lie within the picture's columns.
// Where the tile follows its left neighbour its first KNOWN columns may be left out.
template <typename S, int KNOWN>
static __device__ inline void fetch(const struct fused *f, uint8_t *samples, struct corner at,
                                    bool follows)
{
    using D = deal<S, 0>;
    const struct source *from = &f->source;
    if (is_inside<S>(f, at)) {
        if (KNOWN && follows)
            fetch_inside<S, KNOWN>(f, samples, at);
        else
            fetch_inside<S, 0>(f, samples, at);
        return;
    }
    int first = D::row(), column = D::column(), x = at.x + column;
    uint8_t *to = samples + first * S::stride + column * S::BYTES;
    if (first == S::rows || x < 0 || x + S::chunk > from->width)
        return;
    uint32_t beyond = (uint32_t)from->border_value * (S::BYTES == 1 ? 0x1010101u : 0x10001u);
#pragma unroll 1
    for (int row = first; row < S::rows; row += D::at_once) {
        int y = extended_index(from->border, at.y + row, from->height);
        if (y >= 0)
            copy_ahead(to, view_at(&from->view, x, y));
        else
            *(uint4 *)to = make_uint4(beyond, beyond, beyond, beyond);
        to += D::at_once * S::stride;
    }
}

// Some words of samples through a lookup.
template <int BYTES, int WORDS>
static __device__ inline void words_lookup(const struct lookup *lookup, uint32_t word[WORDS])
{
    for (int k = 0; k < WORDS; k++)
        word[k] = BYTES == 1 ? lookup_word(lookup, lookup->table, word[k])
                             : (uint32_t)look_up_one(lookup, (int)(word[k] & 0xffff)) |
                                   (uint32_t)look_up_one(lookup, (int)(word[k] >> 16)) << 16;
}

// The samples of a tile through the lookup, when they are there; those that fetch() left out, too.
template <typename S>
static __device__ inline void look_up_samples(const struct fused *f, uint8_t *samples,
                                              struct corner at)
{
    using D = deal<S, 0>;
    const struct source *from = &f->source;
    int column = D::column(), x = at.x + column;
    if (x < 0 || x + S::chunk > from->width)
        return;
#pragma unroll 1
    for (int row = D::row(); row < S::rows; row += D::at_once) {
        uint32_t *words = (uint32_t *)(samples + row * S::stride + column * S::BYTES);
        bool beyond =
            from->border == BORDER_ZERO && (unsigned)(at.y + row) >= (unsigned)from->height;
        if (beyond)
            continue;
        if (S::BYTES == 2)
            limit_damage<4>(&from->view, words);
        words_lookup<S::BYTES, 4>(&from->lookup, words);
    }
}

// Columns beyond the picture's, as the border rule extends it, as far as they are needed; before
// them, those of the last chunk if it is not a whole one. One by one: this is the edge only.
template <typename S>
static __device__ void load_edges(const struct fused *f, uint8_t *samples, struct corner at)
{
    const struct source *from = &f->source;
    int left = max(-at.x - f->reach, 0), left_end = min(max(-at.x, left), S::columns);
    int right = max((from->width & -S::chunk) - at.x, left_end);
    int right_end = max(min(from->width + f->reach - at.x, S::columns), right);
    int count = left_end - left + right_end - right;
#pragma unroll 1
    for (int k = thread_of_block(); k < count * S::rows; k += S::threads) {
        int i = k / S::rows, row = k % S::rows;
        int column = i < left_end - left ? left + i : right + i - (left_end - left);
        int x = extended_index(from->border, at.x + column, from->width);
        int y = extended_index(from->border, at.y + row, from->height);
        int value = from->border_value;
        if (x >= 0 && y >= 0) {
            value = view_read(&from->view, x, y);
            if (from->lookup.table)
                value = look_up(from->lookup.table, value);
        }
        uint8_t *to = samples + row * S::stride;
        if (S::BYTES == 1)
            to[column] = (uint8_t)value;
        else
            ((uint16_t *)to)[column] = (uint16_t)value;
    }
}

// ---- bands ----

// All rows that a band needs, 16 bytes of each.
template <typename S>
static __device__ inline void load_band(uint32_t to[S::matrices + 1], uint32_t at)
{
#pragma unroll
    for (int m = 0; m < S::matrices; m += 4) {
        if (m + 2 < S::matrices)
            load_transposed(to + m, at + m * 8 * S::stride);
        else
            load_transposed_two(to + m, at + m * 8 * S::stride);
    }
}

// Where a lane reads the rows of its warp's band: those that a band of three matrices has no use
// for are others once more.
template <typename S> static __device__ inline uint32_t band_at(const uint8_t *samples)
{
    int row = threadIdx.x < 8 * S::matrices ? threadIdx.x : threadIdx.x - 8;
    return (uint32_t)__cvta_generic_to_shared(samples) + (threadIdx.y * S::each + row) * S::stride;
}

// floor(value * scale), in the low bits of 2^23 + it.
static __device__ inline uint32_t whole(float value, float scale)
{
    return __float_as_uint(__fmaf_rd(value, scale, 8388608.0f));
}

// ---- results out ----

// Bytes of a stretch that reaches across the right edge: seldom taken, so it is kept small.
static __device__ inline void store_bytes(uint8_t *to, int count, uint4 words)
{
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        to[i] = (uint8_t)words.x;
        words.x = __funnelshift_r(words.x, words.y, 8);
        words.y = __funnelshift_r(words.y, words.z, 8);
        words.z = __funnelshift_r(words.z, words.w, 8);
        words.w >>= 8;
    }
}

// The stage: results of a band, before a warp stores whole rows of STAGE_BYTES: sixteen bytes a
// lane, 128 bytes of each row side by side. The sixteens of a row are permuted by its number, so
// that eight rows of words, and the sixteens of one row, fall in different banks.
//
// Where a lane writes: word l % 4 of sixteen `n` of row l / 4, and of the one eight below.
static __device__ inline uint32_t *stage_word(uint8_t *stage, int n)
{
    int row = threadIdx.x / 4;
    return (uint32_t *)(stage + row * STAGE_BYTES + ((n ^ row) & 7) * 16) + threadIdx.x % 4;
}

// Store the stage, whose first row and column is the picture's at `at`. MIXED: words are two bytes
// of the left half of 16 columns and two of the right.
template <typename S, bool MIXED, bool LOOKUP>
static __device__ inline void store_stage(const struct fused *f, const uint8_t *stage,
                                          struct corner at)
{
    constexpr int unused = S::GRADIENT ? 1 : 0, rows = WARP * 16 / STAGE_BYTES;
    constexpr int whole = 16 / S::BYTES;
    int n = threadIdx.x % 8, first = threadIdx.x / 8, columns = f->sink.width - at.x - n * whole;
    int end = min(f->sink.height - at.y, BAND - unused);
    uint8_t *to = view_at(&f->sink.view[0], at.x + n * whole, at.y + first);
    int64_t step = (int64_t)f->sink.view[0].stride * rows;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BAND / rows; k++, to += step) {
        int row = k * rows + first;
        uint4 words = *(const uint4 *)(stage + row * STAGE_BYTES + ((n ^ row) & 7) * 16);
        if (MIXED)
            words = make_uint4(word_of(words.x, words.y), word_of(words.z, words.w),
                               __byte_perm(words.x, words.y, 0x7632),
                               __byte_perm(words.z, words.w, 0x7632));
        if (LOOKUP) {
            uint32_t word[4] = {words.x, words.y, words.z, words.w};
            words_lookup<S::BYTES, 4>(&f->sink.lookup, word);
            words = make_uint4(word[0], word[1], word[2], word[3]);
        }
        if (row < unused || row >= end)
            continue;
        if (columns >= whole)
            *(uint4 *)to = words;
        else if (columns > 0)
            store_bytes(to, columns * S::BYTES, words);
    }
    __syncwarp();
}

// ---- results of products of bytes ----

// A left half of 16 columns and a right one, from the groups that they are made of: two neighbours
// of row l / 4, two of row l / 4 + 8, as words of samples; of bytes, in the low two.
struct sixteen {
    uint32_t left[2], right[2];
};

// Put 16 columns, the i-th of a band, into the stage.
template <typename S>
static __device__ inline void put_sixteen(uint8_t *stage, int i, const struct sixteen *y)
{
    constexpr int below = 8 * STAGE_BYTES / 4;
    for (int k = 0; k < 2; k++)
        if (S::BYTES == 1) {
            stage_word(stage, i)[k * below] = word_of(y->left[k], y->right[k]);
        } else {
            stage_word(stage, 2 * i)[k * below] = y->left[k];
            stage_word(stage, 2 * i + 1)[k * below] = y->right[k];
        }
}

// The stage holds so many times 16 columns: after the last of them, store it.
template <typename S, bool MIXED>
static __device__ inline void store_if_full(const struct fused *f, const uint8_t *stage,
                                            struct corner results, int i)
{
    constexpr int holds = STAGE_BYTES / (GROUP * S::BYTES);
    struct corner at = {results.x + (i + 1 - holds) * GROUP, results.y};
    if ((i + 1) % holds != 0)
        return;
    if (f->sink.lookup.table && !(S::GRADIENT && f->finish == FINISH_THRESHOLD))
        store_stage<S, MIXED, true>(f, stage, at);
    else
        store_stage<S, MIXED, false>(f, stage, at);
}

// ---- tiles ----

// The tiles of a block: if it carries, neighbours in the order of rows of tiles; else far apart.
struct walk {
    int tile, end, step;
};

template <int KNOWN> static __device__ inline struct walk walk_of_block(const struct fused *f)
{
    int blocks = (int)gridDim.x, block = (int)blockIdx.x;
    if (!KNOWN)
        return {block, f->tiles, blocks};
    int each = f->tiles / blocks, more = f->tiles % blocks;
    int first = block * each + min(block, more);
    return {first, first + each + (block < more), 1};
}

template <typename S>
static __device__ inline struct corner results_of(const struct fused *f, int tile)
{
    return {tile % f->tiles_x * FUSED_COLUMNS, tile / f->tiles_x * S::results};
}

template <typename S> static __device__ inline struct corner samples_of(struct corner results)
{
    return {results.x - S::LEFT, results.y - S::above};
}

// All tiles of a block, once the previous kernel has ended. `make` makes the band of a warp from the
// samples at hand; `memory` is S::shared_bytes. Where a tile follows its left neighbour, `make` is
// told, and may not read the first KNOWN of its columns, which are stale; 0: none follows.
template <typename S, int KNOWN = 0, typename Make>
static __device__ inline void make_tiles(const struct fused *f, uint8_t *memory, const Make &make)
{
    uint8_t *samples = memory, *other = memory + (S::buffers - 1) * S::samples_bytes;
    uint8_t *band = other + S::samples_bytes + threadIdx.y * S::stage_bytes;
    struct walk walk = walk_of_block<KNOWN>(f);
    struct corner results = results_of<S>(f, walk.tile);
    bool follows = false;
    await_previous_kernel();
    fetch<S, KNOWN>(f, samples, samples_of<S>(results), follows);
    copies_commit();
#pragma unroll 1
    while (walk.tile < walk.end) {
        struct corner at = samples_of<S>(results);
        struct corner own = {results.x,
                             results.y + (int)threadIdx.y * S::each - (S::GRADIENT ? 1 : 0)};
        walk.tile += walk.step;
        results = results_of<S>(f, walk.tile);
        bool next_follows = KNOWN && results.x > 0;
        if (S::buffers == 2 && walk.tile < walk.end)
            fetch<S, KNOWN>(f, other, samples_of<S>(results), next_follows);
        copies_commit();
        copies_wait<S::buffers - 1>();
        if (f->source.lookup.table) {
            if (KNOWN)
                __syncthreads(); // other threads may have fetched a thread's chunks
            look_up_samples<S>(f, samples, at);
        }
        if (at.x < 0 || at.x + S::columns > f->source.width)
            load_edges<S>(f, samples, at);
        __syncthreads();
        if (own.y < f->sink.height)
            make(samples, band, own, follows);
        follows = next_follows;
        __syncthreads();
        if (S::buffers == 1 && walk.tile < walk.end)
            fetch<S, KNOWN>(f, samples, samples_of<S>(results), follows);
        uint8_t *swapped = samples;
        samples = other;
        other = swapped;
    }
}

// ---- launching ----

// A kernel may use so much shared memory only once that is allowed on a device. *processors: the
// device's multiprocessors.
template <typename Kernel>
static cudaError_t prepare(Kernel kernel, size_t shared_bytes, int *processors)
{
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(processors, cudaDevAttrMultiProcessorCount, device);
    return error ? error : shared_memory_allow((const void *)kernel, shared_bytes);
}

// Blocks are as many as the GPU has room for, but have no more than MOST tiles each: blocks that
// begin and end together leave it waiting for memory together.
template <typename S, int MOST = 2, typename Kernel>
static cudaError_t launch_tiles(Kernel kernel, const struct fused *f, cudaStream_t stream)
{
    dim3 tiles = grid_shape(f->sink.width, f->sink.height, 1, FUSED_COLUMNS, S::results);
    struct fused whole = *f;
    int processors = 1;
    whole.tiles_x = (int)tiles.x;
    whole.tiles = (int)(tiles.x * tiles.y);
    cudaError_t error = prepare(kernel, S::shared_bytes, &processors);
    if (error)
        return error;
    int room = processors * S::BLOCKS / f->sink.frames,
        min_blocks = (whole.tiles + MOST - 1) / MOST;
    int blocks = room < min_blocks ? min_blocks : room < whole.tiles ? room : whole.tiles;
    kernel_launch_dependent(kernel, dim3((unsigned)blocks, 1, (unsigned)f->sink.frames),
                            dim3(WARP, S::warps), S::shared_bytes, stream, whole);
    return cudaGetLastError();
}
