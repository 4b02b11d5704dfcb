// Shared by the parts of OP_MATCH (plan/match.h):
//
//   products   sums of samples times a template's, on tensor cores: bytes times signed bytes, exact
//              (match_products.cuh)
//   scores     where a template is small, in the same kernel, with the windows' sums made beside
//              (match_fused.cu; on Hopper match_wgmma.cu, but for a map); else from planes of sums,
//              some rows of the picture at a time (match_planes.cu)
//   matches    candidates are bits of a map, and scores where such a bit is set: those that are the
//              greatest around become a list, the best of it are kept, refined and handed over
//              (match.cu)
//
// Scores of a whole plane are stored only where the score map is asked for.
#pragma once

#include "kernels/launch.h"

enum {
    WARP = 32,
    SPAN = 128,         // columns that a warp makes ...
    ROWS = 32,          // ... and rows, but of narrow templates: rows_of()
    SLICE_ROWS = 16,    // of a template that are multiplied at a time ...
    SLICE_COLUMNS = 48, // ... and columns, 15 of which may be zeros: of 16 results, the last ones
                        // need as many more samples
    MATCH_FUSED_SIDE = 64, // of small templates: both sides at most
};

typedef long long i64;

// One template on the device: its samples less MATCH_BIAS, zeros where they do not count, in rows
// with 16 zeros before and as many behind as whole slices need; its mask alike.
struct pattern {
    const int8_t *sample, *mask; // mask: NULL: none
    int stride;                  // bytes from row to row
    int width, height, number;
    i64 count, sum;
    double norm;
};

// A test in single precision whether a place may be a match, which few places pass. With n, T, N and
// s the template's count, sum, norm and least score, P, S and Q the sums over the window of products,
// samples and squares,
//
//   D = P - S T / n,   B = (s N)^2 / n,   D |D| + B S^2 / n > B Q
//
// is what a score of at least s comes to. Roundings err by less than `slack` times Q, by which B Q is
// taken to be less: with A the sum of the template's squares, |P| and |S T / n| are at most
// sqrt(A Q), and D at most N sqrt(Q / n).
struct match_test {
    float mean;    // T / n
    float share;   // B / n
    float squares; // B - slack
};

// Arguments of the kernels for one template.
struct match {
    struct pattern pattern;
    const uint8_t *from;
    int from_stride;
    int width, height;
    int columns, rows; // places
    float min_score;
    struct match_test test;
    // Candidates: bit x of row y, in words, and their scores. Of a map all scores.
    uint32_t *bits;
    int bit_words; // of a row
    float *score;
    uint4 *list; // of matches, see list_entry() of match.cu
    int *listed;
};

// ---- helpers ----

// Slices of a template's columns, and of its rows.
static __host__ __device__ inline int steps_of(int width)
{
    return (width + 15 + SLICE_COLUMNS - 1) / SLICE_COLUMNS;
}

static __host__ __device__ inline int slices_of(int height)
{
    return (height + SLICE_ROWS - 1) / SLICE_ROWS;
}

// Blocks that make so many columns and rows, `across` x `down` each.
static inline dim3 blocks_of(int columns, int rows, int across, int down)
{
    return dim3((unsigned)((columns + across - 1) / across), (unsigned)((rows + down - 1) / down));
}

static __device__ inline float score_of(const struct pattern *p, i64 products, i64 samples,
                                        i64 squares)
{
    return match_score(p->count, p->sum, p->norm, products, samples, squares);
}

// Above 0 if the place of these sums may be a match.
static __device__ inline float match_excess(const struct match_test *test, int products,
                                            int samples, int squares)
{
    float s = (float)samples, difference = (float)products - s * test->mean;
    return difference * fabsf(difference) + s * test->share * s - test->squares * (float)squares;
}

static __device__ inline i64 warp_sum(i64 value)
{
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
        value += __shfl_xor_sync(~0u, value, lanes);
    return value;
}

// ---- from samples to candidates ----
//
// Both leave, for a template that has places, all of m->bits, in rows of whole spans, and the
// scores of candidates; with `map` those of all places.

// True if a template is one for match_fused_async(), which needs no memory of its own.
static inline bool match_is_small(const struct op_template *t)
{
    return !t->mask && t->width <= MATCH_FUSED_SIDE && t->height <= MATCH_FUSED_SIDE;
}

cudaError_t match_fused_async(const struct match *m, bool map, cudaStream_t stream);

// The same without a map, where match_wgmma_runs(): on Hopper, if the build is for it.
bool match_wgmma_runs(void);
cudaError_t match_wgmma_async(const struct match *m, cudaStream_t stream);

// For any template. `memory`, on the device and aligned to 256, has as many bytes as
// match_planes_scratch() says for the picture.
size_t match_planes_scratch(int width, int height);
cudaError_t match_planes_async(const struct match *m, bool map, void *memory, cudaStream_t stream);
