#include "pipeline/input/restart.h"

#include <libavutil/mem.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"

// The mark, followed by the codec's extradata. Others use this kind of side data too.
static const char mark_name[16] = "sluice restart";
struct mark {
    char name[16];
    bool changed;
    int codec_id, format, width, height, profile, level;
};

enum status restart_mark(AVPacket *packet, const AVCodecParameters *codec)
{
    struct mark mark = {.changed = codec};
    size_t extra = codec ? (size_t)codec->extradata_size : 0;
    if (codec)
        mark = (struct mark){.changed = true,
                             .codec_id = codec->codec_id,
                             .format = codec->format,
                             .width = codec->width,
                             .height = codec->height,
                             .profile = codec->profile,
                             .level = codec->level};
    memcpy(mark.name, mark_name, sizeof mark.name);
    uint8_t *data = av_packet_new_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, sizeof mark + extra);
    if (!data)
        return STATUS_MEMORY;
    memcpy(data, &mark, sizeof mark);
    if (extra)
        memcpy(data + sizeof mark, codec->extradata, extra);
    return STATUS_OK;
}

// The mark, what follows it and how long that is; false if the packet has none.
static bool find_mark(const AVPacket *packet, struct mark *mark, const uint8_t **extra,
                      size_t *length)
{
    buffer_size size = 0;
    const uint8_t *data = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, &size);
    if (!data || (size_t)size < sizeof *mark)
        return false;
    memcpy(mark, data, sizeof *mark);
    *extra = data + sizeof *mark;
    *length = (size_t)size - sizeof *mark;
    return !memcmp(mark->name, mark_name, sizeof mark->name);
}

bool restart_is_marked(const AVPacket *packet)
{
    struct mark mark;
    const uint8_t *extra;
    size_t length;
    return find_mark(packet, &mark, &extra, &length);
}

bool restart_take(AVPacket *packet, struct restart *restart)
{
    struct mark mark;
    const uint8_t *extra;
    size_t length;
    *restart = (struct restart){0};
    if (!find_mark(packet, &mark, &extra, &length))
        return false;
    restart->changed = mark.changed;
    if (mark.changed && (restart->codec = avcodec_parameters_alloc())) {
        AVCodecParameters *codec = restart->codec;
        codec->codec_type = AVMEDIA_TYPE_VIDEO;
        codec->codec_id = (enum AVCodecID)mark.codec_id;
        codec->format = mark.format;
        codec->width = mark.width;
        codec->height = mark.height;
        codec->profile = mark.profile;
        codec->level = mark.level;
        if (length && (codec->extradata = av_mallocz(length + AV_INPUT_BUFFER_PADDING_SIZE))) {
            memcpy(codec->extradata, extra, length);
            codec->extradata_size = (int)length;
        }
    }
    av_packet_free_side_data(packet);
    return true;
}
