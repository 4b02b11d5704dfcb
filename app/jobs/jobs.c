#include "app/jobs/jobs.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/jobs/climb.h"
#include "app/jobs/part_folders.h"
#include "app/jobs/verdict.h"

// Sentences that every part says are passed on once.
enum { MAX_SAID = 64 };

struct seat {
    struct jobs *jobs;
    int number;
    pthread_t thread;
    char device[16];
    int part;   // from 1; the seat's
    bool quiet; // what is said now is of interest to nobody; the seat's
    // ---- guarded by jobs->lock ----
    bool started, ended;
    bool writes;            // a job of its has written a frame
    struct sluice_job *job; // NULL: none runs
};

struct jobs {
    struct jobs_request request;
    struct place_machine machine;
    int gpu[PLACE_MAX_GPUS];
    int seats;          // at most
    double base_memory; // of the process before, bytes
    double begun, begun_cpu;
    struct figures_parts parts;
    char choice[512], verdict[512];
    bool left_alone;
    atomic_bool stop;

    pthread_mutex_t said_lock;
    // ---- guarded by said_lock ----
    char *said[MAX_SAID];
    int said_count;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    // ---- guarded by lock ----
    struct seat seat[JOBS_MAX];
    int wanted;  // seats at work
    int started; // seats
    int next;    // part, from 1
    int done;    // parts
    bool joining;
    enum sluice_status status; // the first failure
    struct figures figures;
    struct sluice_progress made; // of parts that are whole
    double media_found;          // of parts that were there, about
    double work_seconds, seat_seconds;
    struct climb climb;
    double window_begun; // 0: not all jobs of the window write yet
    int64_t window_frames;
};

