// Pictures rotated by right angles and mirrored, for outputs that cannot say how to show them.
#pragma once

#include "plan/format.h"

// The place (x, y) of the rotated picture shows what was at (y, x) when transposed, each axis of
// the result then counted from its other end when flipped.
struct rotation {
    bool transpose, flip_x, flip_y;
};

// The rotation that a display matrix asks for: 3x3, 16.16 fixed point, as ISO/IEC 14496-12 (8.2.2)
// has it in mp4. Angles between are taken as the nearest right one.
struct rotation rotation_of_matrix(const int32_t matrix[9]);

static inline bool rotation_is_none(struct rotation rotation)
{
    return !rotation.transpose && !rotation.flip_x && !rotation.flip_y;
}

// The format of the rotated picture: chroma that is halved across is then halved down.
struct format format_rotated(const struct format *format, struct rotation rotation);

// Copy every sample of `from` to where it belongs in `to`, whose format is format_rotated() in any
// storage of the same depth and components, and whose size is that of `from`, exchanged when
// transposed.
void image_rotate(const struct image *from, struct rotation rotation, const struct image *to);
