// A packet on its way through the job, with what libavcodec's type has no field for.
#pragma once

#include <libavcodec/codec_par.h>
#include <libavcodec/packet.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// A packet owns what it points to. Packets travel by pointer (`struct packet **` hands one over and
// leaves NULL), so that a queue moves nothing and a packet costs its struct and its AVPacket.
//
// A restart is where a decoder begins anew: at the first packet after a loss, and where the
// stream's parameters change. A restart without data stands at the loss itself: the decoder gives
// out what it holds and waits for no more.
struct packet {
    AVPacket *av;       // never NULL; `pos` is the offset in the file, as libavformat has it
    int64_t arrived_ns; // by CLOCK_MONOTONIC
    int64_t pts_us;     // av->pts in microseconds; AV_NOPTS_VALUE: it has none, or is not set yet
    bool restart;       // nothing from here on refers to a packet before
    AVCodecParameters *codec; // of the stream from a restart on; NULL: as before
};

// An empty packet; NULL without memory.
struct packet *packet_create(void);

// Accepts NULL behind the pointer, leaves NULL.
void packet_destroy(struct packet **packet);

// Another packet that shares the data; NULL without memory.
struct packet *packet_clone(const struct packet *packet);

// Make the packet a restart. `codec` (optional): the parameters from here on, copied.
enum status packet_set_restart(struct packet *packet, const AVCodecParameters *codec);

// Callbacks of queues of packets (base/queue.h): free one, and the bytes of its data.
void packet_drop(void *packet);
int64_t packet_weigh(const void *packet);
