// The player's state, and what its files share; for player*.c only.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/monitor.h"
#include "page/player/keep.h"
#include "page/player/player.h"
#include "page/player/reel_keep.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/input/seek/reel.h"
#include "pipeline/input/source.h"
#include "plan/rotation.h"

// The frame that is to be shown: orders that wait come down to a time, and frames on or back from
// there.
struct wish {
    bool seek, step;
    int64_t at_us;
    int64_t frames;
};

// The origin of packets, which a job leaves for the thread to open: set while it has nothing open.
struct origin {
    struct source *described;             // the stream, without packets
    struct keep *keep;                    // NULL: the file has it all
    struct source_request file;           // its name is NULL where the input is none
    char *name, *format, *pixfmt, *hosts; // the file's request points at them
    const struct source *read;            // the job's, in its tap: the one that reads it
    atomic_bool jumps;                    // the clock of `read` has: the file's times are others
    bool repeatable;
    int64_t max_pixels;
    double frame_rate;
};

struct player {
    struct player_request request;
    const struct log *log;
    struct log thread_log; // writes into `error`
    pthread_t thread;
    bool started;
    atomic_bool stop;  // ends what the thread is decoding
    atomic_bool leave; // ... and its reading of a file, for good
    struct origin origin;
    struct monitor lock;
    // ---- guarded by lock ----
    bool quit, close, joined, runs; // `runs`: the job does
    bool stale;                     // it has gone live: what the cursor holds counts no more
    bool carrying;                  // the thread carries out a wish
    int64_t carrying_ns;            // ... since then
    enum player_mode mode;
    struct keep *ring; // origin.keep, where that and not the file is shown; chosen while it is live
    struct wish wish;
    int orders; // given so far
    double rate;
    int64_t at_us, live_us;   // times of the frame shown, and of the job's newest
    struct rotation rotation; // the job's newest frame's
    int64_t begin_us, end_us; // a file's
    char error[256];
    // ---- the thread's ----
    struct reel *reel;
    struct cursor *cursor;
    int64_t pace_ns, pace_us; // a frame of this time was due then
    int paced;                // ... by this order
};

// The thread's body, until `quit`.
void *player_run(void *player);

// Show what the job decodes, and let go of what is held. With the lock held.
void player_go_live_locked(struct player *player);
