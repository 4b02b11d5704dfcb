// The demux thread: packets of the filtered stream to the decoder, the others to the sink.
#include <libavutil/mathematics.h>

#include "pipeline/engine/job.h"

static int64_t packet_us(const struct sluice_job *job, const AVPacket *packet)
{
    int64_t at = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    if (at == AV_NOPTS_VALUE)
        return AV_NOPTS_VALUE;
    AVRational base = job->source->format->streams[packet->stream_index]->time_base;
    return av_rescale_q(at, base, AV_TIME_BASE_Q);
}

// Where the output ends, as far as is known by now.
static int64_t end_us(const struct sluice_job *job)
{
    return job->ends ? job->last_end : job->end;
}

// Whether a packet of another stream lies within the output.
static bool is_wanted(const struct sluice_job *job, const AVPacket *packet)
{
    if (!job->sink->accepts_streams || !job->sink->accepts_stream(job->sink, packet->stream_index))
        return false;
    int64_t at = packet_us(job, packet);
    bool early = job->source->start != AV_NOPTS_VALUE && at < job->source->start;
    return at == AV_NOPTS_VALUE || (!early && at < end_us(job));
}

// Streams are interleaved to about a second: once the video is so far past the end, so are they.
static bool is_long_past_end(const struct sluice_job *job, const AVPacket *packet)
{
    int64_t at = packet_us(job, packet);
    return job->ends && (at == AV_NOPTS_VALUE || at > end_us(job) + AV_TIME_BASE);
}

static void note_arrival(struct sluice_job *job, const AVPacket *packet)
{
    if (job->latency && packet->stream_index == job->source->video && packet->pts != AV_NOPTS_VALUE)
        latency_note_arrival(job->latency, packet_us(job, packet), packet->pos);
}

static enum status route(struct sluice_job *job, AVPacket **packet)
{
    note_arrival(job, *packet);
    if ((*packet)->stream_index != job->source->video)
        return is_wanted(job, *packet) ? job->sink->write_packet(job->sink, *packet) : STATUS_OK;
    if (job->ends) // the decoder has had enough; audio may still be to come
        return is_long_past_end(job, *packet) || job->alone ? STATUS_EOF : STATUS_OK;
    enum status status = queue_push(job->packets, packet);
    return status == STATUS_EOF && job->ends ? STATUS_OK : status;
}

enum status demux_run(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < job->earlies && !status; k++)
        status = route(job, &job->early[k]);
    while (!status && !(job->ends && job->alone)) {
        AVPacket *packet = av_packet_alloc();
        int64_t start = meter_now_ns();
        status = packet ? source_read(job->source, packet) : STATUS_MEMORY;
        if (!source_is_live(job->source)) // to wait for what has not happened yet is no work
            job_span(job, SLUICE_PART_DEMUX, start, -1);
        if (!status)
            status = route(job, &packet);
        av_packet_free(&packet);
    }
    queue_finish(job->packets);
    return status;
}
