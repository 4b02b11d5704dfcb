// The demux thread: packets of the filtered stream to the decoder, the others to the sink.
#include <libavutil/mathematics.h>

#include "pipeline/engine/job.h"

// The time of a packet: its dts where it has no pts.
static int64_t packet_us(const struct sluice_job *job, const struct packet *packet)
{
    if (packet->pts_us != AV_NOPTS_VALUE || packet->av->dts == AV_NOPTS_VALUE)
        return packet->pts_us;
    AVRational base = job->source->format->streams[packet->av->stream_index]->time_base;
    return av_rescale_q(packet->av->dts, base, AV_TIME_BASE_Q);
}

// Where the output ends, as far as is known by now.
static int64_t end_us(const struct sluice_job *job)
{
    return job->ends ? job->last_end : job->end;
}

// Whether a packet of another stream goes along: the output takes it, and it lies within.
static bool goes_along(const struct sluice_job *job, const struct packet *packet)
{
    if (!passthrough_accepts(&job->sink->passthrough, packet->av->stream_index))
        return false;
    int64_t at = packet_us(job, packet);
    bool early = job->source->start != AV_NOPTS_VALUE && at < job->source->start;
    return at == AV_NOPTS_VALUE || (!early && at < end_us(job));
}

// Streams are interleaved to about a second: once the video is so far past the end, so are they.
static bool is_long_past_end(const struct sluice_job *job, const struct packet *packet)
{
    int64_t at = packet_us(job, packet);
    return job->ends && (at == AV_NOPTS_VALUE || at > end_us(job) + AV_TIME_BASE);
}

static void note_arrival(struct sluice_job *job, const struct packet *packet)
{
    if (job->latency && packet->pts_us != AV_NOPTS_VALUE)
        latency_note_arrival(job->latency, packet->pts_us, packet->arrived_ns);
}

static enum status route(struct sluice_job *job, struct packet **packet)
{
    if ((*packet)->av->stream_index != job->source->video)
        return goes_along(job, *packet) ? job->sink->write_packet(job->sink, *packet) : STATUS_OK;
    note_arrival(job, *packet);
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
        struct packet *packet = NULL;
        int64_t start = meter_now_ns();
        status = source_read(job->source, &packet);
        if (!source_is_live(job->source)) // to wait for what has not happened yet is no work
            job_span(job, SLUICE_PART_DEMUX, start, -1);
        if (!status)
            status = route(job, &packet);
        packet_destroy(&packet);
    }
    queue_finish(job->packets);
    return status;
}
