#include "pipeline/input/faults/recode.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/scaler.h"

enum { STAMPS = 256 }; // more frames than any encoder holds

struct stamp {
    int64_t pts, duration;
};

struct recode {
    const struct log *log;
    const AVStream *video;
    bool changes;                      // some time
    bool on;                           // packets are of the new kind
    int width, height;                 // 0: half
    AVCodecParameters *about;          // of the packets that come
    AVCodecContext *decoder, *encoder; // NULL: none yet
    AVFrame *frame, *scaled;
    struct scaler *scaler;
    struct packet *passing; // goes through as it is; NULL: none
    bool ended;
    struct packet *pending; // a restart: what is in the decoder comes out before; NULL: none
    int64_t shown_pts;      // of what passed, the last to be shown
    bool timed;             // all that passed has a pts
    int64_t held;           // frames of what passed that the decoder has not given out
    bool first;             // the encoder has not given a packet yet
    int64_t frames;         // encoded, which is the encoder's clock
    struct stamp stamp[STAMPS];
    int64_t arrived_ns; // of the last packet that came
};

// ---- decoding ----

// Frames in memory, by reference: each may be taken once, and is whole by itself.
static bool is_wrapped(const struct recode *recode)
{
    return recode->about->codec_id == AV_CODEC_ID_WRAPPED_AVFRAME;
}

static enum status open_decoder(struct recode *recode)
{
    const AVCodec *codec = avcodec_find_decoder(recode->about->codec_id);
    avcodec_free_context(&recode->decoder);
    recode->decoder = avcodec_alloc_context3(codec);
    if (!recode->decoder || avcodec_parameters_to_context(recode->decoder, recode->about) < 0)
        return STATUS_MEMORY;
    recode->decoder->pkt_timebase = recode->video->time_base;
    recode->decoder->thread_count = 1;
    int error = avcodec_open2(recode->decoder, codec, NULL);
    return error < 0 ? check_failed(recode->log, STATUS_INPUT, error,
                                    "res-change: the video cannot be decoded")
                     : STATUS_OK;
}

// Send a packet to the decoder. A damaged one is the real decoder's to count.
static enum status decode(struct recode *recode, const AVPacket *packet)
{
    int error = input_error(avcodec_send_packet(recode->decoder, packet), 0);
    return error == AVERROR(ENOMEM) ? STATUS_MEMORY : STATUS_OK;
}

// The decoder forgets all packets before this restart.
static enum status begin_anew(struct recode *recode, const struct packet *packet)
{
    recode->held = 0;
    if (!packet->codec) {
        avcodec_flush_buffers(recode->decoder);
        return STATUS_OK;
    }
    if (avcodec_parameters_copy(recode->about, packet->codec) < 0)
        return STATUS_MEMORY;
    return open_decoder(recode);
}

// Decode what passes, for its successors.
static enum status follow(struct recode *recode, const struct packet *packet)
{
    enum status status = packet->restart ? begin_anew(recode, packet) : STATUS_OK;
    if (!status && packet->av->size && !is_wrapped(recode)) {
        recode->held++;
        status = decode(recode, packet->av);
    }
    while (!status && avcodec_receive_frame(recode->decoder, recode->frame) >= 0) {
        recode->held--;
        av_frame_unref(recode->frame);
    }
    return status;
}

// ---- encoding ----

static int half(int size)
{
    return size < 4 ? size : size / 4 * 2;
}

static int width_of(const struct recode *recode, const AVFrame *frame)
{
    return recode->width ? recode->width : half(frame->width);
}

static int height_of(const struct recode *recode, const AVFrame *frame)
{
    return recode->height ? recode->height : half(frame->height);
}

static AVRational frame_rate(const struct recode *recode)
{
    AVRational rate = recode->video->avg_frame_rate;
    return rate.num > 0 && rate.den > 0 ? rate : (AVRational){25, 1};
}

static void describe(const struct recode *recode, const AVCodec *codec, const AVFrame *frame,
                     AVCodecContext *encoder)
{
    const enum AVPixelFormat *formats = encoder_pixel_formats(codec);
    encoder->pix_fmt = formats ? avcodec_find_best_pix_fmt_of_list(formats, frame->format, 1, NULL)
                               : (enum AVPixelFormat)frame->format;
    encoder->width = width_of(recode, frame);
    encoder->height = height_of(recode, frame);
    encoder->framerate = frame_rate(recode);
    encoder->time_base = av_inv_q(encoder->framerate);
    encoder->sample_aspect_ratio = frame->sample_aspect_ratio;
    encoder->color_range = frame->color_range;
    encoder->colorspace = frame->colorspace;
    encoder->color_primaries = frame->color_primaries;
    encoder->color_trc = frame->color_trc;
    encoder->max_b_frames = 0;
    encoder->flags |= AV_CODEC_FLAG_QSCALE;
    encoder->global_quality = 3 * FF_QP2LAMBDA;
    encoder->thread_count = 1;
}

