// Scores of small templates on the tensor cores of Hopper, which read both factors from shared
// memory on their own, while warps sum windows.
//
// Their instructions are those of sm_90a, which no other GPU has: there match_fused.cu serves, and
// code made here for others is none.
#include "kernels/full_frame/match_products.cuh"
#include "kernels/full_frame/match_windows.cuh"
#include "kernels/shared_memory.h"

enum {
    WARPS = 4,              // that multiply together
    BLOCK_ROWS = 64,        // rows of SPAN places each
    STRIP = 16,             // columns that lie together in shared memory, and results along a row
    OCT = 8,                // rows of results of one product: 16 columns x 8 rows for each sample
    SUMS = STRIP * OCT / 2, // a lane's results
    QUEUED = 2 * WARP,      // places of a warp that wait to be taken
};

// Parts of 16 columns that a template moved by up to 15 columns takes.
static __host__ __device__ constexpr int parts_of(int width)
{
    return (width + STRIP - 1 + STRIP - 1) / STRIP;
}

// ---- what lies in shared memory ----

// A place of a span that may be a match.
struct place {
    int where, products, samples, squares;
};

// A block's dynamic shared memory, in bytes:
//
//   tile    samples in strips of 16 columns: those of rows y, y + 8, y + 16, ... one above the
//           other. Eight such rows of 16 bytes are what tensor cores read together, and a row of
//           the template further down is the same a little further on. An odd number of rows
//           spreads strips over all banks.
//   taps    the template's rows, each moved by 0 .. 15 columns: 16 times 16 bytes for each part of
//           columns. Seven rows of zeros before them, and as many behind, which are those before
//           the next part
//   limbs   windows' sums of columns, for 64 rows of places in the tile's order
//   queue   places that wait to be taken, QUEUED of each warp
//   bits    a map of candidates
struct wgmma_layout {
    int octs;  // rows of a strip that lie one above the other
    int steps; // rows of samples that eight rows of places need; even
    int taps, limbs, queue, bits, bytes;
};

static __host__ __device__ constexpr int strips_of(int parts)
{
    return SPAN / STRIP + parts - 1;
}

// Words from one row of limbs to the next: an odd multiple of four, as in other tiles.
static __host__ __device__ constexpr int limb_stride(int parts)
{
    return strips_of(parts) / 2 * 8 + 4;
}

static __host__ __device__ inline struct wgmma_layout wgmma_layout_of(int height, int parts)
{
    struct wgmma_layout layout = {};
    layout.octs = (BLOCK_ROWS + height + OCT - 1) / OCT | 1;
    layout.steps = (height + OCT) / 2 * 2;
    layout.taps = OCT * strips_of(parts) * layout.octs * STRIP;
    layout.limbs = layout.taps + (parts * layout.steps + OCT - 1) * STRIP * STRIP;
    layout.queue = layout.limbs + LIMBS * BLOCK_ROWS * limb_stride(parts) * (int)sizeof(uint32_t);
    layout.bits = layout.queue + QUEUED * WARPS * (int)sizeof(struct place);
    layout.bytes = layout.bits + BLOCK_ROWS * SPAN / 8;
    return layout;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where 16 samples of a row begin.
template <int PARTS>
static __device__ inline int strip_at(const struct wgmma_layout *layout, int row, int strip)
{
    return ((row % OCT * strips_of(PARTS) + strip) * layout->octs + row / OCT) * STRIP;
}

static __device__ inline int thread_of_block(void)
{
    return threadIdx.y * WARP + threadIdx.x;
}

// Copy 16 bytes, begun.
static __device__ inline void copy_async(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

static __device__ inline void copies_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Pieces of 16 samples, one after another in a row, as far as these lie within the picture, begun,
// ...
template <int PARTS>
static __device__ inline void fill_pieces(const struct match *m, const struct wgmma_layout *layout,
                                          uint8_t *tile, int x, int y, int within)
{
    constexpr int strips = strips_of(PARTS);
    int rows = min(BLOCK_ROWS + m->pattern.height, m->height - y);
#pragma unroll 4
    for (int n = thread_of_block(); n < rows * strips; n += WARPS * WARP)
        if (n % strips < within)
            copy_async(tile + strip_at<PARTS>(layout, n / strips, n % strips),
                       m->from + (i64)(y + n / strips) * m->from_stride + x + n % strips * STRIP);
}

// ... and others by words.
template <int PARTS>
static __device__ inline void fill_rest(const struct match *m, const struct wgmma_layout *layout,
                                        uint8_t *tile, int x, int y, int within)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 3) == 0;
    int words = (strips_of(PARTS) - within) * (STRIP / 4);
    for (int n = thread_of_block(); n < words * (BLOCK_ROWS + m->pattern.height);
         n += WARPS * WARP) {
        int row = n / words, column = within * STRIP + n % words * 4;
        *(uint32_t *)(tile + strip_at<PARTS>(layout, row, column / STRIP) + column % STRIP) =
            read_vec4(m, aligned, x + column, y + row);
    }
}

