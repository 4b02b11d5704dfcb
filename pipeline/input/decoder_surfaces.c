// Frames on the GPU: how many surfaces its decoder has, and memory of our own where they are too few.
#include <libavutil/hwcontext.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/decoder_internal.h"

// NVDEC has 32 surfaces at most ("NVDEC Video Decoder API", ulNumDecodeSurfaces). libavcodec takes
// those that the stream may refer to, some more, and these three; FFmpeg 5 fails beyond 32.
enum { MOST_SURFACES = 32, BASE_SURFACES = 3, FEW = 2 };

// How many libavcodec takes without any for us; MOST_SURFACES where it does not say.
static int own_surfaces(AVCodecContext *codec)
{
    AVBufferRef *frames = NULL;
    codec->extra_hw_frames = 0;
    if (avcodec_get_hw_frames_parameters(codec, codec->hw_device_ctx, AV_PIX_FMT_CUDA, &frames) < 0)
        return MOST_SURFACES;
    int own = ((AVHWFramesContext *)frames->data)->initial_pool_size + BASE_SURFACES;
    av_buffer_unref(&frames);
    return own;
}

void decoder_choose_surfaces(struct decoder *decoder, AVCodecContext *codec)
{
    int wanted = decoder->request.frames_held + FEW + 1; // one is kept for its time
    int left = MOST_SURFACES - own_surfaces(codec);
    decoder->copies = wanted > left || decoder->backend->gpus > 1;
    codec->extra_hw_frames = !decoder->copies ? wanted : left < 0 ? 0 : left < FEW ? left : FEW;
}

// Memory for frames like this one.
static enum status make_memory(struct decoder *decoder, const AVHWFramesContext *like)
{
    const AVHWFramesContext *old =
        decoder->memory ? (const AVHWFramesContext *)decoder->memory->data : NULL;
    if (old && old->sw_format == like->sw_format && old->width == like->width &&
        old->height == like->height)
        return STATUS_OK;
    av_buffer_unref(&decoder->memory);
    decoder->memory = av_hwframe_ctx_alloc(like->device_ref);
    if (!decoder->memory)
        return STATUS_MEMORY;
    AVHWFramesContext *made = (AVHWFramesContext *)decoder->memory->data;
    made->format = like->format;
    made->sw_format = like->sw_format;
    made->width = like->width;
    made->height = like->height;
    if (av_hwframe_ctx_init(decoder->memory) >= 0)
        return STATUS_OK;
    av_buffer_unref(&decoder->memory);
    return STATUS_MEMORY;
}

enum status decoder_copy_surface(struct decoder *decoder, AVFrame *frame)
{
    if (!decoder->copies || frame->format != AV_PIX_FMT_CUDA || !frame->hw_frames_ctx)
        return STATUS_OK;
    AVFrame *copy = av_frame_alloc();
    enum status status =
        copy ? make_memory(decoder, (const AVHWFramesContext *)frame->hw_frames_ctx->data)
             : STATUS_MEMORY;
    int error = status ? 0 : av_hwframe_get_buffer(decoder->memory, copy, 0);
    if (!status && error >= 0)
        error = av_hwframe_transfer_data(copy, frame, 0); // on the decoder's stream
    if (!status && error >= 0)
        error = av_frame_copy_props(copy, frame);
    if (!status && error >= 0) {
        copy->width = frame->width;
        copy->height = frame->height;
        av_frame_unref(frame);
        av_frame_move_ref(frame, copy);
    } else if (!status) {
        status =
            check_failed(decoder->log, STATUS_DEVICE, error,
                         "the GPU has no memory for a decoded frame of %s; a smaller --ring or "
                         "--hwdec off may do",
                         decoder->source->name);
    }
    av_frame_free(&copy);
    return status;
}
