// Part video: the packets of a set's parts, one part after another, checked against the manifests,
// with the pts of their frames and decoding times for the whole. Parts need not be known before they
// are read.
//
// Decoding is ahead of showing by as many packets as the parts that are known at the beginning need,
// and if they need any, by as many as the encoder says. A part that needs more is found when it
// becomes known. So parts that are known early or late have the same times.
//
// Thread-safety: one thread.
#pragma once

#include <libavcodec/packet.h>
#include <libavutil/rational.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/proof/part_set.h"

struct part_video;

// Begin with the first packet, of a set whose first part with frames is known, and which outlives
// it. STATUS_INPUT, with a sentence, if what a manifest says of its video makes no sense.
enum status part_video_create(struct part_set *set, const struct log *log,
                              struct part_video **video);

// Leaves NULL, accepts NULL behind it.
void part_video_destroy(struct part_video **video);

// The time base of pts and dts.
AVRational part_video_time_base(const struct part_video *video);

// Read the next packet. STATUS_EOF behind the last of all parts; STATUS_INPUT, with a sentence that
// names the part, if it is not the packet that its manifest has; STATUS_AGAIN: a part needs decoding
// to be further ahead, begin again with all parts known; otherwise as part_set_need().
enum status part_video_read(struct part_video *video, AVPacket *packet);