template <int PARTS>
static __device__ inline void begin_strips(const struct match *m, const struct wgmma_layout *layout,
                                           uint8_t *tile, int x, int y)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 15) == 0;
    int within = aligned ? min((m->width - x) / STRIP, strips_of(PARTS)) : 0;
    if (within > 0)
        fill_pieces<PARTS>(m, layout, tile, x, y, within);
    if (within < strips_of(PARTS))
        fill_rest<PARTS>(m, layout, tile, x, y, within);
}

// A row of the template moved by g columns, so that sample k of part p meets tap 16 p + k - g: cut
// from the row's words, a piece a part.
template <int PARTS>
static __device__ inline void moved_taps(uint4 piece[PARTS], const struct match *m, int row, int g)
{
    uint32_t word[4 * PARTS + 1] = {};
    if (row >= 0 && row < m->pattern.height) {
        const int8_t *from = m->pattern.sample + (i64)row * m->pattern.stride + (STRIP - g) / 4 * 4;
        for (int k = 0; k < 4 * PARTS + 1; k++)
            word[k] = __ldg((const uint32_t *)from + k);
    }
    int shift = 8 * ((STRIP - g) % 4);
    for (int p = 0; p < PARTS; p++) {
        const uint32_t *w = word + 4 * p;
        piece[p] =
            make_uint4(__funnelshift_r(w[0], w[1], shift), __funnelshift_r(w[1], w[2], shift),
                       __funnelshift_r(w[2], w[3], shift), __funnelshift_r(w[3], w[4], shift));
    }
}

template <int PARTS>
static __device__ inline void fill_moved_taps(const struct match *m,
                                              const struct wgmma_layout *layout, uint4 *taps)
{
    int each = layout->steps * STRIP;
    for (int n = thread_of_block(); n < each; n += WARPS * WARP) {
        uint4 piece[PARTS];
        moved_taps<PARTS>(piece, m, n / STRIP - (OCT - 1), n % STRIP);
        for (int p = 0; p < PARTS; p++)
            taps[p * each + n] = piece[p];
    }
    if (thread_of_block() < (OCT - 1) * STRIP)
        taps[PARTS * each + thread_of_block()] = make_uint4(0, 0, 0, 0);
}

// ---- products ----

// A factor in shared memory: blocks of eight rows of 16 bytes one after another, `deep` bytes from
// the first 16 of a row to the second, `rows` bytes from eight rows to the next.
static __device__ inline uint64_t factor_of(uint32_t at, int deep, int rows)
{
    return (uint64_t)(at >> 4) | (uint64_t)(deep >> 4) << 16 | (uint64_t)(rows >> 4) << 32;
}

#define SUMS_8(s, k)                                                                      \
    "+r"((s)[k]), "+r"((s)[k + 1]), "+r"((s)[k + 2]), "+r"((s)[k + 3]), "+r"((s)[k + 4]), \
        "+r"((s)[k + 5]), "+r"((s)[k + 6]), "+r"((s)[k + 7])
#define SUMS_64(s)                                                                          \
    SUMS_8(s, 0), SUMS_8(s, 8), SUMS_8(s, 16), SUMS_8(s, 24), SUMS_8(s, 32), SUMS_8(s, 40), \
        SUMS_8(s, 48), SUMS_8(s, 56)

// sum = or += a b, begun: 64 rows of 32 samples, and 128 columns of 32 taps.
static __device__ inline void multiply_async(int sum[SUMS], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p;\n"
                 "}"
                 : SUMS_64(sum)
                 : "l"(a), "l"(b), "r"(add));
}

// Samples in shared memory become visible to tensor cores.
static __device__ inline void fence_factors(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ inline void products_begin(int sum[SUMS])
{
    asm volatile("wgmma.fence.sync.aligned;" : SUMS_64(sum)::"memory");
}

static __device__ inline void products_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ inline void products_wait(int sum[SUMS])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS_64(sum)::"memory");
}

