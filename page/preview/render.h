// The renderer's parts: render_parts.c makes what a view shows, render_lane.c serves those who
// watch, render.c is the thread, and takes single pictures.
//
// Thread-safety: the renderer's thread, but for render_size().
#pragma once

#include "page/preview/preview_state.h"

// One turn of the loop: the frame and the chain that it works on.
struct round {
    AVFrame *frame; // in the host's memory
    struct tap_frame about;
    int64_t frames, chains;
    struct chain chain;
    char *text;
    struct shot *shots;
    struct preview_watch watch;
    int64_t began_ns;
    int drawn, encoded;
};

// The pictures that a view shows, side by side.
struct parts {
    AVFrame *part[2];
    int count;
    bool transposed; // width and height are exchanged, for showing
};

// ---- render_parts.c ----

// The size of a stream's pictures: at most PREVIEW_WIDTH wide for each of `parts` side by side, and
// within the level of our H.264; even.
void render_size(const AVFrame *frame, int parts, int *width, int *height);

// The round's frame, filtered by a chain up to a stage. *out is the caller's, and not to be written
// to.
enum status render_filter(struct preview *preview, const struct round *round,
                          const struct chain *chain, const char *text, int stage, AVFrame **out);

// Make what a view shows; `other` is the chain of a difference. The caller drops the parts, also on
// failure.
enum status parts_make(struct preview *preview, const struct round *round, const struct view *view,
                       const struct chain *other, bool exact, struct parts *parts);
void parts_drop(struct parts *parts);

// Draw them side by side into `to`.
enum status parts_draw(struct preview *preview, const struct parts *parts, bool exact, AVFrame *to);

// ---- render_lane.c ----

// The time at which number `k` of the views has to be looked at, by meter_now_ns(). With the lock
// held.
int64_t lane_due_locked(const struct preview *preview, int k);

// Draw and encode what is due of all views.
void lanes_serve(struct preview *preview, struct round *round);

// End all streams.
void lanes_finish(struct preview *preview);
