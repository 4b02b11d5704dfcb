#include "pipeline/input/clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

static enum status know_streams(struct clock *clock, unsigned count)
{
    if (clock->streams >= count)
        return STATUS_OK;
    int64_t *next = realloc(clock->next_us, count * sizeof *next);
    if (!next)
        return STATUS_MEMORY;
    clock->next_us = next;
    while (clock->streams < count)
        next[clock->streams++] = AV_NOPTS_VALUE;
    return STATUS_OK;
}

static bool has_own_time(const AVStream *stream, const AVPacket *packet)
{
    enum AVMediaType type = stream->codecpar->codec_type;
    return packet->dts != AV_NOPTS_VALUE &&
           (type == AVMEDIA_TYPE_VIDEO || type == AVMEDIA_TYPE_AUDIO);
}

// The distance of a packet from its expected time, if it is a jump; else 0.
static int64_t jump_us(const struct clock *clock, int64_t next_us, int64_t at_us)
{
    const int64_t max_back = AV_TIME_BASE / 10, max_ahead = 10 * (int64_t)AV_TIME_BASE;
    int64_t jump = next_us == AV_NOPTS_VALUE ? 0 : at_us + clock->offset_us - next_us;
    return jump < -max_back || jump > max_ahead ? jump : 0;
}

enum status clock_fix(struct clock *clock, const AVFormatContext *format, const char *name,
                      const struct log *log, AVPacket *packet)
{
    assert((unsigned)packet->stream_index < format->nb_streams);
    const AVStream *stream = format->streams[packet->stream_index];
    if (know_streams(clock, format->nb_streams))
        return STATUS_MEMORY;
    if (has_own_time(stream, packet)) {
        int64_t *next = &clock->next_us[packet->stream_index];
        int64_t at = av_rescale_q(packet->dts, stream->time_base, AV_TIME_BASE_Q);
        int64_t jump = jump_us(clock, *next, at);
        if (jump)
            log_print(log, LOG_INFO, "the clock of %s jumps by %.1f s; it goes on evenly", name,
                      (double)jump / AV_TIME_BASE);
        clock->offset_us -= jump;
        *next = at + clock->offset_us +
                av_rescale_q(packet->duration, stream->time_base, AV_TIME_BASE_Q);
    }
    int64_t offset = av_rescale_q(clock->offset_us, AV_TIME_BASE_Q, stream->time_base);
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts += offset;
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts += offset;
    return STATUS_OK;
}

void clock_finish(struct clock *clock)
{
    free(clock->next_us);
    *clock = (struct clock){0};
}
