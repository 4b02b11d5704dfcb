// Chains that take over from one another between two frames.
//
// The submit thread takes what was asked for when it has a frame in its hands; who asks, in any
// thread, sees at once what will be.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/sluice.h"
#include "stages/chain.h"

struct changes;

// `first` is copied. `planned` (optional) and the callback are struct sluice_config's.
enum status changes_create(const struct chain *first, const struct sluice_change *planned,
                           void (*changed)(void *opaque, int64_t pts_us, const char *chain),
                           void *opaque, struct changes **changes);
void changes_destroy(struct changes **changes);

// ---- any thread ----

// Ask for options or for a whole chain; see sluice_job_set().
enum status changes_ask_options(struct changes *changes, const char *text, char *why, size_t size);
enum status changes_ask_chain(struct changes *changes, const char *text, char *why, size_t size);
char *changes_text(struct changes *changes);

// ---- the submit thread ----

// Whether another chain takes over with the frame at `pts_us`; then *chain, freed before, is it,
// and the callback has been told. The first call always tells.
enum status changes_take(struct changes *changes, int64_t pts_us, struct chain *chain, bool *taken);