// Set encoder options for a packet out at every frame in, and silence. Returns an AVERROR without
// memory.
static int set_options(const AVCodec *codec, AVDictionary **options)
{
    static const char *const known[][3] = {
        {"libx264", "preset", "ultrafast"},
        {"libx264", "tune", "zerolatency"},
        {"libx265", "preset", "ultrafast"},
        {"libx265", "tune", "zerolatency"},
        {"libx265", "x265-params", "log-level=none"},
        {"libvpx", "deadline", "realtime"},
        {"libvpx", "cpu-used", "8"},
        {"libvpx", "lag-in-frames", "0"},
        {"libaom", "usage", "realtime"},
        {"libaom", "cpu-used", "8"},
        {"libaom", "lag-in-frames", "0"},
    };
    int error = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known && error >= 0; k++)
        if (!strncmp(codec->name, known[k][0], strlen(known[k][0])))
            error = av_dict_set(options, known[k][1], known[k][2], 0);
    return error;
}

// STATUS_FAILED: this encoder does not take such pictures.
static enum status try_encoder(struct recode *recode, const AVCodec *codec, const AVFrame *frame)
{
    if (!codec)
        return STATUS_FAILED;
    recode->encoder = avcodec_alloc_context3(codec);
    if (!recode->encoder)
        return STATUS_MEMORY;
    describe(recode, codec, frame, recode->encoder);
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(recode->encoder->pix_fmt);
    AVDictionary *options = NULL;
    enum status status = set_options(codec, &options) < 0 ? STATUS_MEMORY : STATUS_OK;
    if (!status && (!about || about->flags & AV_PIX_FMT_FLAG_HWACCEL ||
                    avcodec_open2(recode->encoder, codec, &options) < 0))
        status = STATUS_FAILED;
    av_dict_free(&options);
    if (status)
        avcodec_free_context(&recode->encoder);
    return status;
}

static enum status open_encoder(struct recode *recode, const AVFrame *frame)
{
    const AVCodec *same = is_wrapped(recode) ? NULL : avcodec_find_encoder(recode->about->codec_id);
    recode->first = true;
    recode->frames = 0;
    enum status status = try_encoder(recode, same, frame);
    if (status == STATUS_FAILED)
        status = try_encoder(recode, avcodec_find_encoder(AV_CODEC_ID_FFV1), frame);
    if (status != STATUS_FAILED)
        return status;
    return log_fail(recode->log, STATUS_FAILED,
                    "res-change: neither the encoder of %s nor FFV1 takes pictures of %dx%d",
                    avcodec_get_name(recode->about->codec_id), width_of(recode, frame),
                    height_of(recode, frame));
}

static enum status encode(struct recode *recode, const AVFrame *frame)
{
    enum status status = recode->encoder ? STATUS_OK : open_encoder(recode, frame);
    if (status)
        return status;
    AVCodecContext *encoder = recode->encoder;
    status = scaler_convert(&recode->scaler, frame, encoder->pix_fmt, AVCOL_RANGE_UNSPECIFIED,
                            encoder->width, encoder->height, recode->scaled);
    if (status)
        return status;
    recode->stamp[recode->frames % STAMPS] =
        (struct stamp){frame->best_effort_timestamp, frame_duration(frame)};
    recode->scaled->pts = recode->frames++;
    recode->scaled->pict_type = AV_PICTURE_TYPE_NONE;
    int error = avcodec_send_frame(encoder, recode->scaled);
    av_frame_unref(recode->scaled);
    return error < 0 ? check_failed(recode->log, STATUS_FAILED, error,
                                    "res-change: a picture cannot be encoded")
                     : STATUS_OK;
}

// Make what the encoder gave a packet of the stream.
static enum status finish_packet(struct recode *recode, struct packet *packet)
{
    AVPacket *av = packet->av;
    const struct stamp *stamp = &recode->stamp[av->pts % STAMPS];
    av->pts = av->dts = stamp->pts;
    av->duration = stamp->duration;
    av->stream_index = recode->video->index;
    packet->arrived_ns = recode->arrived_ns;
    if (!recode->first)
        return STATUS_OK;
    recode->first = false;
    AVCodecParameters *about = avcodec_parameters_alloc();
    enum status status = STATUS_MEMORY;
    if (about && avcodec_parameters_from_context(about, recode->encoder) >= 0)
        status = packet_set_restart(packet, about);
    avcodec_parameters_free(&about);
    return status;
}

// ---- packets ----

bool recode_may_resize(const struct recode *recode, const AVPacket *packet)
{
    bool timed = recode->timed && packet->pts != AV_NOPTS_VALUE;
    return recode->on || (packet->size && (timed ? packet->pts > recode->shown_pts
                                                 : packet->flags & AV_PKT_FLAG_KEY));
}

void recode_resize(struct recode *recode, int width, int height)
{
    assert(recode->changes);
    recode->on = true;
    recode->width = width;
    recode->height = height;
    if (recode->encoder)
        avcodec_send_frame(recode->encoder, NULL);
}

static void pass(struct recode *recode, struct packet **packet)
{
    const AVPacket *av = (*packet)->av;
    assert(!recode->passing);
    if (av->pts != AV_NOPTS_VALUE && av->pts > recode->shown_pts)
        recode->shown_pts = av->pts;
    recode->timed &= av->pts != AV_NOPTS_VALUE || !av->size;
    recode->passing = *packet;
    *packet = NULL;
}

