// A mux thread: takes packets for one output, and muxes them in a thread of its own. What one
// encoder makes may go to several.
//
//   waiting    holds up the encoder while its output is slow: the file of a job that is not live
//   skipping   never does: it leaves out whole groups of pictures, from the packet without room to
//              the next key frame, which it asks for
//
// Packets of other streams are written once video of their time has come (hold.h). How packets
// reach what the output is, and what happens when that fails, is the transport's (transport.h). No
// other output is touched by any of it.
#pragma once

#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/output/muxer/destination.h"
#include "pipeline/output/muxer/muxer.h"
#include "pipeline/output/muxer/passthrough.h"

enum { MUX_PACKETS_WAITING = 64 }; // the most that hold up no encoder yet

struct mux_thread_request {
    struct destination_request destination;
    double open_timeout;  // seconds that connecting may take
    double stall_timeout; // seconds that writing a packet may take
    int reconnects; // attempts in a row, until a connection is good; 0: for ever, below 0: none
};

struct mux_thread;

// Create a mux thread, not started: parse its destination, open nothing. STATUS_USAGE or
// STATUS_OUTPUT with a sentence. `stop` (optional) must outlive it.
enum status mux_thread_create(const struct mux_thread_request *request, const struct log *log,
                              const struct stop *stop, struct mux_thread **mux);

// Free it; what was not finished leaves no trace, except where others watch. Accepts NULL behind
// the pointer.
void mux_thread_destroy(struct mux_thread **mux);

const struct destination *mux_thread_destination(const struct mux_thread *mux);

// Set options for the muxer, before mux_thread_open(). Takes the dictionary.
void mux_thread_set_options(struct mux_thread *mux, AVDictionary **options);

// A watch on packets, called from the mux thread.
struct mux_thread_watch {
    // A packet was written, of the filtered stream if `pts_us` is not AV_NOPTS_VALUE.
    void (*wrote)(void *opaque, int64_t pts_us, int64_t begin_ns);
    void *opaque;
};

struct mux_thread_opening {
    struct muxer_streams streams; // all that it points to is needed until mux_thread_open() returns
    bool skips;                   // else it holds up the encoder
    bool must_connect;            // an address that is not reached at first is a failure
    struct mux_thread_watch watch; // .wrote NULL: none
};

// Write the header and start the thread; an address is connected to in the thread. Once.
enum status mux_thread_open(struct mux_thread *mux, const struct mux_thread_opening *opening);

// The streams of the source that go into the output. Any thread, after mux_thread_open().
const struct passthrough *mux_thread_passthrough(const struct mux_thread *mux);

// True if the next frame should be a key frame; true once for each request.
bool mux_thread_takes_key(struct mux_thread *mux, int64_t pts_us);

// True if nobody watches: a page without visitors. Any thread.
bool mux_thread_is_idle(const struct mux_thread *mux);

// Push a packet of the source's stream `stream_index`; one of the filtered stream has its pts_us.
// It stays the caller's. After a failure or the end, its status: STATUS_EOF for an end.
// STATUS_STOPPED: no time is left.
//
// Thread-safety: two threads, one of them for the filtered stream.
enum status mux_thread_push(struct mux_thread *mux, const struct packet *packet);

// Change the video from the next packet on: a new segment begins. SEGMENTS only.
enum status mux_thread_change(struct mux_thread *mux, const struct muxer_streams *streams);

// Cancel: no packet is taken any more, and mux_thread_push() does not wait. Any thread.
void mux_thread_cancel(struct mux_thread *mux);

// Finish: write what waits, and make the output whole. `cut`: the video ended before its source
// did, and other streams end with it. Does not wait; once.
void mux_thread_finish(struct mux_thread *mux, bool cut);

// Discard the output: what is not finished leaves no trace. Does not wait; once, instead of
// mux_thread_finish().
void mux_thread_discard(struct mux_thread *mux);

// Wait for the thread's end, with connections no longer than a second. Returns its failure, if it
// had one; an address that was never reached is one.
enum status mux_thread_join(struct mux_thread *mux);

// Figures so far. Any thread.
struct mux_thread_figures {
    int64_t packets; // of video, written
    int64_t skipped; // of video, left out
    int64_t missing; // of these, because the disk was full
    int64_t bytes;
    int64_t files;    // segments begun
    int64_t connects; // connections made
    bool connected;   // to an address, now
    enum status status;
};
void mux_thread_figures(const struct mux_thread *mux, struct mux_thread_figures *figures);
