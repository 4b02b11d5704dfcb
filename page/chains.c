#include "page/chains.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "pipeline/input/picture.h"

// The time that a slider may rest and still be the same change.
static const int64_t merge_ns = 1000000000;

void chains_finish(struct chains *chains)
{
    free(chains->text);
    chain_free(&chains->chain);
    history_clear(&chains->undo);
    history_clear(&chains->redo);
    *chains = (struct chains){0};
}

// ---- without a job ----

// Read a text; pictures that the present chain has are shared with it.
static enum status read_chain(const struct chains *chains, const char *text, struct chain *chain,
                              char *why, size_t size)
{
    struct chain_error error = {.length = (int)strlen(text)};
    *chain = (struct chain){0};
    const struct chain_source source = {
        .reader = &picture_reader, .others = &chains->chain, .count = chains->text != NULL};
    enum status status = chain_parse_from(text, &source, chain, &error);
    if (status == STATUS_USAGE)
        chain_error_describe(&error, text, why, size);
    return status;
}

// Keep *chain and its text as the present one; *chain is empty then.
static enum status keep(struct chains *chains, struct chain *chain)
{
    char *text = chain_text(chain);
    if (!text)
        return STATUS_MEMORY;
    free(chains->text);
    chains->text = text;
    chain_free(&chains->chain);
    chains->chain = *chain;
    *chain = (struct chain){0};
    return STATUS_OK;
}

static enum status put_here(struct chains *chains, const char *text, char *why, size_t size)
{
    struct chain chain;
    enum status status = read_chain(chains, text, &chain, why, size);
    if (!status)
        status = keep(chains, &chain);
    chain_free(&chain);
    return status;
}

static enum status set_here(struct chains *chains, const char *options, char *why, size_t size)
{
    struct chain chain;
    struct chain_error error = {.length = (int)strlen(options)};
    enum status status = chain_copy(&chains->chain, &chain);
    if (!status)
        status = chain_set(&chain, options, &error);
    if (status == STATUS_USAGE)
        chain_error_describe(&error, options, why, size);
    if (!status)
        status = keep(chains, &chain);
    chain_free(&chain);
    return status;
}

// ---- with a job ----

// Make the job's chain the present one.
static enum status follow(struct chains *chains, struct sluice_job *job, char *why, size_t size)
{
    char *text = sluice_job_chain(job);
    enum status status = text ? put_here(chains, text, why, size) : STATUS_MEMORY;
    free(text);
    return status;
}

static enum status put(struct chains *chains, struct sluice_job *job, const char *text, char *why,
                       size_t size)
{
    if (!job)
        return put_here(chains, text, why, size);
    enum status status = (enum status)sluice_job_set_chain(job, text, why, size);
    return status ? status : follow(chains, job, why, size);
}

static enum status set(struct chains *chains, struct sluice_job *job, const char *options,
                       char *why, size_t size)
{
    if (!job)
        return set_here(chains, options, why, size);
    enum status status = (enum status)sluice_job_set(job, options, why, size);
    return status ? status : follow(chains, job, why, size);
}

// ---- changes ----

// The chain before can be undone, unless the change made no difference. Frees `before`; returns
// whether it made one.
static bool remember(struct chains *chains, char *before)
{
    bool differs = before && strcmp(before, chains->text) != 0;
    if (differs) {
        history_push(&chains->undo, before);
        history_clear(&chains->redo);
    }
    free(before);
    return differs;
}

static char *copy_of(const char *text)
{
    return text ? strdup(text) : NULL;
}

bool chains_note(struct chains *chains, const char *text)
{
    char why[8], *before = copy_of(chains->text);
    bool differs = !before || strcmp(before, text) != 0;
    if (differs && !put_here(chains, text, why, sizeof why)) {
        *chains->merging = 0;
        remember(chains, before);
        return true;
    }
    free(before);
    return false;
}

enum status chains_put(struct chains *chains, struct sluice_job *job, const char *text, char *why,
                       size_t size)
{
    char *before = copy_of(chains->text);
    *why = 0;
    enum status status = put(chains, job, text, why, size);
    if (status) {
        free(before);
        return status;
    }
    *chains->merging = 0;
    remember(chains, before);
    return STATUS_OK;
}

// The names of "gaussian.sigma=2, threshold.t1=30", cut to the size.
static void names_of(const char *options, char *to, size_t size)
{
    size_t used = 0;
    for (bool in_name = true; *options && used + 1 < size; options++) {
        in_name = *options == ',' || (in_name && *options != '=');
        if (in_name)
            to[used++] = *options;
    }
    to[used] = 0;
}

enum status chains_set(struct chains *chains, struct sluice_job *job, const char *options,
                       char *why, size_t size)
{
    char names[sizeof chains->merging], *before = copy_of(chains->text);
    *why = 0;
    enum status status = set(chains, job, options, why, size);
    if (status) {
        free(before);
        return status;
    }
    int64_t now_ns = meter_now_ns();
    names_of(options, names, sizeof names);
    bool merges = now_ns < chains->merges_until_ns && !strcmp(names, chains->merging);
    chains->merges_until_ns = now_ns + merge_ns;
    strcpy(chains->merging, names);
    if (merges)
        free(before);
    else if (!remember(chains, before))
        *chains->merging = 0;
    return STATUS_OK;
}

// Take the chain from the top of one history; the present one goes to the other.
static enum status travel(struct chains *chains, struct sluice_job *job, struct history *from,
                          struct history *to, char *why, size_t size)
{
    char *before = copy_of(chains->text);
    *why = 0;
    *chains->merging = 0;
    enum status status = put(chains, job, history_top(from), why, size);
    if (!status) {
        history_pop(from);
        if (before)
            history_push(to, before);
    }
    free(before);
    return status;
}

enum status chains_undo(struct chains *chains, struct sluice_job *job, char *why, size_t size)
{
    if (history_top(&chains->undo))
        return travel(chains, job, &chains->undo, &chains->redo, why, size);
    snprintf(why, size, "there is no change to undo");
    return STATUS_EOF;
}

enum status chains_redo(struct chains *chains, struct sluice_job *job, char *why, size_t size)
{
    if (history_top(&chains->redo))
        return travel(chains, job, &chains->redo, &chains->undo, why, size);
    snprintf(why, size, "there is no change to redo");
    return STATUS_EOF;
}
