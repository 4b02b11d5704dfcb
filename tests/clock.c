// Sets the clock of the day while a program runs, by LD_PRELOAD; clocks that only go on stay as they are:
//
//   CLOCK_STEPS="0.5:7200 1.5:-7200"   half a second behind the start two hours ahead, a second later two hours behind
//
// Waits for a moment of the day wait until that comes by this clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

enum { CONDITIONS = 4096 };
static const pthread_cond_t *monotonic[CONDITIONS];
static int conditions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int real_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    return real(clock, now);
}

static double uptime(void)
{
    struct timespec now;
    real_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double begun;

__attribute__((constructor)) static void begin(void)
{
    begun = uptime();
}

static time_t step(void)
{
    const char *steps = getenv("CLOCK_STEPS");
    double at, passed = uptime() - begun;
    time_t by = 0;
    while (steps && *steps) {
        char *end;
        at = strtod(steps, &end);
        long seconds = strtol(end + 1, &end, 10);
        if (passed >= at)
            by = seconds;
        steps = end + (*end == ' ');
    }
    return by;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = real_gettime(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += step();
    return result;
}

time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return 0;
}

// ---- waits ----

int pthread_cond_init(pthread_cond_t *restrict condition,
                      const pthread_condattr_t *restrict attributes)
{
    clockid_t clock = CLOCK_REALTIME;
    int (*real)(pthread_cond_t *, const pthread_condattr_t *);
    *(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_init", "GLIBC_2.3.2");
    if (attributes)
        pthread_condattr_getclock(attributes, &clock);
    pthread_mutex_lock(&lock);
    for (int k = 0; k < conditions; k++)
        if (monotonic[k] == condition)
            monotonic[k] = NULL;
    if (clock == CLOCK_MONOTONIC && conditions < CONDITIONS)
        monotonic[conditions++] = condition;
    pthread_mutex_unlock(&lock);
    return real(condition, attributes);
}

static int is_monotonic(const pthread_cond_t *condition)
{
    int known = 0;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < conditions && !known; k++)
        known = monotonic[k] == condition;
    pthread_mutex_unlock(&lock);
    return known;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    *(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (is_monotonic(condition))
        return real(condition, mutex, until);
    for (int result = ETIMEDOUT; result == ETIMEDOUT;) {
        struct timespec now, soon;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > until->tv_sec ||
            (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return ETIMEDOUT;
        real_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 10000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        result = real(condition, mutex, &soon);
        if (result != ETIMEDOUT)
            return result;
    }
    return 0;
}
