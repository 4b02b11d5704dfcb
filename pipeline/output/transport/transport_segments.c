// Transport to segments: a series of files, named by time. Each begins with a key frame, at
// multiples of the length or where the video changes, and holds the other streams' packets of its
// time. Time is counted from the first frame, wherever the source's clock begins; other streams'
// packets before that are in the first segment.
//
// A full disk does not end a live recording: the segment is closed as it is, and the next begins at
// a key frame once there is room. Packets meanwhile are missing, and counted.
#include <libavutil/mathematics.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/meter.h"
#include "pipeline/output/file/file.h"
#include "pipeline/output/transport/transport.h"

enum { MAX_HELD = 1024, NAMES_TRIED = 1000 };

// How often a full disk is polled, and the room that a new segment takes: a part of the disk, at
// most so many bytes.
static const int64_t look_ns = 1000 * INT64_C(1000000);
enum { ROOM_SHARE = 16, ROOM_MAX = 64 << 20 };

struct segments {
    struct transport base;
    struct muxer_streams streams; // owned
    int64_t key_due_us; // where the next segment is to begin; INT64_MIN: there was no frame yet; of
                        // the thread that pushes video
    int64_t origin_us;  // the first packet of video's time; INT64_MIN: there was none yet
    int64_t due_us;     // where the next segment is to begin
    struct packet *held[MAX_HELD]; // packets of other streams, until the video of their time
                                   // decides the segment
    int helds;
    int64_t video_us; // the video's time so far
    bool next_due;    // a new segment begins at the next key frame, whatever the time
    char *name;       // of the last segment, without a number; NULL: there was none
    int number;
    int64_t latest_s; // local time of the latest name, as if it were UTC

    // ---- after a segment that could not be written ----
    bool awaits_key;  // the next segment begins at a key frame
    int64_t since_us; // packets of other streams before that are left out; INT64_MIN: none
    int64_t size;     // bytes safely on the disk
    int64_t away_ns;  // since when the disk is full; 0: it is not
};

static struct segments *segments_of(struct transport *transport)
{
    return (struct segments *)transport;
}

// True if the local time of a segment is not behind those of all before it: the clock was set back, or
// summer time has ended, and segments of this run may have its name.
static bool has_gone_back(struct segments *self, int64_t wall_s)
{
    time_t at = (time_t)wall_s;
    struct tm local = {0};
    localtime_r(&at, &local);
    int64_t local_s = wall_s + local.tm_gmtoff;
    bool back = local_s <= self->latest_s;
    self->latest_s = back ? self->latest_s : local_s;
    return wall_s >= 0 && back;
}

static bool is_taken(const struct destination *destination, const char *name, bool kept)
{
    static const struct log silent = {0};
    return file_check(name, destination->overwrite && !kept, &silent) ||
           destination_check_conflicts(destination, name, &silent);
}

// The first free name: files that may be replaced count as free, segments of this run do not.
static enum status name_segment(struct segments *self, int64_t wall_s, int64_t media_us,
                                char **name)
{
    const struct destination *destination = self->base.request.destination;
    char *plain = destination_segment_name(destination, wall_s, media_us, 0);
    bool kept = has_gone_back(self, wall_s);
    bool again = plain && self->name && !strcmp(plain, self->name);
    int number = again ? self->number + 1 : 0, last = number + NAMES_TRIED;
    free(self->name);
    self->name = plain;
    *name = NULL;
    if (!plain)
        return STATUS_MEMORY;
    enum status status = destination_make_folders(destination, plain, self->base.request.log);
    if (status)
        return status;
    do {
        free(*name);
        *name = destination_segment_name(destination, wall_s, media_us, number);
    } while (*name && is_taken(destination, *name, kept) && ++number < last);
    self->number = number;
    return *name ? STATUS_OK : STATUS_MEMORY;
}

// Begin a segment that lies at `media_us` behind the first frame.
static enum status begin_segment(struct segments *self, int64_t media_us)
{
    int64_t wall_s = self->streams.live ? (int64_t)time(NULL) : -1;
    char *name = NULL;
    enum status status = name_segment(self, wall_s, media_us, &name);
    if (!status)
        status = transport_begin(&self->base, name, &self->streams);
    self->base.files += !status;
    self->size = 0;
    free(name);
    return status;
}

