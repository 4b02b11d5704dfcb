#include "pipeline/input/live/live_clock.h"

#include <assert.h>
#include <libavutil/avstring.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "base/meter.h"

// A clock that jumps farther than so within a connection has been set anew; not if it jumps to the
// time that it is, after a pause.
static const int64_t max_back_us = 500000, max_ahead_us = 10 * INT64_C(1000000);

enum status live_clock_init(struct live_clock *clock, AVFormatContext *format, const char *name,
                            const struct log *log)
{
    *clock = (struct live_clock){.log = log, .name = name, .format = format, .watched = -1};
    clock->track = calloc(format->nb_streams + 1, sizeof *clock->track);
    if (!clock->track)
        return STATUS_MEMORY;
    clock->untimed = av_match_name(format->iformat->name, "mpjpeg,mjpeg");
    for (unsigned k = 0; k < format->nb_streams; k++) {
        AVStream *stream = format->streams[k];
        clock->track[k] = (struct live_track){
            .base = stream->time_base, .last_us = AV_NOPTS_VALUE, .end_us = AV_NOPTS_VALUE};
        if (clock->untimed)
            stream->time_base = (AVRational){1, 90000};
    }
    format->start_time = 0;
    format->duration = AV_NOPTS_VALUE;
    return STATUS_OK;
}

void live_clock_finish(struct live_clock *clock)
{
    free(clock->track);
    *clock = (struct live_clock){0};
}

void live_clock_connect(struct live_clock *clock, int64_t opened_ns)
{
    assert(clock->track);
    clock->opened_ns = opened_ns;
    clock->anchored = false;
    clock->fresh = true;
}

void live_clock_set_base(struct live_clock *clock, int stream, AVRational base)
{
    assert(stream >= 0 && stream < (int)clock->format->nb_streams);
    clock->track[stream].base = base;
}

int64_t live_clock_us(const struct live_clock *clock, int64_t ns)
{
    return clock->epoch_ns ? (ns - clock->epoch_ns) / 1000 : AV_NOPTS_VALUE;
}

// ---- packets ----

static int64_t to_us(int64_t at, AVRational base)
{
    return av_rescale_q(at, base, AV_TIME_BASE_Q);
}

static void shift(int64_t *timestamp, int64_t by)
{
    if (*timestamp != AV_NOPTS_VALUE)
        *timestamp += by;
}

// The offset that ties a packet at `at_us` of the connection's clock to the time when it came, but
// never behind what was given out. The first packets of a connection came when it was established.
static int64_t anchor(struct live_clock *clock, int64_t at_us)
{
    int64_t came_ns = clock->fresh ? clock->opened_ns : meter_now_ns();
    if (!clock->epoch_ns) {
        clock->epoch_ns = came_ns;
        return -at_us;
    }
    int64_t now_us = live_clock_us(clock, came_ns);
    for (unsigned k = 0; k < clock->format->nb_streams; k++) {
        const struct live_track *track = &clock->track[k];
        if (track->last_us != AV_NOPTS_VALUE && track->end_us > now_us)
            now_us = track->end_us;
    }
    return now_us - at_us;
}

static int64_t duration_us(const struct live_track *track, const AVStream *stream,
                           const AVPacket *packet)
{
    AVRational rate = stream->avg_frame_rate;
    int64_t duration = packet->duration > 0 ? to_us(packet->duration, track->base)
                       : rate.num > 0       ? to_us(1, av_inv_q(rate))
                                            : 1;
    return duration > 0 ? duration : 1;
}

// The first packets of a connection may come before it knows the time (RTP), and some kinds never
// have one (MJPEG): they get the time that it is.
static void stamp_by_arrival(struct live_clock *clock, struct live_track *track,
                             const AVStream *stream, AVPacket *packet)
{
    int64_t at_us = anchor(clock, 0);
    track->last_us = at_us;
    track->end_us = at_us + (clock->untimed ? 1 : duration_us(track, stream, packet));
    clock->fresh &= !clock->untimed;
    av_packet_rescale_ts(packet, track->base, stream->time_base);
    packet->pts = packet->dts = av_rescale_q(at_us, AV_TIME_BASE_Q, stream->time_base);
    track->last_dts = packet->dts;
}

// Follow the connection's clock, which is at `at_us`: tie it to ours anew where it jumps, else take
// its drift out.
static void follow(struct live_clock *clock, const struct live_track *track, int64_t at_us,
                   int64_t arrived_ns)
{
    bool watched = track - clock->track == clock->watched;
    int64_t here_us = at_us + clock->offset_us, step_us = 0, ahead_us = 0;
    if (clock->anchored && track->last_us != AV_NOPTS_VALUE)
        step_us = here_us - track->last_us;
    if (clock->epoch_ns)
        ahead_us = here_us - live_clock_us(clock, arrived_ns);
    if (step_us < -max_back_us || (step_us > max_ahead_us && ahead_us > max_ahead_us)) {
        log_print(clock->log, LOG_INFO, "the clock of %s jumps by %.1f s; it goes on evenly",
                  clock->name, (double)step_us / AV_TIME_BASE);
        clock->anchored = false;
    } else if (clock->anchored && watched)
        clock->offset_us += drift_follow(&clock->drift, ahead_us, step_us);
    if (!clock->anchored) {
        clock->offset_us = anchor(clock, at_us);
        clock->drift = (struct drift){0};
    }
    clock->anchored = true;
    clock->fresh = false;
}

void live_clock_stamp(struct live_clock *clock, AVPacket *packet, int64_t arrived_ns)
{
    assert(packet->stream_index >= 0 && packet->stream_index < (int)clock->format->nb_streams);
    struct live_track *track = &clock->track[packet->stream_index];
    const AVStream *stream = clock->format->streams[packet->stream_index];
    int64_t key = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts;
    bool watched = packet->stream_index == clock->watched;
    if (key == AV_NOPTS_VALUE || clock->untimed) {
        if (!clock->anchored)
            stamp_by_arrival(clock, track, stream, packet);
        return;
    }
    int64_t at_us = to_us(key, track->base);
    follow(clock, track, at_us, arrived_ns);
    track->last_us = at_us + clock->offset_us;
    track->end_us = track->last_us + (watched ? duration_us(track, stream, packet) : 1);
    av_packet_rescale_ts(packet, track->base, stream->time_base);
    int64_t offset = av_rescale_q(clock->offset_us, AV_TIME_BASE_Q, stream->time_base);
    shift(&packet->pts, offset);
    shift(&packet->dts, offset);
    if (packet->dts == AV_NOPTS_VALUE)
        return;
    // Rounding and connections whose clocks overlap must not turn time back.
    if (packet->dts <= track->last_dts)
        packet->dts = track->last_dts + 1;
    track->last_dts = packet->dts;
    // A decoder goes by pts; and of connections that were not probed, dts may be wrong.
    if (!watched && packet->pts != AV_NOPTS_VALUE && packet->pts < packet->dts)
        packet->pts = packet->dts;
}
