// Signals that end the program come to a thread of their own: the first one asks the job to stop
// and leave a whole output, the second ends the process at once; so does the first while there is no
// job, unless the watcher is patient. Then it gives the program two seconds to end.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "sluice/sluice.h"

// watcher_start() is called ahead of every other thread: NULL, with a sentence, if it cannot be.
// watcher_watch() says which job there is now; NULL: none. watcher_watch_run() says the same of what
// a function stops, which is called in the watcher's thread; NULL: nothing. watcher_signal() is the first signal, 0
// without; watcher_stops() is true from then on.
struct watcher;
struct watcher *watcher_start(bool patient);
void watcher_watch(struct watcher *watcher, struct sluice_job *job);
void watcher_watch_run(struct watcher *watcher, void (*stop)(void *run), void *run);
int watcher_signal(const struct watcher *watcher);
const atomic_bool *watcher_stops(const struct watcher *watcher);
void watcher_stop(struct watcher **watcher);
