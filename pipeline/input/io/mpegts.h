// MPEG-TS (ISO/IEC 13818-1): continuity and scrambling of a file's packets, which libavformat does
// not report.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/input/io/input_io.h"

// A place in a stream.
struct mpegts_place {
    const struct input_io *io; // of a regular file, or nothing is known
    int64_t at;                // where a packet begins
    int pid;
};

// Whether packets are missing: their counter jumps (2.4.3.3). libavformat marks what it read up to
// a jump as damaged, with two errors: where transport streams were joined (`cat a.ts b.ts`, the
// segments of a playlist) the counter jumps and nothing is lost, and the mark of a stream's first
// picture is lost in the parser.
enum mpegts_continuity {
    MPEGTS_KEPT,   // there is no jump, or these bytes cannot be looked at
    MPEGTS_JOINED, // it lies between two whole PES packets and no time is missing: the clock of
                   // the second goes on where the first one's ended, goes back, or is another
                   // (over ten seconds ahead)
    MPEGTS_BROKEN, // all else. A PES packet is whole if it has its promised length or stuffing
};

// Classify the first jump in the next `pes_max` PES packets (2.4.3.7), the first of which begins at
// the place, or between the last of them and the one behind it. A frame lasts `frame_90khz` ticks
// of the clock of 90 kHz; 0: unknown.
enum mpegts_continuity mpegts_look(const struct mpegts_place *place, int pes_max,
                                   int64_t frame_90khz);

// True if the first packet with data of the stream, within 16 MiB from the place, is scrambled
// (2.4.3.3, transport_scrambling_control).
bool mpegts_is_scrambled(const struct mpegts_place *place);
