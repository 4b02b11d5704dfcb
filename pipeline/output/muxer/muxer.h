// A muxer (libavformat's, for one file or connection): which streams go in, the header, packets,
// the trailer.
//
// Files that the muxer opens (one, or one per image of a sequence, or a playlist and its segments)
// are struct file, whole or absent; a film's playlist is so with all of its segments
// (muxer_files.h). Live: files exist from the first packet of video on, in fragments or clusters of
// a second, so that whatever ends the program, what is there plays up to a second before.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/muxer/destination.h"

// True if the container's muxer by itself, or by generic options, knows this option.
bool muxer_has_option(const AVOutputFormat *container, const char *key);

// True if the container, one with a table of tags, takes video of this codec as the only stream
// (muxer_streams.alone).
bool muxer_takes_alone(const AVOutputFormat *container, enum AVCodecID id);

// The limit of blocking calls on an address: they end at the deadline, by CLOCK_MONOTONIC, or once
// it is over. Any thread.
struct muxer_guard {
    _Atomic int64_t deadline_ns;
    atomic_bool over;
};

// The streams to be muxed.
struct muxer_streams {
    const char *name;               // of the source, without secrets; it outlives the outputs
    const AVFormatContext *from;    // the source's streams, chapters and tags
    int video;                      // the one of them that is filtered
    bool live;                      // a crash must leave something that plays
    const AVCodecParameters *codec; // of the encoded video
    AVRational time_base;           // of the encoder's packets
    AVRational frame_rate;          // {0}: unknown
    bool global_header;             // the codec's headers are in its parameters and not in packets
    const AVFrame *first;           // a filtered frame: tags and side data
    int64_t shift;                  // microseconds by which timestamps move back
    int64_t begin; // where the output begins before that: its first frame or before; microseconds
    int64_t end;   // where the output ends before that, in microseconds; INT64_MAX: unknown
    bool rotated;  // pictures have been rotated, the container is not to ask for it
    bool alone; // nothing but the video goes along, not even chapters, and times stay as they are
    bool again; // not the first muxer with these: streams left out have been logged
};

// Copy streams with all that they point to; the caller owns *copy, also after a failure.
enum status muxer_streams_copy(const struct muxer_streams *streams, struct muxer_streams *copy);

// Free such a copy. Nothing to free is fine.
void muxer_streams_free(struct muxer_streams *copy);

struct muxer;

// Create a muxer, and open its file under `name` (not the destination's, which may stand for
// several); an address is connected to by muxer_begin(). `destination`, `stop` and `guard`
// (optional) must outlive the muxer.
enum status muxer_create(const struct destination *destination, const char *name,
                         const struct log *log, const struct stop *stop, struct muxer_guard *guard,
                         struct muxer **muxer);

// Add a stream for every one of the source that the container takes, in the source's order, and log
// which are left out and why. Copies chapters, metadata, dispositions, rotation and HDR data; the
// first frame has the latter where only the bitstream did. `options` (optional) are those of
// muxer_begin(): they may say what a playlist's segments are. Once.
enum status muxer_add_streams(struct muxer *muxer, const struct muxer_streams *streams,
                              const AVDictionary *options);

// Connect to an address, and write the header, after muxer_add_streams(). *options (av_dict) holds
// what muxer_has_option() knows. STATUS_EOF: an address is not reached, for muxer_error()'s reason;
// nothing was logged.
enum status muxer_begin(struct muxer *muxer, AVDictionary **options);

// True if packets of this stream of the source go into the output.
bool muxer_accepts_stream(const struct muxer *muxer, int stream);

// Write one packet: of the encoder (`stream_index` the filtered one's) or copied from the source.
// Takes the packet's data in either case. STATUS_EOF: a connection is lost.
//
// Thread-safety: one thread from muxer_begin() to muxer_finish().
enum status muxer_write(struct muxer *muxer, AVPacket *packet);

// Write the trailer and give the file its name. STATUS_EOF: the connection did not take it.
enum status muxer_finish(struct muxer *muxer);

// The same, but the file is the caller's, held (file_hold()) without its name. For a destination that
// is one file. STATUS_USAGE with a sentence: it is none.
enum status muxer_hold(struct muxer *muxer, struct file **file);

// Free the muxer; a file that was not finished is removed. Accepts NULL behind the pointer.
void muxer_destroy(struct muxer **muxer);

// True if a file could not be written, which may change: the disk is full, the folder away.
bool muxer_is_blocked(const struct muxer *muxer);

// The reason of the last STATUS_EOF, in FFmpeg's words.
const char *muxer_error(const struct muxer *muxer);

// Bytes written. Any thread.
int64_t muxer_size(const struct muxer *muxer);
