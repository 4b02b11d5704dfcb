// `sluice serve [INPUT]`: the control page, and one input after another that it shows. Each pass of
// an input is a job that writes nothing.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"
#include "app/service/notify.h"
#include "app/service/watcher.h"
#include "control/clock.h"
#include "control/socket.h"

enum { PASS_MS = 100, RETRY_MS = 2000, LOOK_MS = 20 };

struct serve {
    struct settings *settings;
    struct watcher *watcher;
    struct page *page;
    bool ran;                      // a pass was begun
    struct socket_server *control; // NULL: none
    char *input;       // what a visitor has chosen; NULL: the command line's, or nothing yet
    char *chain;       // as it is by now; NULL: the command line's
    int passes;        // the input's so far, with the present one; 2: or more
    int64_t passed_us; // media time of the passes before this one
    char *journaled;   // the last chain in the journal; NULL: none
};

// The end of a pass, or of several.
enum outcome {
    OUTCOME_AGAIN,  // the file ended
    OUTCOME_FAILED, // the input cannot be shown
    OUTCOME_CHOSEN, // a visitor has chosen another
    OUTCOME_END,    // the program ends
};

static bool is_stopped(const struct serve *serve)
{
    return *watcher_stops(serve->watcher) || socket_quits(serve->control);
}

// True if this input has no more to say.
static bool is_over(const struct serve *serve)
{
    return is_stopped(serve) || page_wants_another(serve->page);
}

// Wait until then (INT64_MAX: for ever), but no longer than until something else is to be done.
static void wait_until(const struct serve *serve, int64_t until_ms)
{
    while (now_ms() < until_ms && !is_over(serve))
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
}

// ---- what a job tells ----

// Sentences that every pass has are logged once.
static void log_pass(void *serve_, enum sluice_log_level level, const char *sentence)
{
    struct serve *serve = serve_;
    if (serve->passes <= 1 || level <= SLUICE_LOG_WARNING)
        show_log(serve->settings, level, sentence);
}

// The journal's times go on from pass to pass, and it says only what is new.
static void note_change(void *serve_, int64_t pts_us, const char *chain)
{
    struct serve *serve = serve_;
    page_changed(serve->page, pts_us, chain);
    if (serve->journaled && !strcmp(serve->journaled, chain))
        return;
    free(serve->journaled);
    serve->journaled = strdup(chain);
    journal_changed(serve->settings, serve->passed_us + pts_us, chain);
}

// ---- one pass ----

static const char *input_of(const struct serve *serve)
{
    return serve->input ? serve->input : serve->settings->config.input;
}

// Clear the command line's settings of its input: they do not hold for another one.
static void forget_input(struct sluice_config *config)
{
    config->input_format = config->input_pixfmt = NULL;
    config->input_width = config->input_height = 0;
    config->input_rate = (struct sluice_rate){0};
    config->stream = 0;
    config->start = config->duration = 0;
    config->frames = 0;
}

static struct sluice_config pass_config(struct serve *serve)
{
    struct sluice_config config = serve->settings->config;
    if (serve->input && config.input)
        forget_input(&config);
    config.input = input_of(serve);
    config.output = (struct sluice_output){.name = "null:"};
    config.more_outputs = NULL;
    config.live = true;
    config.metrics = NULL;      // the page has one address for all passes
    config.await_start = false; // serve itself tries again, and looks after visitors meanwhile
    if (serve->chain) {
        config.chain = serve->chain;
        config.parsed = NULL; // the command line's
    }
    // The journal grows from pass to pass: it is no file that must not exist yet.
    config.reserved_inputs = config.reserved_outputs;
    config.reserved_outputs = NULL;
    config.log = log_pass;
    config.changed = note_change;
    config.opaque = serve;
    return config;
}

// A picture is there at once.
static bool is_picture(const struct serve *serve, const struct sluice_job *job)
{
    struct sluice_progress progress = {.size = sizeof progress};
    struct stat about;
    sluice_job_progress(job, &progress);
    return progress.ledger.frames_in == 1 && !stat(input_of(serve), &about) &&
           S_ISREG(about.st_mode);
}

// The job that has ended stays for requests: that of a picture until there is another input, any
// other as long as visitors look at what was before.
static void hold(const struct serve *serve, const struct sluice_job *job)
{
    if (is_picture(serve, job))
        wait_until(serve, INT64_MAX);
    while (page_holds(serve->page) && !is_over(serve))
        wait_until(serve, now_ms() + PASS_MS);
}

static void count_time(struct serve *serve, const struct sluice_job *job)
{
    struct sluice_progress progress = {.size = sizeof progress};
    sluice_job_progress(job, &progress);
    serve->passed_us += (int64_t)(progress.media_seconds * 1e6);
}

static enum outcome outcome_of(const struct serve *serve, enum sluice_status status)
{
    if (is_stopped(serve))
        return OUTCOME_END;
    if (page_wants_another(serve->page))
        return OUTCOME_CHOSEN;
    return status && status != SLUICE_STATUS_STOPPED ? OUTCOME_FAILED : OUTCOME_AGAIN;
}

static enum sluice_status run_shown(struct serve *serve, struct sluice_job *job,
                                    const struct sluice_config *config)
{
    if (page_join(serve->page, job, config))
        return SLUICE_STATUS_FAILED;
    watcher_watch(serve->watcher, job);
    enum sluice_status status = sluice_job_run(job);
    watcher_watch(serve->watcher, NULL);
    if (!status)
        hold(serve, job);
    page_leave(serve->page, job, status);
    return status;
}

