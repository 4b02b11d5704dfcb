// Gradients of bytes whose lengths are scaled, or roots, by products of bytes on tensor cores:
// see kernels/stencil/window.cuh. Both derivatives are sums of the same samples.
#define DEPENDENT_LAUNCHES
#include <assert.h>

#include "kernels/stencil/gradient.cuh"
#include "kernels/stencil/window.cuh"

enum { SIDE = 3, MOST_WEIGHT = 127, GRADIENT_REACH = 1 };

template <typename S, length_form FORM>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    gradient_mma_u8(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool) {
                      make_band<S, 2, 1>(&f, samples, stage, results, [&](const uint32_t sum[2]) {
                          return gradient_length<FORM>(&f.lengths, (int)sum[0], (int)sum[1]);
                      });
                  });
}

// ---- weights ----

static bool takes(const struct op_gradient *op, int depth)
{
    length_form form = length_form_of(op, depth);
    return depth == 8 && (form == LENGTH_SUM || form == LENGTH_ROOT) && op->side <= MOST_WEIGHT &&
           op->center <= MOST_WEIGHT;
}

size_t gradient_mma_u8_fragments(const struct op_gradient *op, int depth, uint32_t *to)
{
    const int32_t weight[2][SIDE][SIDE] = {
        {{-op->side, 0, op->side}, {-op->center, 0, op->center}, {-op->side, 0, op->side}},
        {{-op->side, -op->center, -op->side}, {0, 0, 0}, {op->side, op->center, op->side}}};
    int count = SIDE * 2 * WARP * 4;
    if (!takes(op, depth))
        return 0;
    for (int i = 0; to && i < count; i++) {
        int n = i / (4 * WARP);
        to[i] = window_word(weight[n % 2][n / 2], SIDE, GRADIENT_REACH, 0, i / 4 % WARP, i % 4, 1);
    }
    return (size_t)count;
}

// ---- launcher ----

template <typename S>
static cudaError_t launch(const struct fused *f, length_form form, cudaStream_t stream)
{
    static_assert(S::shared_bytes <= LEAST_SHARED_BYTES, "Turing has no more for a block");
    return form == LENGTH_SUM ? launch_tiles<S>(gradient_mma_u8<S, LENGTH_SUM>, f, stream)
                              : launch_tiles<S>(gradient_mma_u8<S, LENGTH_ROOT>, f, stream);
}

cudaError_t gradient_mma_u8_async(const struct stencil *stencil, cudaStream_t stream)
{
    const struct op_gradient *op = &stencil->op->gradient;
    assert(takes(op, stencil->depth));
    struct fused f = {.source = stencil->source,
                      .sink = stencil->sink,
                      .fragments = stencil->fragments[0],
                      .reach = GRADIENT_REACH,
                      .window = {SIDE, GRADIENT_REACH},
                      .lengths = lengths_of(op)};
    return launch<window_shape<SMALL_REACH, 1, 2, 1>>(&f, length_form_of(op, stencil->depth),
                                                      stream);
}
