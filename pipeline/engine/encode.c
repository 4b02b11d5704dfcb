// The encode thread: filtered frames out of the ring, in order, to the sink.
#include <libavutil/mathematics.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/engine/job.h"

// Frames that a stopped job's encoder was not given the time for.
static void drop_unfinished(struct sluice_job *job)
{
    int64_t lost = job->frames_out - job->sink->kept - job->sink->dropped;
    job->frames_out -= lost;
    job->dropped_stop += lost;
}

// A part of a slot's work. Frames come in order, so what an engine did for the one before is known;
// `end` is when that ended.
static void note_span(struct sluice_job *job, enum sluice_part part, int64_t *end, int track,
                      const char *name, const struct work_span *span)
{
    if (!span->begin_ns)
        return;
    int64_t begin = span->begin_ns > *end ? span->begin_ns : *end;
    int64_t busy = span->busy_ns ? span->busy_ns : span->end_ns > begin ? span->end_ns - begin : 0;
    if (span->end_ns > *end)
        *end = span->end_ns;
    job->meter[part].busy_ns += busy;
    trace_span(job->trace, track, name, span->begin_ns, span->end_ns, job->frames_out);
}

static void note_times(struct sluice_job *job, int slot, const struct work_times *times)
{
    const struct {
        enum sluice_part part;
        const char *name;
        const struct work_span *span;
    } parts[] = {{SLUICE_PART_UPLOAD, "upload", &times->upload},
                 {SLUICE_PART_FILTER, "filter", &times->compute},
                 {SLUICE_PART_DOWNLOAD, "download", &times->download}};
    int gpu = job->backend->gpus ? slot % job->backend->gpus : 0;
    for (int k = 0; k < 3; k++)
        note_span(job, parts[k].part, &job->engine_end[gpu][parts[k].part],
                  TRACE_SLOTS + 3 * slot + k, parts[k].name, parts[k].span);
}

// Its pictures: the chain's result first.
static void note_frame(struct sluice_job *job, AVFrame *const *picture)
{
    const AVFrame *frame = picture[0];
    int64_t end = frame->pts + frame_duration(frame) - job->video.first->pts;
    int64_t us = av_rescale_q(end, job->video.time_base, AV_TIME_BASE_Q);
    if (us > job->media_us)
        job->media_us = us;
    job->frames_out++;
    job->shown_ns = meter_now_ns();
    snapshot_offer(job->snapshot, frame);
}

// A frame that took longer counts at once, shorter ones bring the estimate down slowly: what is
// late by surprise is late all the same.
static void note_pace(struct sluice_job *job, int64_t took_ns)
{
    bool longer = took_ns > job->encode_ns;
    job->encode_ns += longer ? took_ns - job->encode_ns : (took_ns - job->encode_ns) / 32;
}

// When nobody watches any more, the job is stopped.
// NULL at the end.
static enum status write_frame(struct sluice_job *job, AVFrame *const *picture)
{
    int64_t start = meter_now_ns();
    job->sink->tee = picture ? picture + 1 : NULL;
    enum status status = job->sink->write(job->sink, picture ? picture[0] : NULL);
    if (status == STATUS_EOF) {
        sluice_job_stop(job);
        status = STATUS_STOPPED;
    }
    note_pace(job, meter_now_ns() - start);
    int64_t frame = picture ? job->frames_out : -1;
    if (job->sink->has_threads)
        trace_span(job->trace, TRACE_ENCODE, "encode", start, meter_now_ns(), frame);
    else
        job_span(job, SLUICE_PART_ENCODE, start, frame);
    return status;
}

// What the frame's analysis tells.
static enum status record(struct sluice_job *job, const struct slot *slot)
{
    void *const *analysis = filter_analysis(slot->filter, slot->number);
    if (!job->report_writer || !analysis)
        return STATUS_OK;
    const struct report_writer_frame frame = {
        .index = job->frames_out,
        .pts = slot->out[0]->pts,
        .width = slot->out[0]->width,
        .height = slot->out[0]->height,
        .program = filter_plan(slot->filter)->program,
        .analysis = analysis,
    };
    return report_writer_write(job->report_writer, &frame);
}

