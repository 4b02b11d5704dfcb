// Passthrough: the streams of the source that go into an output as they are, beside the filtered
// one, and the clocks of their packets.
//
// Thread-safety: any thread, once it is filled.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"

// Zero has no streams.
struct passthrough {
    int video;             // the filtered stream, which is none of them
    unsigned streams;      // of the source
    AVRational *time_base; // by stream
    bool *accepted;        // by stream: it goes along
};

// Initialise for the streams of `from`, which is not needed afterwards; none is accepted yet.
// STATUS_MEMORY is the only failure, passthrough_finish() in either case.
enum status passthrough_init(struct passthrough *passthrough, const AVFormatContext *from,
                             int video);

// Free everything; zero afterwards.
void passthrough_finish(struct passthrough *passthrough);

// Also accept the streams that `other`, of the same source, accepts. Zero becomes a copy of it.
enum status passthrough_join(struct passthrough *passthrough, const struct passthrough *other);

// True if a stream of the source goes along.
bool passthrough_accepts(const struct passthrough *passthrough, int stream);

// True if none does: the output is video alone.
bool passthrough_is_empty(const struct passthrough *passthrough);

// A packet's dts, or else its pts, in microseconds; AV_NOPTS_VALUE: it has neither.
int64_t passthrough_dts_us(const struct passthrough *passthrough, const struct packet *packet);

// A packet's pts, or else its dts, likewise.
int64_t passthrough_pts_us(const struct passthrough *passthrough, const struct packet *packet);
