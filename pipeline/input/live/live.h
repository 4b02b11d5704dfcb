// A live source, which may be lost and come back: connections one after another, seen as one.
//
// Its clock (live_clock.h) runs on from connection to connection: a gap in what the source sent is
// as long in its timestamps as it was in the world.
#pragma once

#include <libavformat/avformat.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/faults/simulate.h"
#include "pipeline/input/io/reach.h"

struct live_request {
    const char *url;
    const char *name;             // for messages, without secrets
    const AVInputFormat *demuxer; // (optional)
    const AVDictionary *options;  // (optional)
    double open_timeout;          // seconds
    double stall_timeout;         // seconds without a packet of video after which it counts as lost
    int reconnects;               // attempts in a row after a loss; 0: for ever, below 0: none
    struct simulate *simulate;    // (optional) faults; must outlive it
    struct reach *reach;          // what may be opened; referred to; NULL: a device
    int64_t max_pixels;           // of pictures that are decoded to probe the streams
    // True to end; asked about twenty times a second.
    bool (*is_over)(void *opaque);
    void *opaque;
};

struct live;

// Connect for the first time. Of the request `simulate` and `opaque` are needed as long as the
// source lives. On failure *live is NULL: STATUS_INPUT with a sentence, STATUS_STOPPED if is_over()
// ended it.
enum status live_open(const struct live_request *request, const struct log *log,
                      struct live **live);
void live_close(struct live **live);

// Set the log, before the first live_read(); it must outlive the source.
void live_set_log(struct live *live, const struct log *log);

// The streams of the first connection, in a context that nothing can be read from.
const AVFormatContext *live_format(const struct live *live);

// Set the stream whose packets say that the source is alive, before the first live_read().
void live_watch(struct live *live, int stream);

// Read the next packet, of a stream of live_format() and in its time base, connecting again as
// often as it takes. *packet is the caller's on success, else NULL. The first packet of the watched
// stream after a loss is a restart, and so is one without data at the loss. STATUS_EOF: the source
// is gone for good, as the log says.
//
// Thread-safety: one reading thread.
enum status live_read(struct live *live, struct packet **packet);

// From now on do not wait for the source while it is lost: live_read() ends with STATUS_STOPPED
// then, also one that waits. Any thread.
void live_end_at_loss(struct live *live);

// Counts and state so far. Any thread.
struct live_figures {
    int64_t losses, reconnects; // times that it was lost, and came back
    int64_t lost_us;            // time without it
    bool lost;                  // now, for a quarter of a second or more
    bool connecting;            // it is lost, and the reading thread tries to reconnect
    int64_t clock_us;           // its clock now; AV_NOPTS_VALUE before the first packet
};
void live_figures(const struct live *live, struct live_figures *figures);
