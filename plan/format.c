#include "plan/format.h"

#include <assert.h>
#include <string.h>

int format_colors(const struct format *format)
{
    return format->model == MODEL_GRAY ? 1 : 3;
}

bool format_is_chroma(const struct format *format, int c)
{
    return format->model == MODEL_YUV && (c == COMPONENT_CB || c == COMPONENT_CR);
}

int format_shift_x(const struct format *format, int c)
{
    return format_is_chroma(format, c) ? format->chroma_x : 0;
}

int format_shift_y(const struct format *format, int c)
{
    return format_is_chroma(format, c) ? format->chroma_y : 0;
}

bool format_has(const struct format *format, int c)
{
    return c == COMPONENT_ALPHA ? format->alpha : c < format_colors(format);
}

bool format_stores(const struct format *format, int c)
{
    return format_has(format, c) || (c == COMPONENT_ALPHA && format->filler);
}

// The component that decides how wide and high plane `p` is.
static int component_in_plane(const struct format *format, int p)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(format, c) && format->component[c].plane == p)
            return c;
    return 0;
}

size_t format_row_bytes(const struct format *format, int p, int width)
{
    size_t bytes = 0;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct component *at = &format->component[c];
        if (at->plane != p || !format_stores(format, c))
            continue;
        // A packed group (all of one pixel, or of one chroma pair) is stored whole.
        size_t groups = (size_t)subsampled(width, format_shift_x(format, c));
        if (groups * (size_t)at->step > bytes)
            bytes = groups * (size_t)at->step;
    }
    return bytes;
}

size_t format_gap(const struct format *format, int p, int width, size_t *offset)
{
    const struct component *luma = &format->component[0], *cb = &format->component[1];
    bool in_pairs = format->model == MODEL_YUV && luma->plane == p && cb->plane == p &&
                    cb->step == 2 * luma->step;
    *offset = (size_t)luma->offset + (size_t)width * (size_t)luma->step;
    return in_pairs && width % 2 ? (size_t)luma->bytes : 0;
}

int format_rows(const struct format *format, int p, int height)
{
    return subsampled(height, format_shift_y(format, component_in_plane(format, p)));
}

static bool component_same(const struct component *a, const struct component *b)
{
    return a->plane == b->plane && a->offset == b->offset && a->step == b->step &&
           a->bytes == b->bytes && a->shift == b->shift && a->big_endian == b->big_endian;
}

bool format_same_storage(const struct format *a, const struct format *b)
{
    if (a->model != b->model || a->depth != b->depth || a->planes != b->planes ||
        a->alpha != b->alpha || a->filler != b->filler || a->chroma_x != b->chroma_x ||
        a->chroma_y != b->chroma_y)
        return false;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        bool stored = format_stores(a, c);
        if (stored && !component_same(&a->component[c], &b->component[c]))
            return false;
    }
    return true;
}

struct format format_planar(enum model model, int depth, int chroma_x, int chroma_y, bool alpha,
                            const struct format *meaning)
{
    assert(depth >= 8 && depth <= 16);
    struct format format = {
        .model = model,
        .depth = depth,
        .alpha = alpha,
        .chroma_x = model == MODEL_YUV ? chroma_x : 0,
        .chroma_y = model == MODEL_YUV ? chroma_y : 0,
        .range = meaning->range,
        .kr = meaning->kr,
        .kb = meaning->kb,
        .siting = meaning->siting,
    };
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(&format, c)) {
            format.component[c] = *component_plain(depth);
            format.component[c].plane = format.planes++;
        }
    return format;
}

struct image image_field(const struct image *frame, int parity)
{
    assert((parity == 0 || parity == 1) && image_has_fields(frame));
    struct image field = *frame;
    field.height = (frame->height + 1 - parity) / 2;
    for (int p = 0; p < FORMAT_PLANES; p++) {
        if (field.data[p] && parity)
            field.data[p] += field.stride[p];
        field.stride[p] *= 2;
    }
    return field;
}

bool image_has_fields(const struct image *frame)
{
    int chroma_y = frame->format->chroma_y;
    return frame->height >= 2 && (chroma_y == 0 || frame->height % (2 << chroma_y) == 0);
}

// True if any of `units` of two bytes has one of the bits of `mask`: eight bytes at a time.
static bool any_bit(const uint8_t *from, size_t units, uint16_t mask)
{
    uint64_t masks = mask * UINT64_C(0x0001000100010001), any = 0, four;
    for (; units >= 4; units -= 4, from += sizeof four) {
        memcpy(&four, from, sizeof four);
        any |= four;
    }
    memset(&four, 0, sizeof four);
    memcpy(&four, from, 2 * units);
    return ((any | four) & masks) != 0;
}

