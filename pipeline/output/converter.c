#include "pipeline/output/converter.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/pixel.h"

void converter_finish(struct converter *self)
{
    scaler_destroy(&self->scaler);
}

// ---- choice ----

static bool takes(const struct converter *self, enum AVPixelFormat pixel)
{
    const enum AVPixelFormat *candidates = self->formats->candidates;
    for (int k = 0; candidates && candidates[k] != AV_PIX_FMT_NONE; k++)
        if (candidates[k] == pixel)
            return true;
    return !candidates;
}

// True if a pixel format stores a picture of format `from` as it is, by whatever name: yuvj444p for
// yuv444p of full range.
static bool stores(enum AVPixelFormat pixel, const struct format *from)
{
    const struct color_tags none = {0};
    struct format format;
    return pixel != AV_PIX_FMT_NONE && pixel_describe(pixel, &none, 1, 1, &format) &&
           format_same_storage(&format, from);
}

// The range that the encoder needs; UNSPECIFIED: that of the frames.
static enum AVColorRange needed_range(const struct converter *self, enum AVPixelFormat pixel)
{
    const struct sink_formats *formats = self->formats;
    bool yuv = av_pix_fmt_desc_get(pixel)->nb_components >= 3;
    enum sink_range range = formats->asked_range != SINK_RANGE_ANY ? formats->asked_range
                            : yuv                                  ? formats->range
                                                                   : SINK_RANGE_ANY;
    return range == SINK_RANGE_FULL      ? AVCOL_RANGE_JPEG
           : range == SINK_RANGE_LIMITED ? AVCOL_RANGE_MPEG
                                         : AVCOL_RANGE_UNSPECIFIED;
}

static bool keeps_range(const struct converter *self, const AVFrame *frame)
{
    enum AVColorRange needed = needed_range(self, frame->format);
    return needed == AVCOL_RANGE_UNSPECIFIED ||
           (needed == AVCOL_RANGE_JPEG) == pixel_is_full(frame);
}

// The frame may be one that the filter made for another output, or could not convert itself.
enum AVPixelFormat converter_pixel(const struct converter *self, const AVFrame *frame)
{
    const struct sink_formats *formats = self->formats;
    struct color_tags tags = color_tags_of(frame);
    struct format from;
    enum AVPixelFormat known = frame->format, best;
    if (!pixel_describe(known, &tags, 1, 1, &from)) {
        known = pixel_nearest(known);
        if (known == AV_PIX_FMT_NONE || !pixel_describe(known, &tags, 1, 1, &from))
            return takes(self, frame->format) ? frame->format : AV_PIX_FMT_NONE;
    }
    if (takes(self, frame->format) && pixel_plays(&from, formats->wishes))
        return frame->format;
    best = pixel_choose(&from, frame->width, frame->height, formats->candidates, formats->wishes);
    if (takes(self, frame->format) && stores(best, &from) && keeps_range(self, frame))
        return frame->format;
    return best != AV_PIX_FMT_NONE
               ? best
               : avcodec_find_best_pix_fmt_of_list(formats->candidates, known, from.alpha, NULL);
}

bool converter_adapt(const struct converter *self, AVFrame *shown)
{
    enum AVPixelFormat from = shown->format, pixel = converter_pixel(self, shown);
    bool was_full = pixel_is_full(shown);
    if (pixel == AV_PIX_FMT_NONE)
        return false;
    scaler_tag(pixel, needed_range(self, pixel), shown);
    return pixel != from || pixel_is_full(shown) != was_full;
}

enum status converter_choose(const struct converter *self, AVFrame *shown)
{
    enum AVPixelFormat from = shown->format, pixel = converter_pixel(self, shown);
    if (pixel == AV_PIX_FMT_NONE)
        return log_fail(self->log, STATUS_OUTPUT, "the encoder %s takes no format like %s",
                        self->encoder, av_get_pix_fmt_name(from));
    if (converter_adapt(self, shown))
        log_print(self->log, LOG_INFO, "libswscale converts %s to %s for the encoder %s",
                  av_get_pix_fmt_name(from), av_get_pix_fmt_name(pixel), self->encoder);
    return STATUS_OK;
}