// Products of a block's places, begun: 8 strips of eight rows, 8 apart, are the left factor, whose
// results are 16 neighbouring places of each of 8 rows. Those of row r take row j of the samples
// times row j - r of the template: taps of r = 7 .. 0 lie one after another, and move with j. An odd
// last part is taken of two rows at once.
template <int PARTS>
static __device__ inline void begin_products(int sum[SUMS], const struct wgmma_layout *layout,
                                             uint32_t tile, uint32_t taps)
{
    int strip = layout->octs * STRIP, row = strips_of(PARTS) * strip;
    int taps_row = STRIP * STRIP, part = layout->steps * taps_row;
#pragma unroll 1
    for (int j = 0; j < layout->steps; j += 2) {
        products_begin(sum);
        uint32_t a = tile + j % OCT * row + j / OCT * STRIP, b = taps + j * taps_row;
#pragma unroll
        for (int p = 0; p + 1 < PARTS; p += 2)
            for (int k = 0; k < 2; k++)
                multiply_async(sum, factor_of(a + k * row + p * strip, strip, strip),
                               factor_of(b + k * taps_row + p * part, part, taps_row / 2),
                               j + k + p);
        if (PARTS % 2)
            multiply_async(sum, factor_of(a + (PARTS - 1) * strip, row, strip),
                           factor_of(b + (PARTS - 1) * part, taps_row, taps_row / 2), 1);
        products_commit();
    }
}

// ---- windows' sums ----

// Rows of limbs: those that are eight apart lie one after another, as one product makes them.
template <int PARTS> static __device__ constexpr int limb_at(int limb, int row)
{
    return (limb * BLOCK_ROWS + row % OCT * (BLOCK_ROWS / OCT) + row / OCT) * limb_stride(PARTS);
}

// Sums as `struct columns` has them, but those of squares as floats more by 2^23, which are exact,
// and whose low bits are the sums: floats have units of their own.
struct sliding {
    uint32_t even, odd;
    float square[4];
};

static __device__ inline struct sliding sliding_of(const struct columns *c)
{
    struct sliding s = {c->even, c->odd};
    for (int k = 0; k < 4; k++)
        s.square[k] = __uint_as_float(0x4b000000 + c->square[k]);
    return s;
}

static __device__ inline float sample_of(uint32_t word, int k)
{
    return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7440 + k)) - 0x1p23f;
}

static __device__ inline void slide(struct sliding *s, uint32_t in, uint32_t out)
{
    s->even += __byte_perm(in, 0, 0x4240) - __byte_perm(out, 0, 0x4240);
    s->odd += __byte_perm(in, 0, 0x4341) - __byte_perm(out, 0, 0x4341);
    for (int k = 0; k < 4; k++) {
        float enters = sample_of(in, k), leaves = sample_of(out, k);
        s->square[k] = fmaf(-leaves, leaves, fmaf(enters, enters, s->square[k]));
    }
}

template <int PARTS>
static __device__ inline void store_limbs(uint32_t *to, int row, const struct sliding *s)
{
    struct columns sums = {s->even, s->odd};
    for (int k = 0; k < 4; k++)
        sums.square[k] = __float_as_uint(s->square[k]);
    uint32_t limb[LIMBS];
    limbs_of(limb, &sums);
    for (int k = 0; k < LIMBS; k++)
        to[limb_at<PARTS>(k, row)] = limb[k];
}

template <int PARTS>
static __device__ inline struct columns column_sums(const struct wgmma_layout *layout,
                                                    const uint8_t *column, int row, int height)
{
    struct columns sums = {};
    auto sample = [&](int j) {
        return *(const uint32_t *)(column + strip_at<PARTS>(layout, row + j, 0));
    };
    int j = 0;
#pragma unroll 2
    for (; j + 4 <= height; j += 4) {
        const uint32_t four[4] = {sample(j), sample(j + 1), sample(j + 2), sample(j + 3)};
        columns_add_vec4(&sums, four);
    }
    for (; j < height; j++)
        columns_add(&sums, sample(j));
    return sums;
}

