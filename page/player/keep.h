// The packets that just came: those of the filtered stream in order, from a key frame on.
//
// A group is a key frame and the packets up to the next one. Whole groups go at the front: those
// that lie before the last `seconds`, and as many as it takes to stay within `bytes`. A single
// group that is larger than `bytes` is dropped, and nothing is kept up to the next key frame: its
// beginning is what decodes the rest. Of a group that is longer than `seconds` all is kept.
//
// Each group knows the codec parameters that hold from its beginning on (packet.h: restarts), so
// that a decoder can begin at any of them. A clock that jumps back by more than ten seconds begins
// anew, with nothing kept.
//
// Held, what is kept stays, and grows up to twice the seconds or one and a half times the bytes;
// packets that come then go to a second keep, of half the bytes, which takes over when the first is
// let go. All together are never more than twice the bytes, and one packet.
//
// Thread-safety: any thread; no call waits for more than copies of a few pointers.
#pragma once

#include <libavcodec/codec_par.h>
#include <libavutil/rational.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct keep;
struct packet;

struct keep_request {
    double seconds;
    int64_t bytes;                  // what data take, and packets beside them
    AVRational time_base;           // the stream's
    int64_t frame_us;               // how long a packet is shown that does not say so; 0: 40 ms
    const AVCodecParameters *codec; // the stream's at the beginning; copied
};

// STATUS_OK or STATUS_MEMORY.
enum status keep_create(const struct keep_request *request, struct keep **keep);

// Leaves NULL, accepts NULL behind it.
void keep_destroy(struct keep **keep);

// Keep a packet. It stays the caller's; its data is shared. Without memory all is dropped up to the
// next key frame.
void keep_put(struct keep *keep, const struct packet *packet);

// Hold what is kept, or let it go.
void keep_hold(struct keep *keep, bool hold);

// No more packets will come.
void keep_finish(struct keep *keep);

// The packets that are kept. They have numbers, which rise by one; they stay while it is held.
struct keep_span {
    int64_t first, end;       // numbers of the first packet and behind the last; equal: nothing
    int64_t begin_us, end_us; // times of the first key frame, and of the end of the last frame; or
                              // AV_NOPTS_VALUE
    int64_t bytes;
    bool more; // packets may still follow on these
};

void keep_measure(struct keep *keep, struct keep_span *span);

// The number of the last key frame at or before this time and before packet `before`; the first
// there is if it lies behind that time. -1: there is none.
int64_t keep_find(struct keep *keep, int64_t at_us, int64_t before);

// A packet by its number, which the caller owns; STATUS_EOF: it has not come yet, or has gone.
// STATUS_MEMORY.
enum status keep_read(struct keep *keep, int64_t number, struct packet **packet);

// The parameters that hold from this key frame on, copied; the caller frees them
// (avcodec_parameters_free()). NULL without memory, and where the packet has gone or is no key
// frame.
AVCodecParameters *keep_codec(struct keep *keep, int64_t number);
