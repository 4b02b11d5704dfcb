// Arguments of the kernel families' launchers: where samples lie, what is looked up, how big it is.
//
//   pointwise   one sample from one place: gathers, tables, mixes, constants
//   pixels      pixels into planes of their components, and back
//   fused       OP_SEPARABLE, OP_CONVOLVE and OP_GRADIENT on tensor cores or in packed halves
//   separable   OP_SEPARABLE: tiles for a small radius, else the forms of stencil/separable.h
//   gradient    OP_GRADIENT: on tensor cores, or tiles
//   convolve    OP_CONVOLVE: on tensor cores, a tile up to 15 x 15 in 32 bits, as lines, or any
//   transform   OP_CONVOLVE by Fourier transforms (kernels/stencil/transform.h)
//   box         OP_BOX by running sums
//   full_frame  operations that need all of a frame, each in a file of its own
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

// The C headers of plan/ know nothing of C++.
extern "C" {
#include "plan/op.h"
#include "plan/program.h"
}

// A launch works on up to FRAMES pictures that differ in their addresses only: picture k of a view
// begins at data[k], and blocks of blockIdx.z = k make it.
enum { FRAMES = 8 };

// One component of pictures, or planes of our own: sample (x, y) is in the unit at
// data[k] + y * stride + x * step. Units of two bytes lie at even addresses.
struct view {
    uint8_t *data[FRAMES];
    int stride; // bytes, may be negative; 32 bits, as the GPU multiplies these best
    int step;
    int bytes;     // of a unit: 1 or 2
    int shift;     // bits below the sample
    int max;       // the largest sample; units of two bytes may hold more, which reads as that
    bool swapped;  // the unit is big-endian
    bool adjacent; // units lie side by side, and each fourth one at a multiple of four units
    bool plain;    // adjacent, and a unit is the sample itself
    bool padded; // rows begin at multiples of sixteen bytes, and may be read and written up to the
                 // next one behind their end
};

// A pointwise step on the way into or out of an operation: its table, and the same by arithmetic,
// where some was found that gives each of its entries.
enum lookup_kind {
    LOOKUP_TABLE,
    LOOKUP_AFFINE, // clamp((x * gain + offset) >> 16, low, high) in 64 bits; of bytes to bytes in
                   // 32, and in 16 before clamping
    LOOKUP_THRESHOLD, // below if x < low, above if x > high, else x
};

struct lookup {
    const uint16_t *table; // by the sample's value; NULL: no step at all
    enum lookup_kind kind;
    int gain;
    int64_t offset;
    int low, high;
    int below, above;
};

// A plane that a kernel reads, as it appears to an operation: its samples through a table, extended
// beyond its edges.
struct source {
    struct view view;
    struct lookup lookup;
    int width, height;
    enum border border;
    int border_value;
};

// Where results go, through a table: the same samples into each view.
struct sink {
    struct view view[FORMAT_COMPONENTS];
    int views;
    struct lookup lookup;
    int width, height;
    int frames;
};

// Sources of OP_MIX: sample grids 2^up times coarser than the result's (finer when negative).
struct mix {
    struct view view[3];
    struct lookup lookup[3]; // of each; only where all grids are the result's
    int width[3], height[3];
    int up_x[3], up_y[3];
    int sources;
    struct op_mix op;
};

// A stencil on one plane. Source and sink are of equal size.
struct stencil {
    const struct op *op;   // host memory; what it points at is in `constants`
    const struct op *next; // (optional) another that follows at once: fused_async() only
    int depth;             // of the samples that the operations see and make
    struct source source;
    struct sink sink;
    // OP_SEPARABLE: tap_x, tap_y as 2 radius + 1 taps from first to last, with TAP_MARGIN zeros
    // before and behind them. OP_CONVOLVE: weight, or line_x, and line_y: rows with TAP_MARGIN
    // zeros behind each, except where convolve_fits_tile().
    const int32_t *constants[2];
    // OP_SEPARABLE: what fused_fragments() (kernels/stencil/fused.h) made of it alone, and with the
    // next; on a grid, what axis_mma_u8_fragments() (kernels/stencil/separable.h) made of tap_x and of
    // tap_y. OP_CONVOLVE: fused_convolve_fragments(). OP_GRADIENT:
    // gradient_mma_u8_fragments(). NULL if nothing.
    const uint32_t *fragments[2];
    void *scratch;               // as many bytes as struct op_kernels says, aligned to 256 ...
    ptrdiff_t scratch_step;      // ... for the first picture, and so far from it for the next
    struct transform *transform; // (optional) that of an OP_CONVOLVE, which then runs by it
};