// ---- small things ----

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double now_seconds(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

// The process's memory; 0: unknown.
static double resident_bytes(void)
{
    long long pages = 0;
    FILE *from = fopen("/proc/self/statm", "re");
    bool known = from && fscanf(from, "%*s %lld", &pages) == 1;
    if (from)
        fclose(from);
    return known ? (double)pages * (double)sysconf(_SC_PAGESIZE) : 0;
}

// Memory that nobody uses; 0: unknown.
static double free_bytes(void)
{
    char line[128];
    long long kib = 0;
    FILE *from = fopen("/proc/meminfo", "re");
    while (from && !kib && fgets(line, sizeof line, from))
        if (sscanf(line, "MemAvailable: %lld", &kib) != 1)
            kib = 0;
    if (from)
        fclose(from);
    return (double)kib * 1024;
}

int jobs_parts(int jobs, double seconds)
{
    const double least_seconds = 4;
    assert(jobs > 0);
    double most = seconds / least_seconds;
    if (most >= 4.0 * jobs)
        return 4 * jobs;
    return most > jobs ? (int)most : jobs;
}

// ---- what the jobs say ----

static void say(struct jobs *jobs, enum sluice_log_level level, const char *sentence)
{
    const struct sluice_config *config = jobs->request.config;
    if (config->log)
        config->log(config->opaque, level, sentence);
}

// True if another part has said so; else it is noted.
static bool was_said(struct jobs *jobs, const char *sentence)
{
    bool said = false;
    pthread_mutex_lock(&jobs->said_lock);
    for (int k = 0; k < jobs->said_count && !said; k++)
        said = jobs->said[k] && !strcmp(jobs->said[k], sentence);
    if (!said && jobs->said_count < MAX_SAID)
        jobs->said[jobs->said_count++] = strdup(sentence);
    pthread_mutex_unlock(&jobs->said_lock);
    return said;
}

// A failure names the part; what each part would say again is said once, and how each job takes a
// stop is of no interest.
static void seat_log(void *seat_, enum sluice_log_level level, const char *sentence)
{
    const struct seat *seat = seat_;
    struct jobs *jobs = seat->jobs;
    char text[1200];
    if (level == SLUICE_LOG_ERROR) {
        snprintf(text, sizeof text, "part %d of %d: %s", seat->part, jobs->request.parts, sentence);
        say(jobs, level, text);
    } else if (seat->quiet || jobs->stop || was_said(jobs, sentence))
        say(jobs, SLUICE_LOG_DEBUG, sentence);
    else
        say(jobs, level, sentence);
}

static void tell_part(const struct seat *seat, const char *what)
{
    char text[64];
    snprintf(text, sizeof text, "part %d of %d %s", seat->part, seat->jobs->request.parts, what);
    say(seat->jobs, SLUICE_LOG_DEBUG, text);
}

// ---- one part ----

// The configuration of a seat's next part.
static struct sluice_config part_config(struct seat *seat)
{
    struct jobs *jobs = seat->jobs;
    struct sluice_config config = *jobs->request.config;
    pthread_mutex_lock(&jobs->lock);
    int wanted = jobs->wanted, threads = place_threads(&jobs->machine, wanted);
    pthread_mutex_unlock(&jobs->lock);
    config.part = seat->part;
    config.parts = jobs->request.parts;
    config.threads = config.threads ? config.threads : threads;
    if (wanted > 1 && !config.codec_threads)
        config.codec_threads = threads;
    if (jobs->request.gpus)
        config.device = seat->device;
    config.overwrite &= !jobs->request.use_found;
    config.log = seat_log;
    config.opaque = seat;
    config.changed = NULL;
    return config;
}

// Take a part that is there into the sums.
static void note_found(struct seat *seat)
{
    struct jobs *jobs = seat->jobs;
    struct sluice_ledger ledger;
    char *folder =
        part_folder_name(jobs->request.config->output.name, seat->part, jobs->request.parts);
    if (!folder || !part_folder_ledger(folder, &ledger))
        ledger = (struct sluice_ledger){0};
    free(folder);
    tell_part(seat, "was there");
    pthread_mutex_lock(&jobs->lock);
    figures_add_ledger(&jobs->figures.summary.ledger, &ledger);
    jobs->parts.found++;
    jobs->parts.frames_found += ledger.frames_out;
    jobs->done++;
    pthread_mutex_unlock(&jobs->lock);
}

// Let others see the job; false, and they do not, after a stop.
static bool show_job(struct seat *seat, struct sluice_job *job)
{
    struct jobs *jobs = seat->jobs;
    pthread_mutex_lock(&jobs->lock);
    bool goes_on = !jobs->stop;
    if (goes_on)
        seat->job = job;
    pthread_mutex_unlock(&jobs->lock);
    return goes_on;
}

static void add_made(struct sluice_progress *to, const struct sluice_progress *more)
{
    to->frames += more->frames;
    to->frames_pending += more->frames_pending;
    to->media_seconds += more->media_seconds;
    to->bytes_out += more->bytes_out;
    to->ring += more->ring;
    to->ring_used += more->ring_used;
    figures_add_ledger(&to->ledger, &more->ledger);
}

// The job has ended: into the sums with it, if its part is whole.
static void note_made(struct seat *seat, enum sluice_status status)
{
    struct jobs *jobs = seat->jobs;
    struct sluice_progress progress = {.size = sizeof progress};
    sluice_job_progress(seat->job, &progress);
    progress.ring = progress.ring_used = 0;
    pthread_mutex_lock(&jobs->lock);
    if (status == SLUICE_STATUS_OK) {
        tell_part(seat, "is whole");
        figures_add(&jobs->figures, seat->job);
        add_made(&jobs->made, &progress);
        jobs->done++;
    }
    seat->job = NULL;
    pthread_mutex_unlock(&jobs->lock);
}

static enum sluice_status make_once(struct seat *seat, bool repeatable)
{
    struct sluice_config config = part_config(seat);
    struct sluice_job *job;
    config.repeatable |= repeatable;
    seat->quiet = seat->jobs->request.use_found; // "is there already"
    enum sluice_status status = sluice_job_create(&config, &job);
    seat->quiet = false;
    if (status == SLUICE_STATUS_END)
        note_found(seat);
    if (status)
        return status == SLUICE_STATUS_END ? SLUICE_STATUS_OK : status;
    status = SLUICE_STATUS_STOPPED;
    if (show_job(seat, job)) {
        status = sluice_job_run(job);
        note_made(seat, status);
    }
    sluice_job_destroy(&job);
    return status;
}

static enum sluice_status make_part(struct seat *seat)
{
    struct jobs *jobs = seat->jobs;
    tell_part(seat, "begins");
    enum sluice_status status = make_once(seat, false);
    if (status != SLUICE_STATUS_AGAIN)
        return status;
    pthread_mutex_lock(&jobs->lock);
    jobs->parts.again++;
    pthread_mutex_unlock(&jobs->lock);
    return make_once(seat, true);
}

// ---- a seat ----

static void stop_locked(struct jobs *jobs)
{
    jobs->stop = true;
    for (int k = 0; k < jobs->seats; k++)
        if (jobs->seat[k].job)
            sluice_job_stop(jobs->seat[k].job);
    pthread_cond_broadcast(&jobs->changed);
}

// Wait for a part to make; 0: there is none. A seat that is one too many waits.
static int take_part(struct seat *seat)
{
    struct jobs *jobs = seat->jobs;
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->stop && jobs->next <= jobs->request.parts && seat->number >= jobs->wanted)
        pthread_cond_wait(&jobs->changed, &jobs->lock);
    int part = jobs->stop || jobs->next > jobs->request.parts ? 0 : jobs->next++;
    if (jobs->next > jobs->request.parts)
        pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return part;
}

