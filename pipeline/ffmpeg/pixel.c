#include "pipeline/ffmpeg/pixel.h"

#include <assert.h>
#include <libavutil/pixdesc.h>
#include <limits.h>
#include <string.h>

struct color_tags color_tags_of(const AVFrame *frame)
{
    return (struct color_tags){frame->color_range, frame->colorspace, frame->color_primaries,
                               frame->color_trc, frame->chroma_location};
}

void color_tags_apply(const struct color_tags *tags, AVFrame *frame)
{
    frame->color_range = tags->range;
    frame->colorspace = tags->matrix;
    frame->color_primaries = tags->primaries;
    frame->color_trc = tags->transfer;
    frame->chroma_location = tags->location;
}

// ---- what a pixel format is ----

static bool is_j(enum AVPixelFormat pixel)
{
    return pixel == AV_PIX_FMT_YUVJ420P || pixel == AV_PIX_FMT_YUVJ422P ||
           pixel == AV_PIX_FMT_YUVJ444P || pixel == AV_PIX_FMT_YUVJ440P ||
           pixel == AV_PIX_FMT_YUVJ411P;
}

bool pixel_is_full(const AVFrame *frame)
{
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    bool rgb = about->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL);
    bool gray = about->nb_components < 3;
    return rgb || is_j(frame->format) || frame->color_range == AVCOL_RANGE_JPEG ||
           (gray && frame->color_range != AVCOL_RANGE_MPEG);
}

// Luma weights by matrix, H.273 table 4; false for those without any.
static bool matrix_weights(enum AVColorSpace matrix, double *kr, double *kb)
{
    static const struct {
        enum AVColorSpace matrix;
        double kr, kb;
    } table[] = {
        {AVCOL_SPC_BT709, 0.2126, 0.0722},     {AVCOL_SPC_FCC, 0.30, 0.11},
        {AVCOL_SPC_BT470BG, 0.299, 0.114},     {AVCOL_SPC_SMPTE170M, 0.299, 0.114},
        {AVCOL_SPC_SMPTE240M, 0.212, 0.087},   {AVCOL_SPC_BT2020_NCL, 0.2627, 0.0593},
        {AVCOL_SPC_BT2020_CL, 0.2627, 0.0593},
    };
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].matrix == matrix) {
            *kr = table[k].kr;
            *kb = table[k].kb;
            return true;
        }
    return false;
}

static enum AVColorSpace guessed_matrix(int width, int height)
{
    return width >= 1280 || height > 576 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
}

static enum siting siting_of(enum AVChromaLocation location)
{
    switch (location) {
    case AVCHROMA_LOC_CENTER:
    case AVCHROMA_LOC_TOP:
    case AVCHROMA_LOC_BOTTOM:
        return SITING_CENTER;
    case AVCHROMA_LOC_TOPLEFT:
        return SITING_TOP_LEFT;
    default:
        return SITING_LEFT;
    }
}

static void describe_meaning(const struct color_tags *tags, enum AVPixelFormat pixel, int width,
                             int height, struct format *format)
{
    bool full = format->model != MODEL_YUV || is_j(pixel);
    if (tags->range == AVCOL_RANGE_JPEG || tags->range == AVCOL_RANGE_MPEG)
        full = tags->range == AVCOL_RANGE_JPEG || is_j(pixel);
    format->range = full || format->model == MODEL_RGB ? RANGE_FULL : RANGE_LIMITED;
    format->siting = siting_of(tags->location);
    if (matrix_weights(tags->matrix, &format->kr, &format->kb))
        return;
    bool rgb = format->model == MODEL_RGB;
    matrix_weights(rgb ? AVCOL_SPC_SMPTE170M : guessed_matrix(width, height), &format->kr,
                   &format->kb);
}

static void describe_component(const AVComponentDescriptor *from, bool big_endian,
                               struct component *to)
{
    int bytes = from->shift + from->depth > 8 ? 2 : 1;
    *to = (struct component){.plane = from->plane,
                             .offset = from->offset,
                             .step = from->step,
                             .bytes = bytes,
                             .shift = from->shift,
                             .big_endian = bytes == 2 && big_endian};
}

// The byte of a packed pixel that no component covers (rgb0), as component 3.
static void describe_filler(struct format *format, int components)
{
    const struct component *first = &format->component[0];
    if (format->model == MODEL_GRAY || format->planes != 1 || components != 3 ||
        first->step != 4 * first->bytes)
        return;
    int free = 0 + 1 + 2 + 3;
    for (int c = 0; c < 3; c++)
        free -= format->component[c].offset / first->bytes;
    format->filler = true;
    format->component[COMPONENT_ALPHA] = *first;
    format->component[COMPONENT_ALPHA].offset = free * first->bytes;
}

// True if units of components `a` and `b`, of one plane, neither overlap (x2rgb10, xv30) nor have
// steps that do not go together (the four luma samples of uyyvyy411 do not lie evenly).
static bool units_go_together(const struct format *format, int a, int b)
{
    const struct component *one = &format->component[a], *other = &format->component[b];
    if (one->plane != other->plane)
        return true;
    int apart = one->offset - other->offset;
    return (apart >= one->bytes || -apart >= one->bytes) &&
           one->step << format_shift_x(format, b) == other->step << format_shift_x(format, a);
}