// A full-frame operation on one frame. Source and result are of equal size.
struct full_frame {
    const struct op *op; // host memory
    int width, height;
    int depth;           // of the samples that it sees
    const uint8_t *from; // plain samples, of one byte up to 8 bits, two above: see op.h for those
                         // above their depth
    int from_stride;     // bytes, may be negative
    uint8_t *to;         // plain samples; NULL: not wanted
    int to_stride;       // bytes, may be negative
    void *analysis;      // its analysis; NULL: it has none
    bool analysis_is_wanted; // by somebody
    const void *reads;       // the analysis that it reads; NULL: none
    const void *constants;   // what its row made, see struct op_kernels
    void *scratch;           // as many bytes as its row says, aligned to 256
};

enum { TAP_MARGIN = 8 };

// True if rows of all pictures begin at multiples of `bytes`, a power of two.
static inline bool view_is_aligned(const struct view *view, int bytes)
{
    uintptr_t bits = (uintptr_t)view->stride;
    for (int k = 0; k < FRAMES; k++)
        bits |= (uintptr_t)view->data[k];
    return (bits & (uintptr_t)(bytes - 1)) == 0;
}

// True if `adjacent` holds.
static inline bool view_is_adjacent(const struct view *view)
{
    return view->step == view->bytes && view_is_aligned(view, 4 * view->bytes);
}

// Planes of ours, `frame_step` bytes apart, row by row at multiples of `stride` bytes, which is one of
// sixteen with room for all of a row's last sixteen; units of `bytes`.
static inline struct view view_plain(void *data, ptrdiff_t frame_step, int stride, int bytes)
{
    struct view view = {
        .stride = stride, .step = bytes, .bytes = bytes, .max = max_sample(8 * bytes)};
    for (int k = 0; k < FRAMES; k++)
        view.data[k] = (uint8_t *)data + k * frame_step;
    view.plain = view.adjacent = view_is_adjacent(&view);
    view.padded = view.plain && view_is_aligned(&view, 16);
    return view;
}

// The stride of a scratch plane: vec4s of samples are aligned, the last one of a row is whole.
static inline int scratch_stride(int width, int bytes)
{
    return (width * bytes + 255) / 256 * 256;
}

static inline size_t scratch_bytes(int width, int height, int bytes)
{
    return (size_t)scratch_stride(width, bytes) * (size_t)height;
}

extern "C" {

// ---- pixels ----

// Pictures of pixels, of some samples side by side each, and planes of these samples.
struct pixels {
    struct view row; // the samples of all of a row's pixels as one component: `step` is `bytes`
    // By a sample's place in its pixel: plain samples of as many bytes, rows at multiples of sixteen bytes,
    // which have room up to the next one.
    struct view plane[FORMAT_COMPONENTS];
    int samples;               // of a pixel
    unsigned filled;           // bit k: samples of place k have no plane: they have all bits
    int width, height, frames; // `width` in pixels
};

// Pixels to planes, samples above their depth as the largest; and planes, whose samples are not, to
// pixels, of which nothing else is written.
cudaError_t pixels_split_async(const struct pixels *pixels, cudaStream_t stream);
cudaError_t pixels_merge_async(const struct pixels *pixels, cudaStream_t stream);

// ---- pointwise ----

// Samples of every four of a row that a copy does not look up: bit k of `kept`: number k stays as it
// is; of `filled`: it has all bits.
struct spared {
    unsigned kept, filled;
};

cudaError_t pointwise_copy_async(const struct source *source, const struct sink *sink,
                                 struct spared spared, cudaStream_t stream);
cudaError_t pointwise_mix_async(const struct mix *mix, const struct sink *sink,
                                cudaStream_t stream);
cudaError_t pointwise_fill_async(int value, const struct sink *sink, cudaStream_t stream);

// The source of a full-frame operation as it is, but for samples above their depth.
cudaError_t pointwise_copy_frame_async(const struct full_frame *frame, cudaStream_t stream);

// The lookup by a table of 2^depth_in entries, which has a copy at `table` on the device.
struct lookup lookup_of(const uint16_t *host, int depth_in, int depth_out, const uint16_t *table);

// Whether this build has code for the current device: cudaSuccess if so, and *version is that of the
// PTX that it was made from, 90 for compute_90.
cudaError_t pointwise_probe(int *version);
}
