// The clock of a file whose parts were joined byte for byte, or whose recorder began anew: jumps
// back by more than a tenth of a second, or ahead of all streams by more than ten, are taken out, so that
// packets go on where those before ended. A stream that is back within a second where it would be without
// its last step out of line had a damaged time: the step does not count. Live sources have a clock that goes
// by arrival, live_clock.h.
//
// Thread-safety: one thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

// Where the packets of a stream should go on. A stream has its own offset until its clock jumps, too: what
// lies between comes from before.
struct track {
    int64_t next_us; // AV_NOPTS_VALUE: there was none
    int64_t last_us; // where the last one began: it may be shorter than it says
    int64_t offset_us;
    // The same without its last step, until the time `until_us`; AV_NOPTS_VALUE: there was none, or
    // it is too long ago.
    int64_t other_next_us, other_offset_us, until_us;
};

// Zero is a clock that has not jumped.
struct clock {
    int64_t offset_us; // since the last jump of any stream
    struct track *track;
    unsigned streams;
};

// Move a packet of this format to the time that it has without jumps, and log jumps of `name`.
// Streams may be added to the format between calls. STATUS_MEMORY or STATUS_OK.
enum status clock_fix(struct clock *clock, const AVFormatContext *format, const char *name,
                      const struct log *log, AVPacket *packet);

void clock_finish(struct clock *clock);
