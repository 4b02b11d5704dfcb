// The encoders of streams: H.264 without delay, or JPEG.
#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
#include <libavutil/intreadwrite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/preview/compose.h"
#include "page/preview/stream.h"
#include "page/preview/stream_mp4.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/encoder.h"

#define BOUNDARY "sluice"
#define FIRST_PART "--" BOUNDARY "\r\n"
#define NEXT_PART "\r\n--" BOUNDARY "\r\n"

struct encoding {
    const struct log *log;
    struct encoder *encoder;
    struct fragments *fragments; // NULL: the codec is JPEG
    struct chunk *head;          // what a stream of JPEGs begins with
    AVFrame *frame;              // the one that is encoded: with times of its own
    AVPacket *packet;
    int64_t time; // where the next frame begins
};

// The level covers all sizes of views, so that it is the same for all of them.
static const struct {
    const char *name;
    const char *options;
} h264_encoders[] = {
    {"libx264", "preset=ultrafast:tune=zerolatency:profile=baseline:crf=23:level=4.0:"
                "forced-idr=1:g=6000"},
    {"libopenh264", "profile=constrained_baseline:allow_skip_frames=0:rc_mode=quality:g=6000"},
};

// ---- codecs ----

// The best encoder of H.264, with its options; NULL: there is none.
static const AVCodec *find_h264(const char **options)
{
    for (size_t k = 0; k < sizeof h264_encoders / sizeof *h264_encoders; k++) {
        const AVCodec *codec = avcodec_find_encoder_by_name(h264_encoders[k].name);
        *options = h264_encoders[k].options;
        if (codec)
            return codec;
    }
    return NULL;
}

static const AVCodec *find_codec(enum view_codec codec, const char **options)
{
    *options = "flags=+qscale:global_quality=472:huffman=0"; // 4, of 2 to 31
    return codec == VIEW_H264 ? find_h264(options) : avcodec_find_encoder(AV_CODEC_ID_MJPEG);
}

void encoding_tag(enum view_codec codec, const AVFrame *like, AVFrame *frame)
{
    bool jpeg = codec == VIEW_MJPEG;
    frame->format = jpeg ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P;
    frame->color_range = jpeg ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    frame->colorspace = jpeg ? AVCOL_SPC_BT470BG : compose_matrix(like);
    bool hd = frame->colorspace == AVCOL_SPC_BT709;
    frame->color_primaries = like->color_primaries;
    frame->color_trc = like->color_trc;
    if (frame->color_primaries == AVCOL_PRI_UNSPECIFIED)
        frame->color_primaries = hd ? AVCOL_PRI_BT709 : AVCOL_PRI_SMPTE170M;
    if (frame->color_trc == AVCOL_TRC_UNSPECIFIED)
        frame->color_trc = hd ? AVCOL_TRC_BT709 : AVCOL_TRC_SMPTE170M;
    frame->chroma_location = jpeg ? AVCHROMA_LOC_CENTER : AVCHROMA_LOC_LEFT;
    frame->sample_aspect_ratio = like->sample_aspect_ratio;
}

// The profile and the level of H.264 headers, as MIME types have them; "" if there are none.
static void name_of(const AVCodecContext *codec, char *name, size_t size)
{
    const uint8_t *data = codec->extradata;
    snprintf(name, size, "%s", "");
    for (int k = 0; k + 7 < codec->extradata_size; k++)
        if (AV_RB24(data + k) == 1 && (data[k + 3] & 31) == 7) {
            snprintf(name, size, "avc1.%02x%02x%02x", data[k + 4], data[k + 5], data[k + 6]);
            return;
        }
}

// ---- construction ----

static enum status make_head(struct encoding *encoding)
{
    encoding->head = chunk_create(strlen(FIRST_PART));
    if (!encoding->head)
        return STATUS_MEMORY;
    memcpy(encoding->head->data, FIRST_PART, strlen(FIRST_PART));
    return STATUS_OK;
}

static enum status open_encoder(struct encoding *encoding, enum view_codec wanted,
                                const AVFrame *first)
{
    const char *text;
    const AVCodec *codec = find_codec(wanted, &text);
    if (!codec)
        return log_fail(encoding->log, STATUS_OUTPUT, "this FFmpeg has no encoder for the page");
    const struct encoder_video video = {.frame = first,
                                        .time_base = {1, STREAM_CLOCK},
                                        .rate = {30, 1},
                                        .global_header = wanted == VIEW_H264,
                                        .still = wanted == VIEW_MJPEG}; // threads would delay
    AVDictionary *options = NULL;
    enum status status = STATUS_MEMORY;
    if (av_dict_parse_string(&options, text, "=", ":", 0) >= 0)
        status = encoder_create(codec, &video, &options, encoding->log, &encoding->encoder);
    av_dict_free(&options);
    return status;
}

