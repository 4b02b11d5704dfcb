#include "pipeline/input/clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/stamps.h"

static const int64_t max_back_us = AV_TIME_BASE / 10, max_ahead_us = 10 * (int64_t)AV_TIME_BASE;
static const int64_t patience_us = AV_TIME_BASE; // for a stream to be back

static enum status know_streams(struct clock *clock, unsigned count)
{
    if (clock->streams >= count)
        return STATUS_OK;
    struct track *track = realloc(clock->track, count * sizeof *track);
    if (!track)
        return STATUS_MEMORY;
    clock->track = track;
    while (clock->streams < count)
        track[clock->streams++] =
            (struct track){.next_us = AV_NOPTS_VALUE, .other_next_us = AV_NOPTS_VALUE};
    return STATUS_OK;
}

static bool has_own_time(const AVStream *stream, const AVPacket *packet)
{
    return packet->dts != AV_NOPTS_VALUE && stamps_are_for(stream->codecpar);
}

// The distance of a packet from its expected time, if it is a jump; else 0. A stream that has paused is
// far ahead of itself, but not of the others.
static int64_t jump_us(const struct clock *clock, int64_t here_us, int64_t step_us)
{
    int64_t furthest_us = INT64_MIN;
    for (unsigned k = 0; k < clock->streams; k++)
        if (clock->track[k].next_us != AV_NOPTS_VALUE && clock->track[k].next_us > furthest_us)
            furthest_us = clock->track[k].next_us;
    bool jumps =
        step_us < -max_back_us || (step_us > max_ahead_us && here_us - furthest_us > max_ahead_us);
    return jumps ? step_us : 0;
}

// True if a packet is where the stream would be without its last step.
static bool is_back(const struct track *track, int64_t at_us)
{
    return track->other_next_us != AV_NOPTS_VALUE &&
           llabs(at_us + track->other_offset_us - track->other_next_us) <= max_back_us;
}

// A stream whose clock jumps takes the offset that another one has taken, where that fits, so that both stay
// together.
static void jump(struct clock *clock, struct track *track, int64_t at_us, int64_t jump_us)
{
    int64_t apart_us = at_us + clock->offset_us - track->next_us;
    if (apart_us < -max_back_us || apart_us > max_ahead_us)
        clock->offset_us = track->offset_us - jump_us;
    track->offset_us = clock->offset_us;
}

// Without its last step the stream goes on evenly.
static void take_back(struct clock *clock, struct track *track)
{
    if (clock->offset_us == track->offset_us)
        clock->offset_us = track->other_offset_us;
    track->offset_us = track->other_offset_us;
    track->other_next_us = AV_NOPTS_VALUE;
}

// Follow a packet of a stream that is due at `at_us` by the file's clock. Returns by how much that jumps.
static int64_t follow(struct clock *clock, struct track *track, int64_t at_us, int64_t length_us)
{
    if (track->next_us == AV_NOPTS_VALUE) {
        track->offset_us = clock->offset_us;
        track->next_us = track->last_us = at_us + track->offset_us;
    }
    int64_t here_us = at_us + track->offset_us, step_us = here_us - track->next_us, jumps_us = 0;
    if (step_us < 0 && here_us > track->last_us)
        step_us = 0;
    if (llabs(step_us) <= max_back_us) {
        if (track->other_next_us != AV_NOPTS_VALUE)
            track->other_next_us += length_us;
        if (here_us > track->until_us)
            track->other_next_us = AV_NOPTS_VALUE;
    } else if (is_back(track, at_us)) {
        take_back(clock, track);
    } else {
        track->other_next_us = track->next_us + length_us;
        track->other_offset_us = track->offset_us;
        jumps_us = jump_us(clock, here_us, step_us);
        if (jumps_us)
            jump(clock, track, at_us, jumps_us);
        track->until_us = at_us + track->offset_us + patience_us;
    }
    track->last_us = at_us + track->offset_us;
    track->next_us = track->last_us + length_us;
    return jumps_us;
}

enum status clock_fix(struct clock *clock, const AVFormatContext *format, const char *name,
                      const struct log *log, AVPacket *packet)
{
    assert((unsigned)packet->stream_index < format->nb_streams);
    const AVStream *stream = format->streams[packet->stream_index];
    if (know_streams(clock, format->nb_streams))
        return STATUS_MEMORY;
    struct track *track = &clock->track[packet->stream_index];
    if (has_own_time(stream, packet)) {
        int64_t at = av_rescale_q(packet->dts, stream->time_base, AV_TIME_BASE_Q);
        int64_t length = av_rescale_q(packet->duration, stream->time_base, AV_TIME_BASE_Q);
        int64_t jumps = follow(clock, track, at, length);
        if (jumps)
            log_print(log, LOG_INFO, "the clock of %s jumps by %.1f s; it goes on evenly", name,
                      (double)jumps / AV_TIME_BASE);
    }
    int64_t offset_us = track->next_us == AV_NOPTS_VALUE ? clock->offset_us : track->offset_us;
    int64_t offset = av_rescale_q(offset_us, AV_TIME_BASE_Q, stream->time_base);
    if (packet->dts != AV_NOPTS_VALUE)
        packet->dts += offset;
    if (packet->pts != AV_NOPTS_VALUE)
        packet->pts += offset;
    return STATUS_OK;
}

void clock_finish(struct clock *clock)
{
    free(clock->track);
    *clock = (struct clock){0};
}
