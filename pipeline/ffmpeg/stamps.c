#include "pipeline/ffmpeg/stamps.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

// A time is out of line by more than this; a stream that is back in line is so within the other, and a step.
static const int64_t slack_us = AV_TIME_BASE / 10, max_pause_us = AV_TIME_BASE;

static enum status know_streams(struct stamps *stamps, unsigned count)
{
    if (stamps->streams >= count)
        return STATUS_OK;
    struct stamp_track *track = realloc(stamps->track, count * sizeof *track);
    if (!track)
        return STATUS_MEMORY;
    stamps->track = track;
    while (stamps->streams < count)
        track[stamps->streams++] = (struct stamp_track){0};
    return STATUS_OK;
}

// A damaged time may be any number: differences of what is returned fit.
static int64_t to_us(int64_t time, AVRational base)
{
    const int64_t most = INT64_MAX / 4;
    return av_clip64(av_rescale_q(time, base, AV_TIME_BASE_Q), -most, most);
}

// The next packet is expected a step of the stream later. How long packets say that they are may be far off.
static void follow(struct stamp_track *track, const struct packet *packet, AVRational base)
{
    const AVPacket *av = packet->av;
    int64_t at_us = to_us(av->dts, base), step_us = at_us - track->last_us;
    if (!track->begun)
        track->step_us = av->duration > 0 ? to_us(av->duration, base) : 0;
    else if (step_us > 0)
        track->step_us = step_us;
    track->begun = true;
    track->last_us = at_us;
    track->arrived_ns = packet->arrived_ns;
    if (av->pts != AV_NOPTS_VALUE && to_us(av->pts, base) - track->last_us > track->delay_us)
        track->delay_us = to_us(av->pts, base) - track->last_us;
}

static bool is_out_of_line(const struct stamp_track *track, const struct packet *packet,
                           int64_t at_us)
{
    int64_t step_us = at_us - track->last_us;
    int64_t passed_us = (packet->arrived_ns - track->arrived_ns) / 1000;
    bool back = step_us < 0 && step_us - track->step_us < -slack_us;
    return track->begun && (back || step_us - track->step_us - passed_us > slack_us);
}

// True if a packet at `at_us` goes on where the stream was before the one that waits.
static bool is_back(const struct stamp_track *track, int64_t at_us)
{
    int64_t held_us = to_us(track->held->av->dts, track->base);
    return at_us > track->last_us &&
           (held_us > track->last_us ? at_us < held_us
                                     : at_us - track->last_us < max_pause_us + 2 * track->step_us);
}

// How far a pts at `pts_us` is from where one of a packet at `at_us` may be.
static int64_t distance_us(const struct stamp_track *track, int64_t pts_us, int64_t at_us)
{
    int64_t least = at_us, most = at_us + track->delay_us;
    return pts_us < least ? least - pts_us : pts_us > most ? pts_us - most : 0;
}

// Give the packet that waits the time that it would have had, before one at `before_us`. Its pts is kept, moved along
// with its dts, or dropped, by what is where the stream's others are; without one a decoder goes by dts.
static void mend(struct stamp_track *track, int64_t before_us)
{
    AVPacket *av = track->held->av;
    int64_t at_us = track->last_us + track->step_us;
    if (at_us >= before_us)
        at_us = track->last_us + (before_us - track->last_us) / 2;
    int64_t damaged = av->dts;
    av->dts = av_rescale_q(at_us, AV_TIME_BASE_Q, track->base);
    if (av->pts == AV_NOPTS_VALUE)
        return;
    int64_t kept_us = to_us(av->pts, track->base);
    int64_t moved_us = at_us + kept_us - to_us(damaged, track->base);
    int64_t kept = distance_us(track, kept_us, at_us), moved = distance_us(track, moved_us, at_us);
    if (kept > slack_us && moved > slack_us)
        av->pts = track->delay_us ? AV_NOPTS_VALUE : av->dts;
    else if (moved < kept)
        av->pts = av_sat_add64(av->dts, av_sat_sub64(av->pts, damaged));
}

// Decide about the packet that waits, and let it go.
static struct packet *decide(struct stamp_track *track, int64_t at_us)
{
    if (is_back(track, at_us))
        mend(track, at_us);
    struct packet *packet = track->held;
    track->held = NULL;
    follow(track, packet, track->base);
    return packet;
}

bool stamps_are_for(const AVCodecParameters *about)
{
    return about->codec_type == AVMEDIA_TYPE_VIDEO || about->codec_type == AVMEDIA_TYPE_AUDIO;
}

enum status stamps_put(struct stamps *stamps, unsigned stream, AVRational base,
                       struct packet **packet)
{
    assert(!stamps->ready && *packet);
    if (know_streams(stamps, stream + 1))
        return STATUS_MEMORY;
    struct stamp_track *track = &stamps->track[stream];
    struct packet *first = NULL;
    bool timed = (*packet)->av->dts != AV_NOPTS_VALUE;
    int64_t at_us = timed ? to_us((*packet)->av->dts, base) : 0;
    if (track->held && timed) {
        first = decide(track, at_us);
    } else if (track->held) {
        first = track->held;
        track->held = NULL;
        follow(track, first, track->base);
    }
    if (timed && is_out_of_line(track, *packet, at_us)) {
        track->held = *packet;
        track->base = base;
        *packet = first;
        return STATUS_OK;
    }
    if (timed)
        follow(track, *packet, base);
    if (first) {
        stamps->ready = *packet;
        *packet = first;
    }
    return STATUS_OK;
}

struct packet *stamps_take(struct stamps *stamps)
{
    struct packet *packet = stamps->ready;
    stamps->ready = NULL;
    return packet;
}

struct packet *stamps_end(struct stamps *stamps)
{
    struct packet *packet = stamps_take(stamps);
    for (unsigned k = 0; k < stamps->streams && !packet; k++) {
        packet = stamps->track[k].held;
        stamps->track[k].held = NULL;
        stamps->track[k].begun = false;
    }
    return packet;
}

void stamps_finish(struct stamps *stamps)
{
    for (struct packet *packet = stamps_end(stamps); packet; packet = stamps_end(stamps))
        packet_destroy(&packet);
    free(stamps->track);
    *stamps = (struct stamps){0};
}
