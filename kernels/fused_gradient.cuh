// A gradient behind a filter, on tensor cores: a warp's band of 16 filtered rows, turned over, is
// the right factor of the products down the columns, whose halves are at once the left factors of
// those along the rows. Inside the picture the factors on the other side are always the same; at an
// edge they count, for each sample that the border rule puts beyond it, the one that it stands for.
#pragma once

#include "kernels/fused.cuh"

#include <cuda_fp16.h>

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

// Eight by eight halves, turned over.
static __device__ inline uint32_t turned(uint32_t rows)
{
    uint32_t columns;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
    return columns;
}

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

// Of the samples with which a gradient smooths across its direction, and of those along it, in
// columns (rows) 2 (l % 4) .. of row (column) l / 4: as the left factor down, as the right one
// along. One product more reaches one sample further than eight each way: see fused_fragments().
struct slope_down {
    uint32_t smooth[4], slope[4];
};

struct slope_along {
    uint32_t smooth[2], slope[2];
};

enum { SLOPE_WORDS = 12 * LANES }; // slope_down, slope_along for all lanes, four words at a time

// The factors of one place as the border rule makes them: sample `from` and the next count towards
// result `to`.
static __device__ inline uint32_t weights_at(const struct small_gradient *g, bool smooth, int to,
                                             int from, int length)
{
    int sum[2] = {0};
#pragma unroll 1
    for (int d = -1; d <= 1 && (unsigned)to < (unsigned)length; d++) {
        int i = extended_index(g->border, to + d, length);
        int weight = !smooth ? d : d ? 1 : g->center;
        sum[0] += i == from ? weight : 0;
        sum[1] += i == from + 1 ? weight : 0;
    }
    return bits_of(__halves2half2(__int2half_rn(sum[0]), __int2half_rn(sum[1])));
}

// For a band whose first row is `y`.
static __device__ inline struct slope_down load_slope_down(const struct fused *f,
                                                           const uint32_t *fragments, int y)
{
    struct slope_down s;
    if (y >= 0 && y + BAND <= f->sink.height) {
        *(uint4 *)s.smooth = __ldg((const uint4 *)fragments + threadIdx.x);
        *(uint4 *)s.slope = __ldg((const uint4 *)fragments + LANES + threadIdx.x);
        return s;
    }
    int row = y + (int)threadIdx.x / 4, from = y + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        s.smooth[k] = weights_at(&f->gradient, true, row + k % 2 * 8, from + k / 2 * 8,
                                 f->sink.height);
        s.slope[k] = weights_at(&f->gradient, false, row + k % 2 * 8, from + k / 2 * 8,
                                f->sink.height);
    }
    return s;
}

static __device__ inline uint4 slope_along_at(const struct fused *f, int x)
{
    int column = x + (int)threadIdx.x / 4, from = x - 4 + (int)threadIdx.x % 4 * 2;
    const struct small_gradient *g = &f->gradient;
    int width = f->sink.width;
    return make_uint4(weights_at(g, true, column, from, width),
                      weights_at(g, true, column, from + 8, width),
                      weights_at(g, false, column, from, width),
                      weights_at(g, false, column, from + 8, width));
}

// Eight columns of results by eight, which of them differ: the first of the picture and its last.
struct slope_edges {
    uint4 inside;
    bool left;
    int right;
    uint4 *kept; // two for each lane
};

static __device__ inline struct slope_edges slope_edges_of(const struct fused *f,
                                                           const uint32_t *fragments, uint4 *kept,
                                                           int x)
{
    struct slope_edges edges;
    edges.inside = __ldg((const uint4 *)fragments + 2 * LANES + threadIdx.x);
    edges.left = x == 0;
    edges.right = (f->sink.width - 1 - x) / 8;
    edges.kept = kept + threadIdx.x;
    if (edges.left)
        edges.kept[0] = slope_along_at(f, x);
    if (edges.right < FUSED_COLUMNS / 8)
        edges.kept[LANES] = slope_along_at(f, x + edges.right * 8);
    return edges;
}

static __device__ inline struct slope_along slope_along_of(const struct slope_edges *edges, int n)
{
    uint4 w = edges->inside;
    if (n == 0 && edges->left)
        w = edges->kept[0];
    else if (n == edges->right)
        w = edges->kept[LANES];
    return {{w.x, w.y}, {w.z, w.w}};
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

// Of the lengths in two lanes, in their low bytes.
template <enum finish FINISH>
static __device__ inline uint32_t finished_lanes(const struct finisher *f, __half2 length)
{
    if (FINISH == FINISH_THRESHOLD)
        return (bits_of(length) & __hge2_mask(length, halves(f->low))) |
               __hge2_mask(length, halves(f->high));
    return bits_of(__hmin2(length, halves(f->limit))) + f->base;
}
