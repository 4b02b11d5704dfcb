#include "pipeline/ffmpeg/scaler.h"

#include <libavutil/buffer.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdlib.h>

#include "pipeline/ffmpeg/pixel.h"

struct scaler {
    struct SwsContext *context;
};

static bool is_rgb(enum AVPixelFormat pixel)
{
    return av_pix_fmt_desc_get(pixel)->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL);
}

void scaler_tag(enum AVPixelFormat pixel, enum AVColorRange range, AVFrame *frame)
{
    bool was_full = pixel_is_full(frame), was_rgb = is_rgb(frame->format);
    bool full = range == AVCOL_RANGE_UNSPECIFIED ? was_full : range == AVCOL_RANGE_JPEG;
    if (is_rgb(pixel)) {
        frame->colorspace = AVCOL_SPC_RGB;
        frame->color_range = AVCOL_RANGE_JPEG;
    } else if (was_rgb) {
        frame->colorspace = AVCOL_SPC_SMPTE170M;
    }
    frame->format = pixel;
    if (!is_rgb(pixel) && (range != AVCOL_RANGE_UNSPECIFIED || pixel_is_full(frame) != full))
        frame->color_range = full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
}

// Both sides keep the matrix of the input, and of RGB that of BT.601.
static void set_colors(struct SwsContext *context, const AVFrame *from, const AVFrame *to)
{
    enum AVColorSpace matrix = is_rgb(from->format) ? to->colorspace : from->colorspace;
    bool known = matrix != AVCOL_SPC_UNSPECIFIED && matrix != AVCOL_SPC_RGB;
    const int *table = sws_getCoefficients(known ? (int)matrix : SWS_CS_DEFAULT);
    sws_setColorspaceDetails(context, table, pixel_is_full(from), table, pixel_is_full(to), 0,
                             1 << 16, 1 << 16);
}

enum status scaler_convert(struct scaler **scaler, const AVFrame *from, enum AVPixelFormat pixel,
                           enum AVColorRange range, int width, int height, AVFrame *to)
{
    if (!*scaler && !(*scaler = calloc(1, sizeof **scaler)))
        return STATUS_MEMORY;
    struct SwsContext *context = sws_getCachedContext(
        (*scaler)->context, from->width, from->height, from->format, width, height, pixel,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL, NULL, NULL);
    (*scaler)->context = context;
    if (!context)
        return STATUS_FAILED;
    if (av_frame_copy_props(to, from) < 0)
        return STATUS_MEMORY;
    to->format = from->format;
    to->width = width;
    to->height = height;
    scaler_tag(pixel, range, to);
    set_colors(context, from, to);
    if (av_frame_get_buffer(to, 0) < 0)
        return STATUS_MEMORY;
    int rows = sws_scale(context, (const uint8_t *const *)from->data, from->linesize, 0,
                         from->height, to->data, to->linesize);
    return rows == height ? STATUS_OK : STATUS_FAILED;
}

void scaler_print_step(enum AVPixelFormat from, enum AVPixelFormat to, const char *purpose,
                       FILE *file)
{
    fprintf(file, "libswscale converts %s to %s %s: results may differ between FFmpeg versions\n",
            av_get_pix_fmt_name(from), av_get_pix_fmt_name(to), purpose);
}

bool scaler_makes(enum AVPixelFormat pixel)
{
    return sws_isSupportedOutput(pixel);
}

void scaler_destroy(struct scaler **scaler)
{
    if (!*scaler)
        return;
    sws_freeContext((*scaler)->context);
    free(*scaler);
    *scaler = NULL;
}
