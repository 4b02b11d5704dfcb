#include "pipeline/scaler.h"

#include <libavutil/buffer.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdlib.h>

struct scaler {
    struct SwsContext *context;
};

// Both sides keep the matrix and range of the input; between models full range RGB is meant.
static void set_colors(struct SwsContext *context, const AVFrame *from, enum AVPixelFormat pixel)
{
    int matrix = from->colorspace == AVCOL_SPC_UNSPECIFIED || from->colorspace == AVCOL_SPC_RGB
                     ? SWS_CS_DEFAULT
                     : (int)from->colorspace;
    const int *table = sws_getCoefficients(matrix);
    const AVPixFmtDescriptor *to = av_pix_fmt_desc_get(pixel);
    int full = from->color_range == AVCOL_RANGE_JPEG;
    int to_full = to->flags & AV_PIX_FMT_FLAG_RGB ? 1 : full;
    sws_setColorspaceDetails(context, table, full, table, to_full, 0, 1 << 16, 1 << 16);
}

enum status scaler_convert(struct scaler **scaler, const AVFrame *from, enum AVPixelFormat pixel,
                           int width, int height, AVFrame *to)
{
    if (!*scaler && !(*scaler = calloc(1, sizeof **scaler)))
        return STATUS_MEMORY;
    struct SwsContext *context = sws_getCachedContext(
        (*scaler)->context, from->width, from->height, from->format, width, height, pixel,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL, NULL, NULL);
    (*scaler)->context = context;
    if (!context)
        return STATUS_FAILED;
    set_colors(context, from, pixel);
    if (av_frame_copy_props(to, from) < 0)
        return STATUS_MEMORY;
    to->format = pixel;
    to->width = width;
    to->height = height;
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

void scaler_destroy(struct scaler **scaler)
{
    if (!*scaler)
        return;
    sws_freeContext((*scaler)->context);
    free(*scaler);
    *scaler = NULL;
}
