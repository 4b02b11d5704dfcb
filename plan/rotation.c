#include "plan/rotation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct rotation rotation_of_matrix(const int32_t matrix[9])
{
    // Shown x = a x + c y, shown y = b x + d y.
    int64_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (llabs(a) + llabs(d) >= llabs(b) + llabs(c))
        return (struct rotation){false, a < 0, d < 0};
    return (struct rotation){true, c < 0, b < 0};
}

struct format format_rotated(const struct format *format, struct rotation rotation)
{
    struct format rotated = *format;
    if (rotation.transpose) {
        rotated.chroma_x = format->chroma_y;
        rotated.chroma_y = format->chroma_x;
    }
    return rotated;
}

static uint8_t *unit_at(const struct image *image, int c, int x, int y)
{
    const struct component *at = &image->format->component[c];
    return image->data[at->plane] + y * image->stride[at->plane] + at->offset +
           (ptrdiff_t)x * at->step;
}

static void rotate_component(const struct image *from, struct rotation rotation,
                             const struct image *to, int c)
{
    int width = subsampled(to->width, format_shift_x(to->format, c));
    int height = subsampled(to->height, format_shift_y(to->format, c));
    size_t bytes = (size_t)to->format->component[c].bytes;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int u = rotation.flip_x ? width - 1 - x : x, v = rotation.flip_y ? height - 1 - y : y;
            const uint8_t *source =
                rotation.transpose ? unit_at(from, c, v, u) : unit_at(from, c, u, v);
            memcpy(unit_at(to, c, x, y), source, bytes);
        }
}

void image_rotate(const struct image *from, struct rotation rotation, const struct image *to)
{
    assert(to->width == (rotation.transpose ? from->height : from->width));
    assert(to->height == (rotation.transpose ? from->width : from->height));
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(from->format, c))
            rotate_component(from, rotation, to, c);
}
