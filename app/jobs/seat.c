// A seat: makes one part after another, as a thread, and says what its jobs say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/jobs/jobs_internal.h"
#include "app/jobs/part_folders.h"

// ---- what the jobs say ----

void jobs_say(struct jobs *jobs, enum sluice_log_level level, const char *sentence)
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
        jobs_say(jobs, level, text);
    } else if (seat->quiet || jobs->stop || was_said(jobs, sentence))
        jobs_say(jobs, SLUICE_LOG_DEBUG, sentence);
    else
        jobs_say(jobs, level, sentence);
}

static void tell_part(const struct seat *seat, const char *what)
{
    char text[64];
    snprintf(text, sizeof text, "part %d of %d %s", seat->part, seat->jobs->request.parts, what);
    jobs_say(seat->jobs, SLUICE_LOG_DEBUG, text);
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
    jobs_note_whole_locked(jobs, seat->part);
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

void jobs_add_made(struct sluice_progress *to, const struct sluice_progress *more)
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
        jobs_add_made(&jobs->made, &progress);
        jobs_note_whole_locked(jobs, seat->part);
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
    jobs_end_locked(jobs, status);
    pthread_mutex_unlock(&jobs->lock);
}

void *jobs_seat_run(void *seat_)
{
    struct seat *seat = seat_;
    struct jobs *jobs = seat->jobs;
    place_bind(place_of_job(&jobs->machine, seat->number));
    while ((seat->part = take_part(seat))) {
        double begun = jobs_now();
        enum sluice_status status = make_part(seat);
        end_part(seat, status, jobs_now() - begun);
    }
    pthread_mutex_lock(&jobs->lock);
    seat->ended = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}