static void end_part(struct seat *seat, enum sluice_status status, double seconds)
{
    struct jobs *jobs = seat->jobs;
    pthread_mutex_lock(&jobs->lock);
    jobs->work_seconds += seconds;
    if (status && !jobs->status && !jobs->stop) {
        jobs->status = status;
        stop_locked(jobs);
    }
    pthread_mutex_unlock(&jobs->lock);
}

static void *seat_run(void *seat_)
{
    struct seat *seat = seat_;
    struct jobs *jobs = seat->jobs;
    place_bind(place_of_job(&jobs->machine, seat->number));
    while ((seat->part = take_part(seat))) {
        double begun = now_seconds();
        enum sluice_status status = make_part(seat);
        end_part(seat, status, now_seconds() - begun);
    }
    pthread_mutex_lock(&jobs->lock);
    seat->ended = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

// Start seats up to the number that is wanted. Without a thread for one there are fewer.
static void start_seats_locked(struct jobs *jobs)
{
    while (jobs->started < jobs->wanted && jobs->next <= jobs->request.parts && !jobs->stop) {
        struct seat *seat = &jobs->seat[jobs->started];
        if (pthread_create(&seat->thread, NULL, seat_run, seat)) {
            jobs->wanted = jobs->started;
            break;
        }
        seat->started = true;
        jobs->started++;
    }
    jobs->parts.jobs = jobs->wanted > jobs->parts.jobs ? jobs->wanted : jobs->parts.jobs;
}

// ---- measuring how many jobs pay ----

// Frames written so far, by all. *all_write: as many seats as are wanted have written some.
static int64_t count_written_locked(struct jobs *jobs, bool *all_write)
{
    int64_t frames = jobs->made.ledger.frames_out;
    int writing = 0;
    for (int k = 0; k < jobs->started; k++) {
        struct seat *seat = &jobs->seat[k];
        struct sluice_progress now = {.size = sizeof now};
        if (seat->job)
            sluice_job_progress(seat->job, &now);
        frames += now.ledger.frames_out;
        seat->writes |= now.ledger.frames_out > 0;
        writing += seat->writes;
    }
    *all_write = writing >= jobs->wanted;
    return frames;
}

// A further job may take as much memory as the others did so far: half of what is free is there for
// them.
static bool has_room_for(const struct jobs *jobs, int more)
{
    double resident = resident_bytes(), spare = free_bytes();
    if (!resident || !spare || more <= 0)
        return true;
    return (resident - jobs->base_memory) / jobs->wanted * more <= spare / 2;
}

static void end_climb_locked(struct jobs *jobs)
{
    climb_end(&jobs->climb);
    jobs->wanted = jobs->climb.jobs;
    climb_tell(&jobs->climb, jobs->choice, sizeof jobs->choice);
    jobs->parts.choice = jobs->choice;
}

static void end_window_locked(struct jobs *jobs, double rate)
{
    struct climb *climb = &jobs->climb;
    climb_step(climb, rate);
    if (!climb->done && !has_room_for(jobs, climb->jobs - jobs->wanted))
        climb_end(climb);
    jobs->wanted = climb->jobs;
    jobs->window_begun = 0;
    if (climb->done)
        end_climb_locked(jobs);
    start_seats_locked(jobs);
    pthread_cond_broadcast(&jobs->changed);
}

// Look at the window: it begins when all its jobs write, and lasts for a second, or until there are
// enough frames to count. A seat between two parts does not end it: beginnings are part of the work.
static void look_locked(struct jobs *jobs)
{
    const double least_seconds = 1, most_seconds = 10;
    const int64_t least_frames = 8;
    bool all_write;
    double now = now_seconds();
    if (jobs->climb.done)
        return;
    if (jobs->next > jobs->request.parts) {
        end_climb_locked(jobs);
        return;
    }
    int64_t frames = count_written_locked(jobs, &all_write);
    if (!jobs->window_begun && all_write) {
        jobs->window_begun = now;
        jobs->window_frames = frames;
    }
    double seconds = jobs->window_begun ? now - jobs->window_begun : 0;
    bool enough = frames - jobs->window_frames >= least_frames * jobs->wanted;
    if (seconds >= most_seconds || (seconds >= least_seconds && enough))
        end_window_locked(jobs, (double)(frames - jobs->window_frames) / seconds);
}

// ---- all of them ----

static bool all_ended_locked(const struct jobs *jobs)
{
    for (int k = 0; k < jobs->started; k++)
        if (!jobs->seat[k].ended)
            return false;
    return true;
}

static struct timespec after(double seconds)
{
    double at = now_seconds() + seconds;
    return (struct timespec){.tv_sec = (time_t)at,
                             .tv_nsec = (long)((at - (double)(time_t)at) * 1e9)};
}

// Wait until all seats have ended; after a stop, for so long.
static void await_seats_locked(struct jobs *jobs)
{
    const double look_seconds = 0.1, stop_seconds = 2;
    double stopped = 0;
    while (!all_ended_locked(jobs)) {
        const struct timespec until = after(look_seconds);
        if (jobs->stop && !stopped)
            stopped = now_seconds();
        if (stopped && now_seconds() - stopped > stop_seconds && !jobs->status)
            break;
        pthread_cond_timedwait(&jobs->changed, &jobs->lock, &until);
        if (!jobs->stop)
            look_locked(jobs);
    }
    jobs->left_alone = !all_ended_locked(jobs);
}

// The bound of the process's memory: of what there was before, and for each job what the first one
// to work it out may take beside.
static int64_t memory_bound(const struct jobs *jobs)
{
    double one = (double)jobs->figures.summary.max_memory - jobs->base_memory;
    return one > 0 ? (int64_t)(jobs->base_memory + one * jobs->parts.jobs) : 0;
}

static void sum_up(struct jobs *jobs)
{
    struct sluice_summary *summary = &jobs->figures.summary;
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - jobs->begun_cpu;
    double made = now_seconds() - jobs->begun, all = made * jobs->parts.jobs;
    int cores = place_threads(&jobs->machine, 1);
    jobs->parts.made_seconds = made;
    jobs->parts.idle = all > jobs->work_seconds ? 1 - jobs->work_seconds / all : 0;
    summary->seconds = made;
    summary->stopped = jobs->stop && !jobs->status;
    summary->cores_busy = cpu / made / cores < 1 ? cpu / made / cores : 1;
    summary->max_memory = memory_bound(jobs);
    summary->ring *= jobs->parts.jobs;
    verdict_of_jobs(&jobs->figures, jobs->parts.jobs,
                    jobs->request.jobs == JOBS_AUTO ? 0 : jobs->parts.idle, jobs->verdict,
                    sizeof jobs->verdict);
    summary->verdict = jobs->verdict;
}

enum sluice_status jobs_run(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    start_seats_locked(jobs);
    await_seats_locked(jobs);
    if (jobs->request.jobs == JOBS_AUTO && !jobs->parts.choice)
        end_climb_locked(jobs);
    bool none = !jobs->started && !jobs->stop;
    enum sluice_status status = jobs->status                       ? jobs->status
                                : none                             ? SLUICE_STATUS_FAILED
                                : jobs->done < jobs->request.parts ? SLUICE_STATUS_STOPPED
                                                                   : SLUICE_STATUS_OK;
    sum_up(jobs);
    pthread_mutex_unlock(&jobs->lock);
    if (none)
        say(jobs, SLUICE_LOG_ERROR, "no thread could be started");
    for (int k = 0; k < jobs->started && !jobs->left_alone; k++)
        pthread_join(jobs->seat[k].thread, NULL);
    return status;
}

void jobs_stop(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    stop_locked(jobs);
    pthread_mutex_unlock(&jobs->lock);
}

bool jobs_left_alone(const struct jobs *jobs)
{
    return jobs->left_alone;
}

int jobs_parts_done(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    int done = jobs->done;
    pthread_mutex_unlock(&jobs->lock);
    return done;
}

// ---- what is told ----

struct figures *jobs_figures(struct jobs *jobs)
{
    return &jobs->figures;
}

void jobs_note_joining(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->joining = true;
    pthread_mutex_unlock(&jobs->lock);
}

void jobs_note_join(struct jobs *jobs, double seconds)
{
    jobs->parts.join_seconds = seconds;
    jobs->figures.summary.seconds += seconds;
}

// Frames and seconds that are still to come and have come: those that were found are neither.
static void expect_locked(const struct jobs *jobs, struct sluice_progress *now)
{
    const struct jobs_request *request = &jobs->request;
    double share = request->frames > 0 && request->frames > jobs->parts.frames_found
                       ? 1 - (double)jobs->parts.frames_found / (double)request->frames
                       : 1;
    now->frames_total = (int64_t)((double)request->frames * share);
    now->media_total = request->media_seconds * share;
}

void jobs_read(const void *jobs_, struct figures_now *now)
{
    struct jobs *jobs = (struct jobs *)jobs_;
    pthread_mutex_lock(&jobs->lock);
    *now = (struct figures_now){.progress = jobs->made,
                                .parts = jobs->request.parts,
                                .parts_done = jobs->done,
                                .joining = jobs->joining};
    for (int k = 0; k < jobs->started; k++) {
        struct sluice_progress more = {.size = sizeof more};
        if (!jobs->seat[k].job)
            continue;
        sluice_job_progress(jobs->seat[k].job, &more);
        add_made(&now->progress, &more);
        now->jobs++;
    }
    now->progress.seconds = now_seconds() - jobs->begun;
    now->progress.stopping = jobs->stop;
    expect_locked(jobs, &now->progress);
    pthread_mutex_unlock(&jobs->lock);
}

// ---- life ----

static void init_lock(struct jobs *jobs)
{
    pthread_condattr_t monotonic;
    pthread_mutex_init(&jobs->said_lock, NULL);
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&jobs->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void init_seats(struct jobs *jobs)
{
    for (int k = 0; k < jobs->seats; k++) {
        struct seat *seat = &jobs->seat[k];
        seat->jobs = jobs;
        seat->number = k;
        if (jobs->request.gpus)
            snprintf(seat->device, sizeof seat->device, "%d", jobs->gpu[k % jobs->request.gpus]);
    }
}

enum sluice_status jobs_create(const struct jobs_request *request, struct jobs **jobs)
{
    assert(request->parts > 0 && request->gpus <= PLACE_MAX_GPUS);
    bool measures = request->jobs == JOBS_AUTO;
    struct jobs *made = *jobs = calloc(1, sizeof **jobs);
    if (!made)
        return SLUICE_STATUS_MEMORY;
    made->request = *request;
    made->machine = *request->machine;
    if (request->gpus)
        memcpy(made->gpu, request->gpu, (size_t)request->gpus * sizeof *request->gpu);
    made->seats = measures ? request->most : request->jobs;
    made->seats = made->seats < request->parts ? made->seats : request->parts;
    assert(made->seats > 0 && made->seats <= JOBS_MAX);
    init_lock(made);
    init_seats(made);
    climb_begin(&made->climb, measures ? made->seats : 1);
    made->wanted = measures ? 1 : made->seats;
    made->next = 1;
    made->parts.parts = request->parts;
    made->figures.parts = &made->parts;
    made->base_memory = resident_bytes();
    made->begun = now_seconds();
    made->begun_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    return SLUICE_STATUS_OK;
}

void jobs_destroy(struct jobs **jobs)
{
    assert(jobs);
    struct jobs *old = *jobs;
    if (!old)
        return;
    assert(!old->left_alone);
    for (int k = 0; k < old->said_count; k++)
        free(old->said[k]);
    figures_free(&old->figures);
    pthread_mutex_destroy(&old->said_lock);
    pthread_mutex_destroy(&old->lock);
    pthread_cond_destroy(&old->changed);
    free(old);
    *jobs = NULL;
}
