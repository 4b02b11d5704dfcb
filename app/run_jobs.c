// `sluice INPUT OUTPUT --jobs N`: the output in parts, joined.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/jobs/division.h"
#include "app/jobs/part_folders.h"
#include "app/service/notify.h"
#include "app/service/watcher.h"

struct run {
    struct settings *settings;
    struct watcher *watcher;
    struct sluice_job *whole;     // the undivided job, which never runs
    struct sluice_progress about; // ... and what it says of the file
    struct part_folders found;
    int parts;
    bool keeps; // parts become folders, and then an output
    int gpu[PLACE_MAX_GPUS], gpus;
    struct place_machine machine;
    struct jobs *jobs;
};

__attribute__((format(printf, 3, 4))) static void say(const struct run *run,
                                                      enum sluice_log_level level,
                                                      const char *format, ...)
{
    char sentence[1024], shown[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    sluice_public_name(sentence, shown, sizeof shown);
    show_log(run->settings, level, shown);
}

// ---- what there is ----

// Whether frames go nowhere, so that there is nothing to join.
static bool is_nowhere(const char *output)
{
    return !strncmp(output, "null:", 5) || !strcmp(output, "-");
}

// What the parts will say, too, is left to them.
static void log_errors(void *settings, enum sluice_log_level level, const char *sentence)
{
    if (level == SLUICE_LOG_ERROR)
        show_log(settings, level, sentence);
}

// Open the undivided job, to hear what is wrong with it at once, and how long the file is.
static enum sluice_status open_whole(struct run *run)
{
    struct sluice_config config = run->settings->config;
    config.threads = config.codec_threads = 1; // it decodes nothing
    config.changed = NULL;
    config.await_gpu = true; // what its parts will have
    config.log = log_errors;
    enum sluice_status status = sluice_job_create(&config, &run->whole);
    run->about.size = sizeof run->about;
    if (!status)
        sluice_job_progress(run->whole, &run->about);
    return status;
}

static enum sluice_status check_input(const struct run *run)
{
    const char *input = run->settings->config.input;
    struct stat about;
    bool named = !strncmp(input, "file:", 5);
    if (!stat(named ? input + 5 : input, &about) ? S_ISREG(about.st_mode)
                                                 : !strstr(input, "://") && strcmp(input, "-") != 0)
        return SLUICE_STATUS_OK; // or one that is not there, as will be said
    say(run, SLUICE_LOG_ERROR,
        "--jobs makes parts of a file, which each job reads for itself; %s is "
        "none",
        input);
    return SLUICE_STATUS_USAGE;
}

// The GPUs that --device names, when it names several; a list that is wrong is the library's to
// refuse.
static void read_gpus(struct run *run)
{
    const char *text = run->settings->config.device;
    int all = text && !strcmp(text, "all") ? sluice_gpus() : 0;
    for (; run->gpus < all && run->gpus < PLACE_MAX_GPUS; run->gpus++)
        run->gpu[run->gpus] = run->gpus;
    while (text && *text >= '0' && *text <= '9' && run->gpus < PLACE_MAX_GPUS) {
        char *end;
        run->gpu[run->gpus++] = (int)strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : "";
    }
}

// True if GPUs are to decode what goes nowhere: most likely they set the pace.
static bool is_on_gpu(const struct run *run)
{
    struct sluice_summary summary = {.size = sizeof summary};
    sluice_job_summary(run->whole, &summary);
    return !run->keeps && strstr(summary.decoder, " on the GPU");
}

// The most jobs that may pay: each keeps a core busy, and a GPU's decoders are up to eight.
static int most_jobs(const struct run *run)
{
    int cores = place_threads(&run->machine, 1), gpus = run->gpus ? run->gpus : 1;
    struct sluice_summary summary = {.size = sizeof summary};
    sluice_job_summary(run->whole, &summary);
    int most = strcmp(summary.backend, "cuda") || cores > 8 * gpus ? cores : 8 * gpus;
    return most < JOBS_MAX ? most : JOBS_MAX;
}

// ---- parts that are there ----

static enum sluice_status refuse_found(const struct run *run)
{
    say(run, SLUICE_LOG_ERROR,
        "%d of %d parts of %s are there from an earlier run: --resume goes on with them, -y begins "
        "anew",
        run->found.there, run->found.parts, run->settings->config.output.name);
    return SLUICE_STATUS_OUTPUT;
}

static void tell_found(const struct run *run)
{
    const char *name = run->settings->config.output.name;
    if (run->settings->resume && run->found.there)
        say(run, SLUICE_LOG_INFO, "%d of %d parts of %s are there from an earlier run",
            run->found.there, run->found.parts, name);
    int others =
        run->parts == run->found.parts ? run->found.others : run->found.there + run->found.others;
    if (others)
        say(run, SLUICE_LOG_WARNING,
            "%d part%s of %s from another division into parts %s not used, and stay%s: remove "
            "%s.part-*",
            others, others == 1 ? "" : "s", name, others == 1 ? "is" : "are",
            others == 1 ? "s" : "", name);
}

// Decide how many parts there are: as many as there were, where the run goes on.
static enum sluice_status divide(struct run *run)
{
    const struct settings *settings = run->settings;
    bool measures = settings->jobs == JOBS_AUTO; // which takes parts for each number that is tried
    int jobs = measures ? most_jobs(run) : settings->jobs;
    run->parts = division_parts(jobs, run->about.media_total, !measures && is_on_gpu(run));
    if (!run->keeps)
        return SLUICE_STATUS_OK;
    part_folders_find(settings->config.output.name, &run->found);
    if (run->found.there && !settings->resume && !settings->config.overwrite)
        return refuse_found(run);
    if (run->found.there && settings->resume)
        run->parts = run->found.parts;
    tell_found(run);
    return SLUICE_STATUS_OK;
}

// ---- making them ----

// Behind the last part the first signal ends the program: they are all there.
static void leave_join(const struct run *run)
{
    say(run, SLUICE_LOG_WARNING,
        "stopped before the parts were joined; all %d are kept: --resume joins them", run->parts);
    _exit(EXIT_SIGNAL + watcher_signal(run->watcher));
}

static void stop_run(void *run_)
{
    const struct run *run = run_;
    if (run->keeps && jobs_parts_done(run->jobs) == run->parts)
        leave_join(run);
    jobs_stop(run->jobs);
}

static enum sluice_status create_jobs(struct run *run)
{
    const struct settings *settings = run->settings;
    const struct jobs_request request = {
        .config = &settings->config,
        .parts = run->parts,
        .jobs = settings->jobs,
        .most = most_jobs(run),
        .machine = &run->machine,
        .gpu = run->gpu,
        .gpus = run->gpus,
        .media_seconds = run->about.media_total,
        .frames = run->about.frames_total,
        .use_found = settings->resume,
        .joins = run->keeps,
    };
    enum sluice_status status = jobs_create(&request, &run->jobs);
    if (status == SLUICE_STATUS_MEMORY)
        say(run, SLUICE_LOG_ERROR, "out of memory for the jobs");
    return status;
}

// Parts that are whole, and those that were there before and no job has come to yet.
static int count_kept(const struct run *run)
{
    int found = jobs_figures(run->jobs)->parts->found;
    int left = run->settings->resume ? run->found.there - found : 0;
    return jobs_parts_done(run->jobs) + (left > 0 ? left : 0);
}

// Say what has become of the parts where there is no output, and how to go on.
static void tell_kept(const struct run *run, enum sluice_status status)
{
    int kept = count_kept(run);
    if (!run->keeps || !status)
        return;
    if (kept)
        say(run, SLUICE_LOG_WARNING,
            "%d of %d parts of %s are finished and kept: the same command with --resume goes on "
            "with "
            "them",
            kept, run->parts, run->settings->config.output.name);
    else
        say(run, SLUICE_LOG_WARNING, "no part was finished yet: nothing is kept");
}

// ---- joined ----

// The parts are in the output now.
static void remove_folders(const struct run *run)
{
    const char *output = run->settings->config.output.name;
    for (int k = 1; k <= run->parts; k++) {
        char *folder = part_folder_name(output, k, run->parts);
        if (!folder)
            say(run, SLUICE_LOG_WARNING,
                "part %d of %d is in the output now, and cannot be removed: out of memory", k,
                run->parts);
        else if (!sluice_remove_part(folder))
            say(run, SLUICE_LOG_WARNING, "%s is in the output now, and cannot be removed", folder);
        free(folder);
    }
}

// Only the whole knows its size and its container.
static void note_output(const struct run *run)
{
    const char *name = run->settings->config.output.name;
    struct figures *figures = jobs_figures(run->jobs);
    if (!figures->summary.width) // all parts were there, or have no frames
        figures_add(figures, run->whole);
    struct sluice_output_figures whole = {.size = sizeof whole};
    struct sluice_summary summary = {.size = sizeof summary};
    struct stat about;
    bool hash = !strncmp(name, "hash:", 5), file = !strncmp(name, "file:", 5);
    sluice_job_output(run->whole, 0, &whole);
    sluice_job_summary(run->whole, &summary);
    figures->summary.output = figures_text(figures, summary.output);
    figures->output[0].name = figures_text(figures, whole.name);
    figures->output[0].container = figures_text(figures, whole.container);
    figures->output[0].frames = figures->summary.ledger.frames_out;
    if (run->keeps && !stat(hash || file ? name + 5 : name, &about))
        figures->summary.bytes_out = figures->output[0].bytes = about.st_size;
}

// ---- the whole run ----

static enum sluice_status make(struct run *run)
{
    struct progress *progress = progress_start(jobs_read, run->jobs, run->settings);
    watcher_watch_run(run->watcher, stop_run, run);
    enum sluice_status status = jobs_run(run->jobs);
    watcher_watch_run(run->watcher, NULL, NULL);
    if (!status && run->keeps)
        remove_folders(run);
    progress_stop(&progress);
    return status;
}

static int report(struct run *run, enum sluice_status status)
{
    struct settings *settings = run->settings;
    struct figures *figures = jobs_figures(run->jobs);
    int code = run_exit_code(figures, status, settings, watcher_signal(run->watcher));
    note_output(run);
    tell_kept(run, status);
    if (!status)
        return run_report(figures, status, settings, code);
    if (settings->json)
        write_json(settings, figures, status, code);
    return code;
}

static enum sluice_status prepare(struct run *run)
{
    enum sluice_status status = check_input(run);
    if (!status)
        status = open_whole(run);
    if (!status) {
        read_gpus(run);
        place_read(run->gpu, run->gpus, &run->machine);
        status = divide(run);
    }
    return status ? status : create_jobs(run);
}

static void read_jobs(const void *jobs, struct notify_state *now)
{
    struct figures_now figures = {0};
    jobs_read(jobs, &figures);
    *now = (struct notify_state){figures.progress, figures.parts_done, figures.joining};
}

int run_jobs(struct settings *settings, struct watcher **watcher)
{
    struct run run = {.settings = settings,
                      .watcher = *watcher,
                      .keeps = !is_nowhere(settings->config.output.name)};
    enum sluice_status status = prepare(&run);
    int code = exit_code_of(status);
    if (!status) {
        struct notify *notify = notify_start(read_jobs, run.jobs);
        status = make(&run);
        notify_stop(&notify, true);
        code = report(&run, status);
        if (jobs_left_alone(run.jobs))
            _exit(finish_output(code));
    } else if (settings->json) // an earlier run's must not speak for this one
        write_json(settings, NULL, status, code);
    jobs_destroy(&run.jobs);
    sluice_job_destroy(&run.whole);
    return code;
}
