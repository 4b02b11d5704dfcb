// The chain that the page shows: the job's, or between jobs the one that the next job begins with;
// and the ones before it, for undo and redo.
//
// Texts here have the secrets of their addresses; chains_json() has not.
//
// Thread-safety: one thread at a time; the page's lock.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "page/history.h"
#include "sluice/sluice.h"
#include "stages/chain.h"

struct chains {
    char *text;         // NULL: none yet
    struct chain chain; // the same, read
    struct history undo, redo;
    char merging[256]; // the options that the last change was of; "": it was another change
    int64_t merges_until_ns;
};

void chains_finish(struct chains *chains);

// The chain is this one, whoever made it so: a job that begins, or the control socket. One that
// differs from the one before can be undone. Returns whether it differs.
bool chains_note(struct chains *chains, const char *text);

// Ask for another chain, or for options as sluice_job_set() takes them: of the job, or without one
// (NULL) of the page. On failure nothing has changed, and `why` is a sentence. Options that are set
// again and again, as a slider does, are one change for undo.
enum status chains_put(struct chains *chains, struct sluice_job *job, const char *text, char *why,
                       size_t size);
enum status chains_set(struct chains *chains, struct sluice_job *job, const char *options,
                       char *why, size_t size);

// Go back to the chain before, or forth again. STATUS_EOF with a sentence where there is none.
enum status chains_undo(struct chains *chains, struct sluice_job *job, char *why, size_t size);
enum status chains_redo(struct chains *chains, struct sluice_job *job, char *why, size_t size);

// {"ok":true,"chain","links":[{"stage","number","text","options":{}}],"undo","redo"}; NULL without
// memory.
json_t *chains_json(const struct chains *chains);
