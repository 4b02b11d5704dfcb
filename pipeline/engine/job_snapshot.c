// sluice_job_snapshot(): one picture of a job that runs, written to a file.
#include "pipeline/engine/job.h"

#include <stdio.h>

#include "pipeline/engine/threads/snapshot.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/file/path_conflicts.h"

// Keeps the first error that was logged.
struct why {
    char *text;
    size_t size;
};

static void keep_why(void *why_, enum log_level level, const char *sentence)
{
    const struct why *why = why_;
    if (level == LOG_ERROR && why->text && why->size && !*why->text)
        snprintf(why->text, why->size, "%s", sentence);
}

static enum status write_snapshot(struct sluice_job *job, const struct sink_request *request,
                                  AVFrame *frame, const struct log *log)
{
    const char *file = request->output;
    struct sink_video video = job->video;
    struct sink *sink = NULL;
    enum status status = path_conflicts_check_file(job->conflicts, file, log);
    if (!status)
        status = sink_create(request, 1, log, NULL, &sink);
    if (!status)
        status = sink_check(sink);
    if (!status && !sink->one_frame)
        status = log_fail(log, STATUS_USAGE, "%s is no name of an image, as snapshot.png is", file);
    video.first = frame;
    video.live = false;
    video.watch = (struct mux_thread_watch){0};
    if (!status)
        status = sink->open(sink, &video);
    if (!status)
        status = sink->write(sink, frame);
    if (!status)
        status = sink->write(sink, NULL);
    if (!status)
        status = sink->finish(sink, false);
    sink_destroy(&sink);
    return status;
}

enum sluice_status sluice_job_snapshot(struct sluice_job *job, const char *file, bool overwrite,
                                       char *why, size_t size)
{
    const struct sink_request request = {.output = file, .overwrite = overwrite || job->overwrite};
    const int64_t patience_ns = 2000 * INT64_C(1000000);
    struct why kept = {why, size};
    const struct log log = {keep_why, &kept};
    AVFrame *frame = NULL;
    if (size)
        *why = 0;
    snapshot_take(job->snapshot, meter_now_ns() + patience_ns, &frame);
    enum status status = frame ? write_snapshot(job, &request, frame, &log)
                               : log_fail(&log, STATUS_EOF, "no picture came within two seconds");
    av_frame_free(&frame);
    return (enum sluice_status)status;
}
