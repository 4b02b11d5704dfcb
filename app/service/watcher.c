#include "app/service/watcher.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "app/service/exit.h"

struct watcher {
    sigset_t set;
    pthread_t thread;
    bool patient;
    atomic_int signal; // the first that came
    atomic_bool stop;  // likewise, for those who wait
    atomic_bool done;  // there is nothing more to watch
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    void (*stop_run)(void *run); // NULL: nothing to stop
    void *run;
};

// Wakes the watcher at the end; a signal without a meaning of its own.
static const int wake_signal = SIGWINCH;

static const struct timespec patience = {.tv_sec = 1, .tv_nsec = 900000000};

static void take_signal(struct watcher *watcher, int number)
{
    pthread_mutex_lock(&watcher->lock);
    if (watcher->signal || (!watcher->stop_run && !watcher->patient))
        _exit(EXIT_SIGNAL + number);
    watcher->signal = number;
    watcher->stop = true;
    if (watcher->stop_run)
        watcher->stop_run(watcher->run);
    pthread_mutex_unlock(&watcher->lock);
}

static void *watcher_run(void *argument)
{
    struct watcher *watcher = argument;
    for (;;) {
        bool ending = watcher->patient && watcher->signal;
        int number = ending ? sigtimedwait(&watcher->set, NULL, &patience)
                            : sigwaitinfo(&watcher->set, NULL);
        if (watcher->done)
            return NULL;
        if (ending && number < 0 && errno == EAGAIN)
            _exit(EXIT_SIGNAL + watcher->signal);
        if (number >= 0 && number != wake_signal)
            take_signal(watcher, number);
    }
}

static void choose_signals(sigset_t *set)
{
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigemptyset(set);
    sigaddset(set, wake_signal);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct sigaction old;
        // Signals ignored from the start (nohup) stay ignored.
        if (sigaction(numbers[k], NULL, &old) || old.sa_handler != SIG_IGN)
            sigaddset(set, numbers[k]);
    }
}

struct watcher *watcher_start(bool patient)
{
    struct watcher *watcher = calloc(1, sizeof *watcher);
    if (watcher) {
        watcher->patient = patient;
        choose_signals(&watcher->set);
        pthread_mutex_init(&watcher->lock, NULL);
        // Blocked here, and so in every thread that comes after.
        if (!pthread_sigmask(SIG_BLOCK, &watcher->set, NULL) &&
            !pthread_create(&watcher->thread, NULL, watcher_run, watcher))
            return watcher;
    }
    free(watcher);
    fprintf(stderr, "sluice: no thread could be started\n");
    return NULL;
}

void watcher_watch_run(struct watcher *watcher, void (*stop)(void *run), void *run)
{
    pthread_mutex_lock(&watcher->lock);
    watcher->stop_run = stop;
    watcher->run = run;
    if (stop && watcher->signal)
        stop(run);
    pthread_mutex_unlock(&watcher->lock);
}

static void stop_job(void *job)
{
    sluice_job_stop(job);
}

void watcher_watch(struct watcher *watcher, struct sluice_job *job)
{
    watcher_watch_run(watcher, job ? stop_job : NULL, job);
}

int watcher_signal(const struct watcher *watcher)
{
    return watcher->signal;
}

const atomic_bool *watcher_stops(const struct watcher *watcher)
{
    return &watcher->stop;
}

void watcher_stop(struct watcher **watcher)
{
    assert(watcher);
    struct watcher *old = *watcher;
    if (!old)
        return;
    old->done = true;
    pthread_kill(old->thread, wake_signal);
    pthread_join(old->thread, NULL);
    pthread_mutex_destroy(&old->lock);
    free(old);
    *watcher = NULL;
}
