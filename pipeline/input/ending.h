// Whether a file ends where it should, by the structure that its bytes have.
#pragma once

#include <stdbool.h>

#include "pipeline/input/input_io.h"

enum ending {
    ENDING_UNKNOWN, // the structure does not tell
    ENDING_WHOLE,
    ENDING_CUT,
    ENDING_BROKEN, // there is a hole somewhere
};

// Of Matroska (RFC 9559): cut if the segment's declared size goes beyond the file. If not, unknown
// unless `thorough`; then whole if its elements, down to the blocks of its clusters, follow one
// another without a break to its end, broken if not. That takes a look at every block.
enum ending ending_of_matroska(const struct input_io *io, bool thorough);

// Of FLV (Adobe's Video File Format Specification 10.1, annex E): whole if the last bytes are the
// size of a tag that begins so many bytes before, unknown if not.
enum ending ending_of_flv(const struct input_io *io);
