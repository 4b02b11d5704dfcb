// Operations on the full frame, by the CPU backend's threads.
//
// Such an operation is a sequence of phases. A phase is cut into bands, which several threads may
// make at once; the next phase begins when all bands are done.
#pragma once

#include "base/status.h"
#include "cpu/rows/rows.h"
#include "plan/op.h"

// The work of one frame. Samples take one byte up to 8 bits, two above; those of `from` may
// be above their depth, see op.h.
struct full_frame_work {
    const struct op *op;
    const void *from;
    ptrdiff_t from_stride; // bytes, may be negative
    void *to;              // as large as `from`; NULL: not wanted
    ptrdiff_t to_stride;
    int width, height;
    int depth;         // of the samples of `from`
    void *analysis;    // its analysis; NULL: not wanted
    const void *reads; // the analysis that it reads; NULL: none
    const struct row_kernels *rows;
};

// The memory that an operation works in, for one frame at a time.
struct full_frame {
    int phases;
    void (*run)(struct full_frame *full_frame, const struct full_frame_work *work, int phase,
                int band, int bands);
    void (*destroy)(struct full_frame **full_frame); // leaves NULL
    size_t memory;                                   // bytes that it holds, about
    enum status status; // of the last frame: STATUS_MEMORY or STATUS_OK
};

// The input of a constructor; all outlives the operation.
struct full_frame_request {
    const struct op *op;
    int width, height, depth; // of the source plane
    int bands;                // as many as run() is called with, at most
    const struct row_kernels *rows;
    const struct transform_library *transform_library; // of fft_choose(); NULL: none
};

// Make *full_frame ready for an operation: all memory is allocated here. STATUS_MEMORY is the only
// failure; *full_frame is NULL then.
enum status full_frame_create(const struct full_frame_request *request,
                              struct full_frame **full_frame);

static inline void full_frame_destroy(struct full_frame **full_frame)
{
    if (*full_frame)
        (*full_frame)->destroy(full_frame);
}

// The first row of a band, of rows that are cut into `bands`.
static inline int full_frame_band_row(int rows, int band, int bands)
{
    return (int)((long long)rows * band / bands);
}

// Copy row y of the source to the target, samples above their depth as op.h says.
void full_frame_copy_row(const struct full_frame_work *work, int y);

// The operations, which the list in full_frame.c names by kind: as full_frame_create().
typedef enum status full_frame_op(const struct full_frame_request *request,
                                  struct full_frame **full_frame);

full_frame_op statistics_create, wavelet_create, match_create, mark_create;
