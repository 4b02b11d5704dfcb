#include "tests/conformance/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/conformance/random.h"

static void allocate(struct picture_memory *picture, struct backend *backend)
{
    picture->memory = backend->alloc(backend, picture->size);
    if (!picture->memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
}

void picture_init(struct picture_memory *picture, const struct format *format, int width,
                  int height, uint64_t *state, struct backend *backend)
{
    *picture =
        (struct picture_memory){.image = {.format = format, .width = width, .height = height}};
    size_t offset[FORMAT_PLANES];
    picture->size = MARGIN;
    for (int p = 0; p < format->planes; p++) {
        size_t unit = format->depth > 8 ? 2 : 1;
        size_t row = format_row_bytes(format, p, width) + unit * (size_t)random_below(state, 40);
        offset[p] = picture->size + unit * (size_t)random_below(state, 33);
        picture->image.stride[p] = (ptrdiff_t)row;
        picture->size = offset[p] + row * (size_t)format_rows(format, p, height) + MARGIN;
    }
    allocate(picture, backend);
    memset(picture->memory, GUARD, picture->size);
    bool upside_down = !random_below(state, 5);
    for (int p = 0; p < format->planes; p++) {
        picture->image.data[p] = picture->memory + offset[p];
        if (upside_down) {
            int last = format_rows(format, p, height) - 1;
            picture->image.data[p] += last * picture->image.stride[p];
            picture->image.stride[p] = -picture->image.stride[p];
        }
    }
}

bool picture_fits(const struct format *format, const struct picture_memory *source)
{
    const struct image *image = &source->image;
    bool fits = format->planes <= image->format->planes;
    for (int p = 0; p < format->planes && fits; p++)
        fits =
            format_row_bytes(format, p, image->width) ==
                format_row_bytes(image->format, p, image->width) &&
            format_rows(format, p, image->height) == format_rows(image->format, p, image->height);
    return fits;
}

void picture_init_in_place(struct picture_memory *picture, const struct format *format,
                           const struct picture_memory *source, struct backend *backend)
{
    *picture = *source;
    allocate(picture, backend);
    memcpy(picture->memory, source->memory, source->size);
    picture->image.format = format;
    for (int p = 0; p < source->image.format->planes; p++)
        picture->image.data[p] = picture->memory + (source->image.data[p] - source->memory);
}

void picture_shift(struct picture_memory *picture)
{
    for (int p = 0; p < picture->image.format->planes; p++)
        picture->image.data[p]++;
}

void picture_free(struct picture_memory *picture, struct backend *backend)
{
    backend->free(backend, picture->memory, picture->size);
}

static void write_sample(const struct image *image, int c, int x, int y, int value)
{
    const struct component *at = &image->format->component[c];
    uint8_t *to = image->data[at->plane] + y * image->stride[at->plane] + at->offset + x * at->step;
    unsigned unit = (unsigned)value << at->shift;
    if (at->bytes == 1)
        to[0] = (uint8_t)unit;
    else
        to[at->big_endian] = (uint8_t)unit, to[!at->big_endian] = (uint8_t)(unit >> 8);
}

// Contents that are hard on arithmetic, not likely ones.
static int fill_value(int pattern, int x, int y, int maximum, uint64_t *state)
{
    switch (pattern) {
    case 0:
        return 0;
    case 1:
        return maximum;
    case 2:
        return (x + y) % 2 * maximum;
    case 3:
        return x / 3 % 2 * maximum;
    case 4:
        return (int)((int64_t)x * 7 + y * 3) % (maximum + 1);
    case 5:
        return x == 4 && y == 2 ? maximum : 0;
    case 6:
        return random_below(state, 2) * maximum;
    default:
        return random_below(state, maximum + 1);
    }
}

void picture_fill(const struct picture_memory *picture, uint64_t *state)
{
    const struct format *format = picture->image.format;
    int pattern = random_below(state, 12), maximum = (1 << format->depth) - 1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        if (!format_has(format, c))
            continue;
        int width = subsampled(picture->image.width, format_shift_x(format, c));
        int height = subsampled(picture->image.height, format_shift_y(format, c));
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                write_sample(&picture->image, c, x, y, fill_value(pattern, x, y, maximum, state));
    }
}

void picture_overflow(const struct picture_memory *picture, uint64_t state)
{
    const struct format *format = picture->image.format;
    int every = random_below(&state, 2) ? 3 : 1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        if (!format_has(format, c) || 8 * format->component[c].bytes == format->depth)
            continue;
        struct component whole = format->component[c];
        struct format unit = *format;
        struct image image = picture->image;
        whole.shift = 0;
        unit.component[c] = whole;
        image.format = &unit;
        for (int y = 0; y < subsampled(image.height, format_shift_y(format, c)); y++)
            for (int x = 0; x < subsampled(image.width, format_shift_x(format, c)); x++)
                if (!random_below(&state, every))
                    write_sample(&image, c, x, y,
                                 random_below(&state, 2) ? UINT16_MAX
                                                         : random_below(&state, UINT16_MAX + 1));
    }
}