// A thread goes down a word of columns, eight rows of places after another: what enters the window
// is added and what leaves is taken off.
template <int PARTS>
static __device__ inline void fill_limbs(const struct wgmma_layout *layout, const uint8_t *tile,
                                         uint32_t *limbs, int height)
{
    constexpr int words = strips_of(PARTS) * STRIP / 4, groups = WARPS * WARP / words;
    constexpr int each = (BLOCK_ROWS / OCT + groups - 1) / groups;
    int word = thread_of_block() % words, group = thread_of_block() / words;
    int apart = strips_of(PARTS) * layout->octs * STRIP;
    int end = min((group + 1) * each, BLOCK_ROWS / OCT);
    const uint8_t *column = tile + word / 4 * layout->octs * STRIP + word % 4 * 4;
    if (group >= groups)
        return;
    const struct columns first = column_sums<PARTS>(layout, column, group * each * OCT, height);
    struct sliding sums = sliding_of(&first);
#pragma unroll 1
    for (int oct = group * each; oct < end; oct++) {
        const uint8_t *out = column + oct * STRIP;
        const uint8_t *in = out + height % OCT * apart + height / OCT * STRIP;
#pragma unroll
        for (int k = 0; k < OCT; k++) {
            store_limbs<PARTS>(limbs + word + limb_at<PARTS>(0, OCT * oct), k, &sums);
            slide(&sums, *(const uint32_t *)in, *(const uint32_t *)out);
            out += apart;
            in += k + height % OCT == OCT - 1 ? STRIP - (OCT - 1) * apart : apart;
        }
    }
}

// Ones as right factors, which sum a window along the row, as load_band() has left ones: for each
// part and half of 16 results.
static __device__ inline uint32_t ones_of(int width, int part, int half)
{
    int before = 8 * half + threadIdx.x / 4 - STRIP * part - threadIdx.x % 4 * 4;
    int first = min(max(before, 0), 4), end = min(max(before + width, 0), 4);
    uint64_t ones = 0x01010101;
    return (uint32_t)(ones << 8 * first & ones >> 8 * (4 - end));
}

template <int PARTS> struct ones {
    uint32_t part[2][PARTS];
};

