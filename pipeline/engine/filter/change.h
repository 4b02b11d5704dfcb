// Chains that take over from one another between two frames.
//
// The submit thread takes what was asked for when it has a frame in its hands; who asks, in any
// thread, sees at once what will be, or why it cannot be: what the start of a job would have
// refused of frames like those that come now, a change is refused, too.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/engine/filter/filter.h"
#include "pipeline/engine/filter/schedule.h"
#include "stages/chain.h"

struct changes;

struct changes_request {
    struct schedule *schedule; // taken over, and left empty
    // struct sluice_config's, optional.
    void (*changed)(void *opaque, int64_t pts_us, const char *chain);
    void *opaque;
    // A further check of a chain that takes over, beside filter_check(): a status, with a sentence
    // in the log if it is refused. Any thread.
    enum status (*check)(void *checker, const struct chain *chain, const struct log *log);
    void *checker;
    const struct log *log; // outlives the changes
};

enum status changes_create(const struct changes_request *request, struct changes **changes);
void changes_destroy(struct changes **changes);

// ---- any thread ----

// Ask for options or for a whole chain; see sluice_job_set(). Before the first frame it is not
// known what that chain has to filter: it fails with the frame then, as the first one would have.
enum status changes_ask_options(struct changes *changes, const char *text, char *why, size_t size);
enum status changes_ask_chain(struct changes *changes, const char *text, char *why, size_t size);
char *changes_text(struct changes *changes);

// ---- the submit thread ----

// From now on frames like this one come, for which `filter` was made as `request` says; what its
// pointers mean outlives the changes, but for the chain and the log, which are others each time.
// With the first frame the planned changes are looked at, before anything is written: one that will
// not have the memory it takes is refused, with a sentence in the log.
enum status changes_bind(struct changes *changes, const struct filter_request *request,
                         const struct filter *filter, const AVFrame *frame);

// Whether another chain takes over with the frame at `pts_us`; then *chain, freed before, is it,
// and it is to be reported. The first call always has something to report.
enum status changes_take(struct changes *changes, int64_t pts_us, struct chain *chain, bool *taken);

// Call request.changed() if a chain took over with the frame, which is being filtered now; for the
// first frame, once the output is open.
void changes_report(struct changes *changes);
