#define _GNU_SOURCE
#include "page/events.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/verbs.h"

static const char *const names[EVENT_KINDS] = {"chain", "stats", "input", "player"};

struct event_state {
    char *text;       // as it is sent; NULL: none yet
    unsigned version; // counts from 1 on
};

struct events {
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct http *http; // NULL: none yet
    struct event_state state[EVENT_KINDS];
    char *log[EVENT_LOGS]; // number k of all is at k % EVENT_LOGS
    unsigned logged;       // all so far
    int listeners;
};

// A visitor, and the event that is being sent.
struct listener {
    struct http_stream base;
    struct events *events;
    unsigned seen[EVENT_KINDS], logs_seen;
    char *text;
    size_t size, at;
};

struct events *events_create(void)
{
    struct events *events = calloc(1, sizeof *events);
    if (events)
        pthread_mutex_init(&events->lock, NULL);
    return events;
}

void events_destroy(struct events **events)
{
    struct events *old = *events;
    if (!old)
        return;
    assert(!old->listeners); // the server has closed them
    for (int k = 0; k < EVENT_KINDS; k++)
        free(old->state[k].text);
    for (int k = 0; k < EVENT_LOGS; k++)
        free(old->log[k]);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *events = NULL;
}

void events_bind_http(struct events *events, struct http *http)
{
    pthread_mutex_lock(&events->lock);
    events->http = http;
    pthread_mutex_unlock(&events->lock);
}

int events_listeners(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    int listeners = events->listeners;
    pthread_mutex_unlock(&events->lock);
    return listeners;
}

// ---- posting ----

static void wake_locked(const struct events *events)
{
    if (events->http && events->listeners)
        http_wake(events->http);
}

// "event: NAME\ndata: JSON\n\n"; JSON has no newlines. Frees `json`.
static char *event_text(const char *name, json_t *json)
{
    char *text = NULL, *data = json ? json_dumps(json, API_JSON) : NULL;
    json_decref(json);
    if (data && asprintf(&text, "event: %s\ndata: %s\n\n", name, data) < 0)
        text = NULL;
    free(data);
    return text;
}

void events_post(struct events *events, enum event kind, json_t *json)
{
    char *text = event_text(names[kind], json);
    if (!text)
        return;
    pthread_mutex_lock(&events->lock);
    struct event_state *state = &events->state[kind];
    if (state->text && !strcmp(state->text, text)) {
        free(text);
    } else {
        free(state->text);
        state->text = text;
        state->version++;
        wake_locked(events);
    }
    pthread_mutex_unlock(&events->lock);
}

void events_log(struct events *events, const char *level, const char *sentence)
{
    char *text =
        event_text("log", json_pack("{s:s, s:o}", "level", level, "text", text_json(sentence)));
    if (!text)
        return;
    pthread_mutex_lock(&events->lock);
    char **seat = &events->log[events->logged++ % EVENT_LOGS];
    free(*seat);
    *seat = text;
    wake_locked(events);
    pthread_mutex_unlock(&events->lock);
}

// ---- listening ----

// A copy of the next line of the log that the listener has not seen; NULL: there is none.
static char *next_log_locked(struct listener *listener)
{
    const struct events *events = listener->events;
    if (events->logged - listener->logs_seen > EVENT_LOGS)
        listener->logs_seen = events->logged - EVENT_LOGS;
    if (listener->logs_seen == events->logged)
        return NULL;
    return strdup(events->log[listener->logs_seen++ % EVENT_LOGS]);
}

static char *next_locked(struct listener *listener)
{
    for (int k = 0; k < EVENT_KINDS; k++) {
        const struct event_state *state = &listener->events->state[k];
        if (state->version == listener->seen[k])
            continue;
        listener->seen[k] = state->version;
        return strdup(state->text);
    }
    return next_log_locked(listener);
}

// Begin to send the next event, if there is one.
static bool take_next(struct listener *listener)
{
    free(listener->text);
    pthread_mutex_lock(&listener->events->lock);
    listener->text = next_locked(listener);
    pthread_mutex_unlock(&listener->events->lock);
    listener->size = listener->text ? strlen(listener->text) : 0;
    listener->at = 0;
    return listener->text;
}

static ssize_t listener_read(struct http_stream *stream, char *to, size_t size)
{
    struct listener *listener = (struct listener *)stream;
    if (listener->at == listener->size && !take_next(listener))
        return 0;
    size_t left = listener->size - listener->at, count = left < size ? left : size;
    memcpy(to, listener->text + listener->at, count);
    listener->at += count;
    return (ssize_t)count;
}

static void listener_close(struct http_stream *stream)
{
    struct listener *listener = (struct listener *)stream;
    pthread_mutex_lock(&listener->events->lock);
    listener->events->listeners--;
    pthread_mutex_unlock(&listener->events->lock);
    free(listener->text);
    free(listener);
}

// A seat for one more listener; false where all are taken.
static bool take_seat(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    bool taken = events->listeners < EVENT_LISTENERS;
    events->listeners += taken;
    pthread_mutex_unlock(&events->lock);
    return taken;
}

void events_answer(struct events *events, struct http_answer *answer)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return;
    if (!take_seat(events)) {
        free(listener);
        http_say_error(answer, 503, "as many visitors as can be are listening already");
        return;
    }
    listener->base = (struct http_stream){listener_read, listener_close};
    listener->events = events;
    answer->stream = &listener->base;
    answer->type = "text/event-stream";
}