// sum += a b, of limbs and ones: 16 rows of 32 bytes, and 32 rows of 8 bytes.
static __device__ inline void multiply_limbs(int sum[4], const uint32_t a[4], uint32_t b0,
                                             uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A left factor from four blocks of eight rows of 16 bytes: eight lanes have the rows of one.
static __device__ inline void load_factor(uint32_t to[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

// Where a lane's row of a factor lies: in the first two blocks part p of one strip and of the next,
// in the others part p + 1, or another limb's part p.
struct factors {
    uint32_t pair, limbs;
};

template <int PARTS> static __device__ inline struct factors factors_of(uint32_t limbs)
{
    int block = threadIdx.x / 8, strip = threadIdx.y * 2 + block % 2, second = block / 2;
    uint32_t row = limbs + threadIdx.x % 8 * limb_stride(PARTS) * 4 + strip * STRIP;
    return {row + second * STRIP, row + second * (limb_at<PARTS>(1, 0) * 4) + (PARTS - 1) * STRIP};
}

// Sums over windows of row `row` of each eight rows of a warp's places, of both halves of 16
// columns. An odd last part is taken of two limbs at once.
template <int PARTS>
static __device__ inline void sum_windows(struct window_sums sums[2], const struct factors *from,
                                          const struct ones<PARTS> *ones, int row)
{
    sums[0] = sums[1] = {};
#pragma unroll
    for (int limb = 0; limb < LIMBS; limb++) {
        bool high = limb == SAMPLES_HIGH || limb == SQUARES_MIDDLE, alone = limb == SQUARES_HIGH;
        uint32_t a[4], at = 4 * limb_at<PARTS>(limb, row), times = high ? 64 : 1;
        int *to[2];
        for (int half = 0; half < 2; half++)
            to[half] = alone                  ? sums[half].squares_high
                       : limb <= SAMPLES_HIGH ? sums[half].samples
                                              : sums[half].squares;
#pragma unroll
        for (int p = 0; p + 1 < PARTS; p += 2) {
            load_factor(a, from->pair + at + p * STRIP);
            for (int half = 0; half < 2; half++)
                multiply_limbs(to[half], a, ones->part[half][p] * times,
                               ones->part[half][p + 1] * times);
        }
        if (PARTS % 2 && !high) {
            load_factor(a, alone ? from->pair + at + (PARTS - 1) * STRIP : from->limbs + at);
            for (int half = 0; half < 2; half++)
                multiply_limbs(to[half], a, ones->part[half][PARTS - 1],
                               alone ? 0 : ones->part[half][PARTS - 1] * 64);
        }
    }
}

// ---- scores ----

// Results 8 n .. 8 n + 7 of a lane, of row 7 - n of each eight rows: bit 2 n + half is set where a half
// has any that may be a match.
template <int PARTS>
static __device__ inline uint32_t test_places(const struct match *m, const struct factors *from,
                                              const struct ones<PARTS> *ones, const int sum[SUMS])
{
    uint32_t found = 0;
#pragma unroll
    for (int n = 0; n < OCT; n++) {
        if (n == OCT / 2)
            __syncwarp(); // registers for rows that are begun at once
        struct window_sums sums[2];
        sum_windows<PARTS>(sums, from, ones, OCT - 1 - n);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = 0;
#pragma unroll
            for (int k = 0; k < 4; k++)
                most = fmaxf(most, match_excess(&m->test, sum[8 * n + 4 * half + k],
                                                sums[half].samples[k], squares_of(&sums[half], k)));
            if (most > 0)
                found |= 1u << (2 * n + half);
        }
    }
    return found;
}

// A warp's places that wait until there are as many as lanes, so that all of these have one to take:
// it takes long, and where many places are candidates, each lane has one now and then.
struct queue {
    struct place *place;
    int count;
    int left, top;  // the span's place
    uint32_t *bits; // ... and its map
};

// Take the last `count` of those that wait.
static __device__ inline void queue_take(struct queue *q, const struct match *m, int count)
{
    __syncwarp();
    q->count -= count;
    if ((int)threadIdx.x < count) {
        struct place p = q->place[q->count + (int)threadIdx.x];
        int x = p.where % SPAN, y = p.where / SPAN;
        take_place<false>(m, q->left + x, q->top + y, p.products, p.samples, p.squares,
                          q->bits + y * (SPAN / 32));
    }
    __syncwarp();
}

static __device__ inline void queue_push(struct queue *q, const struct match *m, bool taken,
                                         struct place place)
{
    uint32_t lanes = __ballot_sync(~0u, taken);
    if (taken)
        q->place[q->count + __popc(lanes & ((1u << threadIdx.x) - 1))] = place;
    q->count += __popc(lanes);
    if (q->count >= WARP)
        queue_take(q, m, WARP);
}

// Results 8 n .. 8 n + 7, where n is not known before: registers have no index.
static __device__ inline void select_sums(int to[8], const int sum[SUMS], int n)
{
#pragma unroll
    for (int part = 0; part < OCT; part++)
        if (part == n)
            for (int k = 0; k < 8; k++)
                to[k] = sum[8 * part + k];
}

// Take what a warp has found, by code for one row of each eight that serves for all.
template <int PARTS>
static __device__ inline void take_found(const struct match *m, const struct factors *from,
                                         const struct ones<PARTS> *ones, const int sum[SUMS],
                                         uint32_t found, struct queue *queue)
{
    int first = threadIdx.x / 4 * OCT * SPAN + threadIdx.y * 2 * STRIP + 2 * (threadIdx.x % 4);
#pragma unroll 1
    for (int n = 0; n < OCT; n++, found >>= 2) {
        if (!__any_sync(~0u, (found & 3) != 0))
            continue;
        struct window_sums sums[2];
        int row = OCT - 1 - n, products[8] = {};
        sum_windows<PARTS>(sums, from, ones, row);
        select_sums(products, sum, n);
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const struct window_sums *s = &sums[k / 4];
            int where = first + row * SPAN + STRIP * (k % 4 / 2) + 8 * (k / 4) + k % 2;
            struct place place = {where, products[k], s->samples[k % 4], squares_of(s, k % 4)};
            bool taken = found >> k / 4 & 1 &&
                         match_excess(&m->test, place.products, place.samples, place.squares) > 0;
            queue_push(queue, m, taken, place);
        }
    }
    queue_take(queue, m, queue->count);
}

// The map of a block's candidates, for which there is room, is handed over and cleared.
static __device__ inline void hand_over(const struct match *m, int left, int top, uint32_t *bits)
{
    int row = thread_of_block();
    if (row >= BLOCK_ROWS)
        return;
    uint4 *from = (uint4 *)bits + row;
    if (top + row < m->rows)
        *(uint4 *)(m->bits + (i64)(top + row) * m->bit_words + left / 32) = *from;
    *from = make_uint4(0, 0, 0, 0);
}

#endif

// A block of four warps makes 64 rows of 128 places at a time, from one such span to another; a warp
// has two strips of them. While tensor cores multiply, all threads sum windows; while these are
// tested, samples of the next span are on their way.
template <int PARTS>
static __global__ void __launch_bounds__(WARPS *WARP, 2)
    match_wgmma(const __grid_constant__ struct match m)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ uint4 memory[];
    struct wgmma_layout layout = wgmma_layout_of(m.pattern.height, PARTS);
    uint8_t *tile = (uint8_t *)memory;
    uint32_t *limbs = (uint32_t *)(tile + layout.limbs), *bits = (uint32_t *)(tile + layout.bits);
    uint32_t at = (uint32_t)__cvta_generic_to_shared(tile);
    int across = (m.columns + SPAN - 1) / SPAN;
    int spans = across * ((m.rows + BLOCK_ROWS - 1) / BLOCK_ROWS);
    auto begin_span = [&](int span) {
        if (span < spans)
            begin_strips<PARTS>(&m, &layout, tile, span % across * SPAN,
                                span / across * BLOCK_ROWS);
    };
    begin_span(blockIdx.x);
    fill_moved_taps<PARTS>(&m, &layout, (uint4 *)(tile + layout.taps));
    if (thread_of_block() < BLOCK_ROWS)
        ((uint4 *)bits)[thread_of_block()] = make_uint4(0, 0, 0, 0);
    for (int span = blockIdx.x; span < spans; span += gridDim.x) {
        copies_wait();
        fence_factors();
        __syncthreads();
        int sum[SUMS];
        begin_products<PARTS>(sum, &layout, at, at + layout.taps);
        fill_limbs<PARTS>(&layout, tile, limbs, m.pattern.height);
        products_wait(sum);
        __syncthreads();
        begin_span(span + gridDim.x);
        int left = span % across * SPAN, top = span / across * BLOCK_ROWS;
        struct factors from = factors_of<PARTS>(at + layout.limbs);
        struct ones<PARTS> ones;
        for (int half = 0; half < 2; half++)
            for (int part = 0; part < PARTS; part++)
                ones.part[half][part] = ones_of(m.pattern.width, part, half);
        uint32_t found = test_places<PARTS>(&m, &from, &ones, sum);
        struct queue queue = {(struct place *)(tile + layout.queue) + threadIdx.y * QUEUED, 0, left,
                              top, bits};
        if (__any_sync(~0u, found != 0))
            take_found<PARTS>(&m, &from, &ones, sum, found, &queue);
        __syncthreads();
        hand_over(&m, left, top, bits);
    }
#else
    __trap();
#endif
}

