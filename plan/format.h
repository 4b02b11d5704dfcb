// How a picture lies in memory, and what its samples mean. Knows no library's list of formats:
// whoever reads pictures describes them in these terms.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model { MODEL_GRAY, MODEL_YUV, MODEL_RGB };
enum range { RANGE_FULL, RANGE_LIMITED };

// Where a chroma sample lies among the luma samples that it serves (ITU-T H.273, table 10).
enum siting { SITING_LEFT, SITING_CENTER, SITING_TOP_LEFT };

// Component numbers. Colours come first, alpha is always the fourth, whatever the model.
enum { COMPONENT_Y = 0, COMPONENT_CB = 1, COMPONENT_CR = 2 };
enum { COMPONENT_R = 0, COMPONENT_G = 1, COMPONENT_B = 2 };
enum { COMPONENT_ALPHA = 3, FORMAT_COMPONENTS = 4, FORMAT_PLANES = 4 };

// Where the samples of one component lie in its plane. A sample is `depth` bits (struct format)
// at bit `shift` of a unit of one or two bytes; what is written has zeros around it, what is read
// is not trusted to: see op.h.
struct component {
    int plane;
    int offset;      // bytes from the start of a row to the first unit
    int step;        // bytes from one unit to the next
    int bytes;       // size of a unit: 1 or 2
    int shift;       // bits below the sample
    bool big_endian; // of two-byte units
};

// A pixel format and the meaning of its samples. Plain data, copied at will.
struct format {
    enum model model;
    int depth;  // bits a sample, 8 to 16, the same for all components
    int planes; // 1 to 4
    bool alpha;
    bool filler;  // component[3] has a place in memory but no meaning (rgb0)
    int chroma_x; // log2 of luma columns per chroma column; 0 unless MODEL_YUV
    int chroma_y; // log2 of luma rows per chroma row
    struct component component[FORMAT_COMPONENTS];

    enum range range; // alpha is always full range
    double kr, kb;    // luma weights of R' and B' (H.273 table 4); of RGB: those for `gray`
    enum siting siting;
};

// A picture somewhere in memory. It points, it owns nothing. Strides are bytes and may be negative.
struct image {
    const struct format *format;
    int width, height; // of the full-resolution components
    uint8_t *data[FORMAT_PLANES];
    ptrdiff_t stride[FORMAT_PLANES];
};

// The number of colour components: 1 for gray, else 3. Alpha is not a colour.
int format_colors(const struct format *format);

// True if component `c` is Cb or Cr.
bool format_is_chroma(const struct format *format, int c);

// log2 of the columns (rows) of the picture that one sample of component `c` spans.
int format_shift_x(const struct format *format, int c);
int format_shift_y(const struct format *format, int c);

// True if component `c` (0 to 3) has samples in this format. A filler has none.
bool format_has(const struct format *format, int c);

// True if component `c` has a place in memory: for its samples, or as a filler.
bool format_stores(const struct format *format, int c);

// Bytes of one row of plane `p` in a picture of `width` columns, without padding.
size_t format_row_bytes(const struct format *format, int p, int width);

// Bytes of each row of plane `p` that belong to no sample, and complete the last of its packed groups:
// the second luma of the last pair of YUYV in a picture of an odd width. *offset is where they begin;
// 0: there are none. Who writes samples of the plane writes zeros there, so that its bytes follow
// from the picture alone; a plane that is passed on keeps what its maker left.
size_t format_gap(const struct format *format, int p, int width, size_t *offset);

// Rows of plane `p` in a picture of `height` rows.
int format_rows(const struct format *format, int p, int height);

// True if both describe the same bytes: equal storage, whatever the samples mean.
bool format_same_storage(const struct format *a, const struct format *b);

// A planar format with native-endian samples: the storage that needs no gathering. 8-bit samples
// take one byte, deeper ones the low bits of two. Range, weights and siting come from `meaning`.
struct format format_planar(enum model model, int depth, int chroma_x, int chroma_y, bool alpha,
                            const struct format *meaning);

// How plain samples of this depth lie: native-endian, side by side. Static.
const struct component *component_plain(int depth);

// True if units are the samples themselves, native-endian and side by side, of this depth.
bool component_is_plain(const struct component *component, int depth);

// True if units can hold more than a sample of this depth: yuv420p10's can, p010's cannot.
bool component_is_loose(const struct component *component, int depth);

// The largest sample of `depth` bits.
static inline int max_sample(int depth)
{
    return (1 << depth) - 1;
}

// Samples of a subsampled component along `length` columns or rows: rounded up.
static inline int subsampled(int length, int shift)
{
    return (length + (1 << shift) - 1) >> shift;
}

// The top field (parity 0: rows 0, 2, ...) or bottom field (parity 1) of `frame`, as a picture of
// half the height. Chroma rows of interlaced 4:2:0 alternate between the fields as luma rows do.
// Needs image_has_fields().
struct image image_field(const struct image *frame, int parity);

// True if the rows of every plane divide between two fields as luma rows do. A picture whose last
// chroma row belongs to both fields (4:2:0 of a height that four does not divide) is one picture.
bool image_has_fields(const struct image *frame);

// True if plane `p` holds samples above their depth, see op.h; limit these to the largest.
bool image_exceeds(const struct image *image, int p);
void image_limit_plane(const struct image *image, int p);

// The first byte in which two pictures differ.
struct image_difference {
    int plane, row;
    size_t byte; // of the row
    uint8_t got, want;
};

// True if two pictures of one format and size hold the same bytes; *first says where they do not.
// Planes that `got` has no data of are not compared.
bool image_compare(const struct image *got, const struct image *want,
                   struct image_difference *first);

// Write zeros into the gap of each row of plane `p`, see format_gap(); without data nothing.
void image_clear_gap(const struct image *image, int p);

// Write one value per component into every sample of plane `p` that a component has there, and zeros
// into its gap.
void image_fill_plane(const struct image *image, int p, const int value[FORMAT_COMPONENTS]);

// ---- what a sample's code value stands for ----

// The line between code values and a colour's value: 0 is black and 255 white for luma, R, G, B;
// -127.5 to 127.5 with 0 neutral for Cb and Cr; 0 to 255 for alpha. code = zero + value * scale.
struct levels {
    double scale;
    int zero;
    int low, high; // the nominal codes: of black and white, or of the strongest chroma
};

// The levels of component `c`, at this depth and range (ITU-R BT.601, BT.709, BT.2100).
struct levels format_levels(const struct format *format, int c);
