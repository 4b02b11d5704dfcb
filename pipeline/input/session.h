// One connection to a live source. A thread of its own opens it and reads packets, so that whoever
// waits for them can turn away from a call that does not come back: a network that has gone, a
// server or a camera that is frozen.
//
//   state     what it is                             left when
//   OPENING   connecting, learning of the streams    they are known, or that fails
//   OPEN      packets arrive                         the other side ends it, or a call fails
//   OVER      no more will come                      session_close()
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/reach.h"
#include "pipeline/input/simulate.h"
#include "base/status.h"

struct session_request {
    const char *url;
    const AVInputFormat *demuxer; // (optional)
    const AVDictionary *options;  // (optional) copied
    int64_t open_ns, stall_ns;    // how long opening, and reading one packet, may take
    // (optional) What an earlier connection held. If the new one says that it has the same, it
    // begins without looking at packets first, which takes a second.
    const AVFormatContext *known;
    struct simulate *simulate; // (optional) faults; referred to
    struct reach *reach;       // what may be opened; referred to; NULL: a device
    int64_t max_pixels;        // of pictures that are decoded to learn of the streams
};

struct session;

// Begin to connect. Nothing of the request is needed afterwards.
enum status session_start(const struct session_request *request, struct session **session);

enum session_state { SESSION_OPENING, SESSION_OPEN, SESSION_OVER };

// The state, after waiting while it is OPENING until `until_ns` of CLOCK_MONOTONIC.
enum session_state session_await(struct session *session, int64_t until_ns);

// FFmpeg's error that ended it, AVERROR_EOF when the other side closed it; 0 before that.
int session_error(const struct session *session);

// What the connection holds, as of when it became OPEN: streams with their parameters, in a context
// that nothing can be read from. The caller owns it then (avformat_free_context()), and the session
// has no more; NULL if it never was OPEN or the context was taken before.
AVFormatContext *session_take_format(struct session *session);

// When the connection stood, by CLOCK_MONOTONIC; its first packet came about then, though it is
// given out later if the streams had to be learned from packets. 0 before that.
int64_t session_opened_ns(const struct session *session);

// Take the next packet, waiting until `until_ns`. *packet is the caller's, or NULL when none came
// by then.
// STATUS_EOF: it is OVER, and all its packets were taken.
enum status session_read(struct session *session, int64_t until_ns, struct packet **packet);

// Turn away, but keep hold of it, to see when its thread has come back and session_is_gone(). It
// still has to be left.
void session_cancel(struct session *session);
bool session_is_gone(const struct session *session);

// Turn away. What blocks is interrupted where that is possible; the session's thread frees itself
// and the connection when it comes back. Accepts NULL behind the pointer, leaves NULL.
void session_close(struct session **session);
