// State that the parts of the page share.
//
//   thread               what it does
//   the server's         answers requests (api_*.c): takes the lock for moments, waits for nothing
//   the worker           what takes longer (later.h): pictures, comparisons, cameras
//   the ticker           looks four times a second how the job goes, and tells who listens
//   the job's            page_changed(), page_log(), the tap: take no lock that is held for long
//   the program's        page_join(), page_leave(), page_await_input(), ...
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/monitor.h"
#include "page/chains.h"
#include "page/events.h"
#include "page/later.h"
#include "page/page.h"
#include "page/player/player.h"
#include "page/preview/preview.h"
#include "page/preview/record.h"
#include "page/uploads.h"

enum { TICKS = 4, BODY_MAX = 256 << 10, SMALL_BODY_MAX = 4 << 10 }; // a second; bytes

enum input_state {
    INPUT_NONE,
    INPUT_OPENING,
    INPUT_RUNNING,
    INPUT_LOST,
    INPUT_ENDED,
    INPUT_FAILED,
};

// The input, as visitors see it.
struct input_note {
    enum input_state state;
    int64_t since_s; // the state's, seconds of Unix time
    char name[1024]; // without secrets
    char error[1024];
};

// A job's figures at one time; see figures.c.
struct sample {
    int64_t at_ns; // 0: none
    int64_t frames;
    double busy_seconds[SLUICE_MAX_PARTS];
};

struct page {
    // ---- constant ----
    struct log log;
    const struct sluice_config *config;
    char *media;                                    // NULL: none
    char *options, *input_options, *output_options; // the command line's; NULL: none
    char *url;
    char token[256]; // "": none
    bool chooses;
    struct http_page *pages;
    struct http *http;
    struct events *events;
    struct later *later;
    struct preview *preview;
    struct player *player;
    struct record *record;   // NULL: there is no folder for recordings
    struct metrics *metrics; // of all its jobs; NULL: none, or each job has its own
    pthread_t ticker;
    bool ticks; // the ticker was started

    // ---- the tap's; any thread reads ----
    atomic_int width, height, pixel; // the newest frame's; 0: there was none

    atomic_bool changed; // page_changed() was called, and the ticker has not seen it

    struct monitor lock;
    // ---- guarded by lock ----
    bool closing;
    struct sluice_job *job;     // NULL: none
    struct sluice_job *opening; // by page_create_job(), until it has joined; NULL: none
    const struct sluice_config *job_config;
    struct chains chains;
    bool asked; // a visitor has changed the chain while there was no job, and none has taken it
    struct input_note input;
    struct sample sample[TICKS];
    int sampled;        // samples so far
    char *chosen;       // an input for the next job; NULL: none
    char *shown;        // the one that was chosen last, until there is another; NULL: none
    json_t *last_stats; // the former job's; NULL: there was none
    struct uploads uploads;
    json_t *cameras; // that were listed last; NULL: none were
};

// ---- page.c ----

// The chain has changed: the preview and the listeners are told. With the lock held.
void page_show_chain_locked(struct page *page);

// Take over what the job reported. With the lock held.
void page_catch_up_locked(struct page *page);

// Set what is told of the input, and tell it. With the lock held.
void page_set_input_locked(struct page *page, enum input_state state, const char *name,
                           const char *error);
json_t *page_input_json_locked(struct page *page);

// An input for the next job; the one that runs is stopped. `name` is taken over.
void page_choose(struct page *page, char *name);

// ---- figures.c ----

// Look how the job goes, four times a second.
void *page_tick(void *page);

// {"ok":true} and all figures. With the lock held.
json_t *page_stats_locked(struct page *page);
json_t *page_player_json(struct page *page);

// ---- api_record.c ----

json_t *page_record_json(struct page *page);

// The job is about to go: keep its figures, which are shown until the next one joins. With the lock
// held.
void page_keep_stats_locked(struct page *page);