static bool has_known_units(const struct format *format)
{
    for (int a = 0; a < FORMAT_COMPONENTS; a++)
        for (int b = a + 1; b < FORMAT_COMPONENTS; b++)
            if (format_has(format, a) && format_has(format, b) && !units_go_together(format, a, b))
                return false;
    return true;
}

bool pixel_describe(enum AVPixelFormat pixel, const struct color_tags *tags, int width, int height,
                    struct format *format)
{
    const AVPixFmtDescriptor *from = av_pix_fmt_desc_get(pixel);
    const uint64_t unknown = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM |
                             AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BAYER |
                             AV_PIX_FMT_FLAG_FLOAT;
    if (!from || from->flags & unknown || pixel == AV_PIX_FMT_XYZ12LE ||
        pixel == AV_PIX_FMT_XYZ12BE)
        return false;
    bool alpha = from->flags & AV_PIX_FMT_FLAG_ALPHA;
    int colors = from->nb_components - alpha;
    if (colors != 1 && colors != 3)
        return false;
    *format = (struct format){
        .depth = from->comp[0].depth, .planes = av_pix_fmt_count_planes(pixel), .alpha = alpha};
    format->model = colors == 1                         ? MODEL_GRAY
                    : from->flags & AV_PIX_FMT_FLAG_RGB ? MODEL_RGB
                                                        : MODEL_YUV;
    if (format->model == MODEL_YUV) {
        format->chroma_x = from->log2_chroma_w;
        format->chroma_y = from->log2_chroma_h;
    }
    for (int k = 0; k < from->nb_components; k++) {
        const AVComponentDescriptor *at = &from->comp[k];
        if (at->depth != format->depth || at->depth < 8 || at->shift + at->depth > 16)
            return false;
        int c = alpha && k == from->nb_components - 1 ? COMPONENT_ALPHA : k;
        describe_component(at, from->flags & AV_PIX_FMT_FLAG_BE, &format->component[c]);
    }
    if (!has_known_units(format))
        return false;
    describe_filler(format, from->nb_components);
    describe_meaning(tags, pixel, width, height, format);
    return true;
}

enum status pixel_asked_for(const char *name, const struct log *log, enum AVPixelFormat *pixel)
{
    *pixel = av_get_pix_fmt(name);
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(*pixel);
    if (about && !(about->flags & AV_PIX_FMT_FLAG_HWACCEL))
        return STATUS_OK;
    return log_fail(log, STATUS_USAGE,
                    "--pix-fmt is '%s', which is no pixel format of pictures in memory; 'ffmpeg "
                    "-pix_fmts' lists them",
                    name);
}

enum AVPixelFormat pixel_find(const struct format *format)
{
    const struct color_tags none = {0};
    for (const AVPixFmtDescriptor *at = NULL; (at = av_pix_fmt_desc_next(at));) {
        enum AVPixelFormat pixel = av_pix_fmt_desc_get_id(at);
        struct format other;
        if (!is_j(pixel) && pixel_describe(pixel, &none, 1, 1, &other) &&
            format_same_storage(&other, format))
            return pixel;
    }
    return AV_PIX_FMT_NONE;
}

static enum AVColorSpace matrix_of(const struct format *format, bool from_rgb,
                                   const struct color_tags *source)
{
    double kr, kb;
    if (format->model == MODEL_RGB)
        return AVCOL_SPC_RGB;
    if (source->matrix == AVCOL_SPC_UNSPECIFIED && !from_rgb)
        return AVCOL_SPC_UNSPECIFIED;
    if (matrix_weights(source->matrix, &kr, &kb) && kr == format->kr && kb == format->kb)
        return source->matrix;
    for (int matrix = 0; matrix < AVCOL_SPC_NB; matrix++)
        if (matrix_weights((enum AVColorSpace)matrix, &kr, &kb) && kr == format->kr &&
            kb == format->kb)
            return (enum AVColorSpace)matrix;
    return source->matrix;
}

struct color_tags pixel_tags(const struct format *from, const struct format *format,
                             const struct color_tags *source)
{
    struct color_tags tags = *source;
    tags.range = format->range == RANGE_FULL ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    if (source->range == AVCOL_RANGE_UNSPECIFIED &&
        (format->model == MODEL_YUV) == (format->range == RANGE_LIMITED))
        tags.range = AVCOL_RANGE_UNSPECIFIED; // what it would be taken as anyway
    tags.matrix = matrix_of(format, from->model == MODEL_RGB, source);
    if (format->model != MODEL_YUV)
        tags.location = AVCHROMA_LOC_UNSPECIFIED;
    return tags;
}

// ---- choice ----

