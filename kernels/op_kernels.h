// The table of operations on the GPU: one row for each kind (plan/op.h) that is more than a table
// of samples, with everything that the executor asks of it.
//
// The row of an operation stands in its .cu file, beside what it points to, and in the list of
// kernels/executor/op_table.cu. docs/first-operation.md adds one.
#pragma once

#include "kernels/constants.h"
#include "kernels/launch.h"

extern "C" {
#include "base/log.h"
}

// An operation as a plan has it, before there are frames.
struct op_use {
    const struct op *op;
    const struct op *next;       // (optional) the stencil that follows in the same pass
    int depth;                   // of the samples that it sees
    int width, height;           // of its plane
    struct transform *transform; // (optional) what prepare() made
};

// Where its constants lie on the device: what of these it does not have is NULL.
struct op_constants {
    const int32_t *weight[2];     // as struct stencil wants them
    const uint32_t *fragments[2]; // as well
    const void *full_frame;       // as struct full_frame does
};

struct op_kernels {
    enum op_kind kind;

    // (optional) Stencils for which the plan says `transform`: make that, on the current device.
    // STATUS_DEVICE where there is none, STATUS_MEMORY; *transform is NULL then.
    enum status (*prepare)(const struct op_use *use, const struct log *log,
                           struct transform **transform);

    // (optional) What it needs on the device besides samples, the same for all frames: taken from
    // `memory`, and written where that has host memory. `to` is zeroed.
    void (*constants)(const struct op_use *use, struct constants *memory, struct op_constants *to);

    // (optional) Bytes of scratch memory for one picture.
    size_t (*scratch)(const struct op_use *use);

    // (optional) Stencils: whether stencil_async() makes it and stencil->next in one go.
    bool (*fits)(const struct stencil *stencil);

    // Enqueue it: one of these, as it is a stencil or on the full frame.
    cudaError_t (*stencil_async)(const struct stencil *stencil, cudaStream_t stream);
    cudaError_t (*full_frame_async)(const struct full_frame *frame, cudaStream_t stream);

    // Whether the row puts nothing on the stream but by kernel_launch() (kernels/recording.cuh), its
    // transform left out: launches may then be recorded, and made later in one go.
    bool launches;
};

// The row of a stencil or a full-frame operation. Static.
const struct op_kernels *op_kernels(const struct op *op);

// The rows.
extern const struct op_kernels separable_kernels, box_kernels, convolve_kernels, gradient_kernels;
extern const struct op_kernels statistics_kernels, wavelet_kernels, match_kernels, mark_kernels;
