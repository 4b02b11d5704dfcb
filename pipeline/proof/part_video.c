#include "pipeline/proof/part_video.h"

#include <inttypes.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/part/part_folder.h"

struct part_video {
    struct part_set *set;
    const struct log *log;
    AVRational time_base;
    int64_t *pts;          // of the packets of parts that are timed, rising
    int64_t count;         // of them
    int timed;             // parts
    int64_t delay;         // packets by which decoding is ahead of showing
    int64_t read;          // of all
    int part;              // that is read
    int64_t number;        // of the next packet in it
    AVFormatContext *file; // NULL: not open
    int64_t shift;         // its times are behind those in the file
};

// ---- times ----

static int compare(const void *a_, const void *b_)
{
    int64_t a = *(const int64_t *)a_, b = *(const int64_t *)b_;
    return a < b ? -1 : a > b;
}

static int64_t rank_of(const int64_t *list, int64_t count, int64_t pts)
{
    const int64_t *found = bsearch(&pts, list, (size_t)count, sizeof *list, compare);
    return found ? found - list : -1;
}

// By how many packets decoding is ahead in a part, whose times are in `list`.
static int64_t depth_of(const struct manifest *part, const int64_t *list)
{
    int64_t depth = 0;
    for (int64_t n = 0; n < part->packets; n++) {
        int64_t ahead = n - rank_of(list, part->packets, part->packet[n].pts);
        depth = ahead > depth ? ahead : depth;
    }
    return depth;
}

static enum status check_times(const struct part_video *video, int64_t from)
{
    for (int64_t n = from > 0 ? from : 1; n < video->count; n++)
        if (video->pts[n] <= video->pts[n - 1])
            return log_fail(video->log, STATUS_INPUT,
                            "two packets of the parts have one time, %" PRId64, video->pts[n]);
    return STATUS_OK;
}

// Add the times of the next part. *depth: by how many packets decoding is ahead in it.
static enum status time_part(struct part_video *video, int64_t *depth)
{
    enum status status = part_set_need(video->set, video->timed);
    if (status)
        return status;
    const struct manifest *part = &video->set->manifest[video->timed];
    size_t count = (size_t)(video->count + part->packets);
    int64_t from = video->count, *all = realloc(video->pts, (count + 1) * sizeof *all);
    if (!all)
        return STATUS_MEMORY;
    video->pts = all;
    for (int64_t n = 0; n < part->packets; n++)
        all[from + n] = part->packet[n].pts;
    qsort(all + from, (size_t)part->packets, sizeof *all, compare);
    *depth = depth_of(part, all + from);
    video->count += part->packets;
    video->timed++;
    return check_times(video, from);
}

// What the encoder says of itself; 0 where that makes no sense.
static int64_t encoder_delay(const struct part_set *set)
{
    const int64_t most = 64; // packets, as many as manifest_video() takes
    const json_t *about = json_object_get(set->manifest[set->filled].end, "video");
    int64_t delay = json_integer_value(json_object_get(about, "delay"));
    return delay > 0 && delay <= most ? delay : 0;
}

// Time the parts that are known, and choose the delay. An encoder that brings frames out of their
// order at all does it as far as it says; some say so and never do.
static enum status time_known(struct part_video *video)
{
    enum status status = STATUS_OK;
    int64_t said = encoder_delay(video->set);
    while (!status && video->timed < video->set->known) {
        int64_t depth = 0;
        status = time_part(video, &depth);
        video->delay = depth > video->delay ? depth : video->delay;
    }
    if (video->delay > 0 && video->delay < said)
        video->delay = said;
    return status;
}

// Make the time of this packet, counted as they are shown, known, if there are so many.
static enum status need_time(struct part_video *video, int64_t rank)
{
    enum status status = STATUS_OK;
    while (!status && video->count <= rank && video->timed < video->set->count) {
        int64_t depth = 0;
        status = time_part(video, &depth);
        if (!status && depth > video->delay)
            status = STATUS_AGAIN;
    }
    return status;
}

// Decoding times rise as showing times do, so many packets earlier (as those of x264).
static int64_t dts_of(const struct part_video *video, int64_t number)
{
    if (number >= video->delay)
        return video->pts[number - video->delay];
    int64_t last = video->delay < video->count ? video->delay : video->count - 1;
    return video->pts[number] - (video->pts[last] - video->pts[0]);
}

static int64_t duration_of(const struct part_video *video, int64_t rank)
{
    if (rank < video->count - 1)
        return video->pts[rank + 1] - video->pts[rank];
    return rank > 0 ? video->pts[rank] - video->pts[rank - 1] : 0;
}

