// Pixels into planes, for kernels that want a component's samples side by side at multiples of sixteen
// bytes, and planes into pixels.
//
// A thread takes the pixels that make sixteen bytes of each plane, a warp those of a row side by side.
// Pixels lie at any address: what is read there is the sixteens around them, shifted, and what is
// written are whole sixteens, put together from those of two lanes, but for the ends of a warp's stretch.
#include <assert.h>

#include "kernels/pixels.cuh"
#include "kernels/recording.cuh"

enum { SIXTEEN = 16, WORDS = SIXTEEN / 4 };

// ---- device helpers ----

static __device__ inline void sixteen_load(const void *at, uint32_t word[WORDS])
{
    uint4 four = __ldg((const uint4 *)at);
    word[0] = four.x;
    word[1] = four.y;
    word[2] = four.z;
    word[3] = four.w;
}

static __device__ inline void sixteen_store(void *at, const uint32_t word[WORDS])
{
    *(uint4 *)at = make_uint4(word[0], word[1], word[2], word[3]);
}

// The bytes from number `bytes` on, up to 15, of so many words and four more.
template <int COUNT>
static __device__ inline void words_shift(uint32_t word[COUNT + WORDS], int bytes)
{
    for (int k = 0; k < COUNT + 2; k++)
        word[k] = bytes & 8 ? word[k + 2] : word[k];
    for (int k = 0; k < COUNT + 1; k++)
        word[k] = bytes & 4 ? word[k + 1] : word[k];
    for (int k = 0; k < COUNT; k++)
        word[k] = __funnelshift_r(word[k], word[k + 1], 8 * (bytes & 3));
}

// Units of two bytes as samples, and samples as such units.
static __device__ inline uint32_t pair_of_units(const struct view *view, uint32_t pair)
{
    pair = view->swapped ? __byte_perm(pair, 0, 0x2301) : pair;
    pair = pair >> view->shift & (UINT16_MAX >> view->shift) * 0x10001u;
    return plain_pair(view, pair);
}

static __device__ inline uint32_t units_of_pair(const struct view *view, uint32_t pair)
{
    pair <<= view->shift;
    return view->swapped ? __byte_perm(pair, 0, 0x2301) : pair;
}

// ---- pixels to planes ----

// True if `bytes` at `at` are of a picture's rows, or between them.
static __device__ inline bool is_within(const struct pixels *p, const uint8_t *at, int bytes)
{
    const uint8_t *first = view_at(&p->row, 0, 0), *last = view_at(&p->row, 0, p->height - 1);
    const uint8_t *end = (first < last ? last : first) + p->width * p->samples * p->row.bytes;
    return at >= (first < last ? first : last) && at + bytes <= end;
}

// Lanes take what a thread cannot take by sixteens without leaving the picture's memory: sixteen bytes of
// planes at a time.
template <typename T, int SAMPLES>
static __device__ inline void split_by_lanes(const struct pixels *p, int x, int y, bool left)
{
#pragma unroll 1
    for (unsigned lanes = __ballot_sync(~0u, left); lanes; lanes &= lanes - 1) {
        int column = __shfl_sync(~0u, x, __ffs((int)lanes) - 1) + (int)threadIdx.x;
        if (threadIdx.x >= SIXTEEN / sizeof(T) || column >= p->width)
            continue;
        for (int k = 0; k < SAMPLES; k++)
            if (!(p->filled >> k & 1))
                *(T *)view_at(&p->plane[k], column, y) =
                    (T)view_read(&p->row, column * SAMPLES + k, y);
    }
}

template <typename T, int SAMPLES>
static __global__ void __launch_bounds__(WARP *WARPS) split(const __grid_constant__ struct pixels p)
{
    constexpr int columns = SIXTEEN / sizeof(T);
    int x = (blockIdx.x * WARP + threadIdx.x) * columns, y = blockIdx.y * WARPS + threadIdx.y;
    if (y >= p.height)
        return;
    const uint8_t *from = view_at(&p.row, x * SAMPLES, y);
    int shift = (int)((uintptr_t)from % SIXTEEN);
    from -= shift;
    bool whole = is_within(&p, from, SIXTEEN * (SAMPLES + (shift > 0)));
    if (x < p.width && whole) {
        uint32_t word[WORDS * (SAMPLES + 1)];
        for (int k = 0; k < SAMPLES; k++)
            sixteen_load(from + k * SIXTEEN, word + k * WORDS);
        if (shift > 0) {
            sixteen_load(from + SAMPLES * SIXTEEN, word + SAMPLES * WORDS);
            words_shift<WORDS * SAMPLES>(word, shift);
        }
        for (int k = 0; k < WORDS * SAMPLES && sizeof(T) == 2; k++)
            word[k] = pair_of_units(&p.row, word[k]);
        for (int k = 0; k < SAMPLES; k++) {
            uint32_t made[WORDS];
            for (int i = 0; i < WORDS; i++)
                made[i] = word_of_samples<T>(word, k + i * SAMPLES * columns / WORDS, SAMPLES);
            if (!(p.filled >> k & 1))
                sixteen_store(view_at(&p.plane[k], x, y), made);
        }
    }
    split_by_lanes<T, SAMPLES>(&p, x, y, x < p.width && !whole);
}

// ---- planes to pixels ----

