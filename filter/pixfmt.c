#include "filter/pixfmt.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SLUICE_SITING_CENTER == (int)SITING_CENTER &&
                   (int)SLUICE_SITING_TOP_LEFT == (int)SITING_TOP_LEFT,
               "sluice_siting mirrors siting");

// `order` has a letter for each unit of a group, as they lie in memory: Y U V, R G B, A, x for a
// filler; planes are apart by spaces. Components that come more often than others in a group are
// less subsampled.
struct row {
    const char *name, *order;
    uint8_t depth, shift; // bits of a sample, bits below it
    bool big_endian;
    uint8_t chroma_x, chroma_y;
};

#define BOTH(name, order, depth, shift, ...)              \
    {name "le", order, depth, shift, false, __VA_ARGS__}, \
    {                                                     \
        name "be", order, depth, shift, true, __VA_ARGS__ \
    }
#define DEEP(name, depth, order, ...) BOTH(name #depth, order, depth, 0, __VA_ARGS__)
#define BYTES(name, order, ...)               \
    {                                         \
        name, order, 8, 0, false, __VA_ARGS__ \
    }
#define HIGH(name, depth, order, ...) BOTH(name #depth, order, depth, 16 - depth, __VA_ARGS__)

// Where several formats have one storage, results have the first.
static const struct row rows[] = {
    BYTES("gray", "Y"),
    DEEP("gray", 9, "Y"),
    DEEP("gray", 10, "Y"),
    DEEP("gray", 12, "Y"),
    DEEP("gray", 14, "Y"),
    DEEP("gray", 16, "Y"),
    BYTES("ya8", "YA"),
    DEEP("ya", 16, "YA"),

    BYTES("yuv420p", "Y U V", 1, 1),
    DEEP("yuv420p", 9, "Y U V", 1, 1),
    DEEP("yuv420p", 10, "Y U V", 1, 1),
    DEEP("yuv420p", 12, "Y U V", 1, 1),
    DEEP("yuv420p", 14, "Y U V", 1, 1),
    DEEP("yuv420p", 16, "Y U V", 1, 1),
    BYTES("yuv422p", "Y U V", 1, 0),
    DEEP("yuv422p", 9, "Y U V", 1, 0),
    DEEP("yuv422p", 10, "Y U V", 1, 0),
    DEEP("yuv422p", 12, "Y U V", 1, 0),
    DEEP("yuv422p", 14, "Y U V", 1, 0),
    DEEP("yuv422p", 16, "Y U V", 1, 0),
    BYTES("yuv444p", "Y U V"),
    DEEP("yuv444p", 9, "Y U V"),
    DEEP("yuv444p", 10, "Y U V"),
    DEEP("yuv444p", 12, "Y U V"),
    DEEP("yuv444p", 14, "Y U V"),
    DEEP("yuv444p", 16, "Y U V"),
    BYTES("yuv440p", "Y U V", 0, 1),
    DEEP("yuv440p", 10, "Y U V", 0, 1),
    DEEP("yuv440p", 12, "Y U V", 0, 1),
    BYTES("yuv411p", "Y U V", 2, 0),
    BYTES("yuv410p", "Y U V", 2, 2),
    BYTES("yuvj420p", "Y U V", 1, 1),
    BYTES("yuvj422p", "Y U V", 1, 0),
    BYTES("yuvj444p", "Y U V"),
    BYTES("yuvj440p", "Y U V", 0, 1),
    BYTES("yuvj411p", "Y U V", 2, 0),
    BYTES("yuva420p", "Y U V A", 1, 1),
    DEEP("yuva420p", 9, "Y U V A", 1, 1),
    DEEP("yuva420p", 10, "Y U V A", 1, 1),
    DEEP("yuva420p", 16, "Y U V A", 1, 1),
    BYTES("yuva422p", "Y U V A", 1, 0),
    DEEP("yuva422p", 9, "Y U V A", 1, 0),
    DEEP("yuva422p", 10, "Y U V A", 1, 0),
    DEEP("yuva422p", 12, "Y U V A", 1, 0),
    DEEP("yuva422p", 16, "Y U V A", 1, 0),
    BYTES("yuva444p", "Y U V A"),
    DEEP("yuva444p", 9, "Y U V A"),
    DEEP("yuva444p", 10, "Y U V A"),
    DEEP("yuva444p", 12, "Y U V A"),
    DEEP("yuva444p", 16, "Y U V A"),
    BOTH("yuv444p10msb", "Y U V", 10, 6),
    BOTH("yuv444p12msb", "Y U V", 12, 4),

    BYTES("nv12", "Y UV", 1, 1),
    BYTES("nv21", "Y VU", 1, 1),
    BYTES("nv16", "Y UV", 1, 0),
    BOTH("nv20", "Y UV", 10, 0, 1, 0),
    BYTES("nv24", "Y UV"),
    BYTES("nv42", "Y VU"),
    HIGH("p0", 10, "Y UV", 1, 1),
    HIGH("p0", 12, "Y UV", 1, 1),
    HIGH("p0", 16, "Y UV", 1, 1),
    HIGH("p2", 10, "Y UV", 1, 0),
    HIGH("p2", 12, "Y UV", 1, 0),
    HIGH("p2", 16, "Y UV", 1, 0),
    HIGH("p4", 10, "Y UV"),
    HIGH("p4", 12, "Y UV"),
    HIGH("p4", 16, "Y UV"),
    BYTES("yuyv422", "YUYV", 1, 0),
    BYTES("uyvy422", "UYVY", 1, 0),
    BYTES("yvyu422", "YVYU", 1, 0),
    HIGH("y2", 10, "YUYV", 1, 0),
    HIGH("y2", 12, "YUYV", 1, 0),
    HIGH("y2", 16, "YUYV", 1, 0),
    BYTES("vuya", "VUYA"),
    BYTES("vuyx", "VUYx"),
    BYTES("ayuv", "AYUV"),
    BYTES("uyva", "UYVA"),
    BYTES("vyu444", "VYU"),
    BOTH("ayuv64", "AYUV", 16, 0),
    BOTH("xv36", "UYVx", 12, 4),
    BOTH("xv48", "UYVx", 16, 0),

    BYTES("gbrp", "G B R"),
    DEEP("gbrp", 9, "G B R"),
    DEEP("gbrp", 10, "G B R"),
    DEEP("gbrp", 12, "G B R"),
    DEEP("gbrp", 14, "G B R"),
    DEEP("gbrp", 16, "G B R"),
    BYTES("gbrap", "G B R A"),
    DEEP("gbrap", 10, "G B R A"),
    DEEP("gbrap", 12, "G B R A"),
    DEEP("gbrap", 14, "G B R A"),
    DEEP("gbrap", 16, "G B R A"),
    BOTH("gbrp10msb", "G B R", 10, 6),
    BOTH("gbrp12msb", "G B R", 12, 4),
    BYTES("rgb24", "RGB"),
    BYTES("bgr24", "BGR"),
    BYTES("rgba", "RGBA"),
    BYTES("bgra", "BGRA"),
    BYTES("argb", "ARGB"),
    BYTES("abgr", "ABGR"),
    BYTES("rgb0", "RGBx"),
    BYTES("bgr0", "BGRx"),
    BYTES("0rgb", "xRGB"),
    BYTES("0bgr", "xBGR"),
    BOTH("rgb48", "RGB", 16, 0),
    BOTH("bgr48", "BGR", 16, 0),
    BOTH("rgba64", "RGBA", 16, 0),
    BOTH("bgra64", "BGRA", 16, 0),
};
enum { ROWS = sizeof rows / sizeof *rows };

