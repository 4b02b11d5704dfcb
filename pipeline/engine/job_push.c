// Frames that the caller pushes to a job.
#include "pipeline/engine/job.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/pushed.h"
#include "pipeline/input/source.h"

// Why the job takes no more frames; after a failure that is known when sluice_job_run() has ended.
static enum status reason(struct sluice_job *job)
{
    if (job->stop.asked)
        return STATUS_STOPPED;
    if (job->selection.complete || !job->source->cancelled)
        return STATUS_EOF;
    monitor_lock(&job->threads.lock);
    while (!job->ran)
        monitor_wait(&job->threads.lock);
    monitor_unlock(&job->threads.lock);
    return job->result ? job->result : STATUS_EOF;
}

static enum status refuse(const struct sluice_job *job)
{
    return log_fail(&job->log, STATUS_USAGE,
                    "frames are pushed to jobs whose configuration says what they are (push)");
}

enum sluice_status sluice_job_push(struct sluice_job *job, const struct sluice_frame *frame)
{
    enum status status = job->source->pushed ? pushed_push(job->source, frame) : refuse(job);
    if (status == STATUS_EOF)
        status = reason(job);
    return (enum sluice_status)status;
}

void sluice_job_push_end(struct sluice_job *job)
{
    if (job->source->pushed)
        pushed_end(job->source->pushed);
    else
        refuse(job);
}
