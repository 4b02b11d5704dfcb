// Transport: how a mux thread's packets reach their destination, a kind for each kind of
// destination.
//
//   kind                what is written                                     file
//   FILE                one muxer, from the first packet to the last        transport_file.c
//   SEGMENTS            a series of muxers, each from a key frame on        transport_segments.c
//   ADDRESS             a connection that may be lost and made again        transport_connection.c
//   DISPLAY             pictures in a window                                transport_window.c
//   PAGE                the newest picture, to whoever looks                transport_page.c
//
// Thread-safety: the thread that creates it opens it; from then on it is the mux thread's, unless
// stated otherwise.
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

// The pointers must outlive the transport.
struct transport_request {
    const struct log *log;
    const struct stop *stop; // (optional)
    const struct destination *destination;
    int64_t open_ns, stall_ns; // limits of connecting and of writing a packet
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
    struct muxer *muxer;     // NULL: no connection, a window or a page
    bool away;               // nothing can be written until attempt() succeeds
    int64_t next_attempt_ns; // when
    bool ended;              // finally: a window was closed

    // ---- any thread's ----
    atomic_bool wants_key; // packets are of no use before a key frame
    atomic_bool connected;
    _Atomic int64_t bytes, files, connects;
    _Atomic int64_t unsafe; // packets of video written, but not safely on the disk yet
    _Atomic int64_t lost;   // ... and never got there
    int64_t closed_bytes;   // by muxers before this one; the mux thread's

    // Fill `passthrough`, and begin unless that takes a connection. `streams` is needed until it
    // returns.
    enum status (*open)(struct transport *transport, const struct muxer_streams *streams);

    // Write a packet; *written is false if it was of no use. Takes the packet's data. STATUS_EOF:
    // the transport has ended.
    enum status (*write)(struct transport *transport, struct packet *packet, bool *written);

    // Try to connect, or to go on, while away. *stale: packets that waited meanwhile are too old.
    // NULL: never away.
    enum status (*attempt)(struct transport *transport, bool *stale);

    // Change the video from the next packet on, a key frame. Takes the streams. NULL: not possible.
    void (*change)(struct transport *transport, struct muxer_streams *streams);

    // True if a key frame is due at this time; true once for each. The thread's that pushes video.
    // NULL: never.
    bool (*is_key_due)(struct transport *transport, int64_t pts_us);

    // True if nobody watches. Any thread. NULL: somebody always does.
    bool (*is_idle)(const struct transport *transport);

    // Finish: the output is whole.
    enum status (*finish)(struct transport *transport);

    // Close, finished or not, in the mux thread. NULL: nothing to do.
    void (*close)(struct transport *transport);

    // Free the kind's own members. NULL: it has none.
    void (*free)(struct transport *transport);
};

// Create the kind for the request's destination. STATUS_OUTPUT with a sentence where this machine
// cannot have it. On success the caller owns *transport.
enum status transport_create(const struct transport_request *request, struct transport **transport);

// Free the transport; what was not finished leaves no trace, except where others watch. Accepts
// NULL behind the pointer.
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

// Create and begin the transport's muxer, under `name`. Marks `streams` as known (`again`).
enum status transport_begin(struct transport *transport, const char *name,
                            struct muxer_streams *streams);

// Close the muxer, finished or not. There may be none.
void transport_close(struct transport *transport);

// Fill `passthrough` with the streams that the muxer accepts, and update the size.
enum status transport_note_accepted(struct transport *transport,
                                    const struct muxer_streams *streams);
void transport_note_size(struct transport *transport);