const char *pixfmt_name(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

bool pixfmt_is_full(const char *name)
{
    return !strncmp(name, "yuvj", 4);
}

// ---- storage ----

static enum model model_of(const struct row *row)
{
    return strchr(row->order, 'R') ? MODEL_RGB : strchr(row->order, 'U') ? MODEL_YUV : MODEL_GRAY;
}

// Find the component of this letter: its plane, and its place in the group and those that follow.
static bool find_component(const struct row *row, char letter, struct component *to)
{
    const char *at = strchr(row->order, letter);
    if (!at)
        return false;
    int bytes = row->depth + row->shift > 8 ? 2 : 1, units = 0, own = 0;
    const char *group = at;
    while (group > row->order && group[-1] != ' ')
        group--;
    for (const char *unit = group; *unit && *unit != ' '; unit++, units++)
        own += *unit == letter;
    *to = (struct component){.offset = (int)(at - group) * bytes,
                             .step = units / own * bytes,
                             .bytes = bytes,
                             .shift = row->shift,
                             .big_endian = bytes == 2 && row->big_endian};
    for (const char *before = row->order; before < at; before++)
        to->plane += *before == ' ';
    return true;
}

static struct format storage_of(const struct row *row)
{
    struct format format = {.model = model_of(row),
                            .depth = row->depth,
                            .planes = 1,
                            .chroma_x = row->chroma_x,
                            .chroma_y = row->chroma_y};
    const char *letters = format.model == MODEL_RGB ? "RGB" : "YUV";
    for (int c = 0; c < format_colors(&format); c++)
        find_component(row, letters[c], &format.component[c]);
    format.alpha = find_component(row, 'A', &format.component[COMPONENT_ALPHA]);
    format.filler = find_component(row, 'x', &format.component[COMPONENT_ALPHA]);
    for (const char *at = row->order; *at; at++)
        format.planes += *at == ' ';
    return format;
}

// ---- meaning ----

// Luma weights by matrix, H.273 table 4.
static const struct {
    double kr, kb;
} weights[] = {
    [SLUICE_MATRIX_BT709] = {0.2126, 0.0722},  [SLUICE_MATRIX_BT601] = {0.299, 0.114},
    [SLUICE_MATRIX_FCC] = {0.30, 0.11},        [SLUICE_MATRIX_SMPTE240M] = {0.212, 0.087},
    [SLUICE_MATRIX_BT2020] = {0.2627, 0.0593},
};

enum sluice_matrix pixfmt_matrix(const struct format *format)
{
    for (int k = SLUICE_MATRIX_BT709; k <= SLUICE_MATRIX_BT2020; k++)
        if (weights[k].kr == format->kr && weights[k].kb == format->kb)
            return (enum sluice_matrix)k;
    return SLUICE_MATRIX_UNKNOWN;
}

// The matrix that players assume for pictures that name none.
static enum sluice_matrix guess_matrix(enum model model, int width, int height)
{
    bool large = width >= 1280 || height > 576;
    return model != MODEL_RGB && large ? SLUICE_MATRIX_BT709 : SLUICE_MATRIX_BT601;
}

static void describe_meaning(const struct sluice_format *from, const char *name,
                             struct format *format)
{
    bool full = format->model != MODEL_YUV;
    if (from->range != SLUICE_RANGE_ANY)
        full = from->range == SLUICE_RANGE_FULL;
    full |= format->model == MODEL_RGB || pixfmt_is_full(name);
    format->range = full ? RANGE_FULL : RANGE_LIMITED;
    enum sluice_matrix matrix =
        from->matrix ? from->matrix : guess_matrix(format->model, from->width, from->height);
    format->kr = weights[matrix].kr;
    format->kb = weights[matrix].kb;
    format->siting = (enum siting)from->siting;
}

// ---- names ----

static const struct row *find_row(const char *name)
{
    char native[32];
    snprintf(native, sizeof native, "%s%s", name,
             __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "be" : "le");
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < ROWS; k++)
            if (!strcmp(rows[k].name, pass ? native : name))
                return &rows[k];
    return NULL;
}

const char *pixfmt_canonical(const char *name)
{
    const struct row *row = find_row(name);
    return row ? row->name : NULL;
}

bool pixfmt_describe(const struct sluice_format *from, struct format *format)
{
    const struct row *row = from->pixfmt ? find_row(from->pixfmt) : NULL;
    if (!row)
        return false;
    *format = storage_of(row);
    describe_meaning(from, row->name, format);
    return true;
}

// True if samples of `from` go into `to`, as they are or deeper.
static bool is_alike(const struct format *from, const struct format *to)
{
    return from->model == to->model && from->depth <= to->depth && from->alpha == to->alpha &&
           from->chroma_x == to->chroma_x && from->chroma_y == to->chroma_y && !to->filler;
}

static bool is_native(const struct row *row)
{
    return row->depth <= 8 || row->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

const char *pixfmt_find(const struct format *format)
{
    const char *alike = NULL;
    int depth = INT_MAX;
    for (int k = 0; k < ROWS; k++) {
        struct format other = storage_of(&rows[k]);
        if (format_same_storage(&other, format))
            return rows[k].name;
        if (is_alike(format, &other) && is_native(&rows[k]) && other.depth < depth) {
            alike = rows[k].name;
            depth = other.depth;
        }
    }
    return alike;
}
