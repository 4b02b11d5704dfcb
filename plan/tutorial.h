// The tutorial: filters in the steps of lessons, from plain C to a kernel that knows its GPU.
//
// Each step of the first computes the same, a Gaussian of radius 8 (17x17) on 8-bit samples with zeros beyond
// the edges, and mends one thing of the step before, as lessons on CUDA have taught it since
// V. Podlozhnyuk, "Image convolution with CUDA", NVIDIA (2007), the text beside the sample
// convolutionSeparable. `sluice bench --ladder` runs all of them on the user's machine and shows
// what each is worth there, and what sluice's own kernels are worth beside them. Nothing else uses
// this.
//
// Two references, both in integers. The separable steps are OP_SEPARABLE (plan/op.h) in its
// narrow form. Steps in two dimensions round once instead of twice and have one of their own, with
// weights of 24 bits, so that 32 bits hold every sum:
//
//   weight(a, b) = (tap[|a|] tap[|b|] + 2) >> 2     but at the centre, which takes the rest to 2^24
//   y(i, j)      = (sum_ab weight(a, b) x(i + a, j + b) + 2^23) >> 24             |a|, |b| <= 8
//
// which is within 1 code value of the first: the weights add an error of 289 / 2 * 255 / 2^24.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "plan/op.h"

enum { TUTORIAL_RADIUS = 8, TUTORIAL_TAPS = 2 * TUTORIAL_RADIUS + 1, TUTORIAL_SQUARE_BITS = 24 };

enum tutorial_step {
    // On the CPU, in plain C.
    TUTORIAL_PLAIN,  // separable
    TUTORIAL_SQUARE, // in two dimensions: the reference of these
    // On the GPU.
    TUTORIAL_NAIVE,     // in two dimensions, each sample from global memory
    TUTORIAL_SHARED,    // in two dimensions, samples from shared memory
    TUTORIAL_SEPARABLE, // two kernels, samples from shared memory
    TUTORIAL_UNROLLED,  // two kernels, coalesced, loops unrolled
    TUTORIAL_STEPS,
    // Of the edge filter, below; on the CPU and the GPU.
    TUTORIAL_EDGES,
};

// True if a step follows the second reference.
static inline bool tutorial_is_square(enum tutorial_step step)
{
    return step == TUTORIAL_SQUARE || step == TUTORIAL_NAIVE || step == TUTORIAL_SHARED;
}

// The filter that every step computes, as plain data: kernels get it by value. Taps lie from first
// to last.
struct tutorial_filter {
    uint32_t tap[TUTORIAL_TAPS];                   // of both axes
    uint32_t weight[TUTORIAL_TAPS][TUTORIAL_TAPS]; // of the second reference
    int column_shift, row_shift;                   // of the sums of OP_SEPARABLE
};

// `op` is a narrow OP_SEPARABLE with the same taps on both axes, of this radius or a smaller one.
void tutorial_filter_init(struct tutorial_filter *filter, const struct op_separable *op);

// The picture of the tutorial: the caller's memory. Strides are bytes, at least `width`, of sources
// in colour three times that; rows may begin anywhere. Sizes from 1x1 to 65535x65535.
struct tutorial_task {
    struct tutorial_filter filter;
    bool edges; // TUTORIAL_EDGES and no other step: the source is R, G, B side by side
    const uint8_t *source;
    uint8_t *target;
    ptrdiff_t source_stride, target_stride;
    int width, height;
};

// The steps of one device, ready for one picture. One thread at a time.
struct step_maker {
    // Filter the source into the target by one of the device's steps. Nothing but the target's
    // samples is written.
    enum status (*make)(struct step_maker *maker, enum tutorial_step step);

    // Filter the source `times` times, one after another, and return when the last is done. For
    // clocks: samples come from, and stay in, the memory of the device, and the target is as it
    // was or filtered. make() goes first.
    enum status (*repeat)(struct step_maker *maker, enum tutorial_step step, int times);

    // Free everything but the caller's memory.
    void (*destroy)(struct step_maker **maker);
};

static inline void step_maker_destroy(struct step_maker **maker)
{
    if (*maker)
        (*maker)->destroy(maker);
}

// The plain steps by `threads` threads, the caller's among them. *task is copied.
enum status step_maker_create_cpu(const struct tutorial_task *task, int threads,
                                  const struct log *log, struct step_maker **maker);

// The steps on the GPU of `backend`, which is backend_cuda_create()'s and must outlive the
// tutorial. *task is copied. STATUS_DEVICE in a build without CUDA.
struct backend;
enum status step_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker);

// ---- the edge filter ----

// TUTORIAL_EDGES is a stage after another, each a pass over memory, as an article that measures
// this filter has it: brightness, the mean of R, G and B, Sobel, two thresholds. Of 8-bit samples:
//
//   c'   = clamp(c + 30)                         c = R, G, B
//   gray = (R' + G' + B' + 1) / 3                rounded down
//   edge = min(|gx| + |gy|, 255)                 Sobel's 3x3, zeros beyond the edges
//   y    = 0 where edge < 60, 255 where edge > 200, else edge
//
// which is brightness=30,gray=mean,sobel=l1:border=zero,threshold=60:200.
enum { TUTORIAL_BRIGHTNESS = 30, TUTORIAL_LOW = 60, TUTORIAL_HIGH = 200 };

// Its step on the GPU, as step_maker_create_cuda(). The CPU's is step_maker_create_cpu()'s.
enum status edge_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker);

// ---- template matching ----

// The steps of template matching on the GPU, as articles on image matching by CUDA climb them: all
// three sums of a window for each place anew. A step makes the score map of OP_MATCH
// (plan/match.h), 8-bit, of one template without a mask whose sums fit 32 bits.
enum tutorial_match_step {
    TUTORIAL_MATCH_NAIVE, // a thread a place, samples from global memory
    TUTORIAL_MATCH_TILES, // blocks of 16x16 places, samples from shared memory
    TUTORIAL_MATCH_STEPS,
};

enum { TUTORIAL_MATCH_SIDE = 32 }; // of templates, at most

struct tutorial_match_task {
    const struct op_template *pattern;
    const uint8_t *source; // the caller's, as the target: rows without gaps
    uint8_t *target;
    int width, height;
};

// As struct step_maker.
struct tutorial_match;
enum status tutorial_match_make(struct tutorial_match *maker, enum tutorial_match_step step);
enum status tutorial_match_repeat(struct tutorial_match *maker, enum tutorial_match_step step,
                                  int times);
void tutorial_match_destroy(struct tutorial_match **maker);

// On the GPU of `backend`, which must outlive it. *task is copied, the template's samples, too.
// STATUS_DEVICE in a build without CUDA.
enum status tutorial_match_create(struct backend *backend, const struct tutorial_match_task *task,
                                  struct tutorial_match **maker);
