// The clock of a live source: timestamps of connection after connection moved to one clock, which
// begins at 0 with the first packet and runs with CLOCK_MONOTONIC.
//
// Within a connection the source's own clock counts, less its drift (drift.h), unless it jumps. A
// jump and a new connection tie it to ours anew: packets go on at the time that it is, never before
// what was given out.
//
// Thread-safety: one reading thread, live_clock_us() any thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/live/drift.h"

// Where a stream of the first connection stands.
struct live_track {
    AVRational base;  // of its packets in the current connection
    int64_t last_us;  // the clock at the last packet; AV_NOPTS_VALUE: none yet
    int64_t end_us;   // the clock at that packet's end
    int64_t last_dts; // in the first connection's time base; those to come are above it
};

struct live_clock {
    const struct log *log;
    const char *name;              // of the source, for messages
    const AVFormatContext *format; // of the first connection
    struct live_track *track;      // of each of its streams
    int watched;                   // the stream whose drift is followed; -1: none yet
    bool untimed;                  // the demuxer makes timestamps up
    bool fresh;                    // the current connection has not said the time yet
    bool anchored;                 // its clock is tied to ours ...
    int64_t offset_us;             // ... by this
    int64_t opened_ns;             // when it was established
    struct drift drift;
    _Atomic int64_t epoch_ns; // when the clock was 0; 0: not yet
};

// Begin with what the first connection holds. Its times are made those of this clock; `format`,
// `name` and `log` must outlive the clock.
enum status live_clock_init(struct live_clock *clock, AVFormatContext *format, const char *name,
                            const struct log *log);
void live_clock_finish(struct live_clock *clock);

// A connection was established: packets come from it from now on, of the stream in this time base.
void live_clock_connect(struct live_clock *clock, int64_t opened_ns);
void live_clock_set_base(struct live_clock *clock, int stream, AVRational base);

// Move a packet's timestamps to the clock, and into the time base of the first connection's stream.
// Packets without any, in the midst of others that have them, are left alone.
void live_clock_stamp(struct live_clock *clock, AVPacket *packet, int64_t arrived_ns);

// The time of the clock at a moment of CLOCK_MONOTONIC; AV_NOPTS_VALUE before the first packet.
int64_t live_clock_us(const struct live_clock *clock, int64_t ns);
