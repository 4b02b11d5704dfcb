// What the bytes of an MPEG transport stream tell and libavformat does not (ISO/IEC 13818-1).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/input/bytes.h"

// Of which stream, from where on.
struct transport_place {
    const struct bytes *bytes; // of a regular file, or nothing can be told
    int64_t at;                // where a packet begins
    int pid;
};

// Whether packets are missing: their counter jumps (2.4.3.3). libavformat marks what it read up to
// a jump as damaged, with two errors: where transport streams were joined (`cat a.ts b.ts`, the
// segments of a playlist) the counter jumps and nothing is lost, and the mark of a stream's first
// picture is lost in the parser.
enum transport_continuity {
    TRANSPORT_KEPT,   // there is no jump, or these bytes cannot be looked at
    TRANSPORT_JOINED, // it lies between two whole PES packets and no time is missing: the clock of
                      // the second goes on where the first one's ended, goes back, or is another
                      // (over ten seconds ahead)
    TRANSPORT_BROKEN, // all else. A PES packet is whole if it has its promised length or stuffing
};

// What the first jump is in the next `pes_max` PES packets (2.4.3.7), the first of which begins at
// the place, or between the last of them and the one behind it. A frame lasts `frame_90khz` ticks
// of the clock of 90 kHz; 0: unknown.
enum transport_continuity transport_look(const struct transport_place *place, int pes_max,
                                         int64_t frame_90khz);

// Whether the first packet with data of the stream, within 16 MiB from the place, is scrambled
// (2.4.3.3, transport_scrambling_control).
bool transport_is_scrambled(const struct transport_place *place);