enum status recode_send(struct recode *recode, struct packet **packet)
{
    assert(!recode->passing); // all that there was has been received
    enum status status = STATUS_OK;
    if (!*packet) {
        recode->ended = true;
        return recode->on ? decode(recode, NULL) : STATUS_OK;
    }
    if (!recode->on) {
        status = recode->changes ? follow(recode, *packet) : STATUS_OK;
        if (!status)
            pass(recode, packet);
    } else {
        recode->arrived_ns = (*packet)->arrived_ns;
        status = decode(recode, (*packet)->restart ? NULL : (*packet)->av);
        if ((*packet)->restart) {
            assert(!recode->pending);
            recode->pending = *packet;
            *packet = NULL;
        }
    }
    packet_destroy(packet);
    return status;
}

// Take the pending restart: what was before it has come out.
static enum status take_pending(struct recode *recode)
{
    if (!recode->pending->av->size) { // at a loss: those behind will say how it goes on
        avcodec_flush_buffers(recode->decoder);
        recode->held = 0;
        pass(recode, &recode->pending);
        return STATUS_OK;
    }
    enum status status = begin_anew(recode, recode->pending);
    if (!status)
        status = decode(recode, recode->pending->av);
    packet_destroy(&recode->pending);
    return status;
}

// True if the frame is one of what passed.
static bool is_shown(struct recode *recode)
{
    int64_t pts = recode->frame->best_effort_timestamp;
    return recode->timed ? pts != AV_NOPTS_VALUE && pts <= recode->shown_pts : recode->held-- > 0;
}

// Move the decoder's next frame to the encoder; at its end the encoder's end, then what is pending.
// *more: there may be something to receive.
static enum status advance(struct recode *recode, bool *more)
{
    int error = avcodec_receive_frame(recode->decoder, recode->frame);
    enum status status = STATUS_OK;
    *more = error != AVERROR(EAGAIN);
    if (error == AVERROR_EOF && recode->encoder)
        avcodec_send_frame(recode->encoder, NULL);
    else if (error == AVERROR_EOF)
        status = recode->pending ? take_pending(recode) : STATUS_EOF;
    else if (error >= 0 && !is_shown(recode))
        status = encode(recode, recode->frame);
    av_frame_unref(recode->frame);
    return input_error(error, 0) == AVERROR(ENOMEM) ? STATUS_MEMORY : status;
}

// Take the encoder's next packet; NULL without memory, or with *error if it has none.
static struct packet *take_encoded(struct recode *recode, int *error)
{
    struct packet *packet = recode->encoder ? packet_create() : NULL;
    *error = packet            ? avcodec_receive_packet(recode->encoder, packet->av)
             : recode->encoder ? AVERROR(ENOMEM)
                               : AVERROR(EAGAIN);
    if (*error < 0)
        packet_destroy(&packet);
    return packet;
}

enum status recode_receive(struct recode *recode, struct packet **packet)
{
    enum status status = STATUS_OK;
    *packet = NULL;
    for (bool more = true; more && !status;) {
        if (recode->passing) {
            *packet = recode->passing;
            recode->passing = NULL;
            return STATUS_OK;
        }
        if (!recode->on)
            return recode->ended ? STATUS_EOF : STATUS_OK;
        int error;
        *packet = take_encoded(recode, &error);
        if (*packet)
            return finish_packet(recode, *packet);
        if (error == AVERROR_EOF)
            avcodec_free_context(&recode->encoder);
        else if (error != AVERROR(EAGAIN))
            status = check_failed(recode->log, STATUS_FAILED, error,
                                  "res-change: a picture cannot be encoded");
        else
            status = advance(recode, &more);
    }
    return status;
}

// ---- construction ----

enum status recode_create(const AVStream *video, bool changes, const struct log *log,
                          struct recode **recode)
{
    *recode = calloc(1, sizeof **recode);
    struct recode *made = *recode;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->video = video;
    made->changes = changes;
    made->shown_pts = INT64_MIN;
    made->timed = true;
    made->about = avcodec_parameters_alloc();
    made->frame = av_frame_alloc();
    made->scaled = av_frame_alloc();
    enum status status = STATUS_OK;
    if (!made->about || !made->frame || !made->scaled ||
        avcodec_parameters_copy(made->about, video->codecpar) < 0)
        status = STATUS_MEMORY;
    if (!status && changes && avcodec_find_decoder(made->about->codec_id))
        status = open_decoder(made);
    if (status)
        recode_destroy(recode);
    return status;
}

void recode_destroy(struct recode **recode)
{
    if (!*recode)
        return;
    struct recode *old = *recode;
    avcodec_free_context(&old->decoder);
    avcodec_free_context(&old->encoder);
    avcodec_parameters_free(&old->about);
    packet_destroy(&old->passing);
    packet_destroy(&old->pending);
    av_frame_free(&old->frame);
    av_frame_free(&old->scaled);
    scaler_destroy(&old->scaler);
    free(old);
    *recode = NULL;
}
