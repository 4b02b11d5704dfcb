#include "pipeline/output/muxer/passthrough.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

static enum status allocate(struct passthrough *passthrough, unsigned streams, int video)
{
    *passthrough = (struct passthrough){
        .video = video,
        .streams = streams,
        .time_base = calloc(streams + 1, sizeof *passthrough->time_base),
        .accepted = calloc(streams + 1, sizeof *passthrough->accepted),
    };
    return passthrough->time_base && passthrough->accepted ? STATUS_OK : STATUS_MEMORY;
}

enum status passthrough_init(struct passthrough *passthrough, const AVFormatContext *from,
                             int video)
{
    enum status status = allocate(passthrough, from->nb_streams, video);
    for (unsigned k = 0; k < from->nb_streams && !status; k++)
        passthrough->time_base[k] = from->streams[k]->time_base;
    return status;
}

void passthrough_finish(struct passthrough *passthrough)
{
    free(passthrough->time_base);
    free(passthrough->accepted);
    *passthrough = (struct passthrough){0};
}

enum status passthrough_join(struct passthrough *passthrough, const struct passthrough *other)
{
    enum status status = STATUS_OK;
    assert(!passthrough->streams || !other->streams || passthrough->streams == other->streams);
    if (!passthrough->streams && other->streams)
        status = allocate(passthrough, other->streams, other->video);
    for (unsigned k = 0; k < other->streams && !status; k++) {
        passthrough->time_base[k] = other->time_base[k];
        passthrough->accepted[k] |= other->accepted[k];
    }
    return status;
}

bool passthrough_accepts(const struct passthrough *passthrough, int stream)
{
    return (unsigned)stream < passthrough->streams && passthrough->accepted[stream];
}

bool passthrough_is_empty(const struct passthrough *passthrough)
{
    for (unsigned k = 0; k < passthrough->streams; k++)
        if (passthrough->accepted[k])
            return false;
    return true;
}

static int64_t to_us(const struct passthrough *passthrough, const AVPacket *packet, int64_t at)
{
    assert((unsigned)packet->stream_index < passthrough->streams);
    return at == AV_NOPTS_VALUE
               ? AV_NOPTS_VALUE
               : av_rescale_q(at, passthrough->time_base[packet->stream_index], AV_TIME_BASE_Q);
}

int64_t passthrough_dts_us(const struct passthrough *passthrough, const struct packet *packet)
{
    const AVPacket *av = packet->av;
    return to_us(passthrough, av, av->dts != AV_NOPTS_VALUE ? av->dts : av->pts);
}

int64_t passthrough_pts_us(const struct passthrough *passthrough, const struct packet *packet)
{
    const AVPacket *av = packet->av;
    return to_us(passthrough, av, av->pts != AV_NOPTS_VALUE ? av->pts : av->dts);
}
