// How much memory a job may take: what queues hold is limited by weight, so that the whole has a
// ceiling that is known at the start, however slow an encoder or a network is.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavutil/frame.h>
#include <stdint.h>

#include "plan/budget.h"

// Limits of a queue: of compressed packets, of pictures for an output that is slow, of records of
// frames. One item may be larger.
static const int64_t budget_packets = 32 << 20, budget_frames = 128 << 20,
                     budget_records = 32 << 20;

// The most that a decoder on the GPU keeps of packets, to decode them again.
static const int64_t budget_history = 64 << 20;

// Tables and stacks of a codec and its threads, beside its pictures, about.
static const int64_t budget_codec = 8 << 20;

// The weight of a frame in a queue: its samples. `item` is the pointer to it.
int64_t budget_of_frame(const void *item);

// Memory that a codec may hold beside what it is given, at most, for pictures of `frame_bytes`:
// reference pictures, those of its threads, and of an encoder those that it looks ahead at. Jobs of
// 1080p with libx264, libx265, libvpx-vp9 and libaom took a quarter to two fifths of their
// ceilings.
int64_t budget_of_encoder(const AVCodecContext *codec, int64_t frame_bytes);
int64_t budget_of_decoder(int threads, int64_t frame_bytes);

// How far an encoder looks ahead: not at all, as it usually does, as its slow presets do.
enum pace { PACE_HURRIED, PACE_USUAL, PACE_SLOW };

// The same, about, known before they are opened: what they took of pictures of 1080p when that was
// measured, or somewhat more. `threads` 0: as many as libavcodec takes. Packets are not in it.
int64_t budget_estimate_encoder(const AVCodec *codec, int threads, enum pace pace,
                                int64_t frame_bytes);
int64_t budget_estimate_decoder(enum AVCodecID codec, int threads, int64_t frame_bytes);

// Bytes that a queue of so many items, limited to `limit` bytes, may hold of items of `item_bytes`:
// one may go beyond the limit.
int64_t budget_of_queue(int items, int64_t limit, int64_t item_bytes);
