// The life of a job's threads: started together, cancelled, waited for, joined.
#include "pipeline/engine/job.h"

#include <assert.h>

#include "base/queue.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/source.h"

static void *thread_main(void *thread_)
{
    struct job_thread *thread = thread_;
    struct job_threads *all = thread->all;
    enum status status = thread->run(thread->part);
    if (status_is_failure(status)) // a source that is lost is not waited for any more
        source_cancel(thread->source);
    monitor_lock(&all->lock);
    thread->status = status;
    thread->ended = true;
    all->running--;
    monitor_notify(&all->lock);
    monitor_unlock(&all->lock);
    return NULL;
}

static enum status start(struct job_thread *thread)
{
    struct job_threads *all = thread->all;
    monitor_lock(&all->lock);
    thread->started = !pthread_create(&thread->id, NULL, thread_main, thread);
    all->running += thread->started;
    monitor_unlock(&all->lock);
    return thread->started ? STATUS_OK : STATUS_FAILED;
}

enum status job_threads_start(struct sluice_job *job)
{
    const struct job_thread threads[JOB_THREADS] = {
        {.run = demux_run, .skip = demux_skip, .part = job->demux},
        {.run = decode_run, .skip = decode_skip, .part = job->decode},
        {.run = submit_run, .skip = submit_skip, .part = job->submit},
        {.run = encode_run, .skip = encode_skip, .part = job->encode},
    };
    enum status status = STATUS_OK;
    for (int k = 0; k < JOB_THREADS; k++) {
        struct job_thread *thread = &job->threads.thread[k];
        assert(!thread->started);
        *thread = threads[k];
        thread->source = job->source;
        thread->all = &job->threads;
        if (!start(thread))
            continue;
        status = log_fail(&job->log, STATUS_FAILED, "a thread could not be started");
        thread->skip(thread->part);
    }
    return status;
}

// True if all that is still running is not waited for: the job was stopped, and its time is over.
// Only an encoder is deep in a frame then; the demux thread is not in the sink any more.
static bool is_left_alone_locked(const struct sluice_job *job)
{
    return job->sink->cancel && job->threads.thread[0].ended && stop_is_late(&job->stop) &&
           meter_now_ns() > job->stop.at_ns + stop_flush_ns + stop_frame_ns;
}

int job_threads_await(struct sluice_job *job)
{
    const int64_t look_ns = 100 * INT64_C(1000000);
    struct job_threads *all = &job->threads;
    monitor_lock(&all->lock);
    while (all->running > 0 && !is_left_alone_locked(job)) {
        monitor_wait_until(&all->lock, meter_now_ns() + look_ns);
        if (!job->sink->cancel || !stop_is_late(&job->stop))
            continue;
        queue_close(job->packets); // the demux thread may be waiting for a decoder that waits, too
        job->sink->cancel(job->sink);
    }
    int left = all->running;
    monitor_unlock(&all->lock);
    return left;
}

enum status job_threads_join(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < JOB_THREADS; k++) {
        struct job_thread *thread = &job->threads.thread[k];
        if (!thread->started)
            continue;
        pthread_join(thread->id, NULL);
        thread->started = false;
        status = status_join(status, thread->status);
    }
    return status;
}
