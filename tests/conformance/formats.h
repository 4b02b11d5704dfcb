// The storage formats that cases are drawn from.
#pragma once

#include <stdint.h>

#include "plan/format.h"

enum { FORMATS = 29 };

struct named_format {
    const char *name; // as FFmpeg calls it where it has it, with what differs behind a dash
    struct format format;
};

// Number `index`, from 0 to FORMATS - 1.
struct named_format test_format(int index);

// One of them.
struct named_format random_format(uint64_t *state);
