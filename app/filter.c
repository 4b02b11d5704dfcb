// `sluice INPUT OUTPUT`: run one job, with signals, progress and summary.
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/service/notify.h"
#include "app/service/watcher.h"
#include "control/socket.h"

const char strict_failure[] =
    "the input was damaged or frames were left out, which --strict takes for a failure";

int run_exit_code(const struct figures *figures, enum sluice_status status,
                  const struct settings *settings, int signal)
{
    bool damaged = figures_are_damaged(figures);
    if (status == SLUICE_STATUS_STOPPED && signal)
        return EXIT_SIGNAL + signal;
    if (status == SLUICE_STATUS_STOPPED)
        status = SLUICE_STATUS_OK; // by the control socket: as asked for
    if (status == SLUICE_STATUS_OK && damaged && settings->strict && settings->quiet)
        fprintf(stderr, "sluice: %s; without -q the summary counts them\n", strict_failure);
    if (status == SLUICE_STATUS_OK && damaged)
        return settings->strict ? EXIT_OTHER : EXIT_DAMAGED;
    return exit_code_of(status);
}

int run_report(const struct figures *figures, enum sluice_status status,
               const struct settings *settings, int code)
{
    bool whole = status == SLUICE_STATUS_OK || status == SLUICE_STATUS_STOPPED;
    bool several = figures->outputs > 1; // some may be whole
    if (!settings->quiet && (whole || several))
        print_summary(figures, settings, stderr);
    if (settings->json && !write_json(settings, figures, status, code) && whole)
        return EXIT_OUTPUT;
    return code;
}

// In the place of an exit code: the run is begun anew, repeatably.
enum { BEGIN_AGAIN = -2 };

static int run_job(struct sluice_job *job, const struct settings *settings,
                   const struct watcher *watcher, bool *on_gpu)
{
    struct figures figures = {0};
    if (settings->page && page_join(settings->page, job, &settings->config)) {
        fprintf(stderr, "sluice: out of memory for the page\n");
        return EXIT_OTHER;
    }
    struct progress *progress = progress_start(figures_of_job, job, settings);
    enum sluice_status status = sluice_job_run(job);
    progress_stop(&progress);
    if (settings->page)
        page_leave(settings->page, job, status);
    if (status == SLUICE_STATUS_AGAIN && !watcher_signal(watcher))
        return BEGIN_AGAIN;
    if (status == SLUICE_STATUS_AGAIN)
        status = SLUICE_STATUS_STOPPED;
    figures_add(&figures, job);
    *on_gpu = figures.summary.gpu_pending ||
              (figures.summary.backend && !strcmp(figures.summary.backend, "cuda"));
    int code = run_exit_code(&figures, status, settings, watcher_signal(watcher));
    code = run_report(&figures, status, settings, code);
    figures_free(&figures);
    return code;
}

// Run the job with its companions: control socket and systemd notifications.
static int run_with_control(struct sluice_job *job, const struct settings *settings,
                            const struct watcher *watcher, bool *on_gpu)
{
    struct socket_server *control;
    enum sluice_status status = socket_start(job, settings->control, &control);
    if (status) {
        int code = exit_code_of(status);
        if (settings->json) // an earlier run's must not speak for this one
            write_json(settings, NULL, status, code);
        return code;
    }
    struct notify *notify = notify_start(notify_read_job, job);
    int code = run_job(job, settings, watcher, on_gpu);
    notify_stop(&notify, code != BEGIN_AGAIN);
    socket_stop(&control);
    return code;
}

// The job's whole life, once it is there. Returns the exit code, or BEGIN_AGAIN with the page still shown.
static int live_through(struct sluice_job *job, struct settings *settings,
                        const struct watcher *watcher, bool *on_gpu)
{
    *on_gpu = false;
    int code = run_with_control(job, settings, watcher, on_gpu);
    if (code == BEGIN_AGAIN)
        return journal_begin_again(settings) ? code : EXIT_OUTPUT;
    if (!journal_close(settings) && code == EXIT_WHOLE)
        code = EXIT_OUTPUT;
    show_stop(settings);
    return code;
}

// End with the signal that has come, and without a job that has not run.
static int leave(struct settings *settings, struct watcher **watcher, struct sluice_job *job)
{
    int code = EXIT_SIGNAL + watcher_signal(*watcher);
    sluice_job_destroy(&job);
    watcher_stop(watcher);
    journal_close(settings);
    if (settings->json)
        write_json(settings, NULL, SLUICE_STATUS_STOPPED, code);
    return code;
}

// Returns the exit code, or BEGIN_AGAIN, where the watcher goes on.
static int run_whole(struct settings *settings, struct watcher **watcher)
{
    struct sluice_job *job;
    enum sluice_status status = sluice_job_create(&settings->config, &job);
    int code = exit_code_of(status);
    bool there = status == SLUICE_STATUS_END; // a part, made of the same
    if (status) {
        code = there ? EXIT_WHOLE : code;
        status = there ? SLUICE_STATUS_OK : status;
        watcher_stop(watcher);
        journal_close(settings);
        if (settings->json) // an earlier run's must not speak for this one
            code = write_json(settings, NULL, status, code) || !there ? code : EXIT_OUTPUT;
        return code;
    }
    show_tell(settings, stderr);
    if (watcher_signal(*watcher)) // while it was opened: there is no time to begin
        return leave(settings, watcher, job);
    watcher_watch(*watcher, job);
    bool on_gpu;
    code = live_through(job, settings, *watcher, &on_gpu);
    if (code == BEGIN_AGAIN) {
        watcher_watch(*watcher, NULL);
        sluice_job_destroy(&job);
        return code;
    }
    // The output is whole. An encoder may still be deep in a frame that nobody wants; and the
    // GPU's decoder and context take 0.2 s to dismantle, less when the system does it, as it does with
    // a context that is still being made.
    bool whole = code == EXIT_WHOLE || code == EXIT_DAMAGED;
    if (code > EXIT_SIGNAL || (whole && on_gpu))
        _exit(finish_output(code));
    watcher_stop(watcher);
    sluice_job_destroy(&job);
    return code;
}

int filter_command(struct settings *settings)
{
    struct watcher *watcher = watcher_start(settings->config.part > 0);
    enum sluice_status status =
        watcher ? show_start(settings, settings->page_address) : SLUICE_STATUS_FAILED;
    if (!status && !journal_open(settings))
        status = SLUICE_STATUS_OUTPUT;
    int code = exit_code_of(status);
    if (status && settings->json) // an earlier run's must not speak for this one
        write_json(settings, NULL, status, code);
    if (!status && !show_opens_first(settings))
        show_tell(settings, stderr);
    if (!status)
        code = settings->jobs ? run_jobs(settings, &watcher) : run_whole(settings, &watcher);
    if (code == BEGIN_AGAIN) {
        settings->config.repeatable = true;
        code = run_whole(settings, &watcher);
    }
    watcher_stop(&watcher);
    show_stop(settings);
    return code;
}
