#include "pipeline/change.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct changes {
    const struct sluice_change *planned; // the next one; NULL: none at all
    void (*changed)(void *opaque, int64_t pts_us, const char *chain);
    void *opaque;
    bool told;           // of the first chain
    atomic_bool pending; // `wanted` was not taken yet
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct chain wanted;
};

enum status changes_create(const struct chain *first, const struct sluice_change *planned,
                           void (*changed)(void *opaque, int64_t pts_us, const char *chain),
                           void *opaque, struct changes **changes)
{
    *changes = calloc(1, sizeof **changes);
    if (!*changes)
        return STATUS_MEMORY;
    pthread_mutex_init(&(*changes)->lock, NULL);
    (*changes)->planned = planned;
    (*changes)->changed = changed;
    (*changes)->opaque = opaque;
    return chain_copy(first, &(*changes)->wanted);
}

void changes_destroy(struct changes **changes)
{
    if (!*changes)
        return;
    pthread_mutex_destroy(&(*changes)->lock);
    chain_free(&(*changes)->wanted);
    free(*changes);
    *changes = NULL;
}

static void explain(enum status status, const struct chain_error *error, const char *text,
                    char *why, size_t size)
{
    if (why && size)
        why[0] = 0;
    if (status && why && size)
        chain_error_describe(error, text, why, size);
}

// Let a chain be the one that is wanted, if it writes what is written already. *chain is empty
// then.
static enum status take_over_locked(struct changes *changes, struct chain *chain,
                                    struct chain_error *error)
{
    if (!chain_writes_alike(chain, &changes->wanted, error))
        return STATUS_USAGE;
    chain_free(&changes->wanted);
    changes->wanted = *chain;
    *chain = (struct chain){0};
    changes->pending = true;
    return STATUS_OK;
}

enum status changes_ask_options(struct changes *changes, const char *text, char *why, size_t size)
{
    struct chain_error error;
    pthread_mutex_lock(&changes->lock);
    struct chain chain;
    enum status status = chain_copy(&changes->wanted, &chain);
    if (!status)
        status = chain_set(&chain, text, &error);
    if (!status)
        status = take_over_locked(changes, &chain, &error);
    chain_free(&chain);
    pthread_mutex_unlock(&changes->lock);
    explain(status, &error, text, why, size);
    return status;
}

enum status changes_ask_chain(struct changes *changes, const char *text, char *why, size_t size)
{
    struct chain_error error;
    struct chain chain;
    enum status status = chain_parse(text, &chain, &error);
    if (!status) {
        pthread_mutex_lock(&changes->lock);
        status = take_over_locked(changes, &chain, &error);
        pthread_mutex_unlock(&changes->lock);
    }
    chain_free(&chain);
    explain(status, &error, text, why, size);
    return status;
}

char *changes_text(struct changes *changes)
{
    pthread_mutex_lock(&changes->lock);
    char *text = chain_text(&changes->wanted);
    pthread_mutex_unlock(&changes->lock);
    return text;
}

// Changes that were planned for this frame or one before it; the last of them counts.
static enum status ask_planned(struct changes *changes, int64_t pts_us)
{
    enum status status = STATUS_OK;
    while (changes->planned && changes->planned->chain && changes->planned->pts_us <= pts_us &&
           !status)
        status = changes_ask_chain(changes, changes->planned++->chain, NULL, 0);
    return status;
}

enum status changes_take(struct changes *changes, int64_t pts_us, struct chain *chain, bool *taken)
{
    enum status status = ask_planned(changes, pts_us);
    bool first = !changes->told;
    *taken = false;
    if (status || (!changes->pending && !first))
        return status;
    struct chain copy;
    pthread_mutex_lock(&changes->lock);
    *taken = changes->pending;
    changes->pending = false;
    status = chain_copy(&changes->wanted, &copy);
    char *text = changes->changed && !status ? chain_text(&copy) : NULL;
    pthread_mutex_unlock(&changes->lock);
    if (status)
        return status;
    chain_free(chain);
    *chain = copy;
    changes->told = true;
    if (text)
        changes->changed(changes->opaque, pts_us, text);
    free(text);
    return STATUS_OK;
}
