// Standard error: messages, a line of progress, the closing summary.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"

static bool is_terminal(void)
{
    return isatty(STDERR_FILENO);
}

static bool wants_color(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return is_terminal() && !(no && *no) && term && strcmp(term, "dumb");
}

static void print_sentence(enum sluice_log_level level, const char *sentence)
{
    const char *color = "", *plain = "";
    if (wants_color() && level <= SLUICE_WARNING) {
        color = level == SLUICE_ERROR ? "\033[31m" : "\033[33m";
        plain = "\033[0m";
    }
    fprintf(stderr, "%ssluice: %s%s%s\n", is_terminal() ? "\r\033[K" : "", color, sentence, plain);
}

void terminal_log(void *opaque, enum sluice_log_level level, const char *sentence)
{
    struct settings *settings = opaque;
    bool quiet = settings->quiet && level > SLUICE_ERROR;
    flockfile(stderr); // one thread at a time
    if (level == SLUICE_ERROR && !*settings->error)
        snprintf(settings->error, sizeof settings->error, "%s", sentence);
    if (!quiet && (settings->verbose || level <= SLUICE_INFO))
        print_sentence(level, sentence);
    funlockfile(stderr);
}

// ---- progress ----

struct progress {
    const struct sluice_job *job;
    bool in_place;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    bool done;
};

static void print_time(double seconds)
{
    long whole = (long)(seconds + 0.5);
    fprintf(stderr, "%02ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

static void print_progress(const struct progress *progress)
{
    struct sluice_progress now;
    sluice_job_progress(progress->job, &now);
    double rate = now.seconds > 0 ? (double)now.frames / now.seconds : 0;
    double part = now.frames_total > 0  ? (double)now.frames / (double)now.frames_total
                  : now.media_total > 0 ? now.media_seconds / now.media_total
                                        : 0;
    flockfile(stderr);
    fprintf(stderr, "%sframe %lld  %.1f fps  %.2fx  ", progress->in_place ? "\r\033[K" : "",
            (long long)now.frames, rate, now.seconds > 0 ? now.media_seconds / now.seconds : 0);
    print_time(now.media_seconds);
    if (part > 0 && part <= 1) {
        fprintf(stderr, "  %.0f %%  ETA ", 100 * part);
        print_time(now.seconds * (1 - part) / part);
    }
    if (now.damaged)
        fprintf(stderr, "  %lld damaged", (long long)now.damaged);
    if (!progress->in_place)
        fputc('\n', stderr);
    fflush(stderr);
    funlockfile(stderr);
}

static void *progress_run(void *argument)
{
    struct progress *progress = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&progress->lock);
    while (!progress->done) {
        until.tv_nsec += progress->in_place ? 500000000 : 1000000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!progress->done &&
               pthread_cond_timedwait(&progress->changed, &progress->lock, &until) != ETIMEDOUT)
            ;
        if (!progress->done)
            print_progress(progress);
    }
    pthread_mutex_unlock(&progress->lock);
    if (progress->in_place)
        fputs("\r\033[K", stderr);
    return NULL;
}

struct progress *progress_start(const struct sluice_job *job, const struct settings *settings)
{
    struct progress *progress = settings->quiet ? NULL : calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    progress->job = job;
    progress->in_place = is_terminal();
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->changed, NULL);
    if (pthread_create(&progress->thread, NULL, progress_run, progress)) {
        free(progress); // no progress line, no harm
        return NULL;
    }
    return progress;
}

void progress_stop(struct progress **progress)
{
    if (!*progress)
        return;
    pthread_mutex_lock(&(*progress)->lock);
    (*progress)->done = true;
    pthread_cond_broadcast(&(*progress)->changed);
    pthread_mutex_unlock(&(*progress)->lock);
    pthread_join((*progress)->thread, NULL);
    pthread_mutex_destroy(&(*progress)->lock);
    pthread_cond_destroy(&(*progress)->changed);
    free(*progress);
    *progress = NULL;
}
