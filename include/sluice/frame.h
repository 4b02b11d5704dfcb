// Pictures in the caller's memory: how their samples lie, and where. (Since 1.1.)
#pragma once

#include "sluice/common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_PLANES = 4 };

// The matrix that made Y'CbCr of R'G'B', and weighs R'G'B' for gray (ITU-T H.273, table 4). Not
// known: BT.709 from 1280 columns or 577 rows on, else BT.601, as players guess it; for RGB BT.601.
enum sluice_matrix {
    SLUICE_MATRIX_UNKNOWN,
    SLUICE_MATRIX_BT709,
    SLUICE_MATRIX_BT601,
    SLUICE_MATRIX_FCC,
    SLUICE_MATRIX_SMPTE240M,
    SLUICE_MATRIX_BT2020,
};

// Where a chroma sample lies among the luma samples that it serves (ITU-T H.273, table 10).
enum sluice_siting { SLUICE_SITING_LEFT, SLUICE_SITING_CENTER, SLUICE_SITING_TOP_LEFT };

// The format of frames: size, samples and their meaning.
struct sluice_format {
    size_t size;
    const char *pixfmt; // FFmpeg's name: "gray", "yuv420p", "nv12", "p010le", "rgb24", "gbrp16le";
                        // sluice_format_name() lists them
    int width, height;  // of the full-resolution components
    enum sluice_range range;
    enum sluice_matrix matrix;
    enum sluice_siting siting;
};

// Name number `index` from 0 of the pixel formats that filters read and write; NULL past the last.
// Static. Any thread.
SLUICE_API const char *sluice_format_name(int index);

// Plane number `plane` of such a picture: the bytes of one row without padding, and rows.
// SLUICE_STATUS_END past the last plane, SLUICE_STATUS_USAGE for what is no format. Any thread.
SLUICE_API enum sluice_status sluice_format_plane(const struct sluice_format *format, int plane,
                                                  size_t *row_bytes, int *rows);

enum sluice_memory {
    SLUICE_MEMORY_HOST,
    SLUICE_MEMORY_DEVICE, // of the GPU that filters; managed and peer memory are refused
};

// A picture somewhere. It points, it owns nothing. Bytes of a row that are no sample's mean nothing. The
// last luma of packed 4:2:2 of odd width becomes zero where a chain makes samples of the picture, and
// what the input has where it passes them on; others become anything.
struct sluice_frame {
    size_t size;
    uint8_t *data[SLUICE_PLANES];    // of each plane; what is only read is not written to
    ptrdiff_t stride[SLUICE_PLANES]; // bytes from row to row; negative: the picture is upside down
    enum sluice_memory memory;       // of all planes
    bool interlaced;                 // the rows of two fields: stencils keep to theirs
    int64_t pts;                     // the caller's clock; rides along
    void *opaque;                    // the caller's; rides along
};

#ifdef __cplusplus
}
#endif
