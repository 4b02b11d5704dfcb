#include "pipeline/output/hold.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/budget.h"

void hold_init(struct hold *hold, const struct passthrough *clock, AVRational frame_rate)
{
    *hold = (struct hold){.clock = clock, .end_us = INT64_MIN};
    if (frame_rate.num > 0 && frame_rate.den > 0)
        hold->frame_us = av_rescale_q(1, av_inv_q(frame_rate), AV_TIME_BASE_Q);
}

void hold_finish(struct hold *hold)
{
    hold_drop(hold);
    free(hold->packet);
    *hold = (struct hold){0};
}

void hold_note_video(struct hold *hold, const struct packet *packet, AVRational time_base)
{
    int64_t length = av_rescale_q(packet->av->duration, time_base, AV_TIME_BASE_Q);
    int64_t end = packet->pts_us + (length > 0 ? length : hold->frame_us);
    if (end > hold->end_us)
        hold->end_us = end;
}

// Video that goes along is ordered by dts, so that no reference is missing.
static int64_t time_of(const struct hold *hold, const struct packet *packet)
{
    return passthrough_dts_us(hold->clock, packet);
}

bool hold_is_ahead(const struct hold *hold, const struct packet *packet)
{
    int64_t at = time_of(hold, packet);
    return at != AV_NOPTS_VALUE && at >= hold->end_us;
}

static int64_t weight(const struct packet *packet)
{
    return packet->av->size + (int64_t)sizeof *packet->av;
}

enum status hold_put(struct hold *hold, struct packet **packet)
{
    assert(hold->clock && *packet);
    if (hold->count == hold->room) {
        int room = hold->room ? 2 * hold->room : 64;
        struct packet **list = realloc(hold->packet, (size_t)room * sizeof *list);
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
                         enum status (*give)(void *opaque, struct packet *packet), void *opaque)
{
    enum status status = STATUS_OK;
    int kept = 0;
    for (int k = 0; k < hold->count; k++) {
        struct packet *packet = hold->packet[k];
        bool due = hold_is_full(hold) || time_of(hold, packet) < until_us;
        if (status || !due) {
            hold->packet[kept++] = packet;
            continue;
        }
        hold->bytes -= weight(packet);
        status = give(opaque, packet);
        packet_destroy(&packet);
    }
    hold->count = kept;
    return status;
}

int hold_drop(struct hold *hold)
{
    int dropped = hold->count;
    for (int k = 0; k < hold->count; k++)
        packet_destroy(&hold->packet[k]);
    hold->count = 0;
    hold->bytes = 0;
    return dropped;
}
