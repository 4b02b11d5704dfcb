// Where filtered frames go: an encoded file, a list of hashes, or nowhere.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdbool.h>

#include "pipeline/pixel.h"
#include "pipeline/source.h"
#include "pipeline/stop.h"
#include "stages/log.h"
#include "stages/status.h"

// Which ranges a Y'CbCr picture can have in the output: any, as its tags say; or only one, because
// nothing in the output would tell a player of the other.
enum sink_range { SINK_RANGE_ANY, SINK_RANGE_LIMITED, SINK_RANGE_FULL };

// What frames a sink takes.
struct sink_formats {
    const enum AVPixelFormat *candidates; // ended by AV_PIX_FMT_NONE; NULL: any
    bool natural;                         // as the chain leaves them
    struct pixel_wishes wishes;
    enum sink_range range; // of Y'CbCr
};

// What is known when the first frame has been filtered.
struct sink_video {
    const struct source *source;
    const AVFrame *first;  // size, pixel format, tags, side data
    AVRational time_base;  // of frames
    AVRational frame_rate; // {0}: unknown
    int64_t shift;         // microseconds by which timestamps move back
    int64_t end;           // where the video ends before its input does, before the shift
};

// What a sink passes packets to, when it makes any: the queue of the muxing thread. A packet's
// `pos` is its pts in microseconds.
struct packet_queue {
    enum status (*push)(struct packet_queue *queue, AVPacket **packet);
};

struct sink {
    struct sink_formats formats;
    const char *encoder;      // NULL: none
    const char *container;    // "mp4", "hash", "null"
    bool has_packets;         // frames become packets, and other streams may join them
    bool one_frame;           // the output holds a single picture
    _Atomic int64_t dropped;  // frames that the output's clock has no tick for
    enum AVPixelFormat pixel; // of what is written: of the frames, unless open() changes it

    // Open everything and write the header. Once.
    enum status (*open)(struct sink *sink, const struct sink_video *video);

    // Take a frame, or NULL at the end; packets that come of it go to `queue`. The frame stays the
    // caller's. One thread.
    enum status (*write)(struct sink *sink, AVFrame *frame, struct packet_queue *queue);

    // Of sinks with packets, in another thread: whether a stream of the source is wanted; write a
    // packet of it, or of the video.
    bool (*wants)(const struct sink *sink, int stream);
    enum status (*write_packet)(struct sink *sink, AVPacket *packet);

    // All is written: make it whole. After the threads have ended.
    enum status (*finish)(struct sink *sink);

    // Bytes written so far. Any thread.
    int64_t (*size)(const struct sink *sink);

    // Free everything; what was not finished leaves no trace. Leaves NULL.
    void (*destroy)(struct sink **sink);
};

struct sink_request {
    const char *output;
    const char *format, *encoder, *crf, *preset, *bitrate; // (optional)
    const char *const *options;                            // (optional) ended by NULL
    bool overwrite;
};

// Find out how to write the output; refuse what cannot be. Nothing is created. STATUS_USAGE for
// names and options that do not exist, STATUS_OUTPUT for places that cannot be written.
//
// `stop` (optional) must outlive the sink: once it is late, writing to a pipe that nobody reads
// ends.
enum status sink_create(const struct sink_request *request, const struct log *log,
                        const struct stop *stop, struct sink **sink);

// The kinds of sink, which sink_create() chooses between. `file` is what follows "hash:".
enum status sink_null_create(struct sink **sink);
enum status sink_hash_create(const char *file, bool overwrite, const struct log *log,
                             const struct stop *stop, struct sink **sink);
enum status sink_file_create(const struct sink_request *request, const struct log *log,
                             const struct stop *stop, struct sink **sink);

static inline void sink_destroy(struct sink **sink)
{
    if (*sink)
        (*sink)->destroy(sink);
}
