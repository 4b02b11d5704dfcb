// The clock of a file whose parts were joined byte for byte, or whose recorder began anew: jumps
// back by more than a tenth of a second, or ahead by more than ten, are taken out, so that packets
// go on where those before ended. Live sources have a clock that goes by arrival, live_clock.h.
//
// Thread-safety: one thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

// Zero is a clock that has not jumped.
struct clock {
    int64_t offset_us; // that has been added so far
    int64_t *next_us;  // of each stream: where its next packet should begin
    unsigned streams;
};

// Move a packet of this format to the time that it has without jumps, and log jumps of `name`.
// Streams may be added to the format between calls. STATUS_MEMORY or STATUS_OK.
enum status clock_fix(struct clock *clock, const AVFormatContext *format, const char *name,
                      const struct log *log, AVPacket *packet);

void clock_finish(struct clock *clock);
