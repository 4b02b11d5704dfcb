// Convolutions of small kernels by products of bytes, every weight by itself. Tensor cores multiply
// bytes and add up in 32 bits: see kernels/stencil/window.cuh. Weights are up to three bytes.
#define DEPENDENT_LAUNCHES
#include <assert.h>
#include <stdlib.h>

#include "kernels/stencil/convolve.cuh"
#include "kernels/stencil/window.cuh"

// ---- the kernel ----

template <typename S, int PARTS>
static __global__ void __launch_bounds__(S::threads, S::BLOCKS)
    convolve_mma_u8(const __grid_constant__ struct fused f)
{
    extern __shared__ uint4 memory[];
    make_tiles<S>(&f, (uint8_t *)memory,
                  [&](const uint8_t *samples, uint8_t *stage, struct corner results, bool) {
                      make_band<S, 1, PARTS>(
                          &f, samples, stage, results,
                          [&](const uint32_t sum[1]) { return convolved(&f.end, sum[0]); });
                  });
}

// ---- weights ----

// How many bits below the lowest that any weight has.
static int spare_bits(const struct op_convolve *op)
{
    uint32_t all = 0;
    int bits = 0;
    for (int k = 0; k < op->width * op->height; k++)
        all |= (uint32_t)op->weight[k];
    while (bits < op->bits && !(all >> bits & 1))
        bits++;
    return bits;
}

// Bytes that hold the weights without their spare bits.
static int bytes_of_weights(const struct op_convolve *op)
{
    int bytes = 1, spare = spare_bits(op);
    for (int k = 0; k < op->width * op->height; k++)
        while (bytes < 4 && abs((op->weight[k] >> spare) + (op->weight[k] < 0)) >> (8 * bytes - 1))
            bytes++;
    return bytes;
}

struct choice convolve_mma_u8_choice(const struct op *op, int depth)
{
    const struct op_convolve *f = &op->convolve;
    int rows = op_radius_y(op);
    if (f->rank || op_radius_x(op) > WINDOW_REACH || rows > LARGE_REACH ||
        bytes_of_weights(f) > 3 || op_convolve_max(f, depth) > INT32_MAX)
        return {};
    return {rows > SMALL_REACH ? LARGE_REACH : SMALL_REACH, GROUP, depth > 8 ? 2 : 1, true};
}

size_t convolve_mma_u8_fragments(const struct op_convolve *op, struct choice choice, uint32_t *to)
{
    int bytes = bytes_of_weights(op), spare = spare_bits(op);
    size_t count = (size_t)(op->height * bytes) * WARP * 4;
    int32_t row[2 * WINDOW_REACH + 1];
    for (size_t i = 0; to && i < count; i++) {
        int lane = (int)(i / 4 % WARP), n = (int)(i / (4 * WARP));
        for (int k = 0; k < op->width && i % (4 * WARP) == 0; k++)
            row[k] = op->weight[n / bytes * op->width + k] >> spare;
        to[i] =
            window_word(row, op->width, op->origin_x, n % bytes, lane, (int)(i % 4), choice.bytes);
    }
    return count;
}

// ---- launchers ----

template <int REACH, int BYTES, int PARTS>
static cudaError_t launch_parts(const struct fused *f, cudaStream_t stream)
{
    using S = window_shape<REACH, BYTES, 1, PARTS>;
    static_assert(S::shared_bytes <= LEAST_SHARED_BYTES, "Turing has no more for a block");
    return launch_tiles<S>(convolve_mma_u8<S, PARTS>, f, stream);
}

template <int REACH, int BYTES>
static cudaError_t launch(const struct fused *f, int parts, cudaStream_t stream)
{
    return parts == 1   ? launch_parts<REACH, BYTES, 1>(f, stream)
           : parts == 2 ? launch_parts<REACH, BYTES, 2>(f, stream)
                        : launch_parts<REACH, BYTES, 3>(f, stream);
}

cudaError_t convolve_mma_u8_async(const struct fused *f, const struct op_convolve *op,
                                  struct choice choice, cudaStream_t stream)
{
    int bytes = bytes_of_weights(op), spare = spare_bits(op);
    struct fused window = *f;
    assert(choice.reach && bytes <= 3);
    window.window = {op->height, op->origin_y};
    window.end.bits -= spare;
    window.end.offset >>= spare;
    if (choice.bytes == 1)
        return choice.reach == SMALL_REACH ? launch<SMALL_REACH, 1>(&window, bytes, stream)
                                           : launch<LARGE_REACH, 1>(&window, bytes, stream);
    return choice.reach == SMALL_REACH ? launch<SMALL_REACH, 2>(&window, bytes, stream)
                                       : launch<LARGE_REACH, 2>(&window, bytes, stream);
}
