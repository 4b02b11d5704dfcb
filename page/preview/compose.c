#include "page/preview/compose.h"

#include <assert.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/pixel.h"

enum { KEPT = 12 };

// The pictures that a context of libswscale was made for.
struct conversion {
    struct end {
        int width, height, pixel, matrix;
        bool full;
    } from, to;
    bool exact;
};

struct composer {
    struct kept {
        struct conversion conversion;
        struct SwsContext *context; // NULL: free
        int64_t used;
    } kept[KEPT];
    int64_t calls;
};

enum status composer_create(struct composer **composer)
{
    *composer = calloc(1, sizeof **composer);
    return *composer ? STATUS_OK : STATUS_MEMORY;
}

void composer_destroy(struct composer **composer)
{
    if (!*composer)
        return;
    for (int k = 0; k < KEPT; k++)
        sws_freeContext((*composer)->kept[k].context);
    free(*composer);
    *composer = NULL;
}

// ---- conversions ----

// The formats of JPEG by their other names, which do not say the range.
static enum AVPixelFormat plain(enum AVPixelFormat pixel)
{
    switch (pixel) {
    case AV_PIX_FMT_YUVJ420P:
        return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
        return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ440P:
        return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ444P:
        return AV_PIX_FMT_YUV444P;
    default:
        return pixel;
    }
}

enum AVColorSpace compose_matrix(const AVFrame *frame)
{
    enum AVColorSpace matrix = frame->colorspace;
    if (matrix != AVCOL_SPC_UNSPECIFIED && matrix != AVCOL_SPC_RGB && matrix != AVCOL_SPC_RESERVED)
        return matrix;
    return frame->width >= 1280 || frame->height > 576 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
}

static struct end end_of(const AVFrame *frame, int width)
{
    return (struct end){width, frame->height, plain(frame->format), compose_matrix(frame),
                        pixel_is_full(frame)};
}

static bool is_same_end(const struct end *a, const struct end *b)
{
    return a->width == b->width && a->height == b->height && a->pixel == b->pixel &&
           a->matrix == b->matrix && a->full == b->full;
}

static bool is_same(const struct conversion *a, const struct conversion *b)
{
    return is_same_end(&a->from, &b->from) && is_same_end(&a->to, &b->to) && a->exact == b->exact;
}

bool compose_takes(enum AVPixelFormat pixel)
{
    return sws_isSupportedInput(plain(pixel));
}

static bool open_context(struct kept *kept)
{
    const struct end *from = &kept->conversion.from, *to = &kept->conversion.to;
    int flags =
        kept->conversion.exact ? SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT : SWS_BILINEAR;
    if (!compose_takes(from->pixel) || !sws_isSupportedOutput(to->pixel))
        return false;
    kept->context = sws_getContext(from->width, from->height, from->pixel, to->width, to->height,
                                   to->pixel, flags, NULL, NULL, NULL);
    if (kept->context)
        sws_setColorspaceDetails(kept->context, sws_getCoefficients(from->matrix), from->full,
                                 sws_getCoefficients(to->matrix), to->full, 0, 1 << 16, 1 << 16);
    return kept->context;
}

// The context of a conversion; NULL: libswscale has none.
static struct SwsContext *find(struct composer *composer, const struct conversion *conversion)
{
    struct kept *oldest = &composer->kept[0];
    for (int k = 0; k < KEPT; k++) {
        struct kept *kept = &composer->kept[k];
        if (kept->context && is_same(&kept->conversion, conversion)) {
            kept->used = ++composer->calls;
            return kept->context;
        }
        if (kept->used < oldest->used)
            oldest = kept;
    }
    sws_freeContext(oldest->context);
    *oldest = (struct kept){.conversion = *conversion, .used = ++composer->calls};
    return open_context(oldest) ? oldest->context : NULL;
}

// Set `planes` to column `x` of the picture.
static void point_at(const AVFrame *frame, int x, uint8_t *planes[4])
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    int steps[4], components[4];
    av_image_fill_max_pixsteps(steps, components, about);
    for (int p = 0; p < 4; p++) {
        bool chroma = (p == 1 || p == 2) && !(about->flags & AV_PIX_FMT_FLAG_RGB);
        int column = chroma ? x >> about->log2_chroma_w : x;
        planes[p] = frame->data[p] ? frame->data[p] + (ptrdiff_t)column * steps[p] : NULL;
    }
}