// The first pass has the command line's chain, later ones the chain that there is by then.
static void take_chain(struct serve *serve)
{
    bool first = !serve->ran && !page_has_new_chain(serve->page);
    char *chain = first ? NULL : page_take_chain(serve->page);
    serve->ran = true;
    if (!chain)
        return; // as it was
    free(serve->chain);
    serve->chain = chain;
}

static enum sluice_status run_pass(struct serve *serve)
{
    take_chain(serve);
    struct sluice_config config = pass_config(serve);
    serve->passes += serve->passes < 2; // there is no end to them
    struct sluice_job *job;
    enum sluice_status status = page_create_job(serve->page, &config, &job);
    if (!status) {
        socket_turn(serve->control, job);
        status = run_shown(serve, job, &config);
        socket_turn(serve->control, NULL);
        count_time(serve, job);
    }
    sluice_job_destroy(&job);
    return status;
}

// ---- an input ----

// The failure is shown until there is another input. With --reconnect this one is tried again, and
// always with another chain.
static void show_failure(const struct serve *serve, const char *name)
{
    char error[1024];
    terminal_take_error(serve->settings, error, sizeof error);
    page_note_input(serve->page, name, *error ? error : "the input cannot be shown");
    int64_t again_ms = serve->settings->config.await_start ? now_ms() + RETRY_MS : INT64_MAX;
    do
        wait_until(serve, now_ms() + PASS_MS);
    while (now_ms() < again_ms && !is_over(serve) && !page_has_new_chain(serve->page));
}

// Pass after pass, until there is another input or the program ends.
static enum outcome show_input(struct serve *serve)
{
    char name[4300], old[1024];
    enum outcome outcome = OUTCOME_AGAIN;
    sluice_public_name(input_of(serve), name, sizeof name);
    page_note_input(serve->page, name, NULL);
    serve->passes = 0;
    while (outcome == OUTCOME_AGAIN || outcome == OUTCOME_FAILED) {
        int64_t began_ms = now_ms();
        terminal_take_error(serve->settings, old, sizeof old);
        outcome = outcome_of(serve, run_pass(serve));
        if (outcome == OUTCOME_FAILED)
            show_failure(serve, name);
        else if (outcome == OUTCOME_AGAIN)
            wait_until(serve, began_ms + PASS_MS);
        if (is_stopped(serve))
            outcome = OUTCOME_END;
        else if (page_wants_another(serve->page))
            outcome = OUTCOME_CHOSEN;
    }
    return outcome;
}

// Wait for what a visitor chooses. False: the program ends.
static bool take_choice(struct serve *serve)
{
    struct page_input chosen;
    wait_until(serve, INT64_MAX);
    if (is_stopped(serve) || page_await_input(serve->page, watcher_stops(serve->watcher), &chosen))
        return false;
    free(serve->input);
    serve->input = chosen.name;
    free(chosen.chain); // the one by then counts
    return true;
}

static int serve_inputs(struct serve *serve)
{
    enum outcome outcome = OUTCOME_CHOSEN;
    bool more = input_of(serve) || take_choice(serve);
    while (more) {
        outcome = show_input(serve);
        more = outcome == OUTCOME_CHOSEN && take_choice(serve);
    }
    int signal = watcher_signal(serve->watcher);
    return signal ? EXIT_SIGNAL + signal : EXIT_WHOLE;
}

// Run with the companions of all jobs: control socket and systemd notifications. The address of the page is
// told when all that may fail is there.
static int serve_companions(struct serve *serve)
{
    struct settings *settings = serve->settings;
    enum sluice_status status = socket_start(NULL, settings->control, &serve->control);
    if (status)
        return exit_code_of(status);
    show_tell(settings, stdout);
    struct notify *notify = notify_start(NULL, NULL);
    int code = serve_inputs(serve);
    notify_stop(&notify, true);
    socket_stop(&serve->control);
    return code;
}

static void log_errors(void *serve_, enum sluice_log_level level, const char *sentence)
{
    struct serve *serve = serve_;
    if (level == SLUICE_LOG_ERROR)
        show_log(serve->settings, level, sentence);
}

// Refuse a file that is not there, and is no pattern either, before a page is: a mistake in the name is
// told as by any other command. What is wrong with one that is there is shown by the page. -1: go on;
// else the exit code.
static int check_input(struct serve *serve)
{
    const struct settings *settings = serve->settings;
    if (settings->config.await_start || !show_opens_first(settings) ||
        !access(settings->config.input, F_OK))
        return -1;
    struct sluice_config config = pass_config(serve);
    struct sluice_job *job;
    config.log = log_errors;
    config.changed = NULL;
    enum sluice_status status = sluice_job_create(&config, &job);
    sluice_job_destroy(&job);
    return status ? exit_code_of(status) : -1;
}

int serve_command(struct settings *settings)
{
    struct serve serve = {.settings = settings, .watcher = watcher_start(true)};
    const char *address = settings->listen ? settings->listen : "127.0.0.1:8080";
    int code = serve.watcher ? check_input(&serve) : EXIT_OTHER;
    enum sluice_status status = code < 0 ? show_start(settings, address) : SLUICE_STATUS_OK;
    if (status)
        code = exit_code_of(status);
    if (code < 0 && !journal_open(settings))
        code = EXIT_OUTPUT;
    if (code < 0) {
        serve.page = settings->page;
        code = serve_companions(&serve);
        if (!journal_close(settings) && code == EXIT_WHOLE)
            code = EXIT_OUTPUT;
    }
    show_stop(settings);
    watcher_stop(&serve.watcher);
    free(serve.input);
    free(serve.chain);
    free(serve.journaled);
    return code;
}
