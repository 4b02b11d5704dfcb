#define _GNU_SOURCE
#include "app/service/notify.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control/clock.h"

static const int64_t second_ns = 1000000000;
static const int64_t look_ns = 100 * INT64_C(1000000), status_ns = 5 * second_ns;

struct notify {
    notify_read *read; // NULL: a server
    const void *run;
    int fd;
    struct sockaddr_un address;
    socklen_t address_size;
    int64_t feed_ns; // between two WATCHDOG=1; 0: nobody waits for them
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- the thread's ----
    bool ready, stopping; // what was said
    bool moved;           // since the last WATCHDOG=1
    int64_t moves, fed_ns, told_ns;
    bool lost; // what the last STATUS said
    // ---- guarded by lock ----
    bool done;
};

// ---- what is said ----

// False if it did not get through: it is said again later.
static bool say(const struct notify *notify, const char *text)
{
    return sendto(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                  (const struct sockaddr *)&notify->address, notify->address_size) >= 0;
}

static bool say_status(const struct notify *notify, const struct sluice_progress *now)
{
    char text[256];
    int64_t dropped =
        now->ledger.dropped_late + now->ledger.dropped_clock + now->ledger.dropped_disk;
    double rate = now->seconds > 0 ? (double)now->frames / now->seconds : 0;
    int used = snprintf(text, sizeof text, "STATUS=%sframe %lld, %.1f fps",
                        now->lost     ? "the source is lost, connecting again; "
                        : now->frames ? ""
                                      : "waiting for the first frame; ",
                        (long long)now->frames, rate);
    if (dropped)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, ", %lld dropped", (long long)dropped);
    int64_t damaged = now->ledger.frames_damaged + now->ledger.packets_damaged;
    if (damaged)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, ", %lld damaged", (long long)damaged);
    if (now->ledger.losses)
        snprintf(text + used, sizeof text - (size_t)used, ", lost %lld time%s",
                 (long long)now->ledger.losses, now->ledger.losses == 1 ? "" : "s");
    return say(notify, text);
}

// ---- when ----

// A number that changes whenever a frame gets anywhere.
static int64_t count_moves(const struct sluice_progress *now)
{
    return now->ledger.frames_in + now->frames + now->ledger.frames_out +
           now->ledger.frames_filled + now->ledger.dropped_range + now->ledger.dropped_late +
           now->ledger.dropped_clock + now->ledger.dropped_stop + now->ledger.dropped_disk;
}

static void feed_watchdog(struct notify *notify, const struct notify_state *now, int64_t at_ns)
{
    int64_t moves = count_moves(&now->progress) + now->parts_done;
    notify->moved |= moves != notify->moves || now->progress.connecting || now->joining;
    notify->moves = moves;
    if (!notify->feed_ns || !notify->moved || at_ns - notify->fed_ns < notify->feed_ns)
        return;
    if (say(notify, "WATCHDOG=1")) {
        notify->fed_ns = at_ns;
        notify->moved = false;
    }
}

// A server is ready when it listens, and moves as long as it looks.
static void look_after_server(struct notify *notify, int64_t at_ns)
{
    const struct notify_state nothing = {0};
    if (!notify->ready)
        notify->ready = say(notify, "READY=1\nSTATUS=the page is open");
    notify->moved = true;
    feed_watchdog(notify, &nothing, at_ns);
}

static void look(struct notify *notify)
{
    struct notify_state state = {0};
    const struct sluice_progress *now = &state.progress;
    int64_t at_ns = now_ns();
    if (!notify->read) {
        look_after_server(notify, at_ns);
        return;
    }
    notify->read(notify->run, &state);
    if (!notify->ready && now->ledger.frames_out)
        notify->ready = say(notify, "READY=1");
    if (!notify->stopping && now->stopping)
        notify->stopping = say(notify, "STOPPING=1\nSTATUS=finishing the output");
    if (notify->stopping)
        return;
    feed_watchdog(notify, &state, at_ns);
    if (at_ns - notify->told_ns >= status_ns || now->lost != notify->lost) {
        say_status(notify, now);
        notify->told_ns = at_ns;
        notify->lost = now->lost;
    }
}

static void *notify_run(void *notify_)
{
    struct notify *notify = notify_;
    int64_t nap_ns =
        notify->feed_ns && notify->feed_ns / 4 < look_ns ? notify->feed_ns / 4 : look_ns;
    pthread_mutex_lock(&notify->lock);
    while (!notify->done) {
        int64_t until_ns = now_ns() + nap_ns;
        const struct timespec until = {until_ns / second_ns, until_ns % second_ns};
        pthread_mutex_unlock(&notify->lock);
        look(notify);
        pthread_mutex_lock(&notify->lock);
        while (!notify->done &&
               pthread_cond_timedwait(&notify->changed, &notify->lock, &until) != ETIMEDOUT)
            ;
    }
    pthread_mutex_unlock(&notify->lock);
    return NULL;
}

// ---- the surroundings ----

// A path, or "@" and a name that is in no file system.
static bool make_address(const char *name, struct notify *notify)
{
    size_t length = strlen(name);
    notify->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((*name != '/' && *name != '@') || length < 2 || length >= sizeof notify->address.sun_path) {
        fprintf(stderr,
                "sluice: NOTIFY_SOCKET is '%s', which is no name of a socket; systemd is not "
                "notified\n",
                name);
        return false;
    }
    memcpy(notify->address.sun_path, name, length);
    if (*name == '@')
        notify->address.sun_path[0] = 0;
    notify->address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (*name == '/'));
    return true;
}

// Half of what systemd waits; 0: it does not wait, or not for us.
static int64_t find_pace(void)
{
    const char *most = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (!most || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    long long us = strtoll(most, NULL, 10);
    return us > 0 && us < INT64_MAX / 1000 ? us * 1000 / 2 : 0;
}

static bool start(struct notify *notify)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&notify->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&notify->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd >= 0 && !pthread_create(&notify->thread, NULL, notify_run, notify))
        return true;
    fprintf(stderr, "sluice: systemd cannot be notified: %s\n", strerror(errno));
    if (notify->fd >= 0)
        close(notify->fd);
    return false;
}

void notify_read_job(const void *job, struct notify_state *now)
{
    *now = (struct notify_state){.progress = {.size = sizeof now->progress}};
    sluice_job_progress(job, &now->progress);
}

struct notify *notify_start(notify_read *read, const void *run)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct notify *notify = name && *name ? calloc(1, sizeof *notify) : NULL;
    if (!notify)
        return NULL;
    notify->read = read;
    notify->run = run;
    notify->feed_ns = find_pace();
    notify->fed_ns = now_ns();
    notify->told_ns = notify->fed_ns - status_ns;
    if (make_address(name, notify) && start(notify))
        return notify;
    free(notify);
    return NULL;
}

void notify_stop(struct notify **notify, bool ends)
{
    assert(notify);
    struct notify *old = *notify;
    if (!old)
        return;
    pthread_mutex_lock(&old->lock);
    old->done = true;
    pthread_cond_broadcast(&old->changed);
    pthread_mutex_unlock(&old->lock);
    pthread_join(old->thread, NULL);
    if (ends)
        look(old); // what came since
    if (ends && !old->stopping)
        say(old, "STOPPING=1");
    close(old->fd);
    pthread_mutex_destroy(&old->lock);
    pthread_cond_destroy(&old->changed);
    free(old);
    *notify = NULL;
}
