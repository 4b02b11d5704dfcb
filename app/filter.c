// `sluice INPUT OUTPUT`: run one job, with signals, progress and summary.
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/service/notify.h"
#include "app/service/watcher.h"
#include "control/socket.h"

// True if a disk had no room for what one of the outputs should hold.
static bool misses_frames(const struct sluice_job *job)
{
    struct sluice_output_figures output = {.size = sizeof output};
    for (int k = 0; !sluice_job_output(job, k, &output); k++)
        if (output.missing)
            return true;
    return false;
}

static int code_of(const struct sluice_job *job, enum sluice_status status,
                   const struct settings *settings, int signal)
{
    struct sluice_summary summary_ = {.size = sizeof summary_}, *summary = &summary_;
    sluice_job_summary(job, summary);
    bool damaged = summary->ledger.frames_damaged || summary->ledger.packets_damaged ||
                   summary->truncated || summary->ledger.dropped_clock ||
                   summary->ledger.dropped_late || summary->ledger.packets_skipped ||
                   misses_frames(job);
    if (status == SLUICE_STATUS_STOPPED && signal)
        return EXIT_SIGNAL + signal;
    if (status == SLUICE_STATUS_STOPPED)
        status = SLUICE_STATUS_OK; // by the control socket: as asked for
    if (status == SLUICE_STATUS_OK && damaged && settings->strict && settings->quiet)
        fprintf(stderr, "sluice: the input was damaged or frames were left out, which --strict "
                        "takes for a failure; without -q the summary counts them\n");
    if (status == SLUICE_STATUS_OK && damaged)
        return settings->strict ? EXIT_OTHER : EXIT_DAMAGED;
    return exit_code_of(status);
}

static int run_job(struct sluice_job *job, const struct settings *settings,
                   const struct watcher *watcher, bool *on_gpu)
{
    struct sluice_summary summary = {.size = sizeof summary};
    if (settings->page && page_join(settings->page, job, &settings->config))
        return EXIT_OTHER;
    struct progress *progress = progress_start(job, settings);
    enum sluice_status status = sluice_job_run(job);
    progress_stop(&progress);
    if (settings->page)
        page_leave(settings->page, job, status);
    sluice_job_summary(job, &summary);
    *on_gpu = !strcmp(summary.backend, "cuda");
    int code = code_of(job, status, settings, watcher_signal(watcher));
    bool whole = status == SLUICE_STATUS_OK || status == SLUICE_STATUS_STOPPED;
    struct sluice_output_figures second = {.size = sizeof second};
    bool several = !sluice_job_output(job, 1, &second); // some may be whole
    if (!settings->quiet && (whole || several))
        print_summary(job, stderr);
    if (settings->json && !write_json(settings, job, status, code) && whole)
        code = EXIT_OUTPUT;
    return code;
}

// Run the job with its companions: control socket and systemd notifications.
static int run_with_control(struct sluice_job *job, const struct settings *settings,
                            const struct watcher *watcher, bool *on_gpu)
{
    struct socket_server *control;
    if (!socket_start(job, settings->control, &control))
        return EXIT_OTHER;
    struct notify *notify = notify_start(job);
    int code = run_job(job, settings, watcher, on_gpu);
    notify_stop(&notify);
    socket_stop(&control);
    return code;
}

// The job's whole life, once it is there. Returns the exit code.
static int live_through(struct sluice_job *job, struct settings *settings,
                        const struct watcher *watcher, bool *on_gpu)
{
    *on_gpu = false;
    int code = run_with_control(job, settings, watcher, on_gpu);
    if (!journal_close(settings) && code == EXIT_WHOLE)
        code = EXIT_OUTPUT;
    show_stop(settings);
    return code;
}

static int run_whole(struct settings *settings, struct watcher **watcher)
{
    struct sluice_job *job;
    enum sluice_status status = sluice_job_create(&settings->config, &job);
    int code = exit_code_of(status);
    if (status) {
        watcher_stop(watcher);
        journal_close(settings);
        if (settings->json) // an earlier run's must not speak for this one
            write_json(settings, NULL, status, code);
        return code;
    }
    watcher_watch(*watcher, job);
    bool on_gpu;
    code = live_through(job, settings, *watcher, &on_gpu);
    // The output is whole. An encoder may still be deep in a frame that nobody wants; and the
    // GPU's decoder and context take 0.2 s to dismantle, less when the system does it.
    bool whole = code == EXIT_WHOLE || code == EXIT_DAMAGED;
    if (code > EXIT_SIGNAL || (whole && on_gpu))
        _exit(finish_output(code));
    watcher_stop(watcher);
    sluice_job_destroy(&job);
    return code;
}

int filter_command(struct settings *settings)
{
    struct watcher *watcher = watcher_start(false);
    int code = watcher ? show_start(settings, settings->page_address, stderr) : EXIT_OTHER;
    if (code < 0 && !journal_open(settings))
        code = EXIT_OUTPUT;
    if (code < 0)
        code = run_whole(settings, &watcher);
    watcher_stop(&watcher);
    show_stop(settings);
    return code;
}
