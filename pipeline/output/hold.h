// Hold: keeps packets of other streams until video of their time comes. Encoders keep pictures
// back, and where the video ends early the other streams have to end with it.
//
// Thread-safety: one thread.
#pragma once

#include <libavutil/rational.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/output/muxer/passthrough.h"

// Zero holds nothing.
struct hold {
    const struct passthrough *clock; // of packets
    int64_t frame_us; // how long a frame is shown if its packet does not say; 0: unknown
    struct packet **packet;
    int count, room;
    int64_t bytes;
    int64_t end_us; // the end of the video so far
};

// Initialise an empty hold. `clock` must outlive it. `frame_rate` {0}: unknown.
void hold_init(struct hold *hold, const struct passthrough *clock, AVRational frame_rate);

// Free everything, with the packets held.
void hold_finish(struct hold *hold);

// Note a packet of video, which has its pts_us; `time_base` is that of its duration.
void hold_note_video(struct hold *hold, const struct packet *packet, AVRational time_base);

// True if a packet is later than all video so far. One without a time is not.
bool hold_is_ahead(const struct hold *hold, const struct packet *packet);

// Hold a packet: *packet is taken, and NULL afterwards.
enum status hold_put(struct hold *hold, struct packet **packet);

// True if more is held than budget_packets.
bool hold_is_full(const struct hold *hold);

// Call give() with each packet whose time is before `until_us`, and with the oldest while too much
// is held; each is freed afterwards. Ends with the first failure of give(), which it returns.
enum status hold_release(struct hold *hold, int64_t until_us,
                         enum status (*give)(void *opaque, struct packet *packet), void *opaque);

// Drop all packets. Returns how many.
int hold_drop(struct hold *hold);
