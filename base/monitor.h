// A lock and the condition that what it guards has changed, waited for until a time of
// CLOCK_MONOTONIC (meter_now_ns()), which no clock that is set can disturb.
//
//     monitor_lock(&monitor);
//     while (!done && monitor_wait_until(&monitor, until_ns))
//         ;
//     monitor_unlock(&monitor);
#pragma once

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
    pthread_mutex_init(&monitor->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&monitor->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static inline void monitor_finish(struct monitor *monitor)
{
    pthread_mutex_destroy(&monitor->mutex);
    pthread_cond_destroy(&monitor->changed);
}

static inline void monitor_lock(struct monitor *monitor)
{
    pthread_mutex_lock(&monitor->mutex);
}

static inline void monitor_unlock(struct monitor *monitor)
{
    pthread_mutex_unlock(&monitor->mutex);
}

// What is guarded has changed. With the lock held.
static inline void monitor_notify(struct monitor *monitor)
{
    pthread_cond_broadcast(&monitor->changed);
}

static inline void monitor_wait(struct monitor *monitor)
{
    pthread_cond_wait(&monitor->changed, &monitor->mutex);
}

// False once the time has come.
static inline bool monitor_wait_until(struct monitor *monitor, int64_t until_ns)
{
    const int64_t second_ns = 1000000000;
    const struct timespec until = {until_ns / second_ns, until_ns % second_ns};
    return !pthread_cond_timedwait(&monitor->changed, &monitor->mutex, &until);
}