void converter_set_rotation(struct converter *self, const int32_t matrix[9], AVFrame *shown)
{
    struct color_tags tags = color_tags_of(shown);
    struct format format;
    struct rotation rotation = rotation_of_matrix(matrix);
    if (rotation_is_none(rotation))
        return;
    enum AVPixelFormat rotated = AV_PIX_FMT_NONE;
    if (pixel_describe(shown->format, &tags, 1, 1, &format)) {
        format = format_rotated(&format, rotation);
        rotated = pixel_find(&format);
    }
    if (rotated == AV_PIX_FMT_NONE) {
        log_print(self->log, LOG_WARNING,
                  "the picture should be turned for showing; %s cannot say "
                  "so, and %s pictures cannot be turned",
                  self->container, av_get_pix_fmt_name(shown->format));
        return;
    }
    self->rotation = rotation;
    shown->format = rotated;
    if (rotation.transpose) {
        FFSWAP(int, shown->width, shown->height);
        shown->sample_aspect_ratio = av_inv_q(shown->sample_aspect_ratio);
    }
}

void converter_set_encoder(struct converter *self, const AVFrame *frame)
{
    self->width = frame->width;
    self->height = frame->height;
    self->pixel = frame->format;
    self->full = pixel_is_full(frame);
}

// ---- frames ----

bool converter_fits(const struct converter *self, const AVFrame *frame)
{
    return frame->width == self->width && frame->height == self->height &&
           frame->format == self->pixel && pixel_is_full(frame) == self->full;
}

bool converter_could_fit(const struct converter *self, const AVFrame *frame)
{
    enum AVColorRange range = needed_range(self, frame->format);
    bool ranged =
        range == AVCOL_RANGE_UNSPECIFIED || pixel_is_full(frame) == (range == AVCOL_RANGE_JPEG);
    return ranged && converter_pixel(self, frame) == frame->format;
}

enum status converter_rotate(const struct converter *self, const AVFrame *frame, AVFrame *to)
{
    assert(!rotation_is_none(self->rotation));
    struct color_tags tags = color_tags_of(frame);
    struct format from, rotated, stored;
    if (!pixel_describe(frame->format, &tags, 1, 1, &from) || av_frame_copy_props(to, frame) < 0)
        return STATUS_FAILED;
    rotated = format_rotated(&from, self->rotation);
    to->format = pixel_find(&rotated);
    to->width = self->rotation.transpose ? frame->height : frame->width;
    to->height = self->rotation.transpose ? frame->width : frame->height;
    if (self->rotation.transpose)
        to->sample_aspect_ratio = av_inv_q(frame->sample_aspect_ratio);
    av_frame_remove_side_data(to, AV_FRAME_DATA_DISPLAYMATRIX);
    if (!pixel_describe(to->format, &tags, 1, 1, &stored) || av_frame_get_buffer(to, 0) < 0)
        return STATUS_MEMORY;
    struct image source = pixel_image(frame, &from), target = pixel_image(to, &stored);
    image_rotate(&source, self->rotation, &target);
    return STATUS_OK;
}

enum status converter_scale(struct converter *self, const AVFrame *frame, AVFrame *to)
{
    assert(self->width > 0 && self->height > 0);
    bool resized = frame->width != self->width || frame->height != self->height;
    if (resized && !self->logged_scaled) {
        self->logged_scaled = true;
        log_print(self->log, self->silent ? LOG_DEBUG : LOG_INFO,
                  "the picture changes to %dx%d: it is scaled to the output's %dx%d", frame->width,
                  frame->height, self->width, self->height);
    }
    enum AVColorRange range = self->full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    enum status status =
        scaler_convert(&self->scaler, frame, self->pixel, range, self->width, self->height, to);
    return status == STATUS_FAILED
               ? log_fail(self->log, STATUS_OUTPUT, "libswscale cannot convert %s to %s",
                          av_get_pix_fmt_name(frame->format), av_get_pix_fmt_name(self->pixel))
               : status;
}