enum status encoding_create(enum view_codec codec, const AVFrame *first, const struct log *log,
                            struct encoding **encoding)
{
    struct encoding *made = *encoding = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->frame = av_frame_alloc();
    made->packet = av_packet_alloc();
    enum status status =
        made->frame && made->packet ? open_encoder(made, codec, first) : STATUS_MEMORY;
    if (!status && codec == VIEW_H264)
        status = fragments_create(encoder_context(made->encoder), log, &made->fragments);
    else if (!status)
        status = make_head(made);
    if (status)
        encoding_destroy(encoding);
    return status;
}

void encoding_destroy(struct encoding **encoding)
{
    if (!*encoding)
        return;
    encoder_destroy(&(*encoding)->encoder);
    fragments_destroy(&(*encoding)->fragments);
    free((*encoding)->head);
    av_frame_free(&(*encoding)->frame);
    av_packet_free(&(*encoding)->packet);
    free(*encoding);
    *encoding = NULL;
}

struct chunk *encoding_take_head(struct encoding *encoding)
{
    struct chunk *head = encoding->head;
    encoding->head = NULL;
    return encoding->fragments ? fragments_take_head(encoding->fragments) : head;
}

void encoding_own_name(const struct encoding *encoding, char *name, size_t size)
{
    name_of(encoder_context(encoding->encoder), name, size);
}

void encoding_name(char *name, size_t size)
{
    const struct log silent = {0};
    struct encoding *trial = NULL;
    AVFrame *like = av_frame_alloc();
    snprintf(name, size, "%s", "");
    if (!like)
        return;
    like->width = 1280;
    like->height = 720;
    encoding_tag(VIEW_H264, like, like);
    if (!encoding_create(VIEW_H264, like, &silent, &trial))
        encoding_own_name(trial, name, size);
    encoding_destroy(&trial);
    av_frame_free(&like);
}

// ---- frames ----

// A JPEG as a part, with the boundary of the next behind it: browsers show a part when they see its
// end.
static enum status make_part(const AVPacket *packet, struct chunk **chunk)
{
    char before[96];
    int head = snprintf(before, sizeof before,
                        "Content-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n", packet->size);
    size_t data = (size_t)packet->size, begin = (size_t)head;
    *chunk = chunk_create(begin + data + strlen(NEXT_PART));
    if (!*chunk)
        return STATUS_MEMORY;
    memcpy((*chunk)->data, before, begin);
    memcpy((*chunk)->data + begin, packet->data, data);
    memcpy((*chunk)->data + begin + data, NEXT_PART, strlen(NEXT_PART));
    (*chunk)->key = true;
    (*chunk)->duration = packet->duration;
    return STATUS_OK;
}

static enum status take_packet(struct encoding *encoding, int64_t duration, struct chunk **chunk)
{
    bool got;
    enum status status = encoder_receive(encoding->encoder, encoding->packet, &got);
    if (!status && !got)
        status = log_fail(encoding->log, STATUS_OUTPUT, "the page's encoder keeps pictures back");
    if (status)
        return status;
    encoding->packet->duration = duration;
    status = encoding->fragments ? fragments_write(encoding->fragments, encoding->packet, chunk)
                                 : make_part(encoding->packet, chunk);
    av_packet_unref(encoding->packet);
    return status;
}

enum status encoding_frame(struct encoding *encoding, const AVFrame *frame, int64_t duration,
                           bool key, struct chunk **chunk)
{
    bool sent;
    assert(duration > 0);
    *chunk = NULL;
    if (av_frame_ref(encoding->frame, frame) < 0)
        return STATUS_MEMORY;
    encoding->frame->pts = encoding->time;
    frame_set_duration(encoding->frame, duration);
    encoding->time += duration;
    if (key)
        encoder_want_key(encoding->encoder);
    enum status status = encoder_send(encoding->encoder, encoding->frame, &sent);
    av_frame_unref(encoding->frame);
    return status ? status : take_packet(encoding, duration, chunk);
}
