#include "plan/turn.h"

#include <stdlib.h>
#include <string.h>

struct turn turn_of_matrix(const int32_t matrix[9])
{
    // Shown x = a x + c y, shown y = b x + d y.
    int64_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
    if (llabs(a) + llabs(d) >= llabs(b) + llabs(c))
        return (struct turn){false, a < 0, d < 0};
    return (struct turn){true, c < 0, b < 0};
}

struct format format_turned(const struct format *format, struct turn turn)
{
    struct format turned = *format;
    if (turn.transpose) {
        turned.chroma_x = format->chroma_y;
        turned.chroma_y = format->chroma_x;
    }
    return turned;
}

static uint8_t *unit_at(const struct image *image, int c, int x, int y)
{
    const struct component *at = &image->format->component[c];
    return image->data[at->plane] + y * image->stride[at->plane] + at->offset +
           (ptrdiff_t)x * at->step;
}

static void turn_component(const struct image *from, struct turn turn, const struct image *to,
                           int c)
{
    int width = subsampled(to->width, format_shift_x(to->format, c));
    int height = subsampled(to->height, format_shift_y(to->format, c));
    size_t bytes = (size_t)to->format->component[c].bytes;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int u = turn.flip_x ? width - 1 - x : x, v = turn.flip_y ? height - 1 - y : y;
            const uint8_t *source =
                turn.transpose ? unit_at(from, c, v, u) : unit_at(from, c, u, v);
            memcpy(unit_at(to, c, x, y), source, bytes);
        }
}

void image_turn(const struct image *from, struct turn turn, const struct image *to)
{
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (format_has(from->format, c))
            turn_component(from, turn, to, c);
}
