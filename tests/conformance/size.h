// Sizes of pictures that are hard on tiles and vectors.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/conformance/random.h"

static inline int ugly_size(uint64_t *state, bool large)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 255, 257};
    static const int large_sizes[] = {480, 641, 1023, 1080, 1920, 2049};
    if (large)
        return large_sizes[random_below(state, 6)];
    return sizes[random_below(state, sizeof sizes / sizeof *sizes)];
}
