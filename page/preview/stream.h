// A stream: one view, encoded once for all who watch it.
//
//   renderer --frames--> stream_encode.c --packets--> stream_mp4.c --chunks--> ring --> viewers
//                                        \--JPEGs----------------/        (stream.c)
//
// A chunk is the encoding of one picture: a fragment of MP4, or a part of
// multipart/x-mixed-replace. The ring keeps the newest of them, counted; a viewer takes them one
// after another, from a key frame on, and goes on at the newest key frame when it has fallen
// behind. So the memory of a stream is bounded, whoever watches, and a viewer costs a chunk at
// most.
//
// Time in a stream. Viewers play at the live edge: what they have is what was made, and a frame is
// to be seen when it has come. So the timeline has no gaps, and does not run ahead: each frame
// begins where the one before ended, and lasts as long as the time since that one was made, which
// is known, rather than until the next, which is not. A picture that stands still is sent again now
// and then, and those frames are short, STREAM_STILL: a player has played them when the next change
// comes, and shows it at once. Each viewer has a timeline of its own, which begins at 0 and leaves
// out what the viewer did not get: the decode time in a fragment is written for each.
//
// Shared members are guarded by the lock that streams were created with; it is never held for
// longer than it takes to copy a piece of a chunk.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/monitor.h"
#include "base/status.h"
#include "page/preview/preview.h"

struct http_stream;
struct stream;
struct encoding;

enum {
    STREAM_CLOCK = 90000,                // ticks a second
    STREAM_STILL = STREAM_CLOCK / 25,    // the duration of a picture that stands still, at most
    STREAM_LONGEST = STREAM_CLOCK / 4,   // the duration of any
    STREAM_CHUNKS = 64,                  // what the ring holds at most
    STREAM_BYTES = 8 << 20,              // likewise, but for one chunk
    STREAM_BEHIND = STREAM_CLOCK * 3 / 4 // how far a viewer may be behind a key frame
};

// ---- chunks ----

// Bytes that go out together. Counted; all but `refs` is constant.
struct chunk {
    int refs;
    bool key;         // viewers may begin with it
    int64_t duration; // ticks
    size_t time_at;   // where the decode time is, 8 bytes; 0: nowhere
    size_t size;
    uint8_t data[];
};

// A chunk with room for `size` bytes, the caller's; NULL without memory.
struct chunk *chunk_create(size_t size);
void chunk_unref_locked(struct chunk **chunk);

// ---- encoding: the renderer's (stream_encode.c) ----

// "avc1.42c028" as the best encoder of H.264 here makes it with our settings, whatever the size; ""
// if there is none. Opens the encoder once.
void encoding_name(char *name, size_t size);

// The pixel format, range and colours of frames to be encoded; `like` has the input's.
void encoding_tag(enum view_codec codec, const AVFrame *like, AVFrame *frame);

// Begin to encode frames like this one, tagged as above.
enum status encoding_create(enum view_codec codec, const AVFrame *first, const struct log *log,
                            struct encoding **encoding);
void encoding_destroy(struct encoding **encoding);

// The head, which every viewer gets first. Once; the caller's.
struct chunk *encoding_take_head(struct encoding *encoding);

// The same as encoding_name(), of what was opened.
void encoding_own_name(const struct encoding *encoding, char *name, size_t size);

// Encode a frame, which lasts `duration` ticks. On success *chunk is the caller's.
enum status encoding_frame(struct encoding *encoding, const AVFrame *frame, int64_t duration,
                           bool key, struct chunk **chunk);

// ---- streams (stream.c) ----

// `lock` outlives the stream and its viewers; it is notified when a viewer comes or goes. On
// success the caller has a reference, and each viewer one.
enum status stream_create(const struct view *view, struct monitor *lock, struct stream **stream);
struct stream *stream_ref_locked(struct stream *stream);
void stream_unref_locked(struct stream **stream);

const struct view *stream_view(const struct stream *stream);

// One viewer more, whom the next key frame reaches first; NULL without memory. The caller hands it
// to the server, which closes it.
struct http_stream *stream_join_locked(struct stream *stream);
int stream_viewers_locked(const struct stream *stream);
bool stream_has_ended_locked(const struct stream *stream);
bool stream_wants_key_locked(const struct stream *stream); // somebody waits for one

// Viewers get the head, before any chunk. It and each chunk are handed over.
void stream_head_locked(struct stream *stream, struct chunk **head);
void stream_push_locked(struct stream *stream, struct chunk **chunk);

// No more will come: viewers get the end.
void stream_end_locked(struct stream *stream);