// ---- launchers ----

// As many as there is room for on all of the GPU, two on a multiprocessor at most.
static int blocks_at_once(int bytes)
{
    int device = 0, count = 1, room = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    return room / (bytes + 1024) > 1 ? 2 * count : count; // CUDA takes 1024 for itself
}

template <int PARTS>
static cudaError_t wgmma_parts_async(const struct match *m, cudaStream_t stream)
{
    struct wgmma_layout layout = wgmma_layout_of(m->pattern.height, PARTS);
    auto *kernel = match_wgmma<PARTS>;
    cudaError_t error = shared_memory_allow((const void *)kernel, (size_t)layout.bytes);
    if (error)
        return error;
    dim3 spans = blocks_of(m->columns, m->rows, SPAN, BLOCK_ROWS);
    unsigned all = spans.x * spans.y, most = (unsigned)blocks_at_once(layout.bytes);
    dim3 grid(all < most ? all : most);
    kernel<<<grid, dim3(WARP, WARPS), (size_t)layout.bytes, stream>>>(*m);
    return cudaGetLastError();
}

cudaError_t match_wgmma_async(const struct match *m, cudaStream_t stream)
{
    switch (parts_of(m->pattern.width)) {
    case 1:
    case 2:
        return wgmma_parts_async<2>(m, stream);
    case 3:
        return wgmma_parts_async<3>(m, stream);
    default:
        return wgmma_parts_async<5>(m, stream);
    }
}

bool match_wgmma_runs(void)
{
#ifdef CUDA_BUILT_FOR_HOPPER
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    return major == 9 && minor == 0;
#else
    return false;
#endif
}
