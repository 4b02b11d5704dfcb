// Stencils of up to five columns and rows, without tables, on bytes where they lie: planes at any address,
// and all components of pixels in one go. Others go through planes (kernels/executor/stencils.h).
#pragma once

#include "kernels/launch.h"

// A stencil on pixels. `stencil`: source and sink are the samples of all of a row's pixels as one
// component, of bytes side by side; their widths are those of pixels.
struct compact_stencil {
    struct stencil stencil;
    int samples; // of a pixel
    unsigned kept,
        filled; // bit k: samples of place k stay as they are, or have all bits; at most the
                // last of pixels of two or four
};

// Whether compact_async() makes a stencil, of bytes side by side and into such, on pixels of which so many
// samples are spared: kept | filled.
bool compact_takes(const struct op *op, int samples, unsigned spared);
cudaError_t compact_async(const struct compact_stencil *compact, cudaStream_t stream);
