// Sink: takes filtered frames.
//
//   kind     what it is                                                       file
//   encode   one encoder; its packets go to one or more mux threads           sink_encode.c
//   hash     a list of hashes                                                 sink_hash.c
//   null     nowhere                                                          sink_null.c
//   take     a callback of the program's                                      sink_take.c
//   tee      several of these, each with a thread of its own                  sink_tee.c
#pragma once

#include <libavcodec/avcodec.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/meter.h"
#include "base/status.h"
#include "base/stop.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/output/mux_thread.h"
#include "pipeline/output/muxer/passthrough.h"
#include "plan/program.h"
#include "sluice/frame.h"

// The ranges that Y'CbCr can have in the output: any, with a tag; or only one, because the output
// has no tag for it.
enum sink_range { SINK_RANGE_ANY, SINK_RANGE_LIMITED, SINK_RANGE_FULL };

// The frames that a sink takes.
struct sink_formats {
    const enum AVPixelFormat *candidates; // ended by AV_PIX_FMT_NONE; NULL: any
    bool natural;                         // as the chain leaves them
    struct pixel_wishes wishes;
    enum sink_range range;       // of Y'CbCr
    bool asked;                  // the one format in `candidates` was asked for
    enum sink_range asked_range; // likewise, of Y'CbCr and gray; ANY: it was not
};

static inline bool sink_is_asked(const struct sink_formats *formats)
{
    return formats->asked || formats->asked_range != SINK_RANGE_ANY;
}

// The video, as known when the first frame has been filtered.
struct sink_video {
    const char *name;              // of the source, without secrets; it outlives the sink
    const AVFormatContext *from;   // the source's streams, chapters and tags
    int stream;                    // the one of them that is filtered
    bool live;                     // it plays in its own time
    const AVFrame *first;          // size, pixel format, tags, side data
    AVFrame *const *tee;           // the same of each tee's picture
    AVRational time_base;          // of frames
    AVRational frame_rate;         // {0}: unknown
    int64_t shift;                 // microseconds by which timestamps move back
    int64_t begin;                 // where the output begins, before the shift
    int64_t end;                   // where the video ends before its input does, before the shift
    bool has_siblings;             // there are other sinks, which nothing may hold up
    bool silent;                   // another sink logs what is true of all
    struct mux_thread_watch watch; // on the first output's packets
    // True if a frame that has waited is too old to be begun with. NULL: none ever is. Any thread.
    bool (*is_late)(void *opaque, const AVFrame *frame);
    void *opaque;
};

// The video as it was encoded.
struct sink_encoded {
    AVCodecParameters *codec; // the sink's; NULL: it does not encode
    AVRational time_base;     // of packets
    AVRational frame_rate;    // {0}: unknown
    bool global_header;       // the codec's headers are in `codec` and not in packets
    bool rotated;             // pictures were rotated, the container is not to ask for it
    int64_t shift;            // microseconds by which timestamps were moved back
};

// One output of a sink.
struct sink_output {
    const char *name;      // without secrets
    const char *encoder;   // NULL: none
    const char *container; // "mp4", "hash", "null"
    int64_t frames;        // written
    int64_t dropped;       // left out, because it was too slow or not there
    int64_t missing;       // of those: there was no room on the disk for them
    int64_t bytes, files, connects;
    bool connected, failed;
    int64_t unwatched; // not made, because nobody watched
    bool tee;          // it gets the picture of a tee
};

struct sink {
    struct sink_formats formats;
    enum AVPixelFormat asked[2]; // what `formats` points to, where one was asked for
    struct sink_formats tee_formats[MAX_PICTURES - 1]; // of tees: of each tee's picture
    AVFrame *const *tee;   // of tees: each tee's picture of the frame that write() takes next
    const char *encoder;   // NULL: none
    const char *container; // "mp4", "hash", "null"
    bool accepts_streams;  // streams of the source may go along with the video
    struct passthrough passthrough; // which do; set by open()
    bool one_frame;                 // the output holds a single picture
    bool is_live;             // it is watched while it is written: all goes at the source's pace
    _Atomic int64_t dropped;  // frames that the output's clock has no tick for
    _Atomic int64_t kept;     // of sinks that accept streams: frames that a stop does not take back
    bool has_threads;         // write() hands frames over, and `meter` is the sink's own to keep
    struct meter *meter;      // (optional) how long the busiest of its threads has been
    _Atomic int64_t unwanted; // frames that nobody watched, or that one picture has no room for
    atomic_bool absent;       // a stop left it without a picture; set by finish()
    enum AVPixelFormat pixel; // of what is written: of the frames, unless open() changes it
    struct sink_encoded encoded; // set by open()

    // Check that its files may be written, as destination_check(). Before open(); NULL: it has
    // none.
    enum status (*check)(const struct sink *sink);

    // Open everything and write the header. Once.
    enum status (*open)(struct sink *sink, const struct sink_video *video);

    // Take a frame, or NULL at the end. The frame stays the caller's. One thread. STATUS_STOPPED:
    // no time is left, though the encoder has it; STATUS_EOF: nobody watches any more.
    enum status (*write)(struct sink *sink, AVFrame *frame);

    // Take a packet of a stream that `passthrough` accepts, which stays the caller's. In another
    // thread than write(). NULL: it accepts none.
    enum status (*write_packet)(struct sink *sink, const struct packet *packet);

    // Cancel: write() and write_packet() do not wait any more. Any thread. NULL: they never do.
    void (*cancel)(struct sink *sink);

