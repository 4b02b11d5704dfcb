// Pixel formats of filtered pictures: the one each takes on its way out, and what is lost by it.
#include "pipeline/engine/filter/filter_private.h"

#include <libavutil/pixdesc.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"

// Choose the pixel format that the chain's result takes on its way out.
static enum AVPixelFormat choose_output(const struct sink_formats *formats,
                                        const struct format *natural, const AVFrame *frame,
                                        enum AVPixelFormat kept)
{
    if (!formats->natural) {
        struct format wanted = *natural;
        enum sink_range range =
            formats->asked_range != SINK_RANGE_ANY ? formats->asked_range : formats->range;
        if (range != SINK_RANGE_ANY)
            wanted.range = range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        enum AVPixelFormat pixel = pixel_choose(&wanted, frame->width, frame->height,
                                                formats->candidates, formats->wishes);
        if (pixel != AV_PIX_FMT_NONE)
            return pixel;
    }
    if (kept != AV_PIX_FMT_NONE)
        return kept;
    enum AVPixelFormat same = pixel_find(natural);
    return same != AV_PIX_FMT_NONE
               ? same
               : pixel_choose(natural, frame->width, frame->height, NULL, (struct pixel_wishes){0});
}

static bool is_j(enum AVPixelFormat pixel)
{
    const char *name = av_get_pix_fmt_name(pixel);
    return name && !strncmp(name, "yuvj", 4);
}

// The meaning of the result when it is stored as `pixel`.
static void describe_output(const struct sink_formats *formats, const struct format *natural,
                            enum AVPixelFormat pixel, const AVFrame *frame, struct format *output)
{
    struct color_tags tags = color_tags_of(frame);
    pixel_describe(pixel, &tags, frame->width, frame->height, output);
    if (output->model != MODEL_RGB) {
        output->range = natural->range;
        if (output->model == MODEL_YUV && formats->range != SINK_RANGE_ANY)
            output->range = formats->range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        if (formats->asked_range != SINK_RANGE_ANY)
            output->range = formats->asked_range == SINK_RANGE_FULL ? RANGE_FULL : RANGE_LIMITED;
        if (is_j(pixel))
            output->range = RANGE_FULL;
    }
    if (natural->model != MODEL_RGB || output->model == MODEL_RGB) {
        output->kr = natural->kr;
        output->kb = natural->kb;
        output->siting = natural->siting;
    }
}

// The format of one of the program's pictures on its way out.
static void choose_picture(const struct program *program, const struct picture *picture,
                           const struct sink_formats *formats, const AVFrame *frame,
                           enum AVPixelFormat software_pixel, enum AVPixelFormat *output,
                           struct format *format, struct format *left)
{
    struct format natural = program_natural_format(program, picture);
    if (left)
        *left = natural;
    // A result stored like the input keeps its very format; from the GPU's memory it takes the one
    // that software decoding would have given.
    enum AVPixelFormat kept = AV_PIX_FMT_NONE;
    if (format_same_storage(&natural, &program->input))
        kept = frame->hw_frames_ctx ? software_pixel : frame->format;
    *output = choose_output(formats, &natural, frame, kept);
    describe_output(formats, &natural, *output, frame, format);
}

enum status filter_lower(const struct chain *chain, const struct sink_formats *formats,
                         const AVFrame *frame, enum AVPixelFormat software_pixel,
                         struct program *program, enum AVPixelFormat *output,
                         struct format *natural)
{
    struct color_tags tags = color_tags_of(frame);
    struct format input, format;
    if (!pixel_describe(filter_memory_format(frame), &tags, frame->width, frame->height, &input))
        return STATUS_FAILED;
    enum status status = program_init(program, &input);
    if (!status)
        status = chain_lower(chain, program);
    for (int k = 0; k < program->tees && !status; k++) {
        choose_picture(program, &program->tee[k].picture, &formats[k + 1], frame, software_pixel,
                       &output[k + 1], &format, natural ? &natural[k + 1] : NULL);
        program_choose_tee(program, k, &format);
    }
    if (!status) {
        choose_picture(program, &program->picture, &formats[0], frame, software_pixel, &output[0],
                       &format, natural);
        status = program_finish(program, &format);
    }
    if (status)
        program_free(program);
    return status;
}

// The encoder's format of Y'CbCr that loses least.
static enum AVPixelFormat richest_format(const struct filter *filter,
                                         const struct sink_formats *formats,
                                         const struct format *natural)
{
    const struct pixel_wishes wishes = {.playable = true,
                                        .whole_chroma = formats->wishes.whole_chroma};
    const struct color_tags none = {0};
    enum AVPixelFormat list[64] = {AV_PIX_FMT_NONE};
    int count = 0;
    for (const enum AVPixelFormat *at = formats->candidates;
         at && *at != AV_PIX_FMT_NONE && count < 63; at++) {
        struct format format;
        if (pixel_describe(*at, &none, 1, 1, &format) && format.model == MODEL_YUV)
            list[count++] = *at;
        list[count] = AV_PIX_FMT_NONE;
    }
    return pixel_choose(natural, filter->input.width, filter->input.height, list, wishes);
}

void filter_report_loss(const struct filter *filter, const struct sink_formats *formats,
                        const struct format *natural, const struct format *output)
{
    const struct filter_request *request = &filter->request;
    int width = filter->input.width, height = filter->input.height;
    enum AVPixelFormat was = pixel_find(natural), made = pixel_find(output);
    enum AVPixelFormat more = richest_format(filter, formats, natural);
    bool loses = output->depth < natural->depth ||
                 (natural->model != MODEL_GRAY &&
                  (output->chroma_x > natural->chroma_x || output->chroma_y > natural->chroma_y));
    if (was == AV_PIX_FMT_NONE || made == AV_PIX_FMT_NONE || more == AV_PIX_FMT_NONE)
        return;
    bool chosen = formats->wishes.everywhere && loses && more != made;
    if (!pixel_plays(output, formats->wishes))
        log_print(request->log, LOG_WARNING,
                  "pictures of %dx%d are written as %s, which few players take: what all take "
                  "has even sizes in this codec",
                  width, height, av_get_pix_fmt_name(made));
    else if (chosen)
        log_print(request->log, LOG_INFO,
                  "%s is written as %s, which plays everywhere; --pix-fmt %s keeps more",
                  av_get_pix_fmt_name(was), av_get_pix_fmt_name(made), av_get_pix_fmt_name(more));
    else if (output->depth < natural->depth && !formats->asked)
        log_print(request->log, LOG_INFO, "%s is written as %s: %d of its %d bits are kept",
                  av_get_pix_fmt_name(was), av_get_pix_fmt_name(made), output->depth,
                  natural->depth);
    if (natural->alpha && !output->alpha && !formats->asked)
        log_print(request->log, LOG_INFO, "%s is written as %s: its transparency is left out",
                  av_get_pix_fmt_name(was), av_get_pix_fmt_name(made));
}

enum status filter_check_asked(const struct filter *filter, const struct sink_formats *formats,
                               const struct format *natural)
{
    const struct color_tags none = {0};
    struct format asked;
    if (!formats->asked || !pixel_describe(*formats->candidates, &none, 1, 1, &asked) ||
        asked.model != MODEL_GRAY || natural->model == MODEL_GRAY)
        return STATUS_OK;
    return log_fail(filter->request.log, STATUS_USAGE,
                    "--pix-fmt %s has no colours and the chain leaves some; let it end with 'gray'",
                    av_get_pix_fmt_name(*formats->candidates));
}
