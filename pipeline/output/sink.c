#include "pipeline/output/sink.h"

#include <assert.h>
#include <libavutil/avstring.h>
#include <libavutil/pixdesc.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"

static enum status refuse_encoding(const struct sink_request *request, const struct log *log)
{
    const char *option = request->encoder                        ? "-c:v"
                         : request->crf != 0                     ? "--crf"
                         : request->preset                       ? "--preset"
                         : request->bitrate                      ? "-b:v"
                         : request->options && *request->options ? "--option"
                         : request->format                       ? "-F"
                         : request->segment > 0                  ? "--segment"
                                                                 : NULL;
    if (!option)
        return STATUS_OK;
    return log_fail(log, STATUS_USAGE, "%s is for encoded output; %s encodes nothing", option,
                    request->output);
}

static enum status create_one(const struct sink_request *request, const struct log *log,
                              const struct stop *stop, struct sink **sink)
{
    const char *file = NULL;
    if (!sink_is_nowhere(request->output) && !av_strstart(request->output, "hash:", &file))
        return sink_encode_create(request, log, stop, sink);
    enum status status = refuse_encoding(request, log);
    if (!status && file)
        status = sink_hash_create(file, request->overwrite, log, stop, sink);
    else if (!status && !strcmp(request->output, sink_take_name))
        status = sink_take_create(&request->taker, log, stop, sink);
    else if (!status)
        status = sink_null_create(sink);
    if (!status)
        status = sink_ask(*sink, request, request->output, log);
    if (status)
        sink_destroy(sink);
    return status;
}

// ---- what is asked for ----

static bool holds(const enum AVPixelFormat *list, enum AVPixelFormat pixel)
{
    for (; list && *list != AV_PIX_FMT_NONE; list++)
        if (*list == pixel)
            return true;
    return !list;
}

static void list_names(const enum AVPixelFormat *list, char *to, size_t size)
{
    *to = 0;
    for (; *list != AV_PIX_FMT_NONE; list++) {
        size_t used = strlen(to);
        snprintf(to + used, size - used, "%s%s", used ? ", " : "", av_get_pix_fmt_name(*list));
    }
}

static enum status ask_pixel(struct sink *sink, const char *name, const char *owner,
                             const struct log *log)
{
    struct sink_formats *formats = &sink->formats;
    const struct color_tags none = {0};
    struct format format;
    char names[1024];
    enum AVPixelFormat pixel;
    enum status status = pixel_asked_for(name, log, &pixel);
    if (status)
        return status;
    if (!holds(formats->candidates, pixel)) {
        list_names(formats->candidates, names, sizeof names);
        return log_fail(log, STATUS_USAGE, "--pix-fmt %s: %s does not take it; it takes %s", name,
                        owner, names);
    }
    if (!pixel_describe(pixel, &none, 1, 1, &format) && !(sink->encoder && scaler_makes(pixel)))
        return log_fail(log, STATUS_USAGE,
                        "--pix-fmt %s: %s cannot be given pictures of this format", name, owner);
    sink->asked[0] = pixel;
    sink->asked[1] = AV_PIX_FMT_NONE;
    formats->candidates = sink->asked;
    formats->natural = false;
    formats->wishes = (struct pixel_wishes){0};
    return formats->asked = true, STATUS_OK;
}

static const char *range_name(enum sink_range range)
{
    return range == SINK_RANGE_FULL ? "full" : "limited";
}

// True if a list has a format of Y'CbCr, whose range nothing would tell a player.
static bool has_yuv(const enum AVPixelFormat *list)
{
    const struct color_tags none = {0};
    struct format format;
    for (; list && *list != AV_PIX_FMT_NONE; list++)
        if (pixel_describe(*list, &none, 1, 1, &format) && format.model == MODEL_YUV)
            return true;
    return false;
}

static enum status ask_range(struct sink *sink, enum sink_range range, const char *owner,
                             const struct log *log)
{
    struct sink_formats *formats = &sink->formats;
    const struct color_tags none = {0};
    struct format format;
    bool only = formats->range != SINK_RANGE_ANY && formats->range != range;
    if (only && has_yuv(formats->candidates))
        return log_fail(
            log, STATUS_USAGE,
            "--range %s: what %s makes is always of %s range, as it cannot say which it has",
            range_name(range), owner, range_name(formats->range));
    if (formats->asked && range == SINK_RANGE_LIMITED &&
        pixel_describe(*formats->candidates, &none, 1, 1, &format) &&
        (format.model == MODEL_RGB || (format.model == MODEL_YUV && format.range == RANGE_FULL)))
        return log_fail(log, STATUS_USAGE, "--range limited: %s is of full range by definition",
                        av_get_pix_fmt_name(*formats->candidates));
    formats->asked_range = range;
    return STATUS_OK;
}

enum status sink_ask(struct sink *sink, const struct sink_request *request, const char *owner,
                     const struct log *log)
{
    enum status status = STATUS_OK;
    if (request->pixfmt)
        status = ask_pixel(sink, request->pixfmt, owner, log);
    if (!status && request->range != SINK_RANGE_ANY)
        status = ask_range(sink, request->range, owner, log);
    return status;
}

// ---- all of them ----

enum status sink_create(const struct sink_request *requests, int count, const struct log *log,
                        const struct stop *stop, struct sink **sink)
{
    assert(count >= 1 && count <= MAX_OUTPUTS);
    struct sink *made[MAX_OUTPUTS] = {NULL};
    int picture[MAX_OUTPUTS], sinks = 0;
    enum status status = STATUS_OK;
    *sink = NULL;
    for (int k = 0; k < count && !status; k++) {
        status = create_one(&requests[k], log, stop, &made[sinks]);
        for (int n = 0; n < sinks && made[sinks]; n++)
            if (picture[n] == requests[k].picture && made[n]->encoder && made[sinks]->encoder)
                sink_encode_join(made[n], &made[sinks]);
        picture[sinks] = requests[k].picture;
        sinks += made[sinks] != NULL;
    }
    if (!status && sinks > 1)
        return sink_tee_create(made, picture, sinks, log, stop, sink);
    if (!status)
        *sink = made[0];
    for (int k = 0; k < sinks && status; k++)
        sink_destroy(&made[k]);
    return status;
}