// Give the next packet, whose pts it has, the other times.
static enum status time_packet(struct part_video *video, AVPacket *packet)
{
    int64_t rank = rank_of(video->pts, video->count, packet->pts);
    enum status status = need_time(video, rank + 1);
    if (!status)
        status = need_time(video, video->delay);
    if (status)
        return status;
    packet->dts = dts_of(video, video->read++);
    packet->duration = duration_of(video, rank);
    return STATUS_OK;
}

// ---- life ----

static enum status read_time_base(struct part_video *video)
{
    const struct part_set *set = video->set;
    const json_t *about = json_object_get(set->manifest[set->filled].end, "video");
    if (manifest_ratio(about, "time_base", &video->time_base))
        return STATUS_OK;
    return log_fail(video->log, STATUS_INPUT,
                    "%s: its manifest does not say how the video is timed",
                    set->folder[set->filled]);
}

enum status part_video_create(struct part_set *set, const struct log *log,
                              struct part_video **video)
{
    *video = calloc(1, sizeof **video);
    if (!*video)
        return STATUS_MEMORY;
    (*video)->set = set;
    (*video)->log = log;
    (*video)->part = set->filled;
    enum status status = read_time_base(*video);
    if (!status)
        status = time_known(*video);
    if (status)
        part_video_destroy(video);
    return status;
}

void part_video_destroy(struct part_video **video)
{
    if (!*video)
        return;
    avformat_close_input(&(*video)->file);
    free((*video)->pts);
    free(*video);
    *video = NULL;
}

AVRational part_video_time_base(const struct part_video *video)
{
    return video->time_base;
}

// ---- packets ----

static const char *folder_of(const struct part_video *video)
{
    return video->set->folder[video->part];
}

static enum status open_part(struct part_video *video)
{
    char *url = av_asprintf("file:%s/%s", folder_of(video), part_file_video);
    int error = url ? avformat_open_input(&video->file, url, NULL, NULL) : AVERROR(ENOMEM);
    av_free(url);
    video->number = 0;
    const json_t *shift = json_object_get(video->set->manifest[video->part].end, "shift_us");
    video->shift = av_rescale_q(json_integer_value(shift), AV_TIME_BASE_Q, video->time_base);
    return error < 0 ? log_fail(video->log, STATUS_INPUT, "%s: its video cannot be read",
                                folder_of(video))
                     : STATUS_OK;
}

// Check a packet against the manifest.
static enum status check_packet(const struct part_video *video, const AVPacket *packet)
{
    char hash[FRAME_HASH_TEXT];
    const struct manifest *part = &video->set->manifest[video->part];
    const struct manifest_packet *noted =
        video->number < part->packets ? &part->packet[video->number] : NULL;
    int64_t pts = video->shift +
                  av_rescale_q(packet->pts, video->file->streams[0]->time_base, video->time_base);
    bytes_hash(packet->data, (size_t)packet->size, hash);
    if (noted && noted->pts == pts && noted->size == packet->size && !strcmp(noted->hash, hash))
        return STATUS_OK;
    return log_fail(video->log, STATUS_INPUT,
                    "%s: packet %" PRId64 " of its video is not the one that was written: the file "
                    "has changed; make that part again, with -y",
                    folder_of(video), video->number);
}

// The end of a part's video, or an error: go to the next part that has some.
static enum status end_part(struct part_video *video, int error)
{
    struct part_set *set = video->set;
    enum status status = STATUS_OK;
    if (!format_has_ended(error))
        return check_failed(video->log, STATUS_INPUT, error, "%s: its video cannot be read",
                            folder_of(video));
    if (video->number != set->manifest[video->part].packets)
        return log_fail(video->log, STATUS_INPUT,
                        "%s: its video has %" PRId64 " packets, and had %" PRId64
                        " when it was made; make that part again, with -y",
                        folder_of(video), video->number, set->manifest[video->part].packets);
    avformat_close_input(&video->file);
    do
        if (++video->part < set->count)
            status = part_set_need(set, video->part);
    while (!status && video->part < set->count && !set->manifest[video->part].frames);
    return status;
}

// Read the next packet as it lies in its part.
static enum status read_packet(struct part_video *video, AVPacket *packet)
{
    enum status status = STATUS_OK;
    for (;;) {
        if (video->part == video->set->count)
            return STATUS_EOF;
        if (!part_set_await(video->set, video->part))
            return STATUS_STOPPED;
        if (!video->file)
            status = open_part(video);
        int error = status ? 0 : format_read(video->file, packet);
        if (status || error >= 0)
            return status;
        status = end_part(video, error);
        if (status)
            return status;
    }
}

enum status part_video_read(struct part_video *video, AVPacket *packet)
{
    enum status status = read_packet(video, packet);
    if (!status)
        status = check_packet(video, packet);
    if (status)
        return status;
    const struct manifest *part = &video->set->manifest[video->part];
    packet->pts = part->packet[video->number++].pts;
    return time_packet(video, packet);
}
