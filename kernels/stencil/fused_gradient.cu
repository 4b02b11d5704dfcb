// A gradient of 8-bit samples alone, in packed halves: see separable_mma_f16.cu for why that is
// exact.
#define DEPENDENT_LAUNCHES
#include "kernels/stencil/fused_gradient.cuh"

enum { HALF_BAND = BAND / 2, OWN = 8 }; // rows and columns of a thread

// The shape for fused.cuh: a block makes 64 rows, from one more on either side.
struct slope_shape {
    static constexpr int REACH = 0, LEFT = 16, BYTES = 1, above = 1;
    static constexpr int warps = 4, threads = WARP * warps, BLOCKS = 7;
    static constexpr int results = BAND * warps, each = BAND, rows = results + 2;
    static constexpr int columns = FUSED_COLUMNS + 2 * LEFT, chunk = 16, stride = columns;
    static constexpr bool GRADIENT = false;
    static constexpr int buffers = 2, samples_bytes = rows * stride, stage_bytes = 0;
    static constexpr size_t shared_bytes = buffers * samples_bytes;
};

// ---- device helpers ----

// Differences across, and weighted sums around, the eight samples of a row that a thread owns.
struct slopes {
    __half2 difference[4], smooth[4];
};

static __device__ inline struct slopes slopes_of(const uint8_t *row, __half2 center)
{
    uint2 words = *(const uint2 *)row;
    // The last sample before them in the upper lane, the first behind them in the lower.
    uint32_t around_them =
        __byte_perm(*(const uint32_t *)(row - 4), *(const uint32_t *)(row + 8), 0x4334) & 0xff00ff;
    struct pairs a = pairs_of(words.x), b = pairs_of(words.y);
    // Samples 2 k .. 2 k + 2 of each step: to the left, in the middle, to the right.
    uint32_t left_of_a = __byte_perm(around_them, a.odd, 0x5432);
    uint32_t middle_odd = __byte_perm(a.odd, b.odd, 0x5432);
    uint32_t middle_even = __byte_perm(a.even, b.even, 0x5432);
    uint32_t right_of_b = __byte_perm(b.even, around_them, 0x5432);
    const uint32_t left[4] = {left_of_a, a.even, middle_odd, b.even};
    const uint32_t middle[4] = {a.even, a.odd, b.even, b.odd};
    const uint32_t right[4] = {a.odd, middle_even, b.odd, right_of_b};
    struct slopes made;
    for (int k = 0; k < 4; k++) {
        made.difference[k] = __hsub2(halves(right[k]), halves(left[k]));
        made.smooth[k] =
            __hfma2(halves(middle[k]), center, __hadd2(halves(left[k]), halves(right[k])));
    }
    return made;
}

template <enum finish FINISH>
static __device__ inline uint32_t finished(const struct finisher *f, const struct lookup *lookup,
                                           __half2 even, __half2 odd)
{
    struct pairs p = {finished_lanes<FINISH == FINISH_THRESHOLD>(f, even),
                      finished_lanes<FINISH == FINISH_THRESHOLD>(f, odd)};
    return FINISH == FINISH_LOOKUP ? lookup_pairs(lookup, lookup->table, p) : pairs_word(p);
}

// Half a warp owns a row of 128 results, eight columns a thread, and walks down eight rows: of each
// it reads its own eight bytes and a word on either side. WHOLE: all eight columns exist.
template <enum finish FINISH, bool WHOLE>
static __device__ inline void walk(const struct fused *f, const uint8_t *samples, uint8_t *to,
                                   int columns, int rows)
{
    constexpr int stride = slope_shape::stride;
    int64_t step = f->sink.view[0].stride;
    __half2 center = __half2half2(__int2half_rn(f->gradient.center));
    struct finisher finisher = finisher_of(f);
    const struct lookup *lookup = &f->sink.lookup;
    struct slopes above = slopes_of(samples, center), here = slopes_of(samples + stride, center);
#pragma unroll(WHOLE &&FINISH != FINISH_LOOKUP ? HALF_BAND : 1)
    for (int k = 0; k < HALF_BAND; k++) {
        if (k >= rows)
            return;
        struct slopes below = slopes_of(samples + (k + 2) * stride, center);
        __half2 length[4];
        for (int i = 0; i < 4; i++) {
            __half2 gx = __hfma2(here.difference[i], center,
                                 __hadd2(above.difference[i], below.difference[i]));
            __half2 gy = __hsub2(below.smooth[i], above.smooth[i]);
            length[i] = __hadd2(__habs2(gx), __habs2(gy));
        }
        uint2 words = make_uint2(finished<FINISH>(&finisher, lookup, length[0], length[1]),
                                 finished<FINISH>(&finisher, lookup, length[2], length[3]));
        if (WHOLE)
            *(uint2 *)to = words;
        else
            store_bytes(to, columns, make_uint4(words.x, words.y, 0, 0));
        above = here;
        here = below;
        to += step;
    }
}

// `at`: the first row and column of a warp's results.
template <enum finish FINISH>
static __device__ inline void make_band(const struct fused *f, const uint8_t *samples,
                                        struct corner at)
{
    int column = threadIdx.x % 16 * OWN, row = threadIdx.x / 16 * HALF_BAND;
    int columns = f->sink.width - at.x - column, rows = f->sink.height - at.y - row;
    if (columns <= 0 || rows <= 0)
        return;
    samples += (threadIdx.y * BAND + row) * slope_shape::stride + slope_shape::LEFT + column;
    uint8_t *to = view_at(&f->sink.view[0], at.x + column, at.y + row);
    if (columns >= OWN)
        walk<FINISH, true>(f, samples, to, columns, rows);
    else
        walk<FINISH, false>(f, samples, to, columns, rows);
}

// ---- kernel ----

template <enum finish FINISH>
static __global__ void __launch_bounds__(slope_shape::threads, slope_shape::BLOCKS)
    small_gradient(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    make_tiles<slope_shape>(&f, (uint8_t *)memory,
                            [&](const uint8_t *samples, uint8_t *, struct corner results, bool) {
                                make_band<FINISH>(&f, samples, results);
                            });
}

// ---- launcher ----

cudaError_t small_gradient_async(const struct fused *f, cudaStream_t stream)
{
    switch (f->finish) {
    case FINISH_LIMIT:
        return launch_tiles<slope_shape>(small_gradient<FINISH_LIMIT>, f, stream);
    case FINISH_THRESHOLD:
        return launch_tiles<slope_shape>(small_gradient<FINISH_THRESHOLD>, f, stream);
    default:
        return launch_tiles<slope_shape>(small_gradient<FINISH_LOOKUP>, f, stream);
    }
}
