// Preroll: the first frame decoded and submitted, the sink opened for it.
#include "pipeline/engine/job.h"

#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <stdio.h>

#include "pipeline/engine/filter/filter.h"
#include "pipeline/engine/job_memory.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/report/trace.h"

void job_start_span(struct sluice_job *job, const char *name, int64_t begin_ns)
{
    trace_span(job->trace, TRACE_START, name, begin_ns, meter_now_ns(), -1);
}

// ---- the first frame ----

static enum status report_no_frame(const struct sluice_job *job)
{
    const char *name = job->source->name;
    char why[256];
    struct sluice_ledger ledger = {0};
    decode_count(job->decode, &ledger);
    if (job->is_part && decode_saw_frames(job->decode))
        return STATUS_EOF; // other parts have them
    if (job->is_part && !job->repeatable && job->span.seek_us != INT64_MIN)
        return STATUS_AGAIN; // seeking led to nothing
    bool late = job->selection.begin_us != AV_NOPTS_VALUE && decoder_is_idle(job->decoder);
    if (ledger.frames_in || late)
        return log_fail(&job->log, STATUS_INPUT, "%s has no frame in the range that was asked for",
                        name);
    if (job->source->pushed)
        return log_fail(&job->log, STATUS_INPUT, "no frame was pushed before the end");
    if (source_is_scrambled(job->source))
        return log_fail(&job->log, STATUS_INPUT,
                        "%s is encrypted; sluice needs the video in the clear", name);
    if (source_lacks_index(job->source))
        return log_fail(
            &job->log, STATUS_INPUT,
            "%s has its index at the end, where a pipe cannot look first; give the file by "
            "name, or one that was written with -movflags +faststart",
            name);
    if (source_is_empty(job->source))
        return log_fail(&job->log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected",
                        name);
    decoder_explain(job->decoder, why, sizeof why);
    return log_fail(&job->log, STATUS_INPUT, "%s has no frame that can be decoded: %s", name, why);
}

// Read a packet and, if it is of the filtered stream, decode it. STATUS_EOF: there is no more.
static enum status feed(struct sluice_job *job)
{
    struct packet *packet;
    enum status status = demux_preroll(job->demux, &packet);
    if (packet)
        status = decode_send(job->decode, packet);
    packet_destroy(&packet);
    return status;
}

static enum status first_frame(struct sluice_job *job, AVFrame **frame)
{
    bool at_end = false;
    enum status status = STATUS_OK;
    if (job->is_part && job->span.begin_us >= job->span.end_us)
        return STATUS_EOF; // there is nothing between its cuts
    while (!status) {
        status = decode_next(job->decode, frame);
        if (status || *frame)
            break;
        status = feed(job);
        if (status == STATUS_EOF && !at_end) {
            at_end = true;
            status = decode_send(job->decode, NULL);
        }
    }
    return status == STATUS_EOF ? report_no_frame(job) : status;
}

// ---- the sink ----

// Where the output will end before its input does, in microseconds; INT64_MAX: it will not, as far
// as is known.
static int64_t end_of_output(const struct sluice_job *job, const AVFrame *first)
{
    AVStream *video = source_video(job->source);
    AVRational rate = av_guess_frame_rate(job->source->format, video, NULL);
    if (job->selection.frame_limit == INT64_MAX || rate.num <= 0)
        return job->selection.end_us;
    int64_t end = av_rescale_q(first->pts, video->time_base, AV_TIME_BASE_Q) +
                  av_rescale_q(job->selection.frame_limit, av_inv_q(rate), AV_TIME_BASE_Q);
    return end < job->selection.end_us ? end : job->selection.end_us;
}

// The first output has a packet written. Its mux thread.
static void note_written(void *watch_, int64_t pts_us, int64_t begin_ns)
{
    struct sink_watch *watch = watch_;
    if (pts_us != AV_NOPTS_VALUE && watch->latency)
        latency_note_out(watch->latency, pts_us);
    trace_busy(watch->trace, &watch->muxing, TRACE_MUX, "write", begin_ns, -1);
}

