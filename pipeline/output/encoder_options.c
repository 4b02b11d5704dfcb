#include "pipeline/output/encoder_options.h"

#include <inttypes.h>
#include <libavutil/opt.h>
#include <stdio.h>
#include <string.h>

#include "base/secrets.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/encoder.h"

// A value as messages may show it.
static const char *shown_value(const char *key, const char *value)
{
    bool secret = secrets_has_name(key, strlen(key)) && strncmp(key, "keyint", 6);
    return secret ? "***" : value;
}

// Try a value on an object that has the option: --option and the like are refused before anything
// opens.
static enum status try_option(const struct encoder_options *options, void *object, const char *key,
                              const char *value, const char *owner)
{
    int error = av_opt_set(object, key, value, AV_OPT_SEARCH_CHILDREN);
    if (error >= 0)
        return STATUS_OK;
    const AVOption *option = av_opt_find(object, key, NULL, 0, AV_OPT_SEARCH_CHILDREN);
    char range[96] = "";
    if (option && option->type != AV_OPT_TYPE_STRING && option->min < option->max)
        snprintf(range, sizeof range, ", the range is %g .. %g", option->min, option->max);
    return log_fail(options->log, STATUS_USAGE, "%s=%s: %s does not take this value%s%s%s", key,
                    shown_value(key, value), owner, range,
                    option && option->help ? "; it is: " : "",
                    option && option->help ? option->help : "");
}

static enum status add_to_encoder(struct encoder_options *options, const char *key,
                                  const char *value)
{
    const AVCodec *codec = options->codec;
    char wanted[256];
    if (!encoder_knows(codec, key, value, wanted, sizeof wanted))
        return log_fail(options->log, STATUS_USAGE, "%s=%s: the encoder %s takes %s", key, value,
                        codec->name, wanted);
    AVCodecContext *trial = avcodec_alloc_context3(codec);
    if (!trial)
        return STATUS_MEMORY;
    enum status status = try_option(options, trial, key, value, codec->name);
    avcodec_free_context(&trial);
    if (!status && !encoder_takes(codec, key, value))
        status = log_fail(options->log, STATUS_USAGE, "the encoder %s does not take %s=%s",
                          codec->name, key, shown_value(key, value));
    if (!status && av_dict_set(&options->encoder, key, value, 0) < 0)
        status = STATUS_MEMORY;
    return status;
}

static enum status add_to_muxer(struct encoder_options *options, const char *key, const char *value)
{
    const AVOutputFormat *container = options->container;
    AVFormatContext *trial = NULL;
    if (avformat_alloc_output_context2(&trial, (AVOutputFormat *)container, NULL, NULL) < 0)
        return STATUS_MEMORY;
    enum status status = try_option(options, trial, key, value, container->name);
    avformat_free_context(trial);
    if (!status && av_dict_set(&options->muxer, key, value, 0) < 0)
        status = STATUS_MEMORY;
    return status;
}

static enum status add(struct encoder_options *options, const char *key, const char *value)
{
    const char *codec = options->codec->name, *container = options->container->name;
    if (encoder_has_option(options->codec, key))
        return add_to_encoder(options, key, value);
    if (muxer_has_option(options->container, key))
        return add_to_muxer(options, key, value);
    return log_fail(options->log, STATUS_USAGE,
                    "neither the encoder %s nor the container %s has an option '%s'; 'ffmpeg -h "
                    "encoder=%s' and 'ffmpeg -h muxer=%s' list them",
                    codec, container, key, codec, container);
}

static bool is_lossy(const AVCodec *codec)
{
    const AVCodecDescriptor *about = avcodec_descriptor_get(codec->id);
    return about && about->props & AV_CODEC_PROP_LOSSY;
}

static enum status add_named(struct encoder_options *options, const struct sink_request *request)
{
    char crf[32], bitrate[32];
    snprintf(crf, sizeof crf, "%g", request->crf > 0 ? request->crf : 0);
    snprintf(bitrate, sizeof bitrate, "%" PRId64, request->bitrate > 0 ? request->bitrate : 0);
    const struct {
        const char *flag, *key, *value;
    } named[] = {{"--crf", "crf", request->crf != 0 ? crf : NULL},
                 {"--preset", "preset", request->preset},
                 {"-b:v", "b", request->bitrate ? bitrate : NULL}};
    for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
        if (!named[k].value)
            continue;
        if (!encoder_has_option(options->codec, named[k].key))
            return log_fail(
                options->log, STATUS_USAGE, "%s: the encoder %s has no such option%s",
                named[k].flag, options->codec->name,
                !strcmp(named[k].key, "crf") && is_lossy(options->codec) ? "; -b:v may do" : "");
        enum status status = add(options, named[k].key, named[k].value);
        if (status)
            return status;
    }
    return STATUS_OK;
}

enum status encoder_options_add(struct encoder_options *options, const struct sink_request *request)
{
    enum status status = add_named(options, request);
    for (const char *const *text = request->options; text && *text && !status; text++) {
        const char *value = strchr(*text, '=');
        if (!value || value == *text)
            return log_fail(options->log, STATUS_USAGE, "--option is '%s'; it takes key=value",
                            *text);
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)(value - *text), *text);
        status = add(options, key, value + 1);
    }
    return status;
}
