// A source that may go away and come back: connections one after another, seen as one.
//
// Its clock begins at 0 with the first packet and runs with CLOCK_MONOTONIC from connection to
// connection: a gap in what the source sent is as long in its timestamps as it was in the world.
// Within a connection the source's own clock counts, unless it jumps.
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
    // Whether nothing is wanted any more; asked about twenty times a second.
    bool (*is_over)(void *opaque);
    void *opaque;
};

struct live;

// Connect for the first time. STATUS_INPUT with a sentence if that fails; STATUS_STOPPED if it is
// over before.
enum status live_open(const struct live_request *request, const struct log *log,
                      struct live **live);
void live_close(struct live **live);

// Say things there from now on. Before the first live_read().
void live_set_log(struct live *live, const struct log *log);

// What the first connection held, in a context that nothing can be read from.
const AVFormatContext *live_format(const struct live *live);

// The stream whose packets say that the source is alive.
void live_watch(struct live *live, int stream);

// Read the next packet, of a stream of live_format() and in its time base, connecting again as
// often as it takes. *packet is the caller's on success, else NULL. The first packet of the watched
// stream after a loss is a restart, and so is one without data at the loss. STATUS_EOF: the source
// is gone for good, as the log says.
//
// Thread-safety: one reading thread.
enum status live_read(struct live *live, struct packet **packet);

// How it went so far. Any thread.
struct live_figures {
    int64_t losses;     // times that it went away
    int64_t reconnects; // times that it came back
    int64_t lost_us;    // time without it
    bool lost;          // for a quarter of a second or more, now
    bool connecting;    // it is lost, and the reading thread is at having it back
    int64_t clock_us;   // what its clock says now; AV_NOPTS_VALUE before the first packet
};
void live_figures(const struct live *live, struct live_figures *figures);
