#include "pipeline/ffmpeg/caller.h"

#include <libavutil/pixdesc.h>

#include "pipeline/ffmpeg/check.h"

static const enum AVColorSpace matrices[] = {
    [SLUICE_MATRIX_UNKNOWN] = AVCOL_SPC_UNSPECIFIED, [SLUICE_MATRIX_BT709] = AVCOL_SPC_BT709,
    [SLUICE_MATRIX_BT601] = AVCOL_SPC_SMPTE170M,     [SLUICE_MATRIX_FCC] = AVCOL_SPC_FCC,
    [SLUICE_MATRIX_SMPTE240M] = AVCOL_SPC_SMPTE240M, [SLUICE_MATRIX_BT2020] = AVCOL_SPC_BT2020_NCL,
};

static const enum AVChromaLocation locations[] = {
    [SLUICE_SITING_LEFT] = AVCHROMA_LOC_UNSPECIFIED,
    [SLUICE_SITING_CENTER] = AVCHROMA_LOC_CENTER,
    [SLUICE_SITING_TOP_LEFT] = AVCHROMA_LOC_TOPLEFT,
};

enum {
    MATRICES = sizeof matrices / sizeof *matrices,
    LOCATIONS = sizeof locations / sizeof *locations,
};

static enum sluice_matrix matrix_of(enum AVColorSpace space)
{
    if (space == AVCOL_SPC_BT470BG)
        return SLUICE_MATRIX_BT601;
    if (space == AVCOL_SPC_BT2020_CL)
        return SLUICE_MATRIX_BT2020;
    for (int k = 0; k < MATRICES; k++)
        if (matrices[k] == space)
            return (enum sluice_matrix)k;
    return SLUICE_MATRIX_UNKNOWN;
}

static enum sluice_siting siting_of(enum AVChromaLocation location)
{
    return location == AVCHROMA_LOC_TOPLEFT  ? SLUICE_SITING_TOP_LEFT
           : location == AVCHROMA_LOC_CENTER ? SLUICE_SITING_CENTER
                                             : SLUICE_SITING_LEFT;
}

struct sluice_format caller_format(const AVFrame *frame)
{
    return (struct sluice_format){
        .size = sizeof(struct sluice_format),
        .pixfmt = av_get_pix_fmt_name(frame->format),
        .width = frame->width,
        .height = frame->height,
        .range = pixel_is_full(frame) ? SLUICE_RANGE_FULL : SLUICE_RANGE_LIMITED,
        .matrix = matrix_of(frame->colorspace),
        .siting = siting_of(frame->chroma_location),
    };
}

enum status caller_read(const struct sluice_format *format, const struct log *log,
                        enum AVPixelFormat *pixel, struct color_tags *tags)
{
    const uint64_t elsewhere = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL;
    *pixel = format->pixfmt ? av_get_pix_fmt(format->pixfmt) : AV_PIX_FMT_NONE;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(*pixel);
    if (!about || about->flags & elsewhere)
        return log_fail(
            log, STATUS_USAGE,
            "the format of pushed frames is '%s', which is no pixel format of pictures in "
            "memory; 'ffmpeg -pix_fmts' lists them",
            format->pixfmt ? format->pixfmt : "");
    if (format->width < 1 || format->height < 1)
        return log_fail(log, STATUS_USAGE, "pushed frames have a size of 1x1 or more, not %dx%d",
                        format->width, format->height);
    if ((unsigned)format->range > SLUICE_RANGE_FULL || (unsigned)format->matrix >= MATRICES ||
        (unsigned)format->siting >= LOCATIONS)
        return log_fail(
            log, STATUS_USAGE,
            "the range, matrix or siting of pushed frames is none of their enumerators");
    *tags = (struct color_tags){
        .range = format->range == SLUICE_RANGE_FULL      ? AVCOL_RANGE_JPEG
                 : format->range == SLUICE_RANGE_LIMITED ? AVCOL_RANGE_MPEG
                                                         : AVCOL_RANGE_UNSPECIFIED,
        .primaries = AVCOL_PRI_UNSPECIFIED,
        .transfer = AVCOL_TRC_UNSPECIFIED,
        .matrix = matrices[format->matrix],
        .location = locations[format->siting],
    };
    return STATUS_OK;
}
