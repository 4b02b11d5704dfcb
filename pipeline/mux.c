// The mux thread: packets to the container, in the order they come; libavformat interleaves them.
#include "pipeline/job.h"

enum status mux_run(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    while (!status) {
        AVPacket *packet = NULL;
        status = queue_pop(job->muxing, &packet);
        if (status)
            break;
        int64_t start = meter_now_ns();
        bool video = packet->stream_index == job->source->video;
        int64_t pts_us = packet->pos;
        status = job->sink->write_packet(job->sink, packet);
        if (video && job->latency && !status)
            latency_note_out(job->latency, pts_us);
        job_span(job, SLUICE_PART_MUX, start, -1);
        av_packet_free(&packet);
    }
    queue_abandon(job->muxing);
    return status;
}