enum status composer_draw(struct composer *composer, const AVFrame *from, bool exact, AVFrame *to,
                          int x, int width)
{
    assert(x >= 0 && width > 0 && x + width <= to->width);
    const struct conversion conversion = {end_of(from, from->width), end_of(to, width), exact};
    struct SwsContext *context = find(composer, &conversion);
    uint8_t *planes[4];
    if (!context)
        return STATUS_FAILED;
    point_at(to, x, planes);
    int rows = sws_scale(context, (const uint8_t *const *)from->data, from->linesize, 0,
                         from->height, planes, to->linesize);
    return rows == to->height ? STATUS_OK : STATUS_FAILED;
}

// ---- frames ----

AVFrame *compose_frame(enum AVPixelFormat pixel, int width, int height)
{
    const int room = 64;
    AVFrame *frame = av_frame_alloc();
    if (!frame)
        return NULL;
    frame->format = pixel;
    frame->width = width + room;
    frame->height = height;
    if (av_frame_get_buffer(frame, 0) < 0)
        av_frame_free(&frame);
    else
        frame->width = width;
    return frame;
}

AVFrame *compose_copy(const AVFrame *frame)
{
    AVFrame *copy = av_frame_alloc();
    bool made = copy != NULL;
    if (made && frame->hw_frames_ctx) {
        made = av_hwframe_transfer_data(copy, frame, 0) >= 0;
    } else if (made) {
        copy->format = frame->format;
        copy->width = frame->width;
        copy->height = frame->height;
        made = av_frame_get_buffer(copy, 0) >= 0 && av_frame_copy(copy, frame) >= 0;
    }
    if (!made || av_frame_copy_props(copy, frame) < 0)
        av_frame_free(&copy);
    return copy;
}

static AVFrame *make_rgb(struct composer *composer, const AVFrame *from, bool exact,
                         enum status *status)
{
    AVFrame *rgb = compose_frame(AV_PIX_FMT_RGB24, from->width, from->height);
    *status = STATUS_MEMORY;
    if (!rgb)
        return NULL;
    rgb->colorspace = AVCOL_SPC_RGB;
    rgb->color_range = AVCOL_RANGE_JPEG;
    *status = composer_draw(composer, from, exact, rgb, 0, rgb->width);
    if (*status)
        av_frame_free(&rgb);
    return rgb;
}

static void subtract(AVFrame *a, const AVFrame *b)
{
    for (int y = 0; y < a->height; y++) {
        uint8_t *to = a->data[0] + (ptrdiff_t)y * a->linesize[0];
        const uint8_t *from = b->data[0] + (ptrdiff_t)y * b->linesize[0];
        for (int x = 0; x < 3 * a->width; x++)
            to[x] = (uint8_t)(to[x] > from[x] ? to[x] - from[x] : from[x] - to[x]);
    }
}

enum status composer_difference(struct composer *composer, const AVFrame *a, const AVFrame *b,
                                bool exact, AVFrame **out)
{
    assert(a->width == b->width && a->height == b->height);
    enum status status;
    AVFrame *other = NULL;
    *out = make_rgb(composer, a, exact, &status);
    if (*out)
        other = make_rgb(composer, b, exact, &status);
    if (other)
        subtract(*out, other);
    else
        av_frame_free(out);
    av_frame_free(&other);
    return status;
}

// ---- luma ----

// True if a frame's first plane is its luma, a byte each.
static bool has_plain_luma(const AVFrame *frame)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    const AVComponentDescriptor *luma = &about->comp[0];
    return !(about->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) && luma->plane == 0 &&
           luma->depth == 8 && luma->shift == 0 && luma->step == 1 && luma->offset == 0;
}

static void count_rows(const AVFrame *luma, uint32_t bins[256])
{
    uint32_t part[4][256] = {{0}}; // so that equal neighbours do not wait for each other
    for (int y = 0; y < luma->height; y++) {
        const uint8_t *row = luma->data[0] + (ptrdiff_t)y * luma->linesize[0];
        for (int x = 0; x < luma->width; x++)
            part[x & 3][row[x]]++;
    }
    for (int k = 0; k < 256; k++)
        bins[k] = part[0][k] + part[1][k] + part[2][k] + part[3][k];
}

enum status composer_count(struct composer *composer, const AVFrame *frame, uint32_t bins[256])
{
    memset(bins, 0, 256 * sizeof *bins);
    if (has_plain_luma(frame)) {
        count_rows(frame, bins);
        return STATUS_OK;
    }
    AVFrame *gray = compose_frame(AV_PIX_FMT_GRAY8, frame->width, frame->height);
    if (!gray)
        return STATUS_MEMORY;
    gray->color_range = pixel_is_full(frame) ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    enum status status = composer_draw(composer, frame, true, gray, 0, gray->width);
    if (!status)
        count_rows(gray, bins);
    av_frame_free(&gray);
    return status;
}
