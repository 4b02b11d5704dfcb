#include "pipeline/input/pushed.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/queue.h"
#include "base/sized.h"
#include "pipeline/ffmpeg/caller.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/memory.h"
#include "pipeline/input/source_open.h"

enum { PUSHED_QUEUED = 2 };

static const int64_t poll_ns = 100 * INT64_C(1000000);

struct pushed {
    struct queue *packets;
    AVBufferPool *pool;
    enum AVPixelFormat pixel;
    int width, height, bytes; // of a frame, as packets have it
    int64_t duration;
    // ---- the pushing thread's ----
    int64_t last_pts; // AV_NOPTS_VALUE: none came
    bool interlaced;  // the last was
    bool ended;
};

// ---- the source ----

static enum status read_format(struct source *source, const struct sluice_format *given)
{
    const size_t least = offsetof(struct sluice_format, siting) + sizeof given->siting;
    struct pushed *pushed = source->pushed;
    struct sluice_format format;
    struct color_tags tags;
    if (!sized_read(&format, sizeof format, given, least))
        return log_fail(source->log, STATUS_USAGE,
                        "push->size is %zu; it has to be sizeof(struct sluice_format)",
                        given->size);
    enum status status = caller_read(&format, source->log, &pushed->pixel, &tags);
    if (status)
        return status;
    pushed->width = format.width;
    pushed->height = format.height;
    pushed->bytes = av_image_get_buffer_size(pushed->pixel, format.width, format.height, 1);
    if (pushed->bytes < 0)
        return log_fail(source->log, STATUS_USAGE, "pushed frames of %dx%d are too large",
                        format.width, format.height);
    AVCodecParameters *about = source_video(source)->codecpar;
    about->codec_type = AVMEDIA_TYPE_VIDEO;
    about->codec_id = AV_CODEC_ID_RAWVIDEO;
    about->format = pushed->pixel;
    about->width = format.width;
    about->height = format.height;
    about->color_range = tags.range;
    about->color_space = tags.matrix;
    about->chroma_location = tags.location;
    return STATUS_OK;
}

static enum status set_clock(struct source *source, const struct source_request *request)
{
    AVRational clock = {request->push_clock.num, request->push_clock.den};
    AVRational rate = {request->rate.num, request->rate.den};
    AVStream *video = source_video(source);
    if (!clock.num && !clock.den)
        clock = (AVRational){AV_TIME_BASE, 1};
    if (clock.num < 1 || clock.den < 1)
        return log_fail(source->log, STATUS_USAGE, "push_clock is %d/%d; it has to be above 0",
                        clock.num, clock.den);
    video->time_base = av_inv_q(clock);
    video->avg_frame_rate = video->r_frame_rate = rate;
    source->pushed->duration = rate.num ? av_rescale_q(1, av_inv_q(rate), video->time_base) : 0;
    source->format->start_time = source->format->duration = AV_NOPTS_VALUE;
    return STATUS_OK;
}

enum status pushed_open(struct source *source, const struct source_request *request)
{
    assert(request->push && !source->format && !source->pushed);
    source->format = avformat_alloc_context();
    source->pushed = calloc(1, sizeof *source->pushed);
    if (!source->format || !source->pushed || !avformat_new_stream(source->format, NULL))
        return STATUS_MEMORY;
    source->pushed->last_pts = AV_NOPTS_VALUE;
    source->format->iformat = av_find_input_format("rawvideo");
    source->video = 0;
    enum status status = read_format(source, request->push);
    if (!status)
        status = set_clock(source, request);
    return status ? status : queue_create(PUSHED_QUEUED, 1, packet_drop, &source->pushed->packets);
}

void pushed_close(struct pushed **pushed)
{
    if (!*pushed)
        return;
    if ((*pushed)->packets)
        queue_destroy(&(*pushed)->packets);
    av_buffer_pool_uninit(&(*pushed)->pool);
    free(*pushed);
    *pushed = NULL;
}

enum status pushed_bind(struct pushed *pushed, struct backend *backend)
{
    assert(!pushed->pool);
    pushed->pool = av_buffer_pool_init2((buffer_size)pushed->bytes + AV_INPUT_BUFFER_PADDING_SIZE,
                                        backend, memory_alloc, NULL);
    return pushed->pool ? STATUS_OK : STATUS_MEMORY;
}

enum status pushed_read(struct source *source, struct packet **packet)
{
    enum status status = STATUS_OK;
    *packet = NULL;
    while (!status && !*packet && !source_is_over(source))
        status = queue_pop_until(source->pushed->packets, packet, meter_now_ns() + poll_ns);
    if (!*packet)
        return atomic_load(source->stop) ? STATUS_STOPPED : STATUS_EOF;
    if (source->format->start_time == AV_NOPTS_VALUE) { // the first: the clock begins here
        source->format->start_time =
            av_rescale_q((*packet)->av->pts, source_video(source)->time_base, AV_TIME_BASE_Q);
        if (source->paced_ns)
            source->paced_ns = meter_now_ns();
    }
    return STATUS_OK;
}

// ---- frames ----

static enum status refuse(const struct source *source, const char *why)
{
    return log_fail(source->log, STATUS_USAGE, "a pushed frame %s", why);
}

