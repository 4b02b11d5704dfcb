// Reel: packets of video from a time on, over and over. Those of a file are here.
//
// Thread-safety: one thread at a time.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct packet;
struct source;
struct source_request;

struct reel_span {
    int64_t begin_us, end_us; // AV_NOPTS_VALUE: unknown
    bool more;                // packets may still come behind the end
};

struct reel {
    // The stream of the packets, for the making of a decoder: its parameters are those of the place
    // that rewind() went to. It may be another one after each call.
    const struct source *source;
    int opened; // times that it became another: what was made for the one before is of no use
    // The time that rewind() went to: frames before are none of those that were asked for, and may
    // be damaged, as those in front of a key frame that refer to the group before it. INT64_MIN:
    // all frames count.
    int64_t from_us;
    // What rewind() made the source seek to, in microseconds; INT64_MIN: it begins at its beginning.
    int64_t seek_us;
    bool sequential; // it has no times to seek by: whatever rewind() is asked for, it begins anew

    // Go to a key frame at or before this time, the last one where that is known; to the first
    // where the time lies before all. With `earlier` to one before that which the last call went
    // to, and STATUS_EOF, with nothing changed, if there is none. STATUS_EOF if there is no key
    // frame at all; STATUS_INPUT with a sentence, STATUS_MEMORY, STATUS_STOPPED.
    enum status (*rewind)(struct reel *reel, int64_t at_us, bool earlier);

    // The next packet, which the caller owns. STATUS_EOF: there is none, or none yet.
    enum status (*read)(struct reel *reel, struct packet **packet);

    void (*measure)(struct reel *reel, struct reel_span *span);

    // True if read() has something now, as far as is known without reading.
    bool (*has_next)(const struct reel *reel);

    void (*destroy)(struct reel **reel);
};

// Packets of a file. The request is copied. `log` and `stop`, which ends reading, outlive the reel.
// Fails as source_open().
enum status reel_of_file(const struct source_request *request, const struct log *log,
                         const atomic_bool *stop, struct reel **reel);

static inline void reel_destroy(struct reel **reel)
{
    if (*reel)
        (*reel)->destroy(reel);
}
