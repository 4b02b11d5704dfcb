#include "tests/conformance/formats.h"

#include "tests/conformance/random.h"

static struct format planar(enum model model, int depth, int chroma_x, int chroma_y, bool alpha,
                            enum range range)
{
    struct format meaning = {.range = range, .kr = 0.2126, .kb = 0.0722};
    return format_planar(model, depth, chroma_x, chroma_y, alpha, &meaning);
}

// Packed: components c at the given byte offsets of a pixel, -1 for none.
static struct format packed(enum model model, int bytes, int step, const int *offset, bool alpha)
{
    struct format format = {.model = model,
                            .depth = 8 * bytes,
                            .planes = 1,
                            .alpha = alpha,
                            .filler = !alpha && offset[3] >= 0,
                            .kr = 0.299,
                            .kb = 0.114};
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (offset[c] >= 0)
            format.component[c] =
                (struct component){.offset = offset[c], .step = step, .bytes = bytes};
    return format;
}

// Two pixels in four bytes: luma, and Cb and Cr of both, at these offsets.
static struct format packed_yuv(int luma, int cb, int cr)
{
    struct format format = planar(MODEL_YUV, 8, 1, 0, false, RANGE_LIMITED);
    format.planes = 1;
    format.component[0] = (struct component){.offset = luma, .step = 2, .bytes = 1};
    format.component[1] = (struct component){.offset = cb, .step = 4, .bytes = 1};
    format.component[2] = (struct component){.offset = cr, .step = 4, .bytes = 1};
    return format;
}

static struct format semi_planar(int depth, int shift)
{
    struct format format = planar(MODEL_YUV, depth, 1, 1, false, RANGE_LIMITED);
    int bytes = depth > 8 ? 2 : 1;
    format.planes = 2;
    for (int c = 0; c < 3; c++)
        format.component[c].shift = shift;
    for (int c = 1; c < 3; c++) {
        format.component[c].plane = 1;
        format.component[c].offset = (c - 1) * bytes;
        format.component[c].step = 2 * bytes;
    }
    return format;
}

// Rows of 16-bit samples whose high byte comes first.
static struct format big_endian(struct format format)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        format.component[c].big_endian = true;
    return format;
}

static struct format centered(struct format format)
{
    format.siting = SITING_CENTER;
    return format;
}

struct named_format test_format(int index)
{
    static const int rgb24[4] = {0, 1, 2, -1}, bgr24[4] = {2, 1, 0, -1}, bgra[4] = {2, 1, 0, 3},
                     rgb0[4] = {0, 1, 2, 3};
    static const int rgb48[4] = {0, 2, 4, -1}, rgba64[4] = {0, 2, 4, 6}, ya8[4] = {0, -1, -1, 1};
    static const int argb[4] = {1, 2, 3, 0}, ya16[4] = {0, -1, -1, 2};
    const enum range limited = RANGE_LIMITED, full = RANGE_FULL;
    const struct named_format formats[FORMATS] = {
        {"gray", planar(MODEL_GRAY, 8, 0, 0, false, full)},
        {"gray-limited", planar(MODEL_GRAY, 8, 0, 0, false, limited)},
        {"gray10", planar(MODEL_GRAY, 10, 0, 0, false, full)},
        {"gray16", planar(MODEL_GRAY, 16, 0, 0, false, full)},
        {"yuv420p", planar(MODEL_YUV, 8, 1, 1, false, limited)},
        {"yuvj422p", planar(MODEL_YUV, 8, 1, 0, false, full)},
        {"yuva444p", planar(MODEL_YUV, 8, 0, 0, true, limited)},
        {"yuv440p", planar(MODEL_YUV, 8, 0, 1, false, limited)},
        {"yuv411p", planar(MODEL_YUV, 8, 2, 0, false, limited)},
        {"yuv420p10", planar(MODEL_YUV, 10, 1, 1, false, limited)},
        {"yuva422p12", planar(MODEL_YUV, 12, 1, 0, true, limited)},
        {"yuv444p16-full", planar(MODEL_YUV, 16, 0, 0, false, full)},
        {"nv12", semi_planar(8, 0)},
        {"p010", semi_planar(10, 6)},
        {"yuyv422", packed_yuv(0, 1, 3)},
        {"uyvy422", packed_yuv(1, 0, 2)},
        {"rgb24", packed(MODEL_RGB, 1, 3, rgb24, false)},
        {"bgr24", packed(MODEL_RGB, 1, 3, bgr24, false)},
        {"bgra", packed(MODEL_RGB, 1, 4, bgra, true)},
        {"rgb0", packed(MODEL_RGB, 1, 4, rgb0, false)},
        {"rgb48be", big_endian(packed(MODEL_RGB, 2, 6, rgb48, false))},
        {"rgba64", packed(MODEL_RGB, 2, 8, rgba64, true)},
        {"ya8", packed(MODEL_GRAY, 1, 2, ya8, true)},
        {"ya16", packed(MODEL_GRAY, 2, 4, ya16, true)},
        {"argb", packed(MODEL_RGB, 1, 4, argb, true)},
        {"gbrp", planar(MODEL_RGB, 8, 0, 0, false, full)},
        {"gbrap10", planar(MODEL_RGB, 10, 0, 0, true, full)},
        {"yuvj420p-center", centered(planar(MODEL_YUV, 8, 1, 1, false, full))},
        {"yuv410p9", planar(MODEL_YUV, 9, 2, 2, false, limited)},
    };
    return formats[index];
}

struct named_format random_format(uint64_t *state)
{
    return test_format(random_below(state, FORMATS));
}
