// Frames of software decoders, in memory that the backend prefers.
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/memory.h"
#include "pipeline/input/decoder_internal.h"

// True if frames are to be in the backend's memory, rather than libavcodec's, which is zero at first.
static bool has_memory(struct decoder *decoder)
{
    pthread_mutex_lock(&decoder->pool_lock);
    bool has = decoder->backend->has_device_memory;
    pthread_mutex_unlock(&decoder->pool_lock);
    return has;
}

static AVBufferRef *pool_get(struct decoder *decoder, size_t size)
{
    pthread_mutex_lock(&decoder->pool_lock);
    if (decoder->pool_size != size) {
        av_buffer_pool_uninit(&decoder->pool);
        decoder->pool =
            av_buffer_pool_init2((buffer_size)size, decoder->backend, memory_alloc, NULL);
        decoder->pool_size = size;
    }
    AVBufferRef *buffer = decoder->pool ? av_buffer_pool_get(decoder->pool) : NULL;
    pthread_mutex_unlock(&decoder->pool_lock);
    return buffer;
}

void decoder_change_backend(struct decoder *decoder, struct backend *backend)
{
    pthread_mutex_lock(&decoder->pool_lock);
    decoder->backend = backend;
    av_buffer_pool_uninit(&decoder->pool);
    decoder->pool_size = 0;
    pthread_mutex_unlock(&decoder->pool_lock);
}

// Lay out a frame as libavcodec's own allocator does (get_buffer.c): dimensions and strides as the
// codec wants them, all planes in one block with some bytes between.
int decoder_get_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    struct decoder *decoder = codec->opaque;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    if (!about || about->flags & (AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL) ||
        !(codec->codec->capabilities & AV_CODEC_CAP_DR1) || !has_memory(decoder))
        return avcodec_default_get_buffer2(codec, frame, flags);
    int width = frame->width, height = frame->height, align[AV_NUM_DATA_POINTERS], unaligned;
    avcodec_align_dimensions2(codec, &width, &height, align);
    do {
        int error = av_image_fill_linesizes(frame->linesize, frame->format, width);
        if (error < 0)
            return error;
        width += width & ~(width - 1);
        unaligned = 0;
        for (int p = 0; p < 4; p++)
            unaligned |= frame->linesize[p] % (align[p] ? align[p] : 1);
    } while (unaligned);
    size_t size[4], total = 0;
    for (int p = 0; p < 4; p++) {
        int rows = p == 1 || p == 2 ? AV_CEIL_RSHIFT(height, about->log2_chroma_h) : height;
        size[p] = (size_t)frame->linesize[p] * (size_t)rows;
        total += size[p] ? (size[p] + 64 + 63) / 64 * 64 : 0;
    }
    frame->buf[0] = pool_get(decoder, total);
    if (!frame->buf[0])
        return AVERROR(ENOMEM);
    uint8_t *at = frame->buf[0]->data;
    for (int p = 0; p < 4 && size[p]; p++) {
        frame->data[p] = at;
        at += (size[p] + 64 + 63) / 64 * 64;
    }
    frame->extended_data = frame->data;
    return 0;
}

int decoder_get_clear_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    int error = decoder_get_buffer(codec, frame, flags);
    for (int k = 0; k < AV_NUM_DATA_POINTERS && error >= 0 && frame->buf[k]; k++)
        memset(frame->buf[k]->data, 0, (size_t)frame->buf[k]->size);
    return error;
}
