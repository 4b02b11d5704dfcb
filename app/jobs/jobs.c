#include "app/jobs/jobs_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/jobs/verdict.h"

// ---- small things ----

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double jobs_now(void)
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

// ---- seats ----

// Start seats up to the number that is wanted. Without a thread for one there are fewer.
static void start_seats_locked(struct jobs *jobs)
{
    while (jobs->started < jobs->wanted && jobs->next <= jobs->request.parts && !jobs->stop) {
        struct seat *seat = &jobs->seat[jobs->started];
        if (pthread_create(&seat->thread, NULL, jobs_seat_run, seat)) {
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
// them, and of what --mem allows all.
static bool has_room_for(const struct jobs *jobs, int more)
{
    double resident = resident_bytes(), spare = (double)sluice_memory_available();
    double most = (double)jobs->request.config->mem;
    if (!resident || !spare || more <= 0)
        return true;
    double one = (resident - jobs->base_memory) / jobs->wanted;
    return one * more <= spare / 2 && (most <= 0 || one * (jobs->wanted + more) <= most);
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
    double now = jobs_now();
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

void jobs_stop_locked(struct jobs *jobs)
{
    jobs->stop = true;
    for (int k = 0; k < jobs->seats; k++)
        if (jobs->seat[k].job)
            sluice_job_stop(jobs->seat[k].job);
    pthread_cond_broadcast(&jobs->changed);
}

void jobs_end_locked(struct jobs *jobs, enum sluice_status status)
{
    if (!status || jobs->status || jobs->stop)
        return;
    jobs->status = status;
    jobs_stop_locked(jobs);
}

void jobs_note_whole_locked(struct jobs *jobs, int part)
{
    jobs->whole[part - 1] = true;
    jobs->done++;
    if (jobs->done == jobs->request.parts)
        jobs->all_whole = jobs_now();
    pthread_cond_broadcast(&jobs->changed);
}

static bool joiner_ended_locked(const struct jobs *jobs)
{
    return jobs->joiner_ended;
}

static bool all_ended_locked(const struct jobs *jobs)
{
    for (int k = 0; k < jobs->started; k++)
        if (!jobs->seat[k].ended)
            return false;
    return true;
}

static struct timespec after(double seconds)
{
    double at = jobs_now() + seconds;
    return (struct timespec){.tv_sec = (time_t)at,
                             .tv_nsec = (long)((at - (double)(time_t)at) * 1e9)};
}

// Wait until they have ended; after a stop, for so long.
static void await_locked(struct jobs *jobs, bool (*ended_locked)(const struct jobs *jobs))
{
    const double look_seconds = 0.1, stop_seconds = 2;
    while (!ended_locked(jobs)) {
        const struct timespec until = after(look_seconds);
        if (jobs->stop && !jobs->stopped)
            jobs->stopped = jobs_now();
        if (jobs->stopped && jobs_now() - jobs->stopped > stop_seconds && !jobs->status)
            break;
        pthread_cond_timedwait(&jobs->changed, &jobs->lock, &until);
        if (!jobs->stop)
            look_locked(jobs);
    }
    jobs->left_alone |= !ended_locked(jobs);
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
    double ended = jobs->all_whole ? jobs->all_whole : jobs_now();
    double made = ended - jobs->begun, all = made * jobs->parts.jobs;
    int cores = place_threads(&jobs->machine, 1);
    jobs->parts.made_seconds = made;
    jobs->parts.idle = all > jobs->work_seconds ? 1 - jobs->work_seconds / all : 0;
    summary->seconds = made;
    summary->stopped = jobs->stop && !jobs->status;
    summary->cores_busy = cpu / made / cores < 1 ? cpu / made / cores : 1;
    summary->max_memory = memory_bound(jobs);
    summary->ring *= jobs->parts.jobs;
    summary->need_mem *= jobs->parts.jobs;
    verdict_of_jobs(&jobs->figures, jobs->parts.jobs,
                    jobs->request.jobs == JOBS_AUTO ? 0 : jobs->parts.idle, jobs->verdict,
                    sizeof jobs->verdict);
    summary->verdict = jobs->verdict;
}

// Wait until the parts are joined, or the joiner has given up.
static void await_joiner_locked(struct jobs *jobs)
{
    await_locked(jobs, joiner_ended_locked);
    jobs->figures.summary.truncated |= jobs->truncated; // all parts may be whole, and the sound not
    if (!jobs->all_whole)
        return;
    jobs->parts.join_seconds = jobs_now() - jobs->all_whole;
    jobs->figures.summary.seconds += jobs->parts.join_seconds;
}

static enum sluice_status outcome_locked(const struct jobs *jobs)
{
    bool whole = jobs->request.joins ? jobs->joined : jobs->done == jobs->request.parts;
    if (jobs->status)
        return jobs->status;
    return whole ? SLUICE_STATUS_OK : SLUICE_STATUS_STOPPED;
}

// Start the joiner and the first seats. False: there is no thread for that.
static bool start_locked(struct jobs *jobs)
{
    if (jobs->request.joins)
        jobs->joiner_started = !pthread_create(&jobs->joiner, NULL, jobs_joiner_run, jobs);
    if (!jobs->request.joins || jobs->joiner_started)
        start_seats_locked(jobs);
    if (jobs->started || jobs->stop)
        return true;
    jobs_end_locked(jobs, SLUICE_STATUS_FAILED);
    return false;
}

enum sluice_status jobs_run(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    bool started = start_locked(jobs);
    await_locked(jobs, all_ended_locked);
    if (jobs->request.jobs == JOBS_AUTO && !jobs->parts.choice)
        end_climb_locked(jobs);
    sum_up(jobs);
    if (jobs->joiner_started)
        await_joiner_locked(jobs);
    enum sluice_status status = outcome_locked(jobs);
    pthread_mutex_unlock(&jobs->lock);
    if (!started)
        jobs_say(jobs, SLUICE_LOG_ERROR, "no thread could be started");
    for (int k = 0; k < jobs->started && !jobs->left_alone; k++)
        pthread_join(jobs->seat[k].thread, NULL);
    if (jobs->joiner_started && !jobs->left_alone)
        pthread_join(jobs->joiner, NULL);
    return status;
}

void jobs_stop(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    jobs_stop_locked(jobs);
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
                                .joining = jobs->request.joins && jobs->all_whole};
    for (int k = 0; k < jobs->started; k++) {
        struct sluice_progress more = {.size = sizeof more};
        if (!jobs->seat[k].job)
            continue;
        sluice_job_progress(jobs->seat[k].job, &more);
        jobs_add_made(&now->progress, &more);
        now->jobs++;
    }
    now->progress.seconds = jobs_now() - jobs->begun;
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
    made->whole = calloc((size_t)request->parts, sizeof *made->whole);
    if (!made->whole) {
        free(made);
        *jobs = NULL;
        return SLUICE_STATUS_MEMORY;
    }
    init_lock(made);
    init_seats(made);
    climb_begin(&made->climb, measures ? made->seats : 1);
    made->wanted = measures ? 1 : made->seats;
    made->next = 1;
    made->parts.parts = request->parts;
    made->figures.parts = &made->parts;
    made->base_memory = resident_bytes();
    made->begun = jobs_now();
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
    free(old->whole);
    free(old);
    *jobs = NULL;
}
