// The preview: what the control page shows, filtered and encoded beside the job for those who
// watch.
//
//   tap (job) or player --newest frame--> renderer thread: filters, composes, scales, encodes
//       --chunks--> a stream a view --> its viewers, each at its own pace (page/preview/stream.h)
//
// Pictures are equal to the job's, byte by byte: the same filters make them, on a CPU backend of
// the preview's. Only the newest frame counts, and nobody who offers one waits. A picture is
// rendered when a frame comes, and anew when the chain or the views change while the picture stands
// still. Without viewers nothing is rendered; ten viewers of a view cost one encoding.
//
// Chains never write here: tees are left out, and records go into no file.
#pragma once

#include <libavutil/frame.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/engine/threads/tap.h"
#include "sluice/sluice.h"

struct http;
struct http_answer;
struct preview;

enum { PREVIEW_VIEWS = 4, PREVIEW_VIEWERS = 32, PREVIEW_WIDTH = 1280, PREVIEW_CHAIN = 4096 };

enum view_kind {
    VIEW_AFTER,
    VIEW_BEFORE,
    VIEW_SPLIT,      // before (or other) left, after right, side by side
    VIEW_DIFFERENCE, // |after - other| of R, G and B
};

enum view_codec { VIEW_H264, VIEW_MJPEG };

// A view: what a viewer sees. Views are equal where all of their members are.
struct view {
    enum view_kind kind;
    int stage; // "after" is the picture after so many links of the chain; -1, or more: after all
    char other[PREVIEW_CHAIN]; // a split's and a difference's: a chain's text; "": the input
    enum view_codec codec;     // VIEW_H264 is MJPEG where there is no encoder of H.264
};

struct preview_request {
    const struct sluice_config *config; // threads, max_pixels; outlives the preview
    const struct log *log;              // likewise
};

struct preview_figures {
    int64_t rendered, encoded; // pictures so far, of all views
    int viewers, views;        // now
    double render_ms;          // the last round: from the frame to the bytes, of all views
    int width, height;         // the after-picture's, full size; 0: there is none yet
    int64_t pts_us;            // the newest frame's; AV_NOPTS_VALUE: there is none
    uint32_t histogram[256];   // the after-picture's luma, as 8 bits; it is the last one that was
                               // rendered: without viewers, an older one
};

// Begin with an empty chain. On success the caller destroys it.
enum status preview_create(const struct preview_request *request, struct preview **preview);

// Frees everything, waiting for the picture that is being rendered. The HTTP server is destroyed
// before: it closes the streams. Leaves NULL, accepts NULL behind it.
void preview_destroy(struct preview **preview);

// Whose http_wake() the preview calls from now on. NULL: nobody's.
void preview_bind_http(struct preview *preview, struct http *http);

// The chain that the job filters by. STATUS_USAGE with a sentence in the log if the text is none;
// the preview then keeps the one before. Any thread; reads templates that the chain names.
enum status preview_set_chain(struct preview *preview, const char *text);

// Here is a decoded frame, which stays the caller's; a reference is kept while it is the newest.
// Never waits. Any one thread at a time.
void preview_offer(struct preview *preview, const AVFrame *frame, const struct tap_frame *about);

// The memory of the frames so far is about to go: the newest becomes a copy of the preview's own,
// so that it can still be looked at. Waits for the picture that is being rendered. Before
// sluice_job_destroy(), when the tap is not called any more.
void preview_release(struct preview *preview);

// A viewer of a view: sets answer->stream and its type, `video/mp4; codecs="avc1.42c01f"` or
// "multipart/x-mixed-replace; boundary=sluice", or an answer that says why not: 400 for a view that
// is none, 503 without a picture, and for more than PREVIEW_VIEWS views or PREVIEW_VIEWERS. The
// stream ends when the picture's size changes. The server's thread; does not block.
void preview_answer_stream(struct preview *preview, const struct view *view,
                           struct http_answer *answer);

// The view of the newest frame at full size, as PNG. On success the caller frees *png. STATUS_EOF:
// there is no picture, or none came within two seconds; STATUS_USAGE: `other` or the stage is none.
// Any thread.
enum status preview_picture(struct preview *preview, const struct view *view, char **png,
                            size_t *size);

// A watch, which gets every after-picture that is made, at full size: a recording. Each newest
// frame is rendered then, viewers or not; frames that come faster than they can be are left out.
// The picture is for the time of the call, as planes of it may be the job's. Called by the
// renderer's thread, which it holds up; not called any more when preview_watch() has returned.
struct preview_watch {
    void (*picture)(void *opaque, const AVFrame *after, int64_t pts_us);
    void *opaque;
    atomic_llong *missed; // (optional) where frames are counted that came too fast for it
};

// Set the one watch; NULL: none. Any thread; waits for the picture that is being rendered if there
// was one, and not for it where there was none.
void preview_watch(struct preview *preview, const struct preview_watch *watch);

// A copy of the newest frame, in the host's memory, and the chain's text; the caller frees both.
// STATUS_EOF: there is none. Any thread; waits for the picture that is being rendered.
enum status preview_newest(struct preview *preview, AVFrame **frame, char **chain);

// Any thread.
void preview_figures(struct preview *preview, struct preview_figures *figures);