// How bad it is to store `from` as `to`. Losses cost thousands, work and surprise little.
static int conversion_cost(const struct format *from, const struct format *to, bool playable)
{
    static const int model[3][3] = {
        // to:        gray  yuv  rgb
        [MODEL_GRAY] = {0, 10, 20},
        [MODEL_YUV] = {0, 0, 500},
        [MODEL_RGB] = {0, 2000, 0},
    };
    int cost = model[from->model][to->model];
    if (to->depth < from->depth)
        cost += 20000 + 1000 * (from->depth - to->depth);
    else
        cost += 8 * (to->depth - from->depth);
    if (from->alpha && !to->alpha)
        cost += 10000;
    if (!from->alpha && to->alpha)
        cost += 30;
    if (to->filler && !from->filler)
        cost += 3;
    if (to->model == MODEL_YUV && from->model == MODEL_YUV) {
        int lost = (to->chroma_x > from->chroma_x) + (to->chroma_y > from->chroma_y);
        int more = (to->chroma_x < from->chroma_x) + (to->chroma_y < from->chroma_y);
        cost += 5000 * lost + 50 * more;
    } else if (to->model == MODEL_YUV) {
        // Gray has no chroma to lose: the least of it. RGB loses some, or players.
        int samples = 4 - to->chroma_x - to->chroma_y;
        cost += from->model == MODEL_GRAY || playable ? 5 * samples
                                                      : 1000 * (to->chroma_x + to->chroma_y);
    }
    if (playable && to->model == MODEL_GRAY)
        cost += 60;
    return 10 * cost + (format_same_storage(from, to) ? 0 : to->planes > 1 ? 1 : 2);
}

bool pixel_plays(const struct format *format, struct pixel_wishes wishes)
{
    return !wishes.everywhere || (format->model == MODEL_YUV && format->chroma_x == 1 &&
                                  format->chroma_y == 1 && format->depth <= wishes.everywhere);
}

// The cost of a format that not all players decode, which outweighs any loss: RGB most, then other
// subsampling of chroma, then depth.
static int unplayable_cost(const struct format *to, int everywhere)
{
    const int step = 1 << 24; // more than any conversion costs
    if (!everywhere)
        return 0;
    return 4 * step * (to->model != MODEL_YUV) +
           2 * step * (to->chroma_x != 1 || to->chroma_y != 1) + step * (to->depth > everywhere);
}

enum AVPixelFormat pixel_choose(const struct format *from, int width, int height,
                                const enum AVPixelFormat *candidates, struct pixel_wishes wishes)
{
    const struct color_tags none = {0};
    enum AVPixelFormat best = AV_PIX_FMT_NONE;
    int least = INT_MAX;
    for (int k = 0; candidates ? candidates[k] != AV_PIX_FMT_NONE : k < AV_PIX_FMT_NB; k++) {
        enum AVPixelFormat pixel = candidates ? candidates[k] : (enum AVPixelFormat)k;
        struct format to;
        if (!pixel_describe(pixel, &none, 1, 1, &to) ||
            (from->model != MODEL_GRAY && to.model == MODEL_GRAY))
            continue;
        int cost = 2 * conversion_cost(from, &to, wishes.playable);
        if (wishes.whole_chroma && (width % (1 << to.chroma_x) || height % (1 << to.chroma_y)))
            cost += 1 << 28;
        cost += unplayable_cost(&to, wishes.everywhere);
        cost += wishes.opaque && to.alpha ? 1 << 28 : 0;
        // A yuvj format and its twin: take the one whose range is right.
        if (from->model == MODEL_YUV || from->model == MODEL_GRAY)
            cost += is_j(pixel) != (from->range == RANGE_FULL && to.model == MODEL_YUV);
        if (cost < least) {
            least = cost;
            best = pixel;
        }
    }
    return best;
}

enum AVPixelFormat pixel_nearest(enum AVPixelFormat pixel)
{
    const AVPixFmtDescriptor *from = av_pix_fmt_desc_get(pixel);
    if (!from)
        return AV_PIX_FMT_NONE;
    bool alpha = from->flags & (AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL);
    bool deep = from->comp[0].depth > 8;
    if (from->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER) ||
        pixel == AV_PIX_FMT_XYZ12LE || pixel == AV_PIX_FMT_XYZ12BE) {
        if (alpha)
            return deep ? AV_PIX_FMT_RGBA64 : AV_PIX_FMT_RGBA;
        return deep ? AV_PIX_FMT_RGB48 : AV_PIX_FMT_RGB24;
    }
    if (from->nb_components - !!(from->flags & AV_PIX_FMT_FLAG_ALPHA) == 1)
        return deep ? AV_PIX_FMT_GRAY16 : AV_PIX_FMT_GRAY8;
    if (alpha)
        return deep ? AV_PIX_FMT_YUVA444P16 : AV_PIX_FMT_YUVA444P;
    return deep ? AV_PIX_FMT_YUV444P16 : AV_PIX_FMT_YUV444P;
}

struct image pixel_image(const AVFrame *frame, const struct format *format)
{
    assert(format->planes > 0 && format->planes <= FORMAT_PLANES);
    struct image image = {.format = format, .width = frame->width, .height = frame->height};
    for (int p = 0; p < format->planes; p++) {
        image.data[p] = frame->data[p];
        image.stride[p] = frame->linesize[p];
    }
    return image;
}
