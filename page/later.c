#include "page/later.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/monitor.h"

// An answer that is being made. The worker and the server's stream refer to it; the last frees it.
struct promise {
    struct http_stream base;
    struct later *later;
    later_run *run;
    void *task;
    char *text;
    size_t size;
    size_t at; // the stream's
    // ---- guarded by lock ----
    bool done;
    int refs;
    struct promise *next;
};

struct later {
    void *opaque;
    pthread_t thread;
    struct monitor lock;
    // ---- guarded by lock ----
    struct http *http;
    struct promise *first;
    int waiting;
    bool closing;
};

static void unref_locked(struct promise *promise)
{
    if (--promise->refs)
        return;
    free(promise->task);
    free(promise->text);
    free(promise);
}

// ---- the worker ----

static void finish_locked(struct later *later, struct promise *promise)
{
    promise->done = true;
    if (later->http)
        http_wake(later->http);
    unref_locked(promise);
}

// Take the next promise; NULL: there is nothing more to do.
static struct promise *next_locked(struct later *later)
{
    while (!later->first && !later->closing)
        monitor_wait(&later->lock);
    struct promise *promise = later->first;
    if (promise) {
        later->first = promise->next;
        later->waiting--;
    }
    return promise;
}

static void *later_thread(void *later_)
{
    struct later *later = later_;
    struct promise *promise;
    monitor_lock(&later->lock);
    while ((promise = next_locked(later))) {
        bool dropped = later->closing;
        monitor_unlock(&later->lock);
        if (!dropped)
            promise->run(later->opaque, promise->task, &promise->text, &promise->size);
        monitor_lock(&later->lock);
        finish_locked(later, promise);
    }
    monitor_unlock(&later->lock);
    return NULL;
}

struct later *later_create(void *opaque)
{
    struct later *later = calloc(1, sizeof *later);
    if (!later)
        return NULL;
    later->opaque = opaque;
    monitor_init(&later->lock);
    if (!pthread_create(&later->thread, NULL, later_thread, later))
        return later;
    monitor_finish(&later->lock);
    free(later);
    return NULL;
}

void later_destroy(struct later **later)
{
    struct later *old = *later;
    if (!old)
        return;
    monitor_lock(&old->lock);
    old->closing = true;
    old->http = NULL;
    monitor_notify(&old->lock);
    monitor_unlock(&old->lock);
    pthread_join(old->thread, NULL);
    monitor_finish(&old->lock);
    free(old);
    *later = NULL;
}

void later_bind_http(struct later *later, struct http *http)
{
    monitor_lock(&later->lock);
    later->http = http;
    monitor_unlock(&later->lock);
}

// ---- the stream ----

static ssize_t promise_read(struct http_stream *stream, char *to, size_t size)
{
    struct promise *promise = (struct promise *)stream;
    monitor_lock(&promise->later->lock);
    bool done = promise->done;
    monitor_unlock(&promise->later->lock);
    size_t left = promise->size - promise->at, count = left < size ? left : size;
    if (!done)
        return 0;
    if (!promise->text)
        return HTTP_BROKEN;
    if (!left)
        return HTTP_END;
    memcpy(to, promise->text + promise->at, count);
    promise->at += count;
    return (ssize_t)count;
}

static void promise_close(struct http_stream *stream)
{
    struct promise *promise = (struct promise *)stream;
    struct later *later = promise->later;
    monitor_lock(&later->lock);
    unref_locked(promise);
    monitor_unlock(&later->lock);
}

// ---- tasks ----

// Queue a promise behind the others; false where too many wait.
static bool queue(struct later *later, struct promise *promise)
{
    monitor_lock(&later->lock);
    bool room = later->waiting < LATER_TASKS && !later->closing;
    struct promise **end = &later->first;
    while (*end)
        end = &(*end)->next;
    if (room) {
        *end = promise;
        later->waiting++;
        monitor_notify(&later->lock);
    }
    monitor_unlock(&later->lock);
    return room;
}

// NULL where too many wait, or without memory; the task is free()d then.
static struct promise *begin(struct later *later, later_run *run, void *task, int refs)
{
    struct promise *promise = calloc(1, sizeof *promise);
    if (promise)
        *promise = (struct promise){{promise_read, promise_close}, later, run, task, .refs = refs};
    if (promise && queue(later, promise))
        return promise;
    free(task);
    free(promise);
    return NULL;
}

void later_answer(struct later *later, later_run *run, void *task, const char *type,
                  struct http_answer *answer)
{
    struct promise *promise = begin(later, run, task, 2);
    if (!promise) {
        http_say_error(answer, 503, "too much is being worked out already; try again later");
        return;
    }
    answer->stream = &promise->base;
    answer->type = type;
}

bool later_do(struct later *later, later_run *run, void *task)
{
    return begin(later, run, task, 1);
}
