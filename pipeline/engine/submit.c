// The submit thread: frames into slots of the ring, their filtering begun.
#include <libavutil/mathematics.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/engine/job.h"

// Another kind of frame than before: finish those under way, then begin with a new filter.
static enum status change_filter(struct sluice_job *job, const AVFrame *frame)
{
    enum status status = ring_drain(job->ring);
    if (status)
        return status;
    struct filter_request request = {
        .chain = &job->chain,
        .formats = job->formats,
        .backend = job->backend,
        .slots = job->slots,
        .frames_in_flight = !job->source->is_still,
        .max_pixels = job->max_pixels,
        .strict = !job->submitted,
        .device_stream = decoder_stream(job->decoder),
        .software_pixel = decoder_pixel(job->decoder),
        .log = &job->log,
    };
    filter_destroy(&job->filter);
    int64_t begin_ns = meter_now_ns();
    status = filter_create(&request, frame, &job->filter);
    if (!status)
        status = changes_bind(job->changes, &request, job->filter, frame);
    trace_span(job->trace, TRACE_SUBMIT, "make the filter", begin_ns, meter_now_ns(), -1);
    return status;
}

// Another chain takes over with this frame, if one was asked for: its filter is made anew.
static enum status take_change(struct sluice_job *job, const AVFrame *frame)
{
    bool taken;
    struct chain chain = {0};
    AVRational base = source_video(job->source)->time_base;
    int64_t pts_us = av_rescale_q(frame->pts, base, AV_TIME_BASE_Q);
    enum status status = changes_take(job->changes, pts_us, &chain, &taken);
    if (!status && taken)
        status = ring_drain(job->ring);
    if (!status && taken) {
        filter_destroy(&job->filter);
        chain_free(&job->chain);
        job->chain = chain;
        return STATUS_OK;
    }
    chain_free(&chain);
    return status;
}

enum status submit_frame(struct sluice_job *job, AVFrame **frame,
                         enum status (*before)(struct sluice_job *job, const struct slot *slot))
{
    struct slot *slot = NULL;
    enum status status = take_change(job, *frame);
    if (!status && (!job->filter || !filter_accepts(job->filter, *frame)))
        status = change_filter(job, *frame);
    if (!status)
        status = ring_claim(job->ring, &slot);
    if (status)
        return status;
    av_frame_move_ref(slot->in, *frame);
    av_frame_free(frame);
    slot->filter = job->filter;
    int64_t begin_ns = meter_now_ns();
    status = filter_submit(slot->filter, slot->number, slot->in, slot->out);
    trace_span(job->trace, TRACE_SUBMIT, "submit", begin_ns, meter_now_ns(), job->submitted++);
    if (!status) {
        enum status opened = before ? before(job, slot) : STATUS_OK;
        ring_publish(job->ring, slot); // it is running in any case, and must be waited for
        status = opened;
    }
    if (!status)
        changes_tell(job->changes);
    return status;
}

enum status submit_run(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    while (!status) {
        AVFrame *frame = NULL;
        status = queue_pop(job->frames, &frame);
        bool late = !status && frame_is_late(job, frame, 0);
        if (!status && !late && !job->stop.asked)
            status = submit_frame(job, &frame, NULL);
        if (frame)
            ++*(late ? &job->dropped_late : &job->dropped_stop);
        av_frame_free(&frame);
    }
    job->dropped_stop += queue_cancel(job->frames);
    ring_finish(job->ring);
    return status;
}
