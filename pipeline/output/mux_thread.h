// A mux thread: takes packets for one output, and muxes them in a thread of its own. What one
// encoder makes may go to several.
//
//   waiting    holds up the encoder while its output is slow: the file of a job that is not live
//   skipping   never does: it leaves out whole groups of pictures, from the packet that found no
//   room
//              to the next key frame, which it asks for
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

struct mux_thread_request {
    const char *name, *format; // as of struct destination_request
    bool overwrite;
    double segment;                         // seconds
    const struct path_conflicts *conflicts; // (optional) as of struct destination_request
    const AVDictionary *options;            // (optional) of the muxer
    double open_timeout;                    // seconds that connecting may take
    double stall_timeout;                   // seconds that writing a packet may take
    int reconnects; // attempts in a row, until a connection stands for two seconds;
                    // 0: for ever, below 0: none
};

struct mux_thread;

// Find out where to and how; nothing is created. STATUS_USAGE or STATUS_OUTPUT with a sentence.
// `stop` (optional) must outlive it.
enum status mux_thread_create(const struct mux_thread_request *request, const struct log *log,
                              const struct stop *stop, struct mux_thread **mux);

// Free it. What was not finished leaves no trace, except where others watch. NULL behind it is
// fine.
void mux_thread_destroy(struct mux_thread **mux);

const struct destination *mux_thread_destination(const struct mux_thread *mux);

// Options for the muxer, before mux_thread_open(). Takes the dictionary.
void mux_thread_set_options(struct mux_thread *mux, AVDictionary **options);

// How it was done. Called from the mux thread.
struct mux_thread_watch {
    // A packet was written, of the filtered stream if `pts_us` is not AV_NOPTS_VALUE.
    void (*wrote)(void *opaque, int64_t pts_us, int64_t begin_ns);
    void *opaque;
};

struct mux_thread_opening {
    struct muxer_streams streams; // all that it points to is needed until mux_thread_open() returns
    bool skips;                   // else it waits
    bool must_connect;            // an address that is not reached at first is a failure
    struct mux_thread_watch watch; // .wrote NULL: nobody asks
};

// Write the header, of an address in the thread, and start the thread.
enum status mux_thread_open(struct mux_thread *mux, const struct mux_thread_opening *opening);

// The streams of the source that go into the output. Any thread, after mux_thread_open().
const struct passthrough *mux_thread_passthrough(const struct mux_thread *mux);

// Whether it would like the next frame to be a key frame. Asks once.
bool mux_thread_takes_key(struct mux_thread *mux, int64_t pts_us);

// Whether nobody would see what is written now: a page without visitors. Any thread.
bool mux_thread_is_idle(const struct mux_thread *mux);

// Hand over a packet of the source's stream `stream_index`; one of the filtered stream has its
// pts_us. It stays the caller's. What has failed or ended takes no more: its status,
// STATUS_EOF of an end. STATUS_STOPPED: no time is left.
//
// Thread-safety: any two threads, one for the filtered stream.
enum status mux_thread_push(struct mux_thread *mux, const struct packet *packet);

// From the next packet on the video is another. Of SEGMENTS, which begin a new one by it.
enum status mux_thread_change(struct mux_thread *mux, const struct muxer_streams *streams);

// No time is left: nothing more is taken, what waits in mux_thread_push() gives up. Any thread.
void mux_thread_cancel(struct mux_thread *mux);

// There is no more: what waits is written, and the output made whole. `cut`: the video ended before
// its source did, and what other streams have beyond its end is left out. Returns at once; once.
void mux_thread_finish(struct mux_thread *mux, bool cut);

// Nobody wants it: what is not finished leaves no trace. Returns at once; once, in the place of
// mux_thread_finish().
void mux_thread_discard(struct mux_thread *mux);

// Wait for that, of connections no longer than a second. Its failure, if it had one; an address
// that was never reached is one.
enum status mux_thread_join(struct mux_thread *mux);

// How it goes. Any thread.
struct mux_thread_figures {
    int64_t packets; // of video, written
    int64_t skipped; // of video, left out
    int64_t missing; // of those: there was no room on the disk for them
    int64_t bytes;
    int64_t files;    // segments begun
    int64_t connects; // times that a connection stood
    bool connected;   // an address is reached now
    enum status status;
};
void mux_thread_figures(const struct mux_thread *mux, struct mux_thread_figures *figures);
