#include "pipeline/engine/filter/change.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/picture.h"

struct changes {
    struct changes_request request; // planned: the next one
    struct sluice_change *planned;  // copies of all
    bool reported;                  // the first chain was, or is about to be
    char *unreported;               // the chain that begins to filter; NULL: it was reported
    int64_t unreported_us;
    atomic_bool pending; // `wanted` was not taken yet
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct chain wanted;
    struct filter_request filters; // of the frames that come now
    AVFrame *first_props;          // ... and their properties; NULL: no frame came yet
};

static enum status copy_planned(const struct sluice_change *from, struct changes *changes)
{
    size_t count = 0;
    while (from && from[count].chain)
        count++;
    changes->planned = calloc(count + 1, sizeof *changes->planned);
    changes->request.planned = changes->planned;
    if (!changes->planned)
        return STATUS_MEMORY;
    for (size_t k = 0; k < count; k++) {
        changes->planned[k] =
            (struct sluice_change){from[k].pts_us, .chain = strdup(from[k].chain)};
        if (!changes->planned[k].chain)
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

enum status changes_create(const struct changes_request *request, struct changes **changes)
{
    assert(request->first && request->check);
    *changes = calloc(1, sizeof **changes);
    if (!*changes)
        return STATUS_MEMORY;
    pthread_mutex_init(&(*changes)->lock, NULL);
    (*changes)->request = *request;
    enum status status = copy_planned(request->planned, *changes);
    return status ? status : chain_copy(request->first, &(*changes)->wanted);
}

void changes_destroy(struct changes **changes)
{
    if (!*changes)
        return;
    for (struct sluice_change *next = (*changes)->planned; next && next->chain; next++)
        free((char *)next->chain);
    free((*changes)->planned);
    pthread_mutex_destroy(&(*changes)->lock);
    chain_free(&(*changes)->wanted);
    free((*changes)->unreported);
    av_frame_free(&(*changes)->first_props);
    free(*changes);
    *changes = NULL;
}

// ---- what is refused ----

static void explain(const struct chain_error *error, const char *text, char *why, size_t size)
{
    if (why && size)
        why[0] = 0;
    if (why && size && *error->message)
        chain_error_describe(error, text, why, size);
}

// The first error becomes the reason.
static void keep_reason(void *error_, enum log_level level, const char *sentence)
{
    struct chain_error *error = error_;
    if (level == LOG_ERROR && !*error->message)
        snprintf(error->message, sizeof error->message, "%s", sentence);
}

// Whether a chain can filter the frames that come now.
static enum status check_frames_locked(const struct changes *changes, const struct chain *chain,
                                       bool strict, struct chain_error *error)
{
    const struct log log = {keep_reason, error};
    struct filter_request request = changes->filters;
    request.chain = chain;
    request.strict = strict;
    request.log = &log;
    return changes->first_props ? filter_check(&request, changes->first_props) : STATUS_OK;
}

// Let a chain be the one that is wanted, if it writes what is written already and can do its work.
// *chain is empty then.
static enum status take_over_locked(struct changes *changes, struct chain *chain,
                                    struct chain_error *error)
{
    if (!chain_writes_alike(chain, &changes->wanted, error))
        return STATUS_USAGE;
    const struct log log = {keep_reason, error};
    enum status status = changes->request.check(changes->request.checker, chain, &log);
    if (!status)
        status = check_frames_locked(changes, chain, changes->filters.strict, error);
    if (status)
        return status;
    chain_free(&changes->wanted);
    changes->wanted = *chain;
    *chain = (struct chain){0};
    changes->pending = true;
    return STATUS_OK;
}

enum status changes_ask_options(struct changes *changes, const char *text, char *why, size_t size)
{
    struct chain_error error = {.length = (int)strlen(text)};
    pthread_mutex_lock(&changes->lock);
    struct chain chain;
    enum status status = chain_copy(&changes->wanted, &chain);
    if (!status)
        status = chain_set(&chain, text, &error);
    if (!status)
        status = take_over_locked(changes, &chain, &error);
    chain_free(&chain);
    pthread_mutex_unlock(&changes->lock);
    explain(&error, text, why, size);
    return status;
}

enum status changes_ask_chain(struct changes *changes, const char *text, char *why, size_t size)
{
    struct chain_error error = {.length = (int)strlen(text)};
    struct chain chain;
    enum status status = chain_parse(text, &picture_reader, &chain, &error);
    if (!status) {
        pthread_mutex_lock(&changes->lock);
        status = take_over_locked(changes, &chain, &error);
        pthread_mutex_unlock(&changes->lock);
    }
    chain_free(&chain);
    explain(&error, text, why, size);
    return status;
}

char *changes_text(struct changes *changes)
{
    pthread_mutex_lock(&changes->lock);
    char *text = chain_text(&changes->wanted);
    pthread_mutex_unlock(&changes->lock);
    return text;
}

// ---- the submit thread ----

// Whether a change that is planned has the memory it takes, of frames like the first. Whether its
// templates fit is seen in its time: a journal of frames that change their size is right, too.
static enum status check_planned_locked(const struct changes *changes,
                                        const struct sluice_change *planned)
{
    struct chain_error error = {.message = ""};
    struct chain chain;
    enum status status = chain_parse(planned->chain, &picture_reader, &chain, &error);
    if (!status)
        status = check_frames_locked(changes, &chain, false, &error);
    chain_free(&chain);
    return status ? fail(changes->request.log, status, "the change at %.3f s cannot be made: %s",
                         (double)planned->pts_us * 1e-6, error.message)
                  : STATUS_OK;
}

static enum status bind_locked(struct changes *changes, const struct filter_request *request,
                               const struct filter *filter, const AVFrame *frame)
{
    const struct sluice_change *planned = changes->first_props ? NULL : changes->request.planned;
    enum status status = STATUS_OK;
    av_frame_free(&changes->first_props);
    changes->first_props = av_frame_alloc();
    if (!changes->first_props)
        return STATUS_MEMORY;
    filter_first_props(frame, changes->first_props);
    changes->filters = *request;
    changes->filters.strict = !filter_misfits(filter);
    for (; planned && planned->chain && !status; planned++)
        status = check_planned_locked(changes, planned);
    return status;
}

enum status changes_bind(struct changes *changes, const struct filter_request *request,
                         const struct filter *filter, const AVFrame *frame)
{
    pthread_mutex_lock(&changes->lock);
    enum status status = bind_locked(changes, request, filter, frame);
    pthread_mutex_unlock(&changes->lock);
    return status;
}

// Changes that were planned for this frame or one before it; the last of them counts.
static enum status ask_planned(struct changes *changes, int64_t pts_us)
{
    const struct sluice_change **next = &changes->request.planned;
    enum status status = STATUS_OK;
    char why[1024];
    for (; *next && (*next)->chain && (*next)->pts_us <= pts_us && !status; ++*next) {
        status = changes_ask_chain(changes, (*next)->chain, why, sizeof why);
        if (status)
            fail(changes->request.log, status, "the change at %.3f s cannot be made: %s",
                 (double)(*next)->pts_us * 1e-6, why);
    }
    return status;
}

enum status changes_take(struct changes *changes, int64_t pts_us, struct chain *chain, bool *taken)
{
    enum status status = ask_planned(changes, pts_us);
    bool first = !changes->reported;
    *taken = false;
    if (status || (!changes->pending && !first))
        return status;
    struct chain copy;
    pthread_mutex_lock(&changes->lock);
    *taken = changes->pending;
    changes->pending = false;
    status = chain_copy(&changes->wanted, &copy);
    char *text = changes->request.changed && !status ? chain_text(&copy) : NULL;
    pthread_mutex_unlock(&changes->lock);
    if (status)
        return status;
    chain_free(chain);
    *chain = copy;
    changes->reported = true;
    free(changes->unreported);
    changes->unreported = text;
    changes->unreported_us = pts_us;
    return STATUS_OK;
}

void changes_report(struct changes *changes)
{
    if (changes->unreported)
        changes->request.changed(changes->request.opaque, changes->unreported_us,
                                 changes->unreported);
    free(changes->unreported);
    changes->unreported = NULL;
}
