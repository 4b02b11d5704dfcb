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
    struct changes_request request;
    struct schedule schedule;
    int next;         // of the schedule, which nobody asked for yet
    bool reported;    // the first chain was, or is about to be
    char *unreported; // the chain that begins to filter; NULL: it was reported
    int64_t unreported_us;
    atomic_bool pending; // `wanted` was not taken yet
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct chain wanted;
    struct filter_request filters; // of the frames that come now
    AVFrame *first_props;          // ... and their properties; NULL: no frame came yet
};

enum status changes_create(const struct changes_request *request, struct changes **changes)
{
    assert(request->schedule && request->schedule->count && request->check);
    *changes = calloc(1, sizeof **changes);
    if (!*changes)
        return STATUS_MEMORY;
    pthread_mutex_init(&(*changes)->lock, NULL);
    (*changes)->request = *request;
    (*changes)->schedule = *request->schedule;
    (*changes)->next = 1;
    *request->schedule = (struct schedule){0};
    return chain_copy((*changes)->schedule.chain, &(*changes)->wanted);
}

void changes_destroy(struct changes **changes)
{
    if (!*changes)
        return;
    schedule_free(&(*changes)->schedule);
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

// Check that a chain can filter the frames that come now.
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

// Ask for a chain that was parsed. *chain is empty then.
static enum status ask(struct changes *changes, struct chain *chain, struct chain_error *error)
{
    pthread_mutex_lock(&changes->lock);
    enum status status = take_over_locked(changes, chain, error);
    pthread_mutex_unlock(&changes->lock);
    chain_free(chain);
    return status;
}

enum status changes_ask_chain(struct changes *changes, const char *text, char *why, size_t size)
{
    struct chain_error error = {.length = (int)strlen(text)};
    struct chain chain;
    enum status status = chain_parse(text, &picture_reader, &chain, &error);
    if (!status)
        status = ask(changes, &chain, &error);
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

// Report that the change with this number of the schedule is refused.
static enum status refuse_planned(const struct changes *changes, int at, enum status status,
                                  const char *why)
{
    return log_fail(changes->request.log, status, "the change at %.3f s cannot be made: %s",
                    (double)changes->schedule.pts_us[at] * 1e-6, why);
}

// Check that a change that is planned has the memory it takes, of frames like the first. Whether
// its templates fit is seen in its time: a journal of frames that change their size is right, too.
static enum status check_planned_locked(const struct changes *changes, int at)
{
    struct chain_error error = {.message = ""};
    enum status status = check_frames_locked(changes, &changes->schedule.chain[at], false, &error);
    return status ? refuse_planned(changes, at, status, error.message) : STATUS_OK;
}

static enum status bind_locked(struct changes *changes, const struct filter_request *request,
                               const struct filter *filter, const AVFrame *frame)
{
    bool first = !changes->first_props;
    enum status status = STATUS_OK;
    av_frame_free(&changes->first_props);
    changes->first_props = av_frame_alloc();
    if (!changes->first_props)
        return STATUS_MEMORY;
    filter_first_props(frame, changes->first_props);
    changes->filters = *request;
    changes->filters.strict = !filter_misfits(filter);
    for (int k = changes->next; first && k < changes->schedule.count && !status; k++)
        status = check_planned_locked(changes, k);
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
    const struct schedule *schedule = &changes->schedule;
    enum status status = STATUS_OK;
    char why[1024];
    for (int *at = &changes->next;
         *at < schedule->count && schedule->pts_us[*at] <= pts_us && !status; ++*at) {
        struct chain_error error = {.length = (int)strlen(schedule->text[*at])};
        struct chain chain;
        status = chain_copy(&schedule->chain[*at], &chain);
        if (!status)
            status = ask(changes, &chain, &error);
        explain(&error, schedule->text[*at], why, sizeof why);
        if (status)
            refuse_planned(changes, *at, status, why);
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
    if (!status && changes->request.changed && !text) { // it would be missing from a journal
        chain_free(&copy);
        status = STATUS_MEMORY;
    }
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
