// A series of outputs, named by time: each begins with a key frame, at multiples of their length or
// where the video changes, and holds what the other streams have of its time.
#include <libavutil/mathematics.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/delivery.h"
#include "pipeline/file.h"

enum { HELD_MOST = 1024, NAMES_TRIED = 1000 };

struct segments {
    struct delivery base;
    struct output_streams streams; // owned
    int64_t key_due_us;            // where the next one is to begin; the pushing thread's
    int64_t due_us, origin_us;
    AVPacket *held[HELD_MOST]; // of other streams, until the video of their time tells the segment
    int helds;
    int64_t video_us; // how far that is
    bool turns;       // the next one is due, whatever the time
    char *name;       // of the last, without a number; NULL: there was none
    int number;
};

static struct segments *segments_of(struct delivery *delivery)
{
    return (struct segments *)delivery;
}

// The first name that is free: of a file that may be replaced, too, but of none of these.
static enum status name_segment(struct segments *self, int64_t wall_s, int64_t media_us,
                                char **name)
{
    static const struct log silent = {0};
    const struct target *target = self->base.request.target;
    char *plain = target_segment_name(target, wall_s, media_us, 0);
    bool again = plain && self->name && !strcmp(plain, self->name);
    int number = again ? self->number + 1 : 0, last = number + NAMES_TRIED;
    free(self->name);
    self->name = plain;
    *name = NULL;
    if (plain)
        target_make_folders(target, plain);
    do {
        free(*name);
        *name = target_segment_name(target, wall_s, media_us, number);
    } while (*name && file_check(*name, target->overwrite, &silent) && ++number < last);
    self->number = number;
    return *name && plain ? STATUS_OK : STATUS_MEMORY;
}

static enum status begin_segment(struct segments *self, int64_t pts_us)
{
    int64_t wall_s = self->streams.live ? (int64_t)time(NULL) : -1;
    char *name = NULL;
    enum status status = name_segment(self, wall_s, pts_us - self->origin_us, &name);
    if (!status)
        status = delivery_begin(&self->base, name, &self->streams);
    self->base.files++;
    free(name);
    return status;
}

static enum status open_segments(struct delivery *delivery, const struct output_streams *streams)
{
    struct segments *self = segments_of(delivery);
    self->origin_us = streams->shift;
    self->video_us = INT64_MIN;
    self->key_due_us = self->due_us = streams->shift + delivery->request.target->segment_us;
    enum status status = output_streams_copy(streams, &self->streams);
    if (!status)
        status = begin_segment(self, streams->shift);
    return status ? status : delivery_note_wants(delivery, streams);
}

// The first of the moments `due_us`, `due_us + length_us`, ... that is not over at `pts_us`.
// Divides: a timestamp may be centuries ahead.
static int64_t due_after(int64_t due_us, int64_t length_us, int64_t pts_us)
{
    if (due_us > pts_us)
        return due_us;
    return pts_us > INT64_MAX - length_us ? INT64_MAX
                                          : pts_us - (pts_us - due_us) % length_us + length_us;
}

// The packet, a key frame, begins the next segment; its time is the segment's zero.
static enum status next_segment(struct segments *self, int64_t pts_us)
{
    enum status status = output_finish(self->base.output);
    delivery_close(&self->base);
    self->turns = false;
    self->due_us = due_after(self->due_us, self->base.request.target->segment_us, pts_us);
    self->streams.shift = pts_us;
    return status ? status : begin_segment(self, pts_us);
}

// ---- packets ----

static int64_t time_of(const struct segments *self, const AVPacket *packet)
{
    const AVStream *stream = self->streams.from->streams[packet->stream_index];
    int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    return time == AV_NOPTS_VALUE ? INT64_MIN
                                  : av_rescale_q(time, stream->time_base, AV_TIME_BASE_Q);
}

// Write what has been held and comes before `until_us`.
static enum status write_held(struct segments *self, int64_t until_us)
{
    enum status status = STATUS_OK;
    int kept = 0;
    for (int k = 0; k < self->helds; k++) {
        AVPacket *packet = self->held[k];
        if (status || time_of(self, packet) >= until_us) {
            self->held[kept++] = packet;
            continue;
        }
        status = output_write(self->base.output, packet, packet->stream_index);
        av_packet_free(&packet);
    }
    self->helds = kept;
    return status;
}

// Encoders keep pictures back, so that sound comes long before its video.
static enum status hold(struct segments *self, const AVPacket *packet)
{
    enum status status = self->helds == HELD_MOST ? write_held(self, INT64_MAX) : STATUS_OK;
    if (status)
        return status;
    AVPacket *copy = av_packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    self->held[self->helds++] = copy;
    return write_held(self, self->video_us);
}

// Begin the next one where it is due.
static enum status turn(struct segments *self, const AVPacket *packet)
{
    int64_t pts_us = packet->pos;
    bool due = packet->flags & AV_PKT_FLAG_KEY && (self->turns || pts_us >= self->due_us);
    self->video_us = pts_us > self->video_us ? pts_us : self->video_us;
    enum status status = write_held(self, self->video_us);
    return due && !status ? next_segment(self, pts_us) : status;
}

static enum status write_segments(struct delivery *delivery, AVPacket *packet, bool *written)
{
    struct segments *self = segments_of(delivery);
    enum status status = STATUS_OK;
    if (!delivery_is_video(delivery, packet)) {
        status = hold(self, packet);
    } else {
        status = turn(self, packet);
        if (!status)
            status = output_write(delivery->output, packet, packet->stream_index);
        delivery_note_size(delivery);
    }
    *written = !status;
    return status;
}

static void change_segments(struct delivery *delivery, struct output_streams *streams)
{
    struct segments *self = segments_of(delivery);
    output_streams_free(&self->streams);
    self->streams = *streams;
    self->turns = true;
}

static bool is_key_due(struct delivery *delivery, int64_t pts_us)
{
    struct segments *self = segments_of(delivery);
    bool due = pts_us >= self->key_due_us;
    self->key_due_us = due_after(self->key_due_us, delivery->request.target->segment_us, pts_us);
    return due;
}

static enum status finish_segments(struct delivery *delivery)
{
    enum status status = write_held(segments_of(delivery), INT64_MAX);
    return status ? status : output_finish(delivery->output);
}

static void free_segments(struct delivery *delivery)
{
    struct segments *self = segments_of(delivery);
    for (int k = 0; k < self->helds; k++)
        av_packet_free(&self->held[k]);
    output_streams_free(&self->streams);
    free(self->name);
}

struct delivery *delivery_segments_new(void)
{
    struct segments *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct delivery){.open = open_segments,
                                   .write = write_segments,
                                   .change = change_segments,
                                   .is_key_due = is_key_due,
                                   .finish = finish_segments,
                                   .free = free_segments};
    return &self->base;
}
