#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/sink_encode_internal.h"

// ---- formats ----

// A window shows these without a conversion of its own.
static const enum AVPixelFormat window_formats[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NONE};

static void choose_formats(struct encode_sink *self)
{
    struct sink_formats *formats = &self->base.formats;
    formats->candidates = encoder_pixel_formats(self->codec);
    const struct destination *destination = encode_sink_followed(self, 0);
    if (destination->quirks->formats)
        formats->candidates = destination->quirks->formats;
    if (destination->kind == DESTINATION_DISPLAY)
        formats->candidates = window_formats;
    formats->natural = !formats->candidates;
    formats->wishes = encoder_wishes(self->codec);
    formats->range = encoder_range(self->codec);
}

// ---- sharing ----

static bool is_same(const AVDictionary *a, const AVDictionary *b)
{
    const AVDictionaryEntry *entry = NULL;
    if (av_dict_count(a) != av_dict_count(b))
        return false;
    while ((entry = av_dict_get(a, "", entry, AV_DICT_IGNORE_SUFFIX))) {
        const AVDictionaryEntry *other = av_dict_get(b, entry->key, NULL, AV_DICT_MATCH_CASE);
        if (!other || strcmp(other->value, entry->value) != 0)
            return false;
    }
    return true;
}

// True if the encoding is for a window or a page: too large or too poor for a file.
static bool is_for_show(const struct encode_sink *self)
{
    return mux_thread_destination(self->mux[0])->kind >= DESTINATION_DISPLAY;
}

static bool asks_the_same(const struct encode_sink *self, const struct encode_sink *other)
{
    const struct sink_formats *a = &self->base.formats, *b = &other->base.formats;
    return a->asked == b->asked && a->asked_range == b->asked_range &&
           (!a->asked || *a->candidates == *b->candidates);
}

void sink_encode_join(struct sink *sink, struct sink **other)
{
    assert(sink->encoder && (*other)->encoder && *other != sink);
    struct encode_sink *self = (struct encode_sink *)sink, *from = (struct encode_sink *)*other;
    bool codec =
        from->codec_named ? from->codec == self->codec : from->codec->id == self->codec->id;
    bool options = !from->encoder_options || is_same(from->encoder_options, self->encoder_options);
    bool format = !sink_is_asked(&from->base.formats) || asks_the_same(self, from);
    if (!codec || !options || !format || self->one_a_file || from->one_a_file ||
        (is_for_show(self) && !is_for_show(from)) ||
        encode_sink_counts_frames(self) != encode_sink_counts_frames(from))
        return;
    for (int k = 0; k < from->muxes; k++)
        self->mux[self->muxes++] = from->mux[k];
    self->base.is_live |= from->base.is_live;
    from->muxes = 0;
    (*other)->destroy(other);
}

// ---- preparation ----

static enum status create_mux(struct encode_sink *self, const struct sink_request *request)
{
    struct mux_thread_request mux = {
        .destination = {.name = request->output,
                        .format = request->whole ? NULL : request->format,
                        .overwrite = request->overwrite,
                        .segment = request->segment,
                        .conflicts = request->conflicts},
        .open_timeout = request->open_timeout,
        .stall_timeout = request->stall_timeout,
        .reconnects = request->reconnects,
    };
    enum status status = mux_thread_create(&mux, self->log, self->stop, &self->mux[0]);
    self->muxes = !status;
    return status;
}

// Learn what the output is a part of.
static enum status follow_whole(struct encode_sink *self, const struct sink_request *request)
{
    struct destination_request whole = {.name = request->whole,
                                        .format = request->format,
                                        .overwrite = true,
                                        .segment = request->segment};
    if (!request->whole)
        return STATUS_OK;
    return destination_init(&whole, self->log, &self->whole);
}

// True if the number of threads is in the headers: parts that are made with different numbers, of
// cores or of jobs at once, could not be joined.
static bool writes_threads(const AVCodec *codec)
{
    return !strcmp(codec->name, "mpeg4") || !strcmp(codec->name, "libx265");
}

static enum status choose_encoder(struct encode_sink *self, const struct sink_request *request)
{
    const struct destination *destination = encode_sink_followed(self, 0);
    self->container = destination->container;
    self->one_a_file = destination_is_images(destination);
    self->codec =
        encoder_find(request->encoder, destination->container, destination->name, self->log);
    if (!self->codec)
        return STATUS_USAGE;
    self->codec_named = request->encoder;
    self->base.encoder = self->codec->name;
    self->base.container = destination->container->name;
    self->base.one_frame = self->one_a_file && !name_is_sequence(destination->name);
    self->base.is_live = destination_is_live(destination);
    self->converter = (struct converter){.log = self->log,
                                         .formats = &self->base.formats,
                                         .encoder = self->codec->name,
                                         .container = self->container->name};
    choose_formats(self);
    return sink_ask(&self->base, request, self->codec->name, self->log);
}

// Check that the files of parts, which have a container of their own, take what the whole is encoded as.
static enum status check_part(const struct encode_sink *self)
{
    const struct destination *part = mux_thread_destination(self->mux[0]);
    if (muxer_takes_alone(part->container, self->codec->id))
        return STATUS_OK;
    return log_fail(self->log, STATUS_USAGE,
                    "%s cannot be made in parts: their files, of %s, take no %s; make it whole, or "
                    "name another encoder by -c:v",
                    self->whole.shown, part->container->name, avcodec_get_name(self->codec->id));
}

static enum status add_options(struct encode_sink *self, const struct sink_request *request)
{
    struct encoder_options options = {
        .log = self->log, .codec = self->codec, .container = self->container};
    enum status status = encoder_options_add(&options, request);
    self->encoder_options = options.encoder;
    if (request->whole) // those of the container are for who joins the parts
        av_dict_free(&options.muxer);
    mux_thread_set_options(self->mux[0], &options.muxer);
    return status;
}

enum status encode_sink_prepare(struct encode_sink *self, const struct sink_request *request)
{
    enum status status = create_mux(self, request);
    if (!status)
        status = follow_whole(self, request);
    if (!status)
        status = choose_encoder(self, request);
    if (!status && request->whole)
        status = check_part(self);
    if (!status)
        self->threads = request->whole && writes_threads(self->codec) ? 1 : request->threads;
    return status ? status : add_options(self, request);
}