bool image_exceeds(const struct image *image, int p)
{
    const struct format *format = image->format;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        const struct component *at = &format->component[c];
        if (!format_has(format, c) || at->plane != p || !component_is_loose(at, format->depth))
            continue;
        // Units of a plane are alike: one component speaks for all.
        uint16_t above = (uint16_t)~max_sample(format->depth + at->shift);
        bool swapped = at->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
        uint16_t mask = swapped ? (uint16_t)(above << 8 | above >> 8) : above;
        size_t units = format_row_bytes(format, p, image->width) / 2;
        for (int y = 0; y < format_rows(format, p, image->height); y++)
            if (any_bit(image->data[p] + y * image->stride[p], units, mask))
                return true;
        return false;
    }
    return false;
}

static void limit_component(const struct image *image, int c)
{
    const struct component *at = &image->format->component[c];
    int width = subsampled(image->width, format_shift_x(image->format, c));
    int height = subsampled(image->height, format_shift_y(image->format, c));
    unsigned most = (unsigned)max_sample(image->format->depth) << at->shift;
    for (int y = 0; y < height; y++) {
        uint8_t *unit = image->data[at->plane] + y * image->stride[at->plane] + at->offset;
        for (int x = 0; x < width; x++, unit += at->step)
            if ((unsigned)(unit[!at->big_endian] << 8 | unit[at->big_endian]) > most) {
                unit[!at->big_endian] = (uint8_t)(most >> 8);
                unit[at->big_endian] = (uint8_t)most;
            }
    }
}

void image_limit_plane(const struct image *image, int p)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(image->format, c) && image->format->component[c].plane == p &&
            image->format->component[c].bytes == 2)
            limit_component(image, c);
}

static bool compare_row(const struct image *got, const struct image *want,
                        struct image_difference *at)
{
    const uint8_t *a = got->data[at->plane] + at->row * got->stride[at->plane];
    const uint8_t *b = want->data[at->plane] + at->row * want->stride[at->plane];
    size_t bytes = format_row_bytes(got->format, at->plane, got->width);
    if (!memcmp(a, b, bytes))
        return true;
    for (at->byte = 0; a[at->byte] == b[at->byte];)
        at->byte++;
    at->got = a[at->byte];
    at->want = b[at->byte];
    return false;
}

bool image_compare(const struct image *got, const struct image *want,
                   struct image_difference *first)
{
    assert(got->width == want->width && got->height == want->height);
    *first = (struct image_difference){0};
    for (first->plane = 0; first->plane < got->format->planes; first->plane++) {
        int rows = format_rows(got->format, first->plane, got->height);
        for (first->row = 0; got->data[first->plane] && first->row < rows; first->row++)
            if (!compare_row(got, want, first))
                return false;
    }
    return true;
}

static void fill_component(const struct image *image, int c, int value)
{
    const struct component *at = &image->format->component[c];
    int width = subsampled(image->width, format_shift_x(image->format, c));
    int height = subsampled(image->height, format_shift_y(image->format, c));
    unsigned unit = (unsigned)value << at->shift;
    uint8_t low = (uint8_t)unit, high = (uint8_t)(unit >> 8);
    for (int y = 0; y < height; y++) {
        uint8_t *to = image->data[at->plane] + y * image->stride[at->plane] + at->offset;
        for (int x = 0; x < width; x++, to += at->step) {
            to[at->bytes == 2 && at->big_endian] = low;
            if (at->bytes == 2)
                to[!at->big_endian] = high;
        }
    }
}

void image_clear_gap(const struct image *image, int p)
{
    size_t offset, bytes = format_gap(image->format, p, image->width, &offset);
    int rows = bytes && image->data[p] ? format_rows(image->format, p, image->height) : 0;
    for (int y = 0; y < rows; y++)
        memset(image->data[p] + y * image->stride[p] + offset, 0, bytes);
}

void image_fill_plane(const struct image *image, int p, const int value[FORMAT_COMPONENTS])
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(image->format, c) && image->format->component[c].plane == p)
            fill_component(image, c, value[c]);
    image_clear_gap(image, p);
}

struct levels format_levels(const struct format *format, int c)
{
    int maximum = (1 << format->depth) - 1;
    int step = 1 << (format->depth - 8);
    bool limited = format->range == RANGE_LIMITED && c != COMPONENT_ALPHA;
    if (format_is_chroma(format, c)) {
        if (limited)
            return (struct levels){step * 224 / 255.0, 128 * step, 16 * step, 240 * step};
        return (struct levels){maximum / 255.0, 128 * step, 0, maximum};
    }
    if (limited)
        return (struct levels){step * 219 / 255.0, 16 * step, 16 * step, 235 * step};
    return (struct levels){maximum / 255.0, 0, 0, maximum};
}

const struct component *component_plain(int depth)
{
    static const struct component bytes = {.step = 1, .bytes = 1};
    static const struct component words = {
        .step = 2, .bytes = 2, .big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__};
    return depth > 8 ? &words : &bytes;
}

bool component_is_plain(const struct component *component, int depth)
{
    bool native =
        component->bytes == 1 || component->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return component->bytes == (depth > 8 ? 2 : 1) && component->step == component->bytes &&
           component->shift == 0 && native;
}

bool component_is_loose(const struct component *component, int depth)
{
    return component->shift + depth < 8 * component->bytes;
}
