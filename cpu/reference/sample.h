// Samples in memory: one unit read or written, wherever it lies.
#pragma once

#include <stdint.h>
#include <string.h>

#include "plan/format.h"

// The address of sample (x, y) of component `c`.
static inline uint8_t *sample_at(const struct image *image, int c, int x, int y)
{
    const struct component *at = &image->format->component[c];
    return image->data[at->plane] + y * image->stride[at->plane] + at->offset +
           (ptrdiff_t)x * at->step;
}

static inline bool sample_is_swapped(const struct component *at)
{
    return at->bytes == 2 && at->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

static inline int sample_read(const uint8_t *from, const struct component *at)
{
    if (at->bytes == 1)
        return *from >> at->shift;
    uint16_t unit;
    memcpy(&unit, from, 2);
    if (sample_is_swapped(at))
        unit = __builtin_bswap16(unit);
    return unit >> at->shift;
}

static inline void sample_write(uint8_t *to, const struct component *at, int value)
{
    if (at->bytes == 1) {
        *to = (uint8_t)(value << at->shift);
        return;
    }
    uint16_t unit = (uint16_t)(value << at->shift);
    if (sample_is_swapped(at))
        unit = __builtin_bswap16(unit);
    memcpy(to, &unit, 2);
}
