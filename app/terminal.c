// Standard error: messages, a line of progress, the closing summary.
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"

// One thread at a time writes, or reads what the first failure was. (ThreadSanitizer knows nothing of flockfile().)
static pthread_mutex_t terminal_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_terminal(void)
{
    return isatty(STDERR_FILENO);
}

// True if standard error understands escape codes. Without TERM nothing is known of it.
static bool takes_escapes(void)
{
    const char *term = getenv("TERM");
    return is_terminal() && term && *term && strcmp(term, "dumb");
}

static bool wants_color(void)
{
    const char *no = getenv("NO_COLOR");
    return takes_escapes() && !(no && *no);
}

static void print_sentence(enum sluice_log_level level, const char *sentence)
{
    const char *color = "", *plain = "";
    if (wants_color() && level <= SLUICE_LOG_WARNING) {
        color = level == SLUICE_LOG_ERROR ? "\033[31m" : "\033[33m";
        plain = "\033[0m";
    }
    fprintf(stderr, "%ssluice: %s%s%s\n", takes_escapes() ? "\r\033[K" : "", color, sentence,
            plain);
}

void terminal_log(void *opaque, enum sluice_log_level level, const char *sentence)
{
    assert(opaque && sentence);
    struct settings *settings = opaque;
    bool quiet = settings->quiet && level > SLUICE_LOG_ERROR;
    pthread_mutex_lock(&terminal_lock);
    if (level == SLUICE_LOG_ERROR && !*settings->error)
        snprintf(settings->error, sizeof settings->error, "%s", sentence);
    if (!quiet && (settings->verbose || level <= SLUICE_LOG_INFO)) {
        const char *why = sandbox_explain(sentence);
        print_sentence(level, sentence);
        if (why)
            print_sentence(level, why);
    }
    pthread_mutex_unlock(&terminal_lock);
}

void terminal_take_error(struct settings *settings, char *to, size_t size)
{
    pthread_mutex_lock(&terminal_lock);
    snprintf(to, size, "%s", settings->error);
    *settings->error = 0;
    pthread_mutex_unlock(&terminal_lock);
}

// ---- progress ----

struct progress {
    figures_read *read;
    const void *run;
    bool in_place;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    bool done;
};

// The line's pieces from left to right. Where it is narrow those of the highest rank go first.
enum { PIECES = 10, PIECE = 48 };
struct line {
    struct piece {
        char text[PIECE];
        int rank;
    } piece[PIECES];
    int pieces;
};

__attribute__((format(printf, 3, 4))) static void add_piece(struct line *line, int rank,
                                                            const char *format, ...)
{
    va_list arguments;
    struct piece *piece = &line->piece[line->pieces++];
    assert(line->pieces <= PIECES);
    va_start(arguments, format);
    vsnprintf(piece->text, sizeof piece->text, format, arguments);
    va_end(arguments);
    piece->rank = rank;
}

static void add_time(struct line *line, int rank, const char *before, double seconds)
{
    long whole = (long)(seconds + 0.5);
    add_piece(line, rank, "%s%02ld:%02ld:%02ld", before, whole / 3600, whole / 60 % 60, whole % 60);
}

// 0: unknown. Frames that an encoder still holds are not done; at the end, also of a run that was
// stopped, no others come.
static double part_done(const struct sluice_progress *now)
{
    double done = (double)(now->frames - now->frames_pending);
    if (now->flushing || now->stopping)
        return now->frames ? done / (double)now->frames : 0;
    if (now->frames_total > 0)
        return done / (double)now->frames_total;
    if (now->media_total <= 0 || !now->frames)
        return 0;
    return now->media_seconds / now->media_total * done / (double)now->frames;
}

// The activity after the last frame, which may take a while.
static void add_ending(struct line *line, const struct sluice_progress *now, bool joining)
{
    if (joining)
        add_piece(line, 1, "joining the parts");
    if (joining || (!now->flushing && !now->stopping))
        return;
    if (now->frames_pending)
        add_piece(line, 1, "encoding the last %lld", (long long)now->frames_pending);
    else
        add_piece(line, 1, "%s", now->flushing ? "finishing the output" : "stopping");
}

