#include "page/player/reel_keep.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <stdlib.h>

#include "page/player/keep.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/seek/reel.h"
#include "pipeline/input/source.h"

struct keep_reel {
    struct reel base;
    struct keep *keep;
    struct source *source;
    int64_t begin, next; // numbers: the key frame that rewind() went to, the packet to read
};

static enum status set_codec(struct keep_reel *reel, int64_t number)
{
    AVCodecParameters *codec = keep_codec(reel->keep, number);
    int error = codec ? avcodec_parameters_copy(source_video(reel->source)->codecpar, codec) : -1;
    avcodec_parameters_free(&codec);
    return error < 0 ? STATUS_MEMORY : STATUS_OK;
}

static enum status rewind_keep(struct reel *base, int64_t at_us, bool earlier)
{
    struct keep_reel *reel = (struct keep_reel *)base;
    int64_t found = keep_find(reel->keep, at_us, earlier ? reel->begin : INT64_MAX);
    struct packet *packet = NULL;
    if (found < 0)
        return STATUS_EOF;
    enum status status = set_codec(reel, found);
    if (!status)
        status = keep_read(reel->keep, found, &packet);
    if (status)
        return status;
    reel->begin = reel->next = found;
    base->from_us = packet->pts_us == AV_NOPTS_VALUE ? INT64_MIN : packet->pts_us;
    packet_destroy(&packet);
    return STATUS_OK;
}

// The first packet's restart, if it is one, is the decoder's beginning.
static enum status read_keep(struct reel *base, struct packet **packet)
{
    struct keep_reel *reel = (struct keep_reel *)base;
    enum status status = keep_read(reel->keep, reel->next, packet);
    if (!status && reel->next++ == reel->begin)
        (*packet)->restart = false;
    return status;
}

static void measure_keep(struct reel *base, struct reel_span *span)
{
    struct keep_span kept;
    keep_measure(((struct keep_reel *)base)->keep, &kept);
    *span = (struct reel_span){kept.begin_us, kept.end_us, kept.more};
}

static bool keep_has_next(const struct reel *base)
{
    const struct keep_reel *reel = (const struct keep_reel *)base;
    struct keep_span kept;
    keep_measure(reel->keep, &kept);
    return reel->next >= kept.first && reel->next < kept.end;
}

static void destroy_keep(struct reel **reel)
{
    free(*reel);
    *reel = NULL;
}

enum status reel_of_keep(struct keep *keep, struct source *source, struct reel **reel)
{
    struct keep_reel *made = calloc(1, sizeof *made);
    *reel = (struct reel *)made;
    if (!made)
        return STATUS_MEMORY;
    made->base = (struct reel){.source = source,
                               .from_us = INT64_MIN,
                               .rewind = rewind_keep,
                               .read = read_keep,
                               .measure = measure_keep,
                               .has_next = keep_has_next,
                               .destroy = destroy_keep};
    made->keep = keep;
    made->source = source;
    return STATUS_OK;
}
