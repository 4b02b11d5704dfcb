// Planes as the scalar reference of every operation sees them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "plan/op.h"
#include "base/status.h"

// One plane of the program, sample by sample, row by row without gaps.
struct plane {
    int width, height;
    uint16_t *sample;
};

static inline uint16_t *plane_at(const struct plane *plane, int x, int y)
{
    return &plane->sample[(size_t)y * (size_t)plane->width + (size_t)x];
}

// x(i, j) of the notation of plan/op.h: extended beyond the edges by the operation's border.
static inline int plane_extended(const struct plane *plane, const struct op *op, int x, int y)
{
    x = border_index(op->border, x, plane->width);
    y = border_index(op->border, y, plane->height);
    return x < 0 || y < 0 ? op->border_value : *plane_at(plane, x, y);
}

// An operation on the full frame. `from` and `to` are of equal size and do not overlap.
struct scalar_full_frame {
    const struct op *op;
    const struct plane *from;
    struct plane *to;
    int depth;         // of the samples of `from`
    void *analysis;    // its analysis, to be written
    const void *reads; // the analysis that it reads; NULL: none
};

// The references of these operations. STATUS_MEMORY is the only failure.
enum status statistics_scalar(const struct scalar_full_frame *work);
enum status wavelet_scalar(const struct scalar_full_frame *work);
enum status match_scalar(const struct scalar_full_frame *work);
enum status mark_scalar(const struct scalar_full_frame *work);