// Bytes from <= k < to of sixteen at `at`.
static __device__ inline void store_sixteen(uint8_t *at, const uint32_t word[WORDS], int from,
                                            int to)
{
    if (from <= 0 && to >= SIXTEEN)
        sixteen_store(at, word);
    for (int i = 0; i < WORDS && to > 0 && (from > 0 || to < SIXTEEN); i++) {
        if (from <= 4 * i && to >= 4 * i + 4) {
            *(uint32_t *)(at + 4 * i) = word[i];
            continue;
        }
        for (int k = 4 * i; k < 4 * i + 4; k++)
            if (k >= from && k < to)
                at[k] = (uint8_t)(word[i] >> 8 * (k % 4));
    }
}

// Store the bytes 0 <= k < count of a lane's stretch of SIXTEENS, which begins at any address: sixteens of
// memory that end in it. The first bytes of such a sixteen are the lane's before; `last`: nobody is
// behind, so this one stores its end, too.
template <int SIXTEENS>
static __device__ inline void store_stretch(uint8_t *to, const uint32_t own[WORDS * SIXTEENS],
                                            int count, bool last)
{
    int shift = (int)((uintptr_t)to % SIXTEEN);
    if (shift == 0) {
        for (int k = 0; k < SIXTEENS; k++)
            store_sixteen(to + SIXTEEN * k, own + WORDS * k, 0, count - SIXTEEN * k);
        return;
    }
    uint32_t word[WORDS * (SIXTEENS + 2)] = {};
    for (int k = 0; k < WORDS; k++)
        word[k] = __shfl_up_sync(~0u, own[WORDS * (SIXTEENS - 1) + k], 1);
    for (int k = 0; k < WORDS * SIXTEENS; k++)
        word[WORDS + k] = own[k];
    words_shift<WORDS *(SIXTEENS + 1)>(word, SIXTEEN - shift);
    int first = threadIdx.x ? 0 : shift, end = last ? count + shift : SIXTEEN * SIXTEENS;
    for (int k = 0; k <= SIXTEENS && count > 0; k++)
        store_sixteen(to - shift + SIXTEEN * k, word + WORDS * k, first - SIXTEEN * k,
                      end - SIXTEEN * k);
}

template <typename T, int SAMPLES>
static __global__ void __launch_bounds__(WARP *WARPS) merge(const __grid_constant__ struct pixels p)
{
    constexpr int columns = SIXTEEN / sizeof(T);
    int x = (blockIdx.x * WARP + threadIdx.x) * columns, y = blockIdx.y * WARPS + threadIdx.y;
    if (y >= p.height)
        return;
    uint32_t plane[SAMPLES * WORDS] = {}, made[SAMPLES * WORDS];
    uint32_t most = sizeof(T) == 1 ? ~0u : (uint32_t)p.row.max * 0x10001u;
    for (int k = 0; k < SAMPLES; k++) {
        if (x < p.width && !(p.filled >> k & 1))
            sixteen_load(view_at(&p.plane[k], x, y), plane + k * WORDS);
        for (int i = 0; i < WORDS && p.filled >> k & 1; i++)
            plane[k * WORDS + i] = most;
    }
    for (int i = 0; i < SAMPLES * WORDS; i++) {
        uint32_t units = word_of_pixels<T, SAMPLES>(plane, WORDS, i);
        made[i] = sizeof(T) == 1 ? units : units_of_pair(&p.row, units);
    }
    int count = min(p.width - x, columns) * SAMPLES * (int)sizeof(T);
    store_stretch<SAMPLES>(view_at(&p.row, x * SAMPLES, y), made, count,
                           threadIdx.x == WARP - 1 || x + columns >= p.width);
}

// ---- launchers ----

static bool pixels_are_valid(const struct pixels *p)
{
    bool valid = p->samples >= 1 && p->samples <= FORMAT_COMPONENTS &&
                 p->row.step == p->row.bytes && p->frames >= 1 && p->frames <= FRAMES;
    for (int k = 0; k < p->samples; k++)
        valid = valid &&
                (p->filled >> k & 1 || (p->plane[k].plain && p->plane[k].bytes == p->row.bytes &&
                                        view_is_aligned(&p->plane[k], SIXTEEN)));
    return valid;
}

template <typename Kernel>
static cudaError_t launch(const struct pixels *p, Kernel *const kernel[2][FORMAT_COMPONENTS],
                          cudaStream_t stream)
{
    assert(pixels_are_valid(p));
    dim3 grid = grid_shape(p->width, p->height, p->frames, WARP * SIXTEEN / p->row.bytes, WARPS);
    kernel_launch(kernel[p->row.bytes - 1][p->samples - 1], grid, block_shape(), 0, stream, *p);
    return cudaGetLastError();
}

typedef void pixels_kernel(const struct pixels p);

cudaError_t pixels_split_async(const struct pixels *pixels, cudaStream_t stream)
{
    static pixels_kernel *const kernel[2][FORMAT_COMPONENTS] = {
        {split<uint8_t, 1>, split<uint8_t, 2>, split<uint8_t, 3>, split<uint8_t, 4>},
        {split<uint16_t, 1>, split<uint16_t, 2>, split<uint16_t, 3>, split<uint16_t, 4>}};
    return launch(pixels, kernel, stream);
}

cudaError_t pixels_merge_async(const struct pixels *pixels, cudaStream_t stream)
{
    static pixels_kernel *const kernel[2][FORMAT_COMPONENTS] = {
        {merge<uint8_t, 1>, merge<uint8_t, 2>, merge<uint8_t, 3>, merge<uint8_t, 4>},
        {merge<uint16_t, 1>, merge<uint16_t, 2>, merge<uint16_t, 3>, merge<uint16_t, 4>}};
    return launch(pixels, kernel, stream);
}
