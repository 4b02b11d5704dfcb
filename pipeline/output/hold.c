#include "pipeline/output/hold.h"

#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/budget.h"

enum status hold_init(struct hold *hold, const AVFormatContext *from, AVRational frame_rate)
{
    *hold = (struct hold){.streams = from->nb_streams, .end_us = INT64_MIN};
    hold->time_base = calloc(from->nb_streams + 1, sizeof *hold->time_base);
    if (!hold->time_base)
        return STATUS_MEMORY;
    for (unsigned k = 0; k < from->nb_streams; k++)
        hold->time_base[k] = from->streams[k]->time_base;
    if (frame_rate.num > 0 && frame_rate.den > 0)
        hold->frame_us = av_rescale_q(1, av_inv_q(frame_rate), AV_TIME_BASE_Q);
    return STATUS_OK;
}

void hold_finish(struct hold *hold)
{
    hold_drop(hold);
    free(hold->packet);
    free(hold->time_base);
    *hold = (struct hold){0};
}

void hold_note_video(struct hold *hold, const AVPacket *packet, AVRational time_base)
{
    int64_t length = av_rescale_q(packet->duration, time_base, AV_TIME_BASE_Q);
    int64_t end = packet->pos + (length > 0 ? length : hold->frame_us);
    if (end > hold->end_us)
        hold->end_us = end;
}

// When the packet is wanted; copied video goes by decoding, so that no reference is missing.
static int64_t time_of(const struct hold *hold, const AVPacket *packet)
{
    int64_t at = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    bool known = (unsigned)packet->stream_index < hold->streams && at != AV_NOPTS_VALUE;
    return known ? av_rescale_q(at, hold->time_base[packet->stream_index], AV_TIME_BASE_Q)
                 : INT64_MIN;
}

bool hold_is_ahead(const struct hold *hold, const AVPacket *packet)
{
    int64_t at = time_of(hold, packet);
    return at != INT64_MIN && at >= hold->end_us;
}

static int64_t weight(const AVPacket *packet)
{
    return packet->size + (int64_t)sizeof *packet;
}

enum status hold_put(struct hold *hold, AVPacket **packet)
{
    if (hold->count == hold->room) {
        int room = hold->room ? 2 * hold->room : 64;
        AVPacket **list = realloc(hold->packet, (size_t)room * sizeof *list);
        if (!list)
            return STATUS_MEMORY;
        hold->packet = list;
        hold->room = room;
    }
    hold->bytes += weight(*packet);
    hold->packet[hold->count++] = *packet;
    *packet = NULL;
    return STATUS_OK;
}

bool hold_is_full(const struct hold *hold)
{
    return hold->bytes > budget_packets;
}

enum status hold_release(struct hold *hold, int64_t until_us,
                         enum status (*give)(void *opaque, AVPacket *packet), void *opaque)
{
    enum status status = STATUS_OK;
    int kept = 0;
    for (int k = 0; k < hold->count; k++) {
        AVPacket *packet = hold->packet[k];
        bool due = hold_is_full(hold) || time_of(hold, packet) < until_us;
        if (status || !due) {
            hold->packet[kept++] = packet;
            continue;
        }
        hold->bytes -= weight(packet);
        status = give(opaque, packet);
        av_packet_free(&packet);
    }
    hold->count = kept;
    return status;
}

int hold_drop(struct hold *hold)
{
    int dropped = hold->count;
    for (int k = 0; k < hold->count; k++)
        av_packet_free(&hold->packet[k]);
    hold->count = 0;
    hold->bytes = 0;
    return dropped;
}
