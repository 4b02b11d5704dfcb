// Correlation with large kernels by Fourier transforms, exact: sums of products of integers, and
// what transforms in double precision err by is less than what rounding to the nearest forgives.
// cuFFT does the work, where it is installed: it is looked for when the program runs, and not
// needed to build it. Whether rounding is exact the caller has to know: of 8-bit samples and
// weights of 8 bits it is at any size, else op_convolve_transform_error() (plan/op.h) says.
//
// A plane is made tile by tile (overlap-save): a tile of samples is as large as the transform, its
// results are fewer by the kernel's side less 1. Some tiles at once go through all steps before the
// next begin:
//
//   samples, from the middle of their range, as doubles -> spectra, in place -> times the kernel's
//   -> sums, in place -> rounded, to whoever wants them
//
// Thread-safety: a struct transform is used by one thread at a time; what it enqueues on several
// streams may run at once, each with scratch memory of its own.
#pragma once

#include "kernels/launch.h"

extern "C" {
#include "base/log.h"
}

struct transform;

// How large transforms pay here. Which of these sizes makes a plane of the fewest samples is
// chosen.
static const struct transform_size transform_size = {.times = 8, .most = 2048};
static const struct transform_library transform_library = {
    .name = "cuFFT", .factor_error = 1, .products = 1};

// A kernel, and what it is for.
struct transform_request {
    const int32_t *weight; // host memory, row by row; looked at, never kept
    int width, height;
    int columns, rows; // results of a plane, at most
    int depth;         // of samples, at most 16
};

// One use of it: sums of planes of samples, extended beyond their edges by the source's border.
//
//   s(x, y) = sum of weight(i, j) * sample(x + i - origin_x, y + j - origin_y)
struct transform_task {
    struct source source;
    int origin_x, origin_y;
    int columns, rows; // sums that are wanted, at most the request's
    int frames;
    void *scratch; // transform_scratch() bytes, aligned to 256; the task's until it is done
};

// Where sums go: whole numbers, sum (x, y) of frame k at data + k * frame_step + y * stride + x
// * 8. Rows begin at multiples of 32 bytes, and there is room for columns in vec4s.
struct transform_sums {
    uint8_t *data;
    ptrdiff_t frame_step, stride;
};

extern "C" {

// True if there is a library to transform with: asked before anything else. Any thread.
bool transform_is_there(void);

// Prepare a kernel on the current device, and wait for it. STATUS_DEVICE if cuFFT or the device
// cannot: the log says why as a warning, and the caller does without. *transform is NULL then.
enum status transform_create(const struct transform_request *request, const struct log *log,
                             struct transform **transform);

// Free it; the device is current, nothing of it is under way. Leaves NULL, accepts it.
void transform_destroy(struct transform **transform);

// Bytes of scratch memory that each task needs.
size_t transform_scratch(const struct transform *transform);

// ---- launchers ----

// The sums themselves: what else is to become of them is up to the caller's kernels.
cudaError_t transform_sums_async(struct transform *transform, const struct transform_task *task,
                                 const struct transform_sums *to, cudaStream_t stream);

// OP_CONVOLVE, whose weights were the request's. `scratch` and the source are the stencil's.
cudaError_t transform_convolve_async(struct transform *transform, const struct stencil *stencil,
                                     cudaStream_t stream);
}
