// The mark on a packet behind which a decoder begins anew: after a loss, and where the stream's
// parameters change. It travels as side data, so that queues need not know of it.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "base/status.h"

// What a decoder has to know of the packets from here on: none before them may be referred to. A
// packet that is empty says that none of those before it has to wait for more.
struct restart {
    bool changed;             // the parameters are others than before:
    AVCodecParameters *codec; // the caller's (avcodec_parameters_free()); NULL if not changed
};

// Mark a packet. `codec` (optional): what the parameters are from here on.
enum status restart_mark(AVPacket *packet, const AVCodecParameters *codec);

// Whether it is marked.
bool restart_is_marked(const AVPacket *packet);

// Take the mark off a packet. False if it has none.
bool restart_take(AVPacket *packet, struct restart *restart);
