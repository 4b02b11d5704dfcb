// Packets of a file, by a source of its own.
#include "pipeline/input/seek/reel.h"

#include <assert.h>
#include <libavutil/avutil.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/source.h"

struct file_reel {
    struct reel base;
    struct source_request request; // its strings are the reel's own
    const struct log *log;
    const atomic_bool *stop;
    struct source *source;
    struct packet *first; // the key frame that rewind() went to, until it was read
    int64_t first_us;     // its time, the earlier of pts and dts
    bool at_begin;        // it is the file's first packet
    bool ended;
};

// ---- opening ----

static enum status open_source(struct file_reel *reel)
{
    source_close(&reel->source);
    reel->base.source = NULL;
    reel->base.opened++;
    enum status status = source_open(&reel->request, reel->log, reel->stop, &reel->source);
    if (status)
        return status;
    for (unsigned k = 0; k < reel->source->format->nb_streams; k++)
        if ((int)k != reel->source->video)
            reel->source->format->streams[k]->discard = AVDISCARD_ALL;
    reel->base.source = reel->source;
    return STATUS_OK;
}

static const char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

// Give the request strings of its own. What is for live sources and tests goes.
static enum status copy_request(struct source_request *to, const struct source_request *from)
{
    *to = (struct source_request){.name = copy_text(from->name),
                                  .format = copy_text(from->format),
                                  .pixfmt = copy_text(from->pixfmt),
                                  .width = from->width,
                                  .height = from->height,
                                  .rate = from->rate,
                                  .stream = from->stream,
                                  .open_timeout = from->open_timeout,
                                  .stall_timeout = from->stall_timeout,
                                  .reconnects = -1,
                                  .playlist_hosts = copy_text(from->playlist_hosts),
                                  .max_pixels = from->max_pixels};
    bool whole = to->name && !to->format == !from->format && !to->pixfmt == !from->pixfmt &&
                 !to->playlist_hosts == !from->playlist_hosts;
    return whole ? STATUS_OK : STATUS_MEMORY;
}

// ---- going to a time ----

// The earlier of a packet's times, in microseconds; or AV_NOPTS_VALUE.
static int64_t earliest_us(const struct file_reel *reel, const struct packet *packet)
{
    AVRational base = source_video(reel->source)->time_base;
    int64_t dts = packet->av->dts, dts_us = AV_NOPTS_VALUE;
    if (dts != AV_NOPTS_VALUE)
        dts_us = av_rescale_q(dts, base, AV_TIME_BASE_Q);
    bool has_pts = packet->pts_us != AV_NOPTS_VALUE;
    return has_pts && (dts_us == AV_NOPTS_VALUE || packet->pts_us < dts_us) ? packet->pts_us
                                                                            : dts_us;
}

static enum status read_video(struct file_reel *reel, struct packet **packet)
{
    for (;;) {
        enum status status = source_read(reel->source, packet);
        if (status || (*packet)->av->stream_index == reel->source->video)
            return status;
        packet_destroy(packet);
    }
}

// Read up to a key frame; at the beginning of the file up to any.
static enum status read_first(struct file_reel *reel)
{
    packet_destroy(&reel->first);
    for (;;) {
        enum status status = read_video(reel, &reel->first);
        if (status || reel->at_begin || reel->first->av->flags & AV_PKT_FLAG_KEY)
            return status;
        packet_destroy(&reel->first);
    }
}

static enum status go_to_begin(struct file_reel *reel)
{
    enum status status = open_source(reel);
    reel->at_begin = true;
    reel->base.seek_us = INT64_MIN;
    return status ? status : read_first(reel);
}

// True if times of its packets lead nowhere: it has none, or cannot seek.
static bool has_no_times(const struct file_reel *reel)
{
    return reel->source->is_still || reel->source->format->iformat->flags & AVFMT_NOTIMESTAMPS;
}

static int64_t begin_us(const struct file_reel *reel)
{
    const AVStream *video = source_video(reel->source);
    if (video->start_time != AV_NOPTS_VALUE)
        return av_rescale_q(video->start_time, video->time_base, AV_TIME_BASE_Q);
    int64_t begin = reel->source->format->start_time;
    return begin == AV_NOPTS_VALUE ? 0 : begin;
}

