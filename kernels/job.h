// What the executor tells the kernel families: where samples lie, what is looked up, how big it is.
//
//   pointwise   one sample from one place: gathers, tables, mixes, constants
//   separable   OP_SEPARABLE: tiles for a small radius, else the forms of kernels/separable.h
//   stencil3    OP_GRADIENT and OP_CONVOLVE
//   box         OP_BOX by running sums
//
// Everything here is plain data: pointers are to device memory unless they say otherwise. Every
// launcher returns before the GPU is done, needs the device to be current, allocates nothing and
// keeps no pointer to its arguments.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda_runtime_api.h>

// The C headers of stages/ know nothing of C++.
extern "C" {
#include "stages/op.h"
#include "stages/program.h"
}

// One component of a picture, or a plane of our own: sample (x, y) is in the unit at
// data + y * stride + x * step. Units of two bytes lie at even addresses.
struct view {
    uint8_t *data;
    int stride; // bytes, may be negative; 32 bits, as the GPU multiplies these best
    int step;
    int bytes;     // of a unit: 1 or 2
    int shift;     // bits below the sample
    bool swapped;  // the unit is big-endian
    bool adjacent; // units lie side by side, and each fourth one at a multiple of four units
    bool plain;    // adjacent, and a unit is the sample itself
};

// A plane that a kernel reads, as it appears to an operation: its samples through a table, extended
// beyond its edges.
struct source {
    struct view view;
    const uint16_t *table; // (optional) by the sample's value
    int width, height;
    enum border border;
    int border_value;
};

// Where results go, through a table: the same samples into each view.
struct sink {
    struct view view[FORMAT_COMPONENTS];
    int views;
    const uint16_t *table; // (optional) by the result's value
    int width, height;
};

// Sources of OP_MIX: sample grids 2^up times coarser than the result's (finer when negative).
struct mix {
    struct view view[3];
    int width[3], height[3];
    int up_x[3], up_y[3];
    int sources;
    struct op_mix op;
};

// A stencil on one plane. Source and sink are of equal size.
struct stencil {
    const struct op *op; // host memory; what it points at is in `constants`
    int depth;           // of the samples that the operation sees and makes
    struct source source;
    struct sink sink;
    // OP_SEPARABLE: tap_x, tap_y as 2 radius + 1 taps from first to last, with TAP_MARGIN zeros
    // before and behind them. OP_CONVOLVE: weight.
    const int32_t *constants[2];
    void *scratch; // as many bytes as the family's *_scratch() says, aligned to 256
};

enum { TAP_MARGIN = 8 };

// Whether `adjacent` holds.
static inline bool view_is_adjacent(const struct view *view)
{
    int four = 4 * view->bytes;
    return view->step == view->bytes && view->stride % four == 0 &&
           (uintptr_t)view->data % (uintptr_t)four == 0;
}

// A plane of ours, row by row at multiples of `stride` bytes; units of `bytes`.
static inline struct view view_plain(void *data, int stride, int bytes)
{
    struct view view = {.data = (uint8_t *)data, .stride = stride, .step = bytes, .bytes = bytes};
    view.plain = view.adjacent = view_is_adjacent(&view);
    return view;
}

// The stride of a scratch plane: fours of samples are aligned, the last one of a row is whole.
static inline int scratch_stride(int width, int bytes)
{
    return (width * bytes + 255) / 256 * 256;
}

static inline size_t scratch_bytes(int width, int height, int bytes)
{
    return (size_t)scratch_stride(width, bytes) * (size_t)height;
}

extern "C" {

// ---- pointwise ----

cudaError_t pointwise_copy_async(const struct source *source, const struct sink *sink,
                                 cudaStream_t stream);
cudaError_t pointwise_mix_async(const struct mix *mix, const struct sink *sink,
                                cudaStream_t stream);
cudaError_t pointwise_fill_async(int value, const struct sink *sink, cudaStream_t stream);

// Whether this build has code for the current device: cudaSuccess if so.
cudaError_t pointwise_probe(void);

// ---- stencils ----

size_t separable_scratch(const struct op *op, int width, int height);
cudaError_t separable_async(const struct stencil *stencil, cudaStream_t stream);

size_t box_scratch(const struct op *op, int width, int height);
cudaError_t box_async(const struct stencil *stencil, cudaStream_t stream);

cudaError_t gradient_async(const struct stencil *stencil, cudaStream_t stream);
cudaError_t convolve_async(const struct stencil *stencil, cudaStream_t stream);
}
