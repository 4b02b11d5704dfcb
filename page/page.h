// The control page of a running job: a picture of it, its chain and figures, in a browser.
//
// The page has a server of its own (pipeline/output/http/http.h), whose thread answers requests and
// waits for nothing, and a worker for what takes longer. It shows one job at a time, and none
// between page_leave() and the next page_join(); the page stays open meanwhile, and keeps the
// chain.
//
//   page.h         what the program asks of the page
//   page.c         making and ending it, joining jobs
//   page_state.h   what its parts share
//   api*.c         routes, a table each (api.h)
//   figures.c      how the job goes; the ticker    events.h   what listeners are told
//   chains.h       the chain, undo and redo        visited.h  which chains visitors may send
//   inputs.h       what visitors may choose        uploads.h  what they send
//   later.h        what takes longer: the worker   files.h    web/, which is part of the program
//   preview/       pictures for viewers, recordings, backends beside each other (preview.h)
//   player/        what just happened, once more (player.h)
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "sluice/sluice.h"

struct page;

// Settings of a page. Strings are copied; `config` outlives the page.
struct page_request {
    const char *listen; // "8080", "127.0.0.1:0", "[::1]:8080", "0.0.0.0:8080"
    const char *token;  // wanted of every visitor; NULL: none on loopback, else one is made
    const char *tls_cert, *tls_key;     // PEM files, for https; NULL: http
    const char *media;                  // (optional) folder of inputs, uploads and recordings
    double keep;                        // seconds of packets that the player keeps; 0: 30
    int64_t keep_bytes;                 // ... and their bytes at most; 0: 256 MB
    int64_t upload_max;                 // bytes of an upload; 0: 4 GB
    const char *uploads;                // (optional) an empty folder for uploads where there is no
                                        // `media`, which goes with the page; NULL: it is made
    bool chooses;                       // visitors may choose the input: `sluice serve`; the page
                                        // serves config->metrics, too, for one job after another
    const struct sluice_config *config; // backend, limits and input rules of the jobs to come
    // (optional) Options as typed, with a space before each, as a shell reads them and without
    // secrets: of filtering, of config->input (or without one of those that are chosen), and of the
    // outputs. The page makes "the command line that does the same" of them.
    const char *options, *input_options, *output_options;
};

// Open the page. STATUS_USAGE with a sentence if the address, a file or the folder is none,
// STATUS_OUTPUT if it cannot be listened on, STATUS_FAILED without threads. The log outlives the page. On success the caller owns
// *page; on failure it is NULL.
enum status page_create(const struct page_request *request, const struct log *log,
                        struct page **page);

// Close the page and its visitors' connections, remove uploads that no folder of media holds. No
// job may be joined. Leaves NULL, accepts NULL behind it.
void page_destroy(struct page **page);

// "http://127.0.0.1:8080/"; where there is a token "...#token=" with it follows, which browsers do
// not send. Lives as long as the page. For the terminal, not for logs.
const char *page_url(const struct page *page);

// ---- a job ----

// sluice_job_create() of a job that is to be shown: it ends with SLUICE_STATUS_STOPPED as soon as a
// visitor chooses another input, however long this one would take to open. page_join() follows, or
// sluice_job_destroy().
enum sluice_status page_create_job(struct page *page, const struct sluice_config *config,
                                   struct sluice_job **job);

// Show a job from here on: between sluice_job_create() and sluice_job_run(), with the configuration
// that made it, which lives until page_leave(). Asks for the job's packets and frames
// (pipeline/engine/tap.h).
enum status page_join(struct page *page, struct sluice_job *job,
                      const struct sluice_config *config);

// Show it no more: after sluice_job_run(), before sluice_job_destroy(). `status` is what
// sluice_job_run() returned. Does nothing without a job.
void page_leave(struct page *page, struct sluice_job *job, enum sluice_status status);

// Pass on what the `changed` callback of the job's configuration got, for events, undo and redo. A
// callback calls this and nothing else of the page. `page` may be NULL, here and below.
void page_changed(struct page *page, int64_t pts_us, const char *chain);

// The chain that visitors see, which the next job is to begin with; with the secrets of its addresses. The
// caller frees it with free(); NULL without memory.
char *page_take_chain(struct page *page);

// True if a visitor has changed the chain while there was no job, since it was taken; it becomes the
// next job's.
bool page_has_new_chain(struct page *page);

// True if visitors have paused the picture, or look at what was before: the next page_join() makes
// it live.
bool page_holds(struct page *page);

// Pass on what the `log` callback got, for the page's log. Any thread.
void page_log(struct page *page, enum sluice_log_level level, const char *sentence);

// ---- the input, which visitors choose ----

// A visitor's choice. The caller frees the texts with free().
struct page_input {
    char *name;  // goes into config->input
    char *chain; // goes into config->chain: the page's present one; NULL: none was set yet
};

// Wait until an input was chosen: STATUS_OK, or STATUS_STOPPED once *stop is set. One thread at a
// time. What was chosen while a job ran counts, too.
enum status page_await_input(struct page *page, const atomic_bool *stop, struct page_input *input);

// True if an input was chosen that page_await_input() has not handed out: the job was stopped for
// it, and its end is not the program's.
bool page_wants_another(struct page *page);

// The input is being opened, or could not be: `error` is the sentence, NULL while it is opened. A
// job that has joined says by its first page_changed() that it runs, page_leave() that it has
// ended.
void page_note_input(struct page *page, const char *name, const char *error);
