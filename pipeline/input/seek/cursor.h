// A cursor over the frames of a reel: it stands on one, and goes to another by time or by number,
// in the order of presentation.
//
// Frames come from a decoder of its own, in software, which begins at the key frame before. Those
// of the present group stay, as many as `cache_bytes` hold, so that going back and forth among them
// decodes nothing; whoever goes further back decodes the group before up to there, once.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavutil/frame.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct cursor;
struct reel;
struct source_request;

// Bytes that frames may take where the request does not say.
static const int64_t cursor_cache = 128 << 20;

struct cursor_request {
    struct reel *reel;
    bool repeatable;     // as struct decoder_request has it
    int64_t max_pixels;  // likewise
    int64_t cache_bytes; // what samples may take; two frames are held in any case; 0: cursor_cache
    const struct log *log;   // takes the decoder's messages
    const atomic_bool *stop; // ends what is under way, with STATUS_STOPPED
};

// The reel, the log and `stop` outlive the cursor, which stands on no frame yet. STATUS_MEMORY, or
// what the decoder's backend fails with.
enum status cursor_create(const struct cursor_request *request, struct cursor **cursor);

// Leaves NULL, accepts NULL behind it.
void cursor_destroy(struct cursor **cursor);

// Let go of the decoder and all frames: it stands on none.
void cursor_clear(struct cursor *cursor);

// Go to the last frame at or before this time; to the first where all lie behind it. STATUS_EOF:
// there is no frame at all. After a failure it stands on none, and where it stood otherwise.
enum status cursor_go(struct cursor *cursor, int64_t at_us);

// Go so many frames on, or back where `frames` is negative, or as far as there are any. It stands
// on a frame.
enum status cursor_step(struct cursor *cursor, int frames);

// Find the next frame without going there: *at_us is its time. STATUS_EOF: there is none, or none
// yet. It stands on a frame.
enum status cursor_peek(struct cursor *cursor, int64_t *at_us);

// The frame that it stands on, which is the cursor's: until the next call that moves it. NULL:
// none.
const AVFrame *cursor_frame(const struct cursor *cursor);
int64_t cursor_us(const struct cursor *cursor); // its time
AVRational cursor_time_base(const struct cursor *cursor);

// Decode the first frame of a file, which the caller owns then. STATUS_EOF: it has none. Fails as
// reel_of_file() and cursor_create().
enum status cursor_first_frame(const struct source_request *source, const struct log *log,
                               const atomic_bool *stop, AVFrame **frame);