static enum status check_planes(const struct source *source, const struct sluice_frame *frame)
{
    const struct pushed *pushed = source->pushed;
    int planes = av_pix_fmt_count_planes(pushed->pixel);
    for (int p = 0; p < planes; p++) {
        int row = av_image_get_linesize(pushed->pixel, pushed->width, p);
        ptrdiff_t stride = frame->stride[p];
        if (!frame->data[p])
            return log_fail(source->log, STATUS_USAGE, "a pushed frame has no plane %d: %s has %d",
                            p, av_get_pix_fmt_name(pushed->pixel), planes);
        if (stride > INT_MAX || stride < -INT_MAX || (stride < 0 ? -stride : stride) < row)
            return log_fail(
                source->log, STATUS_USAGE,
                "a pushed frame has a stride of %td bytes in plane %d, whose rows have %d", stride,
                p, row);
    }
    return STATUS_OK;
}

static enum status check_frame(const struct source *source, const struct sluice_frame *given,
                               struct sluice_frame *frame)
{
    const size_t least = offsetof(struct sluice_frame, opaque) + sizeof given->opaque;
    const struct pushed *pushed = source->pushed;
    AVRational base = source_video(source)->time_base;
    if (!sized_read(frame, sizeof *frame, given, least))
        return refuse(source, "has a size that is not sizeof(struct sluice_frame)");
    if (frame->memory != SLUICE_MEMORY_HOST)
        return refuse(source, "is not in host memory; filters (sluice/filter.h) take others");
    if (frame->pts == AV_NOPTS_VALUE ||
        av_rescale_q(frame->pts, base, AV_TIME_BASE_Q) == AV_NOPTS_VALUE)
        return refuse(source, "has a pts that is out of range");
    if (pushed->last_pts != AV_NOPTS_VALUE && frame->pts <= pushed->last_pts)
        return log_fail(
            source->log, STATUS_USAGE,
            "a pushed frame has pts %lld, and the one before has %lld: they have to rise",
            (long long)frame->pts, (long long)pushed->last_pts);
    return check_planes(source, frame);
}

static enum status copy_samples(const struct pushed *pushed, const struct sluice_frame *frame,
                                AVPacket *to)
{
    const uint8_t *data[4] = {NULL};
    int stride[4] = {0};
    to->buf = av_buffer_pool_get(pushed->pool);
    if (!to->buf)
        return STATUS_MEMORY;
    for (int p = 0; p < 4; p++) {
        data[p] = frame->data[p];
        stride[p] = (int)frame->stride[p];
    }
    to->data = to->buf->data;
    to->size = pushed->bytes;
    memset(to->data + to->size, 0, AV_INPUT_BUFFER_PADDING_SIZE);
    int copied = av_image_copy_to_buffer(to->data, to->size, data, stride, pushed->pixel,
                                         pushed->width, pushed->height, 1);
    return copied == to->size ? STATUS_OK : STATUS_FAILED;
}

// Let the decoder begin anew where frames become interlaced, or cease to be: it has that of the
// stream.
static enum status set_fields(const struct source *source, bool interlaced, struct packet *packet)
{
    if (interlaced == source->pushed->interlaced)
        return STATUS_OK;
    enum status status = packet_set_restart(packet, source_video(source)->codecpar);
    if (!status)
        packet->codec->field_order = interlaced ? AV_FIELD_TT : AV_FIELD_PROGRESSIVE;
    return status;
}

static enum status make_packet(const struct source *source, const struct sluice_frame *frame,
                               struct packet **packet)
{
    *packet = packet_create();
    if (!*packet)
        return STATUS_MEMORY;
    AVPacket *av = (*packet)->av;
    av->pts = av->dts = frame->pts;
    av->duration = source->pushed->duration;
    av->flags = AV_PKT_FLAG_KEY;
    enum status status = copy_samples(source->pushed, frame, av);
    return status ? status : set_fields(source, frame->interlaced, *packet);
}

// Wait for room, but not when nothing is read any more.
static enum status enqueue(const struct source *source, struct packet **packet)
{
    enum status status = STATUS_OK;
    while (!status && *packet && !source_is_over(source))
        status = queue_push_until(source->pushed->packets, packet, meter_now_ns() + poll_ns);
    return *packet ? STATUS_EOF : STATUS_OK;
}

enum status pushed_push(struct source *source, const struct sluice_frame *given)
{
    struct pushed *pushed = source->pushed;
    struct sluice_frame frame;
    struct packet *packet = NULL;
    assert(pushed->pool);
    if (pushed->ended || source_is_over(source))
        return STATUS_EOF;
    enum status status = check_frame(source, given, &frame);
    if (!status)
        status = make_packet(source, &frame, &packet);
    if (!status)
        status = enqueue(source, &packet);
    packet_destroy(&packet);
    if (status)
        return status;
    pushed->last_pts = frame.pts;
    pushed->interlaced = frame.interlaced;
    return STATUS_OK;
}

void pushed_end(struct pushed *pushed)
{
    if (!pushed->ended)
        queue_finish(pushed->packets);
    pushed->ended = true;
}