static void add_parts(struct line *line, const struct figures_now *run)
{
    if (run->parts)
        add_piece(line, 3, "part %d/%d", run->parts_done, run->parts);
    if (run->jobs)
        add_piece(line, 6, "%d job%s", run->jobs, run->jobs == 1 ? "" : "s");
}

static void compose(struct line *line, const struct figures_now *run)
{
    const struct sluice_progress *now = &run->progress;
    double rate = now->seconds > 0 ? (double)now->frames / now->seconds : 0;
    double speed = now->seconds > 0 ? now->media_seconds / now->seconds : 0, part = part_done(now);
    bool ends = now->flushing || now->stopping || run->joining;
    add_piece(line, 0, "frame %lld", (long long)now->frames);
    add_piece(line, 5, "%.1f fps", rate);
    add_piece(line, 6, "%.2fx", speed);
    add_time(line, 4, "", now->media_seconds);
    add_parts(line, run);
    add_ending(line, now, run->joining);
    if (part > 0 && part <= 1 && (!ends || now->frames_pending)) {
        add_piece(line, 2, "%.0f %%", 100 * part);
        add_time(line, 3, "ETA ", now->seconds * (1 - part) / part);
    }
    int64_t damaged = now->ledger.frames_damaged + now->ledger.packets_damaged;
    if (damaged)
        add_piece(line, 1, "%lld damaged", (long long)damaged);
}

static int line_width(const struct line *line)
{
    int width = 0;
    for (int k = 0; k < line->pieces; k++)
        width += (int)strlen(line->piece[k].text) + (k ? 2 : 0);
    return width;
}

// A line as wide as the terminal would wrap, and could not be replaced.
static void fit_line(struct line *line, int columns)
{
    while (line->pieces > 1 && line_width(line) >= columns) {
        int out = 0;
        for (int k = 1; k < line->pieces; k++)
            if (line->piece[k].rank >= line->piece[out].rank)
                out = k;
        line->pieces--;
        memmove(&line->piece[out], &line->piece[out + 1],
                (size_t)(line->pieces - out) * sizeof *line->piece);
    }
    if (line_width(line) >= columns)
        line->piece[0].text[columns - 1] = 0;
}

// INT_MAX: unknown.
static int terminal_columns(void)
{
    struct winsize size;
    return !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : INT_MAX;
}

static void print_progress(const struct progress *progress)
{
    struct figures_now now;
    struct line line = {0};
    progress->read(progress->run, &now);
    compose(&line, &now);
    if (progress->in_place)
        fit_line(&line, terminal_columns());
    pthread_mutex_lock(&terminal_lock);
    fputs(progress->in_place ? "\r\033[K" : "", stderr);
    for (int k = 0; k < line.pieces; k++)
        fprintf(stderr, "%s%s", k ? "  " : "", line.piece[k].text);
    if (!progress->in_place)
        fputc('\n', stderr);
    fflush(stderr);
    pthread_mutex_unlock(&terminal_lock);
}

static void *progress_run(void *argument)
{
    struct progress *progress = argument;
    struct timespec until;
    pthread_mutex_lock(&progress->lock);
    while (!progress->done) {
        clock_gettime(CLOCK_MONOTONIC, &until);
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

struct progress *progress_start(figures_read *read, const void *run,
                                const struct settings *settings)
{
    assert(read && run && settings);
    struct progress *progress = settings->quiet ? NULL : calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    progress->read = read;
    progress->run = run;
    progress->in_place = takes_escapes();
    pthread_mutex_init(&progress->lock, NULL);
    pthread_condattr_t monotonic; // whoever sets the clock of the day changes nothing
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&progress->thread, NULL, progress_run, progress)) {
        free(progress); // no progress line, no harm
        return NULL;
    }
    return progress;
}

void progress_stop(struct progress **progress)
{
    assert(progress);
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