// True if the packet that was found may be what is shown at that time, or comes before it.
static bool is_before(const struct file_reel *reel, int64_t at_us)
{
    int64_t pts_us = reel->first->pts_us;
    return (pts_us == AV_NOPTS_VALUE ? earliest_us(reel, reel->first) : pts_us) <= at_us;
}

// Go to a key frame at or before this time, from ever further back: containers seek by estimate, or
// by the times of decoding.
static enum status find_key_frame(struct file_reel *reel, int64_t at_us)
{
    int64_t target_us = at_us, step_us = 0;
    while (target_us > begin_us(reel) && !has_no_times(reel)) {
        reel->at_begin = false;
        reel->base.seek_us = target_us;
        if (source_seek(reel->source, target_us))
            break;
        enum status status = read_first(reel);
        if (status && status != STATUS_EOF)
            return status;
        if (!status && earliest_us(reel, reel->first) == AV_NOPTS_VALUE)
            break;
        if (!status && is_before(reel, at_us))
            return STATUS_OK;
        int64_t found_us = status ? target_us : earliest_us(reel, reel->first);
        target_us = (found_us < target_us ? found_us : target_us) - 1 - step_us;
        step_us = step_us ? 2 * step_us : AV_TIME_BASE / 2;
    }
    return go_to_begin(reel);
}

static enum status rewind_file(struct reel *base, int64_t at_us, bool earlier)
{
    struct file_reel *reel = (struct file_reel *)base;
    if (earlier && reel->at_begin)
        return STATUS_EOF;
    enum status status = reel->source ? STATUS_OK : open_source(reel); // it failed the last time
    if (!status)
        status = find_key_frame(reel, earlier ? reel->first_us - 1 : at_us);
    reel->ended = status == STATUS_EOF;
    base->from_us = INT64_MIN;
    if (status)
        return status;
    reel->first_us = earliest_us(reel, reel->first);
    if (!reel->at_begin && reel->first->pts_us != AV_NOPTS_VALUE)
        base->from_us = reel->first->pts_us;
    return STATUS_OK;
}

// ---- reading ----

static enum status read_file(struct reel *base, struct packet **packet)
{
    struct file_reel *reel = (struct file_reel *)base;
    *packet = reel->first;
    reel->first = NULL;
    if (*packet)
        return STATUS_OK;
    enum status status = read_video(reel, packet);
    reel->ended = status == STATUS_EOF;
    return status;
}

static void measure_file(struct reel *base, struct reel_span *span)
{
    const struct file_reel *reel = (const struct file_reel *)base;
    span->begin_us = begin_us(reel);
    span->end_us = span->begin_us + (int64_t)(source_seconds(reel->source) * AV_TIME_BASE);
    span->more = false;
}

static bool file_has_next(const struct reel *base)
{
    return !((const struct file_reel *)base)->ended;
}

static void destroy_file(struct reel **base)
{
    struct file_reel *reel = (struct file_reel *)*base;
    packet_destroy(&reel->first);
    source_close(&reel->source);
    free((char *)reel->request.name);
    free((char *)reel->request.format);
    free((char *)reel->request.pixfmt);
    free((char *)reel->request.playlist_hosts);
    free(reel);
    *base = NULL;
}

enum status reel_of_file(const struct source_request *request, const struct log *log,
                         const atomic_bool *stop, struct reel **reel)
{
    struct file_reel *made = calloc(1, sizeof *made);
    *reel = made ? &made->base : NULL;
    if (!made)
        return STATUS_MEMORY;
    made->base = (struct reel){.from_us = INT64_MIN,
                               .rewind = rewind_file,
                               .read = read_file,
                               .measure = measure_file,
                               .has_next = file_has_next,
                               .destroy = destroy_file};
    made->log = log;
    made->stop = stop;
    enum status status = copy_request(&made->request, request);
    if (!status)
        status = open_source(made);
    if (status)
        destroy_file(reel);
    else
        made->base.sequential = has_no_times(made);
    return status;
}
