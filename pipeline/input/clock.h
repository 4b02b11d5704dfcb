// The clock of a file whose parts were joined byte for byte, or whose report_writer began anew:
// jumps back by more than a tenth of a second, or ahead by more than ten, are taken out, so that
// packets go on where those before ended. Live sources know when packets came and have their own,
// live.h.
#pragma once

#include <libavformat/avformat.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

// Zero is a clock that has not jumped.
struct clock {
    int64_t offset_us; // what has been added so far
    int64_t *next_us;  // of each stream: where its next packet should begin
    unsigned streams;
};

// Give a packet of this format the time that it has without jumps; `name` and log are for telling.
// Streams may be added to the format between calls.
enum status clock_mend(struct clock *clock, const AVFormatContext *format, const char *name,
                       const struct log *log, AVPacket *packet);

void clock_finish(struct clock *clock);
