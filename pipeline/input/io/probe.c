#include "pipeline/input/io/probe.h"

#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/mem.h>

#include "pipeline/ffmpeg/compat.h"

// The size when a decoder asks for memory, which it does not get.
struct measure {
    int width, height;
};

static int note_size(AVCodecContext *codec, AVFrame *frame, int flags)
{
    (void)frame, (void)flags;
    struct measure *measure = codec->opaque;
    *measure = (struct measure){codec->width, codec->height};
    return AVERROR_EXTERNAL;
}

bool probe_picture(const AVCodecParameters *about, const AVPacket *packet, int *width, int *height)
{
    struct measure measure = {0};
    const AVCodec *codec = avcodec_find_decoder(about->codec_id);
    AVCodecContext *context = codec ? avcodec_alloc_context3(codec) : NULL;
    AVFrame *frame = av_frame_alloc();
    if (context && frame && avcodec_parameters_to_context(context, about) >= 0) {
        context->thread_count = 1;
        allow_threaded_callbacks(context);
        context->opaque = &measure;
        context->get_buffer2 = note_size;
        if (avcodec_open2(context, codec, NULL) >= 0 && avcodec_send_packet(context, packet) >= 0)
            avcodec_receive_frame(context, frame);
        if (!measure.width) // it has memory of its own
            measure = (struct measure){context->width, context->height};
    }
    av_frame_free(&frame);
    avcodec_free_context(&context);
    *width = measure.width;
    *height = measure.height;
    return measure.width > 0 && measure.height > 0;
}

int probe_streams(AVFormatContext *format, int64_t max_pixels)
{
    unsigned count = format->nb_streams; // more may turn up, without options
    AVDictionary **options = av_calloc(count + 1, sizeof *options);
    if (!options)
        return AVERROR(ENOMEM);
    int error = 0;
    for (unsigned k = 0; k < count && error >= 0; k++)
        error = av_dict_set_int(&options[k], "max_pixels", coded_pixels(max_pixels), 0);
    if (error >= 0)
        error = avformat_find_stream_info(format, options);
    for (unsigned k = 0; k < count; k++)
        av_dict_free(&options[k]);
    av_free(options);
    return error;
}