static enum status open_segments(struct transport *transport, const struct muxer_streams *streams)
{
    struct segments *self = segments_of(transport);
    self->origin_us = self->key_due_us = self->video_us = self->since_us = INT64_MIN;
    enum status status = muxer_streams_copy(streams, &self->streams);
    self->streams.shift = streams->begin;
    if (!status)
        status = begin_segment(self, 0);
    return status ? status : transport_note_accepted(transport, streams);
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

// Count time from the first packet of video, by the encoder's clock: where that is coarser than the
// source's, the packets of key frames would else come a little before they are due.
static void note_origin(struct segments *self, int64_t pts_us)
{
    if (self->origin_us != INT64_MIN)
        return;
    self->origin_us = pts_us;
    self->due_us = due_after(pts_us, self->base.request.destination->segment_us, pts_us);
}

// Account for packets written: they are on the disk, or lost.
static void settle(struct segments *self, bool safe)
{
    int64_t unsafe = self->base.unsafe;
    if (!safe)
        self->base.lost += unsafe;
    self->base.unsafe = 0;
}

// Begin the next segment with a packet, a key frame; its time is the segment's zero.
static enum status next_segment(struct segments *self, int64_t pts_us)
{
    enum status status = muxer_finish(self->base.muxer);
    if (status)
        return status;
    settle(self, true);
    transport_close(&self->base);
    self->next_due = false;
    self->due_us = due_after(self->due_us, self->base.request.destination->segment_us, pts_us);
    self->streams.shift = pts_us;
    return begin_segment(self, pts_us - self->origin_us);
}

// ---- packets ----

// Write the held packets before `until_us`.
static enum status write_held(struct segments *self, int64_t until_us)
{
    enum status status = STATUS_OK;
    int kept = 0;
    for (int k = 0; k < self->helds; k++) {
        struct packet *packet = self->held[k];
        if (status || passthrough_pts_us(&self->base.passthrough, packet) >= until_us) {
            self->held[kept++] = packet;
            continue;
        }
        status = muxer_write(self->base.muxer, packet->av);
        packet_destroy(&packet);
    }
    self->helds = kept;
    return status;
}

// Hold a packet until its video comes: encoders keep pictures back, so sound comes long before.
static enum status hold(struct segments *self, const struct packet *packet)
{
    enum status status = self->helds == MAX_HELD ? write_held(self, INT64_MAX) : STATUS_OK;
    if (status || passthrough_pts_us(&self->base.passthrough, packet) < self->since_us)
        return status;
    struct packet *copy = packet_clone(packet);
    if (!copy)
        return STATUS_MEMORY;
    self->held[self->helds++] = copy;
    return write_held(self, self->video_us);
}

// Begin the next segment if it is due.
static enum status begin_due(struct segments *self, const struct packet *packet)
{
    int64_t pts_us = packet->pts_us;
    bool due = packet->av->flags & AV_PKT_FLAG_KEY && (self->next_due || pts_us >= self->due_us);
    self->video_us = pts_us > self->video_us ? pts_us : self->video_us;
    enum status status = write_held(self, self->video_us);
    return due && !status ? next_segment(self, pts_us) : status;
}

// ---- a full disk ----

// Count packets that the muxer buffers as unsafe: the size grows when it writes them.
static void note_safe(struct segments *self)
{
    int64_t size = muxer_size(self->base.muxer);
    if (!self->streams.live)
        return;
    self->base.unsafe = size > self->size ? 1 : self->base.unsafe + 1;
    self->size = size;
}

static void drop_held(struct segments *self)
{
    for (int k = 0; k < self->helds; k++)
        packet_destroy(&self->held[k]);
    self->helds = 0;
}

// True if a failure may pass, as a full disk does. A file that could not be created counts.
static bool may_go_on(const struct segments *self, enum status status)
{
    const struct muxer *muxer = self->base.muxer;
    return status == STATUS_OUTPUT && self->streams.live && (!muxer || muxer_is_blocked(muxer));
}

// Close the segment that cannot be written, and wait for room.
static enum status go_away(struct segments *self)
{
    struct transport *base = &self->base;
    settle(self, false);
    transport_close(base);
    drop_held(self);
    if (!self->away_ns) {
        self->away_ns = meter_now_ns();
        log_print(base->request.log, LOG_WARNING,
                  "%s: what comes now is missing; a new segment begins when there is room",
                  base->request.destination->shown);
    }
    base->away = true;
    base->next_attempt_ns = meter_now_ns() + look_ns;
    return STATUS_OK;
}

// Where the folder does not exist either, only an attempt can show.
static bool has_room(const struct segments *self)
{
    char name[4096];
    struct statvfs disk;
    snprintf(name, sizeof name, "%s",
             self->name ? self->name : self->base.request.destination->name);
    if (statvfs(dirname(name), &disk))
        return true;
    uint64_t all = (uint64_t)disk.f_blocks * disk.f_frsize / ROOM_SHARE;
    uint64_t free = (uint64_t)disk.f_bavail * disk.f_frsize;
    return free > (all < ROOM_MAX ? all : ROOM_MAX);
}

static enum status attempt_segments(struct transport *transport, bool *stale)
{
    struct segments *self = segments_of(transport);
    bool room = has_room(self);
    *stale = false;
    transport->next_attempt_ns = meter_now_ns() + look_ns;
    transport->away = !room;
    self->awaits_key = room;
    if (room)
        transport->wants_key = true;
    return STATUS_OK;
}

// Begin a segment with a packet, a key frame, after a full disk.
static enum status come_back(struct segments *self, int64_t pts_us)
{
    self->awaits_key = self->next_due = false;
    self->due_us = due_after(self->due_us, self->base.request.destination->segment_us, pts_us);
    self->streams.shift = self->since_us = pts_us;
    enum status status = begin_segment(self, pts_us - self->origin_us);
    if (!status)
        log_print(self->base.request.log, LOG_WARNING, "%s goes on after %.1f s",
                  self->base.request.destination->shown,
                  (double)(meter_now_ns() - self->away_ns) * 1e-9);
    if (!status)
        self->away_ns = 0;
    return status;
}

// ---- all packets ----

static enum status write_video(struct segments *self, struct packet *packet)
{
    note_origin(self, packet->pts_us);
    enum status status =
        self->awaits_key ? come_back(self, packet->pts_us) : begin_due(self, packet);
    if (!status)
        status = muxer_write(self->base.muxer, packet->av);
    transport_note_size(&self->base);
    if (!status)
        note_safe(self);
    return status;
}

static enum status write_segments(struct transport *transport, struct packet *packet, bool *written)
{
    struct segments *self = segments_of(transport);
    bool video = transport_is_video(transport, packet);
    *written = false;
    if (self->awaits_key && !(video && packet->av->flags & AV_PKT_FLAG_KEY))
        return STATUS_OK;
    enum status status = video ? write_video(self, packet) : hold(self, packet);
    *written = !status;
    return may_go_on(self, status) ? go_away(self) : status;
}

static void change_segments(struct transport *transport, struct muxer_streams *streams)
{
    struct segments *self = segments_of(transport);
    muxer_streams_free(&self->streams);
    self->streams = *streams;
    self->next_due = true;
}

static bool is_key_due(struct transport *transport, int64_t pts_us)
{
    struct segments *self = segments_of(transport);
    bool first = self->key_due_us == INT64_MIN, due = !first && pts_us >= self->key_due_us;
    self->key_due_us = due_after(first ? pts_us : self->key_due_us,
                                 transport->request.destination->segment_us, pts_us);
    return due;
}

static enum status finish_segments(struct transport *transport)
{
    struct segments *self = segments_of(transport);
    if (!transport->muxer) // there was no room any more
        return STATUS_OK;
    enum status status = write_held(self, INT64_MAX);
    if (!status)
        status = muxer_finish(transport->muxer);
    settle(self, !status);
    return status;
}

static void free_segments(struct transport *transport)
{
    struct segments *self = segments_of(transport);
    drop_held(self);
    muxer_streams_free(&self->streams);
    free(self->name);
}

struct transport *transport_segments_new(void)
{
    struct segments *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->base = (struct transport){.open = open_segments,
                                    .write = write_segments,
                                    .attempt = attempt_segments,
                                    .change = change_segments,
                                    .is_key_due = is_key_due,
                                    .finish = finish_segments,
                                    .free = free_segments};
    return &self->base;
}
