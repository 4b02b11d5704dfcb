// The joiner: puts the parts together while seats make them, as a thread.
#include <stdlib.h>

#include "app/jobs/jobs_internal.h"
#include "app/jobs/part_folders.h"

// After a stop it is of interest only that parts are kept.
static void joiner_log(void *jobs_, enum sluice_log_level level, const char *sentence)
{
    struct jobs *jobs = jobs_;
    jobs_say(jobs, jobs->stop ? SLUICE_LOG_DEBUG : level, sentence);
}

// Wait until a part is whole, from 0; false after a stop.
static bool await_part(void *jobs_, int part)
{
    struct jobs *jobs = jobs_;
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->stop && !jobs->whole[part])
        pthread_cond_wait(&jobs->changed, &jobs->lock);
    bool goes_on = !jobs->stop;
    pthread_mutex_unlock(&jobs->lock);
    return goes_on;
}

static enum sluice_status join(struct jobs *jobs, struct sluice_joined *joined)
{
    struct sluice_config config = *jobs->request.config;
    char **list = part_folder_names(config.output.name, jobs->request.parts);
    if (!list)
        return SLUICE_STATUS_MEMORY;
    config.log = joiner_log;
    config.opaque = jobs;
    enum sluice_status status =
        sluice_join_following(&config, (const char *const *)list, await_part, jobs, joined);
    part_folder_names_free(&list);
    return status;
}

void *jobs_joiner_run(void *jobs_)
{
    struct jobs *jobs = jobs_;
    struct sluice_joined joined = {.size = sizeof joined};
    enum sluice_status status = join(jobs, &joined);
    pthread_mutex_lock(&jobs->lock);
    jobs->truncated = joined.truncated;
    jobs_end_locked(jobs, status);
    jobs->joined = !status;
    jobs->joiner_ended = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}
