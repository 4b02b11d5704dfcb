// Pictures turned by right angles and mirrored, for outputs that cannot say how to show them.
#pragma once

#include "plan/format.h"

// The place (x, y) of the turned picture shows what was at (y, x) when transposed, each axis of the
// result then counted from its other end when flipped.
struct turn {
    bool transpose, flip_x, flip_y;
};

// The turn that a display matrix asks for: 3x3, 16.16 fixed point, as ISO/IEC 14496-12 (8.2.2) has
// it in mp4. Angles between are taken as the nearest right one.
struct turn turn_of_matrix(const int32_t matrix[9]);

static inline bool turn_is_none(struct turn turn)
{
    return !turn.transpose && !turn.flip_x && !turn.flip_y;
}

// The format of the turned picture: chroma that is halved across is then halved down.
struct format format_turned(const struct format *format, struct turn turn);

// Copy every sample of `from` to where it belongs in `to`, whose format is format_turned() in any
// storage of the same depth and components, and whose size is that of `from`, exchanged when
// transposed.
void image_turn(const struct image *from, struct turn turn, const struct image *to);