// Frames wait behind a slow encoder, one of several. Its thread.
static bool has_waited_too_long(void *watch_, const AVFrame *frame)
{
    const struct sink_watch *watch = watch_;
    return latency_frame_is_late(watch->latency, frame, watch->time_base, 0);
}

static enum status keep_first_props(struct sluice_job *job, const struct slot *slot)
{
    for (int n = 0; n < job->pictures; n++)
        if (!(job->first_props[n] = av_frame_clone(slot->out[n])))
            return STATUS_MEMORY;
    return STATUS_OK;
}

// Describe the video, once the first frame's slot is filled and so its properties known.
static enum status describe_video(struct sluice_job *job, const struct slot *slot)
{
    AVStream *video = source_video(job->source);
    job->described = format_describe(job->source->format);
    enum status status = keep_first_props(job, slot);
    if (status || !job->described)
        return STATUS_MEMORY;
    AVFrame *first = job->first_props[0];
    int64_t first_us = av_rescale_q(first->pts, video->time_base, AV_TIME_BASE_Q);
    if (job->whole_width) {
        first->width = job->whole_width;
        first->height = job->whole_height;
    }
    job->watch.latency = job->latency;
    job->watch.trace = job->trace;
    job->watch.time_base = video->time_base;
    job->video = (struct sink_video){
        .name = job->source->name,
        .from = job->described,
        .stream = job->source->video,
        .live = source_is_live(job->source),
        .first = first,
        .tee = job->first_props + 1,
        .time_base = video->time_base,
        .frame_rate = av_guess_frame_rate(job->source->format, video, NULL),
        .shift = source_shift_us(job->source, first_us),
        .begin = source_begin_us(job->source, first_us),
        .end = end_of_output(job, first),
        .watch = {note_written, &job->watch},
        .is_late = has_waited_too_long,
        .opaque = &job->watch,
    };
    job->width = first->width;
    job->height = first->height;
    job->sink->pixel = first->format;
    return STATUS_OK;
}

static enum status open_output(struct sluice_job *job, const struct slot *slot)
{
    enum status status = describe_video(job, slot);
    if (status)
        return status;
    int64_t begin_ns = meter_now_ns();
    status = job->sink->open(job->sink, &job->video);
    if (!status)
        status = report_writer_open(job->report_writer, job->video.time_base, job->video.live);
    job_start_span(job, "open the output", begin_ns);
    job->selection.video_only = !status && passthrough_is_empty(&job->sink->passthrough);
    if (!status)
        status = encode_open(job->encode, &job->video);
    snprintf(job->output_format, sizeof job->output_format, "%s",
             av_get_pix_fmt_name(job->sink->pixel));
    return status;
}

// ---- all of it ----

// Submit the first frame, and open the output while it is filtered.
static enum status submit_first(struct sluice_job *job, AVFrame **frame)
{
    struct slot *slot;
    enum status status = submit_fill(job->submit, frame, &slot);
    if (status)
        return status;
    status = open_output(job, slot);
    submit_publish(job->submit, slot, !status);
    return status;
}

enum status job_preroll(struct sluice_job *job)
{
    AVFrame *first = NULL;
    enum status status = first_frame(job, &first);
    if (!status)
        status = demux_probe(job->demux);
    if (status)
        goto done;
    const char *pixel = av_get_pix_fmt_name(decoder_pixel(job->decoder));
    snprintf(job->input_format, sizeof job->input_format, "%s", pixel ? pixel : "unknown");
    int64_t frame_bytes = budget_of_frame(first);
    job->need.page = job->gpu_need.page = job->tap.memory;
    job->need.claims = job->gpu_need.claims = true;
    status = submit_first(job, &first);
    if (!status)
        job_memory_report(job, frame_bytes);
done:
    av_frame_free(&first);
    return status;
}
