// FFmpeg 4.3 to 7.x: what one has and another has not, under one name. Nothing else in pipeline/
// asks for a version.
#pragma once

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/version.h>
#include <stdbool.h>
#include <string.h>

// The size of a buffer, where its address is passed to FFmpeg.
#if LIBAVUTIL_VERSION_MAJOR < 57
typedef int buffer_size;
#else
typedef size_t buffer_size;
#endif

// ---- codecs ----

// Let frame threads call get_buffer2() as they like; since libavcodec 60 they always do.
static inline void allow_threaded_callbacks(AVCodecContext *codec)
{
#if LIBAVCODEC_VERSION_MAJOR < 60
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    codec->thread_safe_callbacks = 1; // deprecated, and asked for all the same
#pragma GCC diagnostic pop
#else
    (void)codec;
#endif
}

// ---- formats ----

// av_probe_input_buffer2() and avformat_open_input(), whose formats libavformat 59 made const.
static inline int probe_format(AVIOContext *io, const AVInputFormat **format, const char *name,
                               AVFormatContext *context)
{
#if LIBAVFORMAT_VERSION_MAJOR < 59
    AVInputFormat *found = (AVInputFormat *)*format;
#else
    const AVInputFormat *found = *format;
#endif
    int error = av_probe_input_buffer2(io, &found, name, context, 0, 0);
    *format = found;
    return error;
}

static inline int open_format(AVFormatContext **context, const char *name,
                              const AVInputFormat *format, AVDictionary **options)
{
    return avformat_open_input(context, name, (AVInputFormat *)format, options);
}

// The last packet that the file's own index lists; NULL: it has none.
static inline const AVIndexEntry *last_index_entry(AVStream *stream)
{
#if LIBAVFORMAT_VERSION_INT < AV_VERSION_INT(58, 75, 100)
    return stream->nb_index_entries ? &stream->index_entries[stream->nb_index_entries - 1] : NULL;
#else
    int entries = avformat_index_get_entries_count(stream);
    return entries ? avformat_index_get_entry(stream, entries - 1) : NULL;
#endif
}

// ---- frames ----

static inline bool frame_is_interlaced(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return frame->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return frame->interlaced_frame;
#endif
}

static inline bool frame_is_top_field_first(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return frame->flags & AV_FRAME_FLAG_TOP_FIELD_FIRST;
#else
    return frame->top_field_first;
#endif
}

// How long the frame is shown, in its time base; 0 if unknown.
static inline int64_t frame_duration(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    return frame->duration;
#else
    return frame->pkt_duration;
#endif
}

static inline void frame_set_duration(AVFrame *frame, int64_t duration)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    frame->duration = duration;
#else
    frame->pkt_duration = duration;
#endif
}

// ---- encoders ----

// The pixel formats that an encoder takes, ended by AV_PIX_FMT_NONE; NULL: it takes any.
static inline const enum AVPixelFormat *encoder_pixel_formats(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *formats = NULL;
    if (avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_PIX_FORMAT, 0, &formats, NULL) <
        0)
        return NULL;
    return formats;
#else
    return codec->pix_fmts;
#endif
}

// The frame rates that an encoder takes, ended by {0, 0}; NULL: it takes any.
static inline const AVRational *encoder_frame_rates(const AVCodec *codec)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
    const void *rates = NULL;
    if (avcodec_get_supported_config(NULL, codec, AV_CODEC_CONFIG_FRAME_RATE, 0, &rates, NULL) < 0)
        return NULL;
    return rates;
#else
    return codec->supported_framerates;
#endif
}

// ---- side data ----

#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
#define STREAM_DATA_IN_PARAMETERS 1
#endif

// Side data of a stream; NULL if it has none of this type.
static inline const uint8_t *stream_data(const AVStream *stream, enum AVPacketSideDataType type)
{
#ifdef STREAM_DATA_IN_PARAMETERS
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, type);
    return data ? data->data : NULL;
#else
    return av_stream_get_side_data(stream, type, NULL);
#endif
}

// How the picture is to be turned for showing, by the stream or by the frame itself (EXIF); NULL:
// as it is.
static inline const int32_t *display_matrix(const AVStream *stream, const AVFrame *frame)
{
    const AVFrameSideData *own = av_frame_get_side_data(frame, AV_FRAME_DATA_DISPLAYMATRIX);
    return (const int32_t *)(own ? own->data : stream_data(stream, AV_PKT_DATA_DISPLAYMATRIX));
}

// Room for side data of a stream; NULL if memory ran out.
static inline uint8_t *stream_data_add(AVStream *stream, enum AVPacketSideDataType type,
                                       size_t size)
{
#ifdef STREAM_DATA_IN_PARAMETERS
    AVPacketSideData *data = av_packet_side_data_new(
        &stream->codecpar->coded_side_data, &stream->codecpar->nb_coded_side_data, type, size, 0);
    return data ? data->data : NULL;
#else
    return av_stream_new_side_data(stream, type, size);
#endif
}

// Copy all side data of a stream. With newer FFmpeg avcodec_parameters_copy() has done it already.
static inline int stream_data_copy(AVStream *to, const AVStream *from)
{
#ifdef STREAM_DATA_IN_PARAMETERS
    (void)to, (void)from;
#else
    for (int k = 0; k < from->nb_side_data; k++) {
        const AVPacketSideData *data = &from->side_data[k];
        uint8_t *room = av_stream_new_side_data(to, data->type, data->size);
        if (!room)
            return AVERROR(ENOMEM);
        memcpy(room, data->data, data->size);
    }
#endif
    return 0;
}