static enum status finish_slot(struct sluice_job *job, struct slot *slot)
{
    int64_t index = job->frames_out;
    enum status status = STATUS_OK;
    if (job->verify && index % job->verify == 0 && filter_plan(slot->filter)) {
        status = filter_verify(slot->filter, slot->in, slot->out, index);
        job->verified += !status;
    }
    av_frame_unref(slot->in); // the decoder may have it back while the encoder works
    bool covered = job->gap[0] && gap_covers(job->gap[0], slot->out[0]);
    if (!status && (covered || frame_is_late(job, slot->out[0], job->encode_ns))) {
        job->dropped_late++;
        return STATUS_OK;
    }
    if (!status)
        status = record(job, slot);
    if (!status)
        status = write_frame(job, slot->out);
    if (!status || status == STATUS_STOPPED) // the encoder has it, even if it may not keep it
        note_frame(job, slot->out);
    for (int n = 0; n < job->pictures && !status && job->gap[0]; n++)
        status = gap_note(job->gap[n], slot->out[n]);
    return status;
}

// The next pictures of the gap, if they are due: picture[0] is NULL if not. All gaps go alike.
static enum status next_filling(struct sluice_job *job, int64_t clock_us, AVFrame **picture)
{
    enum status status = STATUS_OK;
    for (int n = 0; n < job->pictures && !status; n++)
        status = gap_fill(job->gap[n], clock_us, &picture[n]);
    return status;
}

static enum status write_filling(struct sluice_job *job, AVFrame *const *picture)
{
    if (av_rescale_q(picture[0]->pts, job->video.time_base, AV_TIME_BASE_Q) >= job->end) {
        source_cancel(job->source);
        return STATUS_OK;
    }
    enum status status = write_frame(job, picture);
    if (!status || status == STATUS_STOPPED) {
        job->filled++;
        note_frame(job, picture);
    }
    return status;
}

// Show something while the source is lost.
static enum status fill_gap(struct sluice_job *job)
{
    struct live_figures live;
    AVFrame *picture[MAX_PICTURES] = {NULL};
    source_figures(job->source, &live);
    if (live.lost && job->gap_kind == GAP_SKIP && live.clock_us >= job->end)
        source_cancel(job->source); // the output ends in the gap
    enum status status = live.lost && !job->stop.asked && !job->ends
                             ? next_filling(job, live.clock_us, picture)
                             : STATUS_OK;
    if (picture[0] && !status)
        status = write_filling(job, picture);
    for (int n = 0; n < job->pictures; n++)
        av_frame_free(&picture[n]);
    return status;
}

// What went wrong here ends the job, also while its source is lost.
static void cancel_job(struct sluice_job *job, enum status status)
{
    ring_cancel(job->ring);
    if (status_is_failure(status))
        source_cancel(job->source);
}

// The next filtered frame; meanwhile gaps are filled.
static enum status take_slot(struct sluice_job *job, enum status *status, struct slot **slot)
{
    const int64_t look_ns = 10 * INT64_C(1000000);
    if (!job->gap[0] || (job->gap_kind == GAP_SKIP && job->end == INT64_MAX))
        return ring_take(job->ring, slot);
    for (;;) {
        enum status taken = ring_take_until(job->ring, slot, meter_now_ns() + look_ns);
        if (taken || *slot)
            return taken;
        if (!*status)
            *status = fill_gap(job);
        if (*status)
            cancel_job(job, *status);
    }
}

enum status encode_run(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    struct slot *slot;
    while (!take_slot(job, &status, &slot)) {
        struct work_times times;
        enum status done = filter_wait(slot->filter, slot->number, &times);
        if (!done)
            note_times(job, slot->number, &times);
        if (status == STATUS_STOPPED)
            job->dropped_stop++;
        else if (!status)
            status = done ? done : finish_slot(job, slot);
        if (status)
            cancel_job(job, status); // go on waiting: no slot may be freed while it runs
        ring_release(job->ring, slot);
    }
    job->flushing = true;
    if (!status)
        status = write_frame(job, NULL);
    if (status == STATUS_STOPPED)
        drop_unfinished(job);
    return status;
}
