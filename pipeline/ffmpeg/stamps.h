// Damaged times: of one packet among others whose times are right. A time that is out of line with its
// stream's waits for the stream's next packet. Where that one is in line, the packet gets the time that it
// would have had; else the stream has paused or its clock has jumped, which is for others to follow
// (pipeline/input/clock.h, live/live_clock.h).
//
// In line is what does not go back, and what is not further ahead than a step of the stream, or than the time
// that has passed since the packet before came, where packets come in their own time.
//
// Thread-safety: one thread.
#pragma once

#include <libavcodec/codec_par.h>
#include <libavutil/rational.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"

// Where a stream stands.
struct stamp_track {
    bool begun;
    int64_t last_us, step_us; // the time of its last packet, and the step to it
    int64_t delay_us;         // the most that a packet's pts was behind its dts
    int64_t arrived_ns;       // when its last packet came
    struct packet *held;      // the packet that waits; NULL: none
    AVRational base;          // its unit of time
};

// Zero is a source of which nothing came.
struct stamps {
    struct stamp_track *track;
    unsigned streams;
    struct packet *ready; // behind the one that was given out last
};

// True if the packets of a stream have times that follow each other: pictures and sound.
bool stamps_are_for(const AVCodecParameters *about);

// Take a packet of stream `stream`, whose times are in units of `base` and which came at arrived_ns (all at 0: not in
// their own time). What goes on now is left in *packet: this one, or the one that waited, or NULL where this one waits. STATUS_MEMORY
// (the packet stays the caller's) or STATUS_OK.
enum status stamps_put(struct stamps *stamps, unsigned stream, AVRational base,
                       struct packet **packet);

// The packet behind the one that was given out last, to be asked for before stamps_put(); NULL: there is none.
struct packet *stamps_take(struct stamps *stamps);

// One after the other those that still wait, as they are, where no more will come; NULL: none. The streams
// begin anew then.
struct packet *stamps_end(struct stamps *stamps);

// Frees what waits.
void stamps_finish(struct stamps *stamps);
