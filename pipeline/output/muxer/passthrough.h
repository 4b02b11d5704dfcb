// Passthrough: the streams of the source that go into an output as they are, beside the filtered
// one. Which they are, and on what clock their packets run.
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

// Begin, for the streams of `from`, which is not needed afterwards. None is accepted yet.
// STATUS_MEMORY is the only failure.
enum status passthrough_init(struct passthrough *passthrough, const AVFormatContext *from,
                             int video);

// Free everything; zero afterwards.
void passthrough_finish(struct passthrough *passthrough);

// Accept what `other`, of the same source, accepts, too. Zero becomes a copy of it.
enum status passthrough_join(struct passthrough *passthrough, const struct passthrough *other);

// Whether a stream of the source goes along.
bool passthrough_accepts(const struct passthrough *passthrough, int stream);

// Whether none does: the output is video alone.
bool passthrough_is_empty(const struct passthrough *passthrough);

// When a packet is decoded, or else shown, in microseconds; AV_NOPTS_VALUE: it does not say.
int64_t passthrough_dts_us(const struct passthrough *passthrough, const struct packet *packet);

// When it is shown, or else decoded.
int64_t passthrough_pts_us(const struct passthrough *passthrough, const struct packet *packet);
