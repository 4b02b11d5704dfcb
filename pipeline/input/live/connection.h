// One connection to a live source. A thread of its own opens it and reads packets, so that its
// owner can turn away from a call that does not come back: a network that has gone, a server or a
// camera that is frozen.
//
//   state     meaning                                left when
//   OPENING   connecting, probing the streams        they are known, or that fails
//   OPEN      packets arrive                         the other side ends it, or a call fails
//   OVER      no more will come                      connection_close()
//
// Thread-safety: the owner's thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/faults/simulate.h"
#include "pipeline/input/io/reach.h"

struct connection_request {
    const char *url;
    const AVInputFormat *demuxer; // (optional)
    const AVDictionary *options;  // (optional) copied
    int64_t open_ns, stall_ns;    // limits of opening, and of reading one packet
    // (optional) The streams of an earlier connection. If the new one announces the same, it begins
    // without probing packets first, which takes a second.
    const AVFormatContext *known;
    struct simulate *simulate; // (optional) faults; referred to
    struct reach *reach;       // the rule of what may be opened; referred to; NULL: a device
    int64_t max_pixels;        // of pictures that are decoded to probe the streams
};

struct connection;

// Begin to connect. Nothing of the request is needed afterwards. On failure *connection is NULL.
enum status connection_start(const struct connection_request *request,
                             struct connection **connection);

enum connection_state { CONNECTION_OPENING, CONNECTION_OPEN, CONNECTION_OVER };

// The state, after waiting while it is OPENING until `until_ns` of CLOCK_MONOTONIC.
enum connection_state connection_await(struct connection *connection, int64_t until_ns);

// FFmpeg's error that ended it, AVERROR_EOF when the other side closed it; 0 before that.
int connection_error(const struct connection *connection);

// The streams with their parameters, as of when the connection became OPEN, in a context that
// nothing can be read from. The caller owns it then (avformat_free_context()); NULL if the
// connection never was OPEN or the context was taken before.
AVFormatContext *connection_take_format(struct connection *connection);

// When the connection was established, by CLOCK_MONOTONIC; its first packet came about then, though
// it is given out later if the streams had to be probed. 0 before that.
int64_t connection_opened_ns(const struct connection *connection);

// Take the next packet, waiting until `until_ns`. *packet is the caller's, or NULL when none came
// by then.
// STATUS_EOF: it is OVER, and all its packets were taken.
enum status connection_read(struct connection *connection, int64_t until_ns,
                            struct packet **packet);

// Cancel: its packets are dropped and what blocks is interrupted where that is possible.
// connection_is_gone() says when its thread has come back. It still has to be closed.
void connection_cancel(struct connection *connection);
bool connection_is_gone(const struct connection *connection);

// Cancel, and free the connection when its thread has come back, without waiting for that. Accepts
// NULL behind the pointer, leaves NULL.
void connection_close(struct connection **connection);
