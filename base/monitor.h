// Monitor: a mutex, and the condition that the state behind it has changed. Waits end at a time of
// CLOCK_MONOTONIC (meter_now_ns()), which setting the clock does not disturb.
//
//     monitor_lock(&monitor);
//     while (!done && monitor_wait_until(&monitor, until_ns))
//         ;
//     monitor_unlock(&monitor);
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct monitor {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

static inline void monitor_init(struct monitor *monitor)
{
    pthread_condattr_t monotonic;
    int failed = pthread_mutex_init(&monitor->mutex, NULL);
    pthread_condattr_init(&monotonic);
    failed |= pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&monitor->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    assert(!failed); // only without memory, which glibc does not allocate for these
    (void)failed;
}

static inline void monitor_finish(struct monitor *monitor)
{
    int busy = pthread_mutex_destroy(&monitor->mutex);
    assert(!busy); // nobody holds it
    (void)busy;
    pthread_cond_destroy(&monitor->changed);
}

static inline void monitor_lock(struct monitor *monitor)
{
    int failed = pthread_mutex_lock(&monitor->mutex);
    assert(!failed);
    (void)failed;
}

// Lock it if nobody else has; false: somebody has.
static inline bool monitor_try_lock(struct monitor *monitor)
{
    return !pthread_mutex_trylock(&monitor->mutex);
}

static inline void monitor_unlock(struct monitor *monitor)
{
    int failed = pthread_mutex_unlock(&monitor->mutex);
    assert(!failed);
    (void)failed;
}

// Wake all who wait: the state has changed. With the lock held.
static inline void monitor_notify(struct monitor *monitor)
{
    pthread_cond_broadcast(&monitor->changed);
}

// Wait for a change, or for nothing: waits sit in loops. With the lock held.
static inline void monitor_wait(struct monitor *monitor)
{
    pthread_cond_wait(&monitor->changed, &monitor->mutex);
}

// The same; false once the time has come.
static inline bool monitor_wait_until(struct monitor *monitor, int64_t until_ns)
{
    const int64_t second_ns = 1000000000;
    const struct timespec until = {until_ns / second_ns, until_ns % second_ns};
    return !pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &until);
}
