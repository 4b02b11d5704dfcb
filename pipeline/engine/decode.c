// The decode thread: packets to frames, and which of them are wanted.
#include <libavutil/mathematics.h>

#include "pipeline/engine/job.h"
#include "pipeline/ffmpeg/compat.h"

// The output has all its frames: say where it ends, so that other streams end there too.
static void end_here(struct sluice_job *job, int64_t end_us)
{
    job->last_end = end_us < job->end ? end_us : job->end;
    job->ends = true;
    if (job->alone) // nothing else is waited for
        source_cancel(job->source);
}

// Whether the frame lies before what is wanted. STATUS_EOF if it lies behind.
static enum status check_range(struct sluice_job *job, const AVFrame *frame, bool *early)
{
    AVRational base = source_video(job->source)->time_base;
    int64_t at = av_rescale_q(frame->pts, base, AV_TIME_BASE_Q);
    *early = job->source->start != AV_NOPTS_VALUE && at < job->source->start;
    if (!*early && at >= job->end) {
        end_here(job, job->end);
        return STATUS_EOF;
    }
    return STATUS_OK;
}

enum status decode_next(struct sluice_job *job, AVFrame **frame)
{
    *frame = NULL;
    if (job->frames_in - job->dropped_range >= job->frame_limit)
        return STATUS_EOF;
    AVFrame *next = av_frame_alloc();
    if (!next)
        return STATUS_MEMORY;
    for (;;) {
        bool got = false, early = false;
        int64_t start = meter_now_ns();
        enum status status = decoder_receive(job->decoder, next, &got);
        job_span(job, SLUICE_PART_DECODE, start, got ? job->frames_in : -1);
        if (got) {
            job->frames_in++;
            status = check_range(job, next, &early);
            job->dropped_range += early || status;
        }
        if (status || !got) {
            av_frame_free(&next);
            return status;
        }
        if (!early)
            break;
        av_frame_unref(next);
    }
    if (job->frames_in - job->dropped_range == job->frame_limit) {
        AVRational base = source_video(job->source)->time_base;
        end_here(job, av_rescale_q(next->pts + frame_duration(next), base, AV_TIME_BASE_Q));
    }
    *frame = next;
    return STATUS_OK;
}

// Hand on every frame that the decoder has by now.
static enum status deliver(struct sluice_job *job)
{
    for (;;) {
        AVFrame *frame;
        enum status status = decode_next(job, &frame);
        if (status || !frame)
            return status;
        status = queue_push(job->frames, &frame);
        if (status && frame) // nobody takes frames any more
            job->dropped_stop++;
        av_frame_free(&frame);
        if (status)
            return status;
    }
}

static enum status send(struct sluice_job *job, const struct packet *packet)
{
    int64_t start = meter_now_ns();
    enum status status = decoder_send(job->decoder, packet);
    job_span(job, SLUICE_PART_DECODE, start, -1);
    return status;
}

// Whether decoding has been too slow for long: what there is to decode is too old, and whoever
// takes the frames waits for them. Behind an encoder that is slow they are old as well, but not for
// long.
static bool falls_behind(struct sluice_job *job, int64_t age_ns)
{
    const int64_t patience_ns = 1000 * INT64_C(1000000);
    int64_t now_ns = meter_now_ns();
    if (age_ns < job->latency_ns || queue_count(job->frames))
        job->behind_ns = now_ns;
    return now_ns - job->behind_ns > patience_ns;
}

// Every frame would be late then, and the picture stand: packets are left out, up to a key frame
// that has just come.
static bool leaves_out(struct sluice_job *job, const struct packet *packet)
{
    if (!job->latency || !job->latency_ns || packet->restart || packet->pts_us == AV_NOPTS_VALUE)
        return job->catches_up = false;
    int64_t age_ns = latency_age_ns(job->latency, packet->pts_us);
    if (falls_behind(job, age_ns))
        job->catches_up = true;
    if (packet->av->flags & AV_PKT_FLAG_KEY && age_ns < job->latency_ns / 2)
        job->catches_up = false;
    job->packets_skipped += job->catches_up;
    return job->catches_up;
}

enum status decode_run(struct sluice_job *job)
{
    job->behind_ns = meter_now_ns();
    enum status status = deliver(job); // those behind the first, which is under way already
    while (!status && !job->stop.asked) {
        struct packet *packet = NULL;
        status = queue_pop(job->packets, &packet);
        if (status == STATUS_EOF && !job->stop.asked) {
            status = send(job, NULL);
            if (!status)
                status = deliver(job);
            break;
        }
        if (!status && !leaves_out(job, packet))
            status = send(job, packet);
        packet_destroy(&packet);
        if (!status)
            status = deliver(job);
    }
    queue_cancel(job->packets);
    queue_finish(job->frames);
    return status;
}
