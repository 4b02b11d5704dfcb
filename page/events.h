// Server-sent events: what has changed, for every visitor who listens.
//
// Most kinds: only the newest counts, and a slow visitor gets just that. The log: the last
// EVENT_LOGS are kept. A visitor who comes gets all that there is.
//
// Thread-safety: any thread; nobody waits for a visitor.
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "pipeline/output/http/http.h"

enum event { EVENT_CHAIN, EVENT_STATS, EVENT_INPUT, EVENT_PLAYER, EVENT_KINDS };
enum { EVENT_LOGS = 64, EVENT_LISTENERS = 16 };

// Flags of the page's JSON: numbers as people would write them.
#define API_JSON (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(15))

struct events;

// The caller owns the events; NULL without memory. Destroyed behind the HTTP server.
struct events *events_create(void);
void events_destroy(struct events **events);

// Whose http_wake() is called from now on.
void events_bind_http(struct events *events, struct http *http);

// The number of visitors that listen.
int events_listeners(struct events *events);

// The newest of a kind; takes `json` over, NULL being no news. Nothing is sent where it is the same
// as the one before.
void events_post(struct events *events, enum event kind, json_t *json);

// A line of the log.
void events_log(struct events *events, const char *level, const char *text);

// A listener; an answer that says why not where there are too many. The server's thread.
void events_answer(struct events *events, struct http_answer *answer);
