// A preview from the inside: preview.c has what others call, render.h the thread.
#pragma once

#include <pthread.h>

#include "base/monitor.h"
#include "page/preview/compose.h"
#include "page/preview/filters.h"
#include "page/preview/preview.h"
#include "page/preview/stream.h"
#include "stages/chain.h"

// A picture that somebody waits for.
struct shot {
    struct shot *next;
    const struct view *view;
    const struct chain *other; // a difference's
    AVFrame *picture;          // full size, RGB or gray of 8 bits
    enum status status;
    bool done;
};

// A view that is watched: what the renderer has of it.
struct lane {
    struct stream *stream; // with a reference; NULL: the lane is free
    struct chain other;
    struct encoding *encoding;
    AVFrame *picture;       // the last that was drawn; NULL: none yet
    int64_t frames, chains; // what it was drawn of, as numbers below
    int64_t drawn_ns;       // when, by meter_now_ns()
    int64_t encoded_ns, key_ns;
};

struct preview {
    // ---- constant ----
    const struct log *log;
    struct preview_request request;
    char codec_name[32]; // H.264's; "": there is no encoder for it
    char mime[64];       // its streams'
    pthread_t thread;
    bool started;

    // ---- the renderer's ----
    struct filters *filters;
    struct composer *composer;
    struct lane lane[PREVIEW_VIEWS];

    struct monitor lock;
    // ---- guarded by lock ----
    bool done;
    bool busy; // the renderer holds a frame
    int waits; // so many wait until it does not: it begins nothing before they are through
    struct http *http;
    AVFrame *newest; // NULL: there is none
    struct tap_frame about;
    int64_t frames; // so many were offered
    struct chain chain;
    char *text;
    int64_t chains; // so many were set
    struct {
        struct stream *stream; // with a reference
        struct chain other;    // until the renderer takes it over
    } view[PREVIEW_VIEWS];
    struct shot *shots;
    struct preview_watch watch;
    int64_t watched; // number of the last frame that the watch has seen
    struct preview_figures figures;
};

// The renderer's thread, until preview->done.
void *render_run(void *preview);
