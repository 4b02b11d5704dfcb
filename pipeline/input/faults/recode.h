// Recoding of a video stream to another size from some packet on, for simulate.h: what a camera
// does whose resolution is changed. Its packets are decoded, scaled, and encoded by the same codec,
// or by FFV1 where this FFmpeg cannot encode that; the first one of the new kind is a restart.
//
// Ahead of the change packets pass as they are, and are decoded beside that, so that the new kind
// need not wait for a key frame.
//
// Thread-safety: one thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"

struct recode;

// `video` must outlive it. `changes`: recode_resize() may be called; else nothing is decoded.
enum status recode_create(const AVStream *video, bool changes, const struct log *log,
                          struct recode **recode);
void recode_destroy(struct recode **recode);

// True if the size can change at this packet, the next one: if it is shown after all that passed,
// or where packets have no timestamps, if it is a key frame.
bool recode_may_resize(const struct recode *recode, const AVPacket *packet);

// From the next packet on they are of this size, or half as wide and high as they come where it
// is 0.
void recode_resize(struct recode *recode, int width, int height);

// Hand over *packet, which is NULL afterwards; NULL before: there are no more. All that there is
// has to be received before the next one is sent.
enum status recode_send(struct recode *recode, struct packet **packet);

// Take the next packet, if there is one: *packet is the caller's then, else NULL. It arrived when
// the packet did that it was made of. STATUS_EOF after the last.
enum status recode_receive(struct recode *recode, struct packet **packet);
