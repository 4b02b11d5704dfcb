// How a mux thread's packets reach their destination: what differs between the kinds of
// destination.
//
//   kind                what is written                                     file
//   FILE                one output, from the first packet to the last       delivery_file.c
//   SEGMENTS            a series of outputs, each from a key frame on       delivery_segments.c
//   ADDRESS             an output that may be lost, and is connected again  delivery_connection.c
//   DISPLAY             pictures in a window                                delivery_window.c
//   PAGE                the newest picture, to whoever looks                delivery_page.c
//
// Thread-safety: whoever creates it opens it; from then on it is the mux thread's, except for
// what says otherwise.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/output/output.h"
#include "base/stop.h"
#include "pipeline/output/destination.h"
#include "base/log.h"
#include "base/status.h"

// What it is made of; the pointers must outlive it.
struct delivery_request {
    const struct log *log;
    const struct stop *stop; // (optional)
    const struct destination *destination;
    int64_t open_ns, stall_ns; // that connecting, and writing a packet, may take
    int reconnects;            // attempts in a row; below 0: for ever
    // ---- known when it is opened ----
    const AVDictionary *options; // (optional) of the muxer
    bool must_connect;           // an address that is not reached at first is a failure
};

struct delivery {
    struct delivery_request request;
    struct output_guard guard; // .over is set by any thread when nothing is waited for any more

    // ---- set by open() ----
    int video;   // the filtered stream of the source
    bool *wants; // by stream of the source

    // ---- the mux thread's ----
    struct output *output;   // NULL: a connection that does not stand, a window or a page
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
    enum status (*open)(struct delivery *delivery, const struct output_streams *streams);

    // Write a packet, if it is of use: *written. STATUS_EOF: it has ended.
    enum status (*write)(struct delivery *delivery, AVPacket *packet, bool *written);

    // Try to reach what is away. *stale: what has waited for it is old by now. NULL: never away.
    enum status (*attempt)(struct delivery *delivery, bool *stale);

    // From the next packet on, a key frame, the video is another. Takes the streams. NULL: cannot.
    void (*change)(struct delivery *delivery, struct output_streams *streams);

    // Whether a key frame is due at this time; true once for each. The pushing thread's. NULL:
    // never.
    bool (*is_key_due)(struct delivery *delivery, int64_t pts_us);

    // Whether nobody would see what is written now. Any thread. NULL: somebody does.
    bool (*is_idle)(const struct delivery *delivery);

    // Make it whole.
    enum status (*finish)(struct delivery *delivery);

    // It is over, one way or the other, in the mux thread. NULL: nothing is to be done then.
    void (*close)(struct delivery *delivery);

    // Free what the kind has beyond this. NULL: nothing.
    void (*free)(struct delivery *delivery);
};

// Make the kind that the request's destination is. On success the caller owns *delivery.
enum status delivery_create(const struct delivery_request *request, struct delivery **delivery);

// Free it; what was not finished leaves no trace, except where others watch. Accepts NULL behind
// the pointer.
void delivery_destroy(struct delivery **delivery);

// ---- what the kinds share ----

struct delivery *delivery_file_new(void);
struct delivery *delivery_segments_new(void);
struct delivery *delivery_connection_new(void);
struct delivery *delivery_window_new(void);
struct delivery *delivery_page_new(void);

static inline bool delivery_is_video(const struct delivery *delivery, const AVPacket *packet)
{
    return packet->stream_index == delivery->video;
}

// Begin an output under `name`, the one of the delivery. `streams` are not new ones afterwards.
enum status delivery_begin(struct delivery *delivery, const char *name,
                           struct output_streams *streams);

// It is done, one way or the other. Accepts none.
void delivery_close(struct delivery *delivery);

// Take note of which streams its output takes, and how large that is.
enum status delivery_note_wants(struct delivery *delivery, const struct output_streams *streams);
void delivery_note_size(struct delivery *delivery);
