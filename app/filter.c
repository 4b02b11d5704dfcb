// `sluice INPUT OUTPUT`: run one job, with signals, progress and summary.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"

// Signals that end a job come to a thread of their own: the first asks the job to stop and leave a
// whole output, the second ends the process at once.
struct watcher {
    sigset_t set;
    pthread_t thread;
    _Atomic(struct sluice_job *) job; // NULL: nothing to stop yet
    atomic_int signal;                // the first that came
    atomic_bool done;                 // there is nothing more to watch
};

// Wakes the watcher at the end; a signal without a meaning of its own.
static const int wake_signal = SIGWINCH;

static void *watcher_run(void *argument)
{
    struct watcher *watcher = argument;
    for (;;) {
        int number = sigwaitinfo(&watcher->set, NULL);
        if (watcher->done)
            return NULL;
        if (number < 0 || number == wake_signal)
            continue;
        struct sluice_job *job = watcher->job;
        if (watcher->signal || !job)
            _exit(EXIT_SIGNAL + number);
        watcher->signal = number;
        sluice_job_stop(job);
    }
}

static bool watcher_start(struct watcher *watcher)
{
    *watcher = (struct watcher){0};
    sigemptyset(&watcher->set);
    sigaddset(&watcher->set, wake_signal);
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        struct sigaction old;
        // Signals ignored from the start (nohup) stay ignored.
        if (sigaction(numbers[k], NULL, &old) || old.sa_handler != SIG_IGN)
            sigaddset(&watcher->set, numbers[k]);
    }
    // Blocked here, and so in every thread that comes after.
    return !pthread_sigmask(SIG_BLOCK, &watcher->set, NULL) &&
           !pthread_create(&watcher->thread, NULL, watcher_run, watcher);
}

static void watcher_stop(struct watcher *watcher)
{
    watcher->done = true;
    pthread_kill(watcher->thread, wake_signal);
    pthread_join(watcher->thread, NULL);
}

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
    struct progress *progress = progress_start(job, settings);
    enum sluice_status status = sluice_job_run(job);
    progress_stop(&progress);
    sluice_job_summary(job, &summary);
    *on_gpu = !strcmp(summary.backend, "cuda");
    int code = code_of(job, status, settings, watcher->signal);
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
    struct control *control;
    if (!control_start(job, settings->control, &control))
        return *on_gpu = false, EXIT_OTHER;
    struct notify *notify = notify_start(job);
    int code = run_job(job, settings, watcher, on_gpu);
    notify_stop(&notify);
    control_stop(&control);
    return code;
}

int filter_command(struct settings *settings)
{
    struct watcher watcher;
    struct sluice_job *job;
    if (!journal_open(settings))
        return EXIT_OUTPUT;
    if (!watcher_start(&watcher)) {
        fprintf(stderr, "sluice: no thread could be started\n");
        return EXIT_OTHER;
    }
    enum sluice_status status = sluice_job_create(&settings->config, &job);
    int code = exit_code_of(status);
    if (!status) {
        watcher.job = job;
        bool on_gpu;
        code = run_with_control(job, settings, &watcher, &on_gpu);
        if (!journal_close(settings) && code == EXIT_WHOLE)
            code = EXIT_OUTPUT;
        // The output is whole. An encoder may still be deep in a frame that nobody wants; and the
        // GPU's decoder and context take 0.2 s to dismantle, less when the system does it.
        bool whole = code == EXIT_WHOLE || code == EXIT_DAMAGED;
        if (code > EXIT_SIGNAL || (whole && on_gpu))
            _exit(finish_output(code));
        watcher_stop(&watcher);
        sluice_job_destroy(&job);
    } else {
        watcher_stop(&watcher);
        journal_close(settings);
        if (settings->json) // an earlier run's must not speak for this one
            write_json(settings, NULL, status, code);
    }
    return code;
}