    // Finish: make the output whole. `cut`: the video ended before its source did, and other
    // streams end with it. A sink that accepts streams and has no picture when the job was stopped
    // is discarded instead, with a sentence: sound alone is of no use. No other thread is in
    // write_packet() then; one may still be in write() after cancel(), deep in an encoder, and is
    // not waited for.
    enum status (*finish)(struct sink *sink, bool cut);

    // Print the conversions by libswscale before pictures, number n shaped like picture[n], which has no
    // samples, can be encoded: a line each. NULL: none.
    void (*print_steps)(const struct sink *sink, const AVFrame *picture, FILE *to);

    // Frames that write() took and no encoder has given out yet; with several outputs, of the one
    // furthest behind. Any thread. NULL: none are kept back.
    int64_t (*pending)(const struct sink *sink);

    // Describe the outputs, at most `most`. Returns how many. Any thread.
    int (*outputs)(const struct sink *sink, struct sink_output *list, int most);

    // The memory that it may take from now on, at most, for frames of so many bytes. After open().
    // NULL: none.
    int64_t (*memory)(const struct sink *sink, int64_t frame_bytes);

    // The memory that it will take, about, for frames of so many bytes, by picture; `live` as of
    // struct sink_video. At any time, any thread. NULL: none to speak of.
    int64_t (*estimate)(const struct sink *sink, const int64_t *frame_bytes, bool live);

    // Free everything; what was not finished leaves no trace. Leaves NULL.
    void (*destroy)(struct sink **sink);
};

// Who takes frames of an output "take:", which is the job's number `output`: take() of struct
// sluice_config; NULL: nobody.
struct sink_taker {
    enum sluice_status (*take)(void *opaque, int output, const struct sluice_format *format,
                               const struct sluice_frame *frame);
    void *opaque;
    int output;
};

struct sink_request {
    const char *output;
    const char *whole; // (optional) the output that this is a part of: what its encoding follows
    int picture;       // of the chain: its result, or that of tee `picture` - 1
    const char *format, *encoder, *preset; // (optional)
    double crf;                            // 0: not given; below 0: 0
    int64_t bitrate;                       // likewise
    const char *const *options;            // (optional) ended by NULL
    double segment;                        // seconds; 0: one file
    int threads;                           // of the encoder; 0: as many as it takes. Of a part
                                           // 1 where the headers would tell it
    const char *pixfmt;                    // (optional)
    enum sink_range range;                 // ANY: what comes of the rest
    bool overwrite;
    const struct path_conflicts *conflicts; // (optional) as of struct destination_request
    double open_timeout, stall_timeout;     // of connections, seconds
    int reconnects;                         // attempts in a row; 0: for ever, below 0: none
    bool await_start;                       // as many when an address is not reached at first
    struct sink_taker taker;
};

enum { MAX_OUTPUTS = 16 };
_Static_assert(MAX_OUTPUTS <= (int)MAX_PICTURES, "each output may be a tee's");

// Create the sink for 1 to MAX_OUTPUTS outputs; opens nothing. Outputs of one picture that can have
// the same encoding share one. STATUS_USAGE for names and options that do not exist; places that
// cannot be written are for sink_check() to find.
//
// `stop` (optional) must outlive the sink: once it is late, writing to a pipe that nobody reads
// ends.
enum status sink_create(const struct sink_request *requests, int count, const struct log *log,
                        const struct stop *stop, struct sink **sink);

// The kinds of sink, which sink_create() chooses between. `file` is what follows "hash:".
enum status sink_null_create(struct sink **sink);
enum status sink_hash_create(const char *file, bool overwrite, const struct log *log,
                             const struct stop *stop, struct sink **sink);
enum status sink_take_create(const struct sink_taker *taker, const struct log *log,
                             const struct stop *stop, struct sink **sink);

static const char sink_take_name[] = "take:"; // of such an output

// True for the name of an output that writes nothing anywhere.
static inline bool sink_is_nowhere(const char *output)
{
    return !strcmp(output, "null:") || !strcmp(output, sink_take_name);
}

// Ask the sink, whose formats are set, for the request's pixel format and range. STATUS_USAGE with
// a sentence where it cannot have them; `owner` is who refuses.
enum status sink_ask(struct sink *sink, const struct sink_request *request, const char *owner,
                     const struct log *log);
enum status sink_encode_create(const struct sink_request *request, const struct log *log,
                               const struct stop *stop, struct sink **sink);

// Merge two sinks that encode: the first writes the output of the second too, if the same encoding
// suits both; one for a window or a page does not suit a file. *other is NULL then.
void sink_encode_join(struct sink *sink, struct sink **other);

// Create a tee. Takes the `count` sinks in either case. Sink number k gets picture[k].
enum status sink_tee_create(struct sink **sinks, const int *picture, int count,
                            const struct log *log, const struct stop *stop, struct sink **sink);

// The frames that a sink takes, picture by picture.
static inline void sink_list_formats(const struct sink *sink, struct sink_formats *list)
{
    list[0] = sink->formats;
    for (int n = 1; n < MAX_PICTURES; n++)
        list[n] = sink->tee_formats[n - 1];
}

static inline enum status sink_check(const struct sink *sink)
{
    return sink->check ? sink->check(sink) : STATUS_OK;
}

static inline int64_t sink_memory(const struct sink *sink, int64_t frame_bytes)
{
    return sink->memory ? sink->memory(sink, frame_bytes) : 0;
}

static inline int64_t sink_estimate(const struct sink *sink, const int64_t *frame_bytes, bool live)
{
    return sink->estimate ? sink->estimate(sink, frame_bytes, live) : 0;
}

static inline void sink_destroy(struct sink **sink)
{
    if (!*sink)
        return;
    passthrough_finish(&(*sink)->passthrough);
    (*sink)->destroy(sink);
}
