// How a mux thread's packets reach their destination: what differs between the kinds of
// destination.
//
//   kind                what is written                                     file
//   FILE                one output, from the first packet to the last       transport_file.c
//   SEGMENTS            a series of outputs, each from a key frame on       transport_segments.c
//   ADDRESS             an output that may be lost, and is connected again  transport_connection.c
//   DISPLAY             pictures in a window                                transport_window.c
//   PAGE                the newest picture, to whoever looks                transport_page.c
//
// Thread-safety: whoever creates it opens it; from then on it is the mux thread's, except for
// what says otherwise.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "pipeline/output/muxer/destination.h"
#include "pipeline/output/muxer/muxer.h"
#include "pipeline/output/muxer/passthrough.h"

// What it is made of; the pointers must outlive it.
struct transport_request {
    const struct log *log;
    const struct stop *stop; // (optional)
    const struct destination *destination;
    int64_t open_ns, stall_ns; // that connecting, and writing a packet, may take
    int reconnects;            // attempts in a row; 0: for ever, below 0: none
    // ---- known when it is opened ----
    const AVDictionary *options; // (optional) of the muxer
    bool must_connect;           // an address that is not reached at first is a failure
};

struct transport {
    struct transport_request request;
    struct muxer_guard guard; // .over is set by any thread when nothing is waited for any more

    // ---- set by open() ----
    struct passthrough passthrough; // the streams that go along

    // ---- the mux thread's ----
    struct muxer *muxer;     // NULL: a connection that does not stand, a window or a page
    bool away;               // nothing can be written now, attempt() is wanted
    int64_t next_attempt_ns; // when
    bool ended;              // for good: a window was closed

    // ---- any thread's ----
    atomic_bool wants_key; // what comes before a key frame is of no use
    atomic_bool connected;
    _Atomic int64_t bytes, files, connects;
    _Atomic int64_t unsafe; // packets of video that were written and may not be on the disk yet
    _Atomic int64_t lost;   // ... and never got there
    int64_t closed_bytes;   // of outputs before this one; the mux thread's

    // Find out which streams go in, and begin where that needs nobody else. `streams` is needed
    // until it returns.
    enum status (*open)(struct transport *transport, const struct muxer_streams *streams);

    // Write a packet, if it is of use: *written. STATUS_EOF: it has ended.
    enum status (*write)(struct transport *transport, struct packet *packet, bool *written);

    // Try to reach what is away. *stale: what has waited for it is old by now. NULL: never away.
    enum status (*attempt)(struct transport *transport, bool *stale);

    // From the next packet on, a key frame, the video is another. Takes the streams. NULL: cannot.
    void (*change)(struct transport *transport, struct muxer_streams *streams);

    // Whether a key frame is due at this time; true once for each. The pushing thread's. NULL:
    // never.
    bool (*is_key_due)(struct transport *transport, int64_t pts_us);

    // Whether nobody would see what is written now. Any thread. NULL: somebody does.
    bool (*is_idle)(const struct transport *transport);

    // Make it whole.
    enum status (*finish)(struct transport *transport);

    // It is over, one way or the other, in the mux thread. NULL: nothing is to be done then.
    void (*close)(struct transport *transport);

    // Free what the kind has beyond this. NULL: nothing.
    void (*free)(struct transport *transport);
};

// Make the kind that the request's destination is. STATUS_OUTPUT with a sentence where this machine
// cannot have it. On success the caller owns *transport.
enum status transport_create(const struct transport_request *request, struct transport **transport);

// Free it; what was not finished leaves no trace, except where others watch. Accepts NULL behind
// the pointer.
void transport_destroy(struct transport **transport);

// ---- what the kinds share ----

struct transport *transport_file_new(void);
struct transport *transport_segments_new(void);
struct transport *transport_connection_new(void);
struct transport *transport_window_new(void);
struct transport *transport_page_new(void);

static inline bool transport_is_video(const struct transport *transport,
                                      const struct packet *packet)
{
    return packet->av->stream_index == transport->passthrough.video;
}

// Begin an output under `name`, the one of the transport. `streams` are not new ones afterwards.
enum status transport_begin(struct transport *transport, const char *name,
                            struct muxer_streams *streams);

// It is done, one way or the other. Accepts none.
void transport_close(struct transport *transport);

// Take note of which streams its muxer takes, and how large the output is.
enum status transport_note_accepted(struct transport *transport,
                                    const struct muxer_streams *streams);
void transport_note_size(struct transport *transport);
