// The player: what just happened, once more: the last seconds of packets of the filtered stream, or
// all of a file, to be paused, stepped through, scrubbed and played again while the job goes on.
//
// The player stands between the job's tap and the preview. Live it hands the tap's frames on as
// they come. While it holds (it is paused or plays) it hands on frames that it decodes itself, and
// none of the tap's. Frames are the same either way: equal samples, equal timestamps.
//
// Kept is:
//   the input is a file that can be read again   the whole file, by a source of the player's own,
//                                                opened when it is first wanted
//   anything else, and files whose clock jumps   the last seconds of packets (keep.h), from a key
//                                                frame on; they stay when the job has ended
//
// Times are microseconds of the input, as the job's `changed` callback has them.
//
//   player.c   jobs, orders; _thread.c: shown frames cursor.h  one frame among all: the decoder
//   keep.h     the packets that just came            reel.h    packets of either, from a time on
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "sluice/sluice.h"

struct packet;
struct player;
struct tap_frame;

struct player_request {
    double keep; // seconds of packets; 0: 30
    // The bytes that their data may take; for a while up to twice as much, as what is held grows and what
    // comes is kept beside it (keep.h); 0: 256 MB.
    int64_t keep_bytes;
    // Takes the frame to show: preview_offer(). Called by one thread at a time, with the player's
    // lock held: it takes a reference and returns, and calls nothing of the player.
    void (*show)(void *opaque, const AVFrame *frame, const struct tap_frame *about);
    void *opaque;
};

// `log` outlives the player. STATUS_MEMORY, STATUS_FAILED without a thread.
enum status player_create(const struct player_request *request, const struct log *log,
                          struct player **player);

// No job may call player_packet() or player_frame() any more. Leaves NULL, accepts NULL behind it.
void player_destroy(struct player **player);

// ---- a job: page_join() and page_leave() ----

// Follow this job: live, with nothing kept of the one before. Between sluice_job_create() and
// sluice_job_run(). `config` is what made the job; what the player needs of both it copies.
enum status player_join(struct player *player, const struct sluice_job *job,
                        const struct sluice_config *config);

// Bytes that the player may hold for this job, about, at most: packets, frames and its decoder.
int64_t player_memory(const struct player *player);

// The job has ended: what is kept can still be played, until the next player_join(). A live player
// of what was kept pauses at the frame that is shown, and decodes it itself; one of a file stays
// live, as files are mostly begun again.
void player_leave(struct player *player);

// ---- the job's tap (pipeline/engine/tap.h): never waits ----

// A packet of the filtered stream; it stays the caller's, its data is shared.
void player_packet(struct player *player, const struct packet *packet);

// A decoded frame of the job's: shown, unless the player holds.
void player_frame(struct player *player, const AVFrame *frame, const struct tap_frame *about);

// ---- orders and state: any thread, no waiting ----

enum player_action {
    PLAYER_LIVE,  // show what the job decodes; of a file, at the job's pace. STATUS_USAGE without a
                  // job that runs
    PLAYER_PAUSE, // stay at the frame that is shown now
    PLAYER_PLAY,  // go on from the frame that is shown now, at `rate`; where that catches up with a
                  // job that runs it is live again, at the end of a file it pauses
    PLAYER_SEEK,  // show the last frame at or before `at_us`, or else the first; pauses, unless it
                  // plays
    PLAYER_STEP, // pause, `frames` frames on (back: below 0) in the order of presentation; stops at
                 // the first and the last
};

struct player_order {
    enum player_action action;
    int64_t at_us; // SEEK's
    int frames;    // STEP's; 0: 1
    double rate;   // PLAY's: 1 is the input's own pace; 1/16 to 16; 0: 1
};

// Give an order. Orders are carried out one after another by the player's thread; of several SEEKs
// that wait, only the newest counts. STATUS_OK: it was taken, and player_state() shows at once what
// it asks for. STATUS_USAGE with a sentence in `why`, of `size` bytes: nothing was kept yet, or a
// number is out of range. What fails later, as a file that has gone, is in player_state's `error`.
enum status player_do(struct player *player, const struct player_order *order, char *why,
                      size_t size);

enum player_mode { PLAYER_IS_LIVE, PLAYER_IS_PAUSED, PLAYER_IS_PLAYING };

struct player_state {
    enum player_mode mode;
    bool whole;        // all of a file is there, not only what came last
    bool busy;         // an order is being carried out
    int64_t at_us;     // the time of the frame shown; AV_NOPTS_VALUE: none yet
    int64_t begin_us;  // the first time that can be sought, and the end of the last frame; both
    int64_t end_us;    // AV_NOPTS_VALUE where nothing was kept yet
    double frame_rate; // frames a second, about; 0: unknown
    double rate;       // PLAY's
    int64_t bytes;     // what the packets kept take; 0 for a file
    double behind;     // seconds from the frame shown to the job's newest; 0 live
    char error[256];   // why the last order was not carried out; "": it was
};

void player_state(struct player *player, struct player_state *state);

// True if the tap's frames are held back: mode is not PLAYER_IS_LIVE.
bool player_holds(struct player *player);

// Wait until all orders were carried out, up to so many seconds: false if they were not. Playing
// is no order that ends. For tests and scripts.
bool player_await(struct player *player, double seconds);
