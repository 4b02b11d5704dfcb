// Answers that take a while: a worker makes them, and the server sends them when they are there.
//
// The status has been sent by then: a task that fails says so in its text, or has none.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pipeline/output/http/http.h"

enum { LATER_TASKS = 8 };

struct later;

// A task, run in the worker's thread: *text, malloc()ed, is the answer; NULL: it breaks off.
// Tasks are one piece of memory, which is free()d afterwards.
typedef void later_run(void *opaque, const void *task, char **text, size_t *size);

// `opaque` is that of all tasks. NULL without memory or a thread. Destroyed behind the HTTP server;
// waits for the task that runs; those behind it are dropped.
struct later *later_create(void *opaque);
void later_destroy(struct later **later);
void later_bind_http(struct later *later, struct http *http);

// Answer by a task, which is taken over: sets answer->stream, `type` is static. Where too many
// wait, or without memory, answers that. The server's thread.
void later_answer(struct later *later, later_run *run, void *task, const char *type,
                  struct http_answer *answer);

// Do a task, which is taken over, and whose text nobody waits for. False where too many wait.
bool later_do(struct later *later, later_run *run, void *task);
