// Other streams: packets of all streams of a file beside its video, by their times and hashes; what
// a manifest says of them, and whether they are those of the source.
//
// A manifest lists in its end, as "others", for each of them
//
//   stream    its number in the output
//   packets   how many
//   root      of the hash tree over a line ["packet", PTS, KEY, SIZE, "HASH"] for each
//   from      the stream of the source that has the same packets, byte for byte, at the same times;
//             null: none has, as the container stores them otherwise
//
// ADTS headers, which only some containers have in front of AAC, are no part of what is compared.
//
// Thread-safety: one thread.
#pragma once

#include <jansson.h>
#include <libavformat/avformat.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/frame_hash.h"
#include "pipeline/part/hash_tree.h"
#include "pipeline/part/manifest.h"

struct source_request;

struct other_packet {
    int64_t pts;
    char hash[FRAME_HASH_TEXT]; // of what is compared
};

// Zero has none.
struct other_streams {
    struct other_stream {
        AVRational time_base;
        struct other_packet *packet;
        int64_t count;
        struct hash_tree tree; // over their lines
    } * stream;                // by its number in the file
    int count;
};

// By how much the video of an output, whose earliest packet has `first_pts`, is behind that of the
// source, in microseconds: other streams are behind it by as much. `made` has its frames.
int64_t other_streams_shift(const struct manifest *made, int64_t first_pts, AVRational time_base);

void other_streams_free(struct other_streams *streams);

// Add a packet of this stream of the file. STATUS_MEMORY is the only failure.
enum status other_streams_add(struct other_streams *streams, const AVPacket *packet,
                              const AVStream *of);

// Describe those of an output, whose times are behind those of its source by `shift_us`. The caller
// owns *others.
enum status other_streams_describe(const struct other_streams *output,
                                   const struct other_streams *source, int64_t shift_us,
                                   json_t **others);

// What a check has found.
struct other_streams_found {
    int streams; // as they were written
    int copied;  // of these: with the packets of a stream of the source
};

// Check those of the output called `name` against their description, and against the source, which
// is read if it has any. STATUS_FAILED, with a sentence that names the stream; or as source_open().
enum status other_streams_check(const struct other_streams *output, const json_t *others,
                                const struct source_request *source, int64_t shift_us,
                                const char *name, const struct log *log,
                                struct other_streams_found *found);
