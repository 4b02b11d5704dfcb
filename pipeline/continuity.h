// Whether packets of an MPEG transport stream are missing: their counter jumps. libavformat marks
// what it read up to a jump as damaged, with two errors: where transport streams were joined
// (`cat a.ts b.ts`, the segments of a playlist) the counter jumps and nothing is lost, and the
// mark of a stream's first picture is lost in the parser.
#pragma once

#include <stdint.h>

#include "pipeline/bytes.h"

struct continuity_question {
    const struct bytes *bytes;
    int64_t at; // where a PES packet of the stream begins
    int pid;
    int pes_max;         // how many PES packets to look at
    int64_t frame_90khz; // how long a frame lasts, in ticks of the 90 kHz clock; 0: unknown
};

// What the first jump in those packets, or between them and the next one, is.
enum continuity {
    CONTINUITY_KEPT,   // there is none, or these bytes cannot be looked at
    CONTINUITY_JOINED, // it lies between two whole PES packets and no time is missing: the clock of
                       // the second goes on where the first one's ended, goes back, or is another
                       // (over ten seconds ahead)
    CONTINUITY_BROKEN, // all else. A PES packet is whole if it has its promised length or stuffing
};

// ISO/IEC 13818-1: 2.4.3.3 the counter, 2.4.3.5 stuffing, 2.4.3.7 PES packets.
enum continuity continuity_look(const struct continuity_question *question);
