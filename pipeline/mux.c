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
        status = job->sink->write_packet(job->sink, packet);
        job_span(job, SLUICE_PART_MUX, start, -1);
        av_packet_free(&packet);
    }
    queue_abandon(job->muxing);
    return status;
}
