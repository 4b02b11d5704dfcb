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

// The weight of a frame in a queue: its samples. `item` is the pointer to it.
int64_t budget_of_frame(const void *item);

// Memory that a codec may hold beside what it is given, at most, for pictures of `frame_bytes`:
// reference pictures, those of its threads, and of an encoder those that it looks ahead at. Jobs of
// 1080p with libx264, libx265, libvpx-vp9 and libaom took a quarter to two fifths of their
// ceilings.
int64_t budget_of_encoder(const AVCodecContext *codec, int64_t frame_bytes);
int64_t budget_of_decoder(int threads, int64_t frame_bytes);

// The process's memory now; 0 where the system does not say.
int64_t budget_resident(void);
