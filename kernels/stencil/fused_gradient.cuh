// A gradient behind a filter, on tensor cores: a warp's band of 16 filtered rows, transposed, is
// the right factor of the products down the columns, whose halves are at once the left factors of
// those along the rows. Inside the picture the factors on the other side are always the same; at an
// edge they count, for each sample that the border rule puts beyond it, the one that it stands for.
#pragma once

#include <cuda_fp16.h>

#include "kernels/stencil/fused.cuh"

static __device__ inline __half2 halves(uint32_t bits)
{
    __half2 made;
    *(uint32_t *)&made = bits;
    return made;
}

static __device__ inline uint32_t bits_of(__half2 value)
{
    return *(uint32_t *)&value;
}

// ---- products ----

// sum (16 x 8) = a (16 x 16) b (16 x 8) in halves: two of row l / 4, two of row l / 4 + 8.
static __device__ inline void multiply_halves(uint32_t sum[2], const uint32_t a[4],
                                              const uint32_t b[2])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
        "{%8, %8};"
        : "=r"(sum[0]), "=r"(sum[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(0));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %5};"
        : "=r"(sum[0]), "=r"(sum[1])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(0));
    asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
        : "+r"(sum[0]), "+r"(sum[1])
        : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

// ---- weights ----

// Weights of a gradient: those that smooth across its direction, and those of the differences along
// it. Left factors go down, right ones along. Those along come twice, for products whose two times
// eight columns lie side by side in this order and in the other.
struct slope_down {
    uint32_t smooth[4], slope[4];
};

struct slope_along {
    uint32_t smooth[2], slope[2];
};

// A line of samples: how long, and what stands for those just beyond its ends, -1 for nothing.
struct line {
    int length, before, behind;
};

static __device__ inline struct line line_of(const struct small_gradient *g, int length)
{
    return {length, extended_index(g->border, -1, length),
            extended_index(g->border, length, length)};
}

// With what weight sample `from` counts towards result `to`.
static __device__ inline int weight_at(const struct small_gradient *g, bool smooth, int to,
                                       int from, const struct line *line)
{
    int d = from - to, weight = d == 0 ? smooth ? g->center : 0 : d == 1 || d == -1 ? d : 0;
    if ((unsigned)from >= (unsigned)line->length)
        return 0;
    weight = smooth ? abs(weight) : weight;
    weight += to == 0 && from == line->before ? smooth ? 1 : -1 : 0;
    weight += to == line->length - 1 && from == line->behind ? 1 : 0;
    return weight;
}

// Weights of `from` and the next row or column, as halves.
static __device__ inline uint32_t weights_at(const struct small_gradient *g, bool smooth, int to,
                                             int from, const struct line *line)
{
    return bits_of(__halves2half2(__int2half_rn(weight_at(g, smooth, to, from, line)),
                                  __int2half_rn(weight_at(g, smooth, to, from + 1, line))));
}

static __device__ inline void load_words(uint32_t to[4], const uint32_t *from)
{
    uint4 four = __ldg((const uint4 *)from + threadIdx.x);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

// For a band whose first row is `y`. `fragments` are gradient_fragments().
static __device__ inline struct slope_down slope_down_of(const struct fused *f,
                                                         const uint32_t *fragments, int y)
{
    struct slope_down s;
    if (y >= 0 && y + BAND <= f->sink.height) {
        load_words(s.smooth, fragments);
        load_words(s.slope, fragments + 4 * WARP);
        return s;
    }
    struct line line = line_of(&f->gradient, f->sink.height);
    int to = y + (int)threadIdx.x / 4, from = y + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        int row = to + k % 2 * 8, sample = from + k / 2 * 8;
        s.smooth[k] = weights_at(&f->gradient, true, row, sample, &line);
        s.slope[k] = weights_at(&f->gradient, false, row, sample, &line);
    }
    return s;
}

static __device__ inline struct slope_along slope_along_of(const uint32_t *fragments)
{
    uint32_t words[4];
    load_words(words, fragments + 8 * WARP);
    return {{words[0], words[1]}, {words[2], words[3]}};
}

static __device__ inline struct slope_along other_way(const struct slope_along *s)
{
    return {{s->smooth[1], s->smooth[0]}, {s->slope[1], s->slope[0]}};
}

// True if the picture begins or ends within the tile whose results begin at column `x`.
static __device__ inline bool has_sides(const struct fused *f, int x)
{
    return x == 0 || x + FUSED_COLUMNS >= f->sink.width;
}

// For the eight results from column `x` on: the same as everywhere but where the picture begins or
// ends. SIDES: it may do so.
template <bool SIDES>
static __device__ inline struct slope_along slope_along_at(const struct fused *f,
                                                           const struct slope_along *everywhere,
                                                           int x)
{
    int last = f->sink.width - 1;
    if (!SIDES || (x != 0 && (last < x || last >= x + 8)))
        return *everywhere;
    struct line line = line_of(&f->gradient, f->sink.width);
    int to = x + (int)threadIdx.x / 4, from = x - GRADIENT_OFFSET + (int)threadIdx.x % 4 * 2;
    struct slope_along s;
    for (int k = 0; k < 2; k++) {
        s.smooth[k] = weights_at(&f->gradient, true, to, from + 8 * k, &line);
        s.slope[k] = weights_at(&f->gradient, false, to, from + 8 * k, &line);
    }
    return s;
}

// ---- lengths of 8-bit gradients ----

struct finisher {
    uint32_t limit, base; // in both lanes
    uint32_t low, high;   // the least length that is kept, the least that becomes white
};

static __device__ inline struct finisher finisher_of(const struct fused *f)
{
    const struct lookup *lookup = &f->sink.lookup;
    struct finisher made = {both_lanes(f->gradient.limit), both_lanes(f->gradient.base),
                            both_lanes(lookup->low), both_lanes(lookup->high + 1)};
    // Worked out once: without this, the compiler does it again for every row.
    asm volatile("" : "+r"(made.limit), "+r"(made.base), "+r"(made.low), "+r"(made.high));
    return made;
}

// Results of the lengths in two lanes, in their low bytes.
template <bool THRESHOLD>
static __device__ inline uint32_t finished_lanes(const struct finisher *f, __half2 length)
{
    if (THRESHOLD)
        return (bits_of(length) & __hge2_mask(length, halves(f->low))) |
               __hge2_mask(length, halves(f->high));
    return bits_of(__hmin2(length, halves(f->limit))) + f->base;
}
