// Whether a file is truncated, by the structure of its container.
//
// Thread-safety: one thread at a time.
#pragma once

#include <stdbool.h>

#include "pipeline/input/io/input_io.h"

enum truncation {
    TRUNCATION_UNKNOWN, // the structure does not say
    TRUNCATION_NONE,    // the file is whole
    TRUNCATION_CUT,     // its end is missing
    TRUNCATION_HOLE,    // something before its end is
};

// Matroska (RFC 9559): CUT if the segment's declared size goes beyond the file. If not, UNKNOWN
// unless `thorough`; then NONE if its elements, down to the blocks of its clusters, follow one
// another without a break to its end, HOLE if not, which reads the head of every block.
enum truncation truncation_of_matroska(const struct input_io *io, bool thorough);

// FLV (Adobe's Video File Format Specification 10.1, annex E): NONE if the last bytes are the size
// of a tag that begins so many bytes before, UNKNOWN if not.
enum truncation truncation_of_flv(const struct input_io *io);
