// Part video: the packets of a set's parts, one part after another, checked against the manifests,
// with the pts of their frames and decoding times for the whole.
//
// Thread-safety: one thread.
#pragma once

#include <libavcodec/packet.h>
#include <libavutil/rational.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/proof/part_set.h"

struct part_video;

// Begin with the first packet. The set outlives it. STATUS_INPUT, with a sentence, if what a
// manifest says of its video makes no sense.
enum status part_video_create(const struct part_set *set, const struct log *log,
                              struct part_video **video);

// Leaves NULL, accepts NULL behind it.
void part_video_destroy(struct part_video **video);

// The time base of pts and dts.
AVRational part_video_time_base(const struct part_video *video);

// Read the next packet. STATUS_EOF behind the last of all parts; STATUS_INPUT, with a sentence that
// names the part, if it is not the packet that its manifest has.
enum status part_video_read(struct part_video *video, AVPacket *packet);
