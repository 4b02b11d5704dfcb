// The sink that encodes: an encoder, and the mux threads that its packets go to.
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/encoder.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"
#include "pipeline/output/sink.h"
#include "base/secrets.h"
#include "plan/rotation.h"

struct encode_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    const AVCodec *codec;
    bool codec_named;
    AVDictionary *encoder_options;
    const AVOutputFormat *container; // of the first output
    bool one_a_file;                 // it writes images
    struct mux_thread *mux[MAX_OUTPUTS];
    int muxes;
    struct encoder *encoder;
    struct sink_video video;
    int stream; // of the source: the filtered one
    struct scaler *scaler;
    bool logged_scaled;
    _Atomic int64_t taken;    // frames
    bool await_start;         // an address that is not reached at first is tried again
    int64_t seen_ns;          // when something was encoded though nobody watched
    struct rotation rotation; // of every frame, because the container cannot ask for it
    // The encoder's geometry, and whether its pictures are of full range.
    int width, height;
    bool full;
};

// ---- options ----

// A value as messages may show it.
static const char *shown_value(const char *key, const char *value)
{
    bool secret = secrets_has_name(key, strlen(key)) && strncmp(key, "keyint", 6);
    return secret ? "***" : value;
}

// Try a value on an object that has the option; -o and the like are refused before anything opens.
static enum status try_option(const struct encode_sink *self, void *object, const char *key,
                              const char *value, const char *owner)
{
    int error = av_opt_set(object, key, value, AV_OPT_SEARCH_CHILDREN);
    if (error >= 0)
        return STATUS_OK;
    const AVOption *option = av_opt_find(object, key, NULL, 0, AV_OPT_SEARCH_CHILDREN);
    char range[96] = "";
    if (option && option->type != AV_OPT_TYPE_STRING && option->min < option->max)
        snprintf(range, sizeof range, ", the range is %g .. %g", option->min, option->max);
    return fail(self->log, STATUS_USAGE, "%s=%s: %s does not take this value%s%s%s", key,
                shown_value(key, value), owner, range, option && option->help ? "; it is: " : "",
                option && option->help ? option->help : "");
}

static enum status add_option(struct encode_sink *self, const char *key, const char *value,
                              AVDictionary **muxer_options)
{
    enum status status;
    char wanted[256];
    if (encoder_has_option(self->codec, key)) {
        if (!encoder_knows(self->codec, key, value, wanted, sizeof wanted))
            return fail(self->log, STATUS_USAGE, "%s=%s: the encoder %s takes %s", key, value,
                        self->codec->name, wanted);
        AVCodecContext *trial = avcodec_alloc_context3(self->codec);
        if (!trial)
            return STATUS_MEMORY;
        status = try_option(self, trial, key, value, self->codec->name);
        avcodec_free_context(&trial);
        if (!status && !encoder_takes(self->codec, key, value))
            status = fail(self->log, STATUS_USAGE, "the encoder %s does not take %s=%s",
                          self->codec->name, key, shown_value(key, value));
        av_dict_set(&self->encoder_options, key, value, 0);
        return status;
    }
    if (muxer_has_option(self->container, key)) {
        AVFormatContext *trial = NULL;
        if (avformat_alloc_output_context2(&trial, (AVOutputFormat *)self->container, NULL, NULL) <
            0)
            return STATUS_MEMORY;
        status = try_option(self, trial, key, value, self->container->name);
        avformat_free_context(trial);
        av_dict_set(muxer_options, key, value, 0);
        return status;
    }
    return fail(self->log, STATUS_USAGE,
                "neither the encoder %s nor the container %s has an option '%s'; 'ffmpeg -h "
                "encoder=%s' and 'ffmpeg -h muxer=%s' list them",
                self->codec->name, self->container->name, key, self->codec->name,
                self->container->name);
}

static enum status add_options(struct encode_sink *self, const struct sink_request *request,
                               AVDictionary **muxer_options)
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
        if (!encoder_has_option(self->codec, named[k].key))
            return fail(self->log, STATUS_USAGE,
                        "%s: the encoder %s has no such option; -b:v may do", named[k].flag,
                        self->codec->name);
        enum status status = add_option(self, named[k].key, named[k].value, muxer_options);
        if (status)
            return status;
    }
    for (const char *const *text = request->options; text && *text; text++) {
        const char *value = strchr(*text, '=');
        if (!value || value == *text)
            return fail(self->log, STATUS_USAGE, "--option is '%s'; it takes key=value", *text);
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)(value - *text), *text);
        enum status status = add_option(self, key, value + 1, muxer_options);
        if (status)
            return status;
    }
    return STATUS_OK;
}

// ---- formats ----

// What a window shows without conversion of its own.
static const enum AVPixelFormat window_formats[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NONE};

static void choose_formats(struct encode_sink *self)
{
    struct sink_formats *formats = &self->base.formats;
    formats->candidates = encoder_pixel_formats(self->codec);
    const struct destination *destination = mux_thread_destination(self->mux[0]);
    if (destination->quirks->formats)
        formats->candidates = destination->quirks->formats;
    if (destination->kind == DESTINATION_DISPLAY)
        formats->candidates = window_formats;
    formats->natural = !formats->candidates;
    formats->wishes = encoder_wishes(self->codec);
    formats->range = encoder_range(self->codec);
}

// ---- frames and packets ----

static bool counts_frames(const struct encode_sink *self)
{
    return mux_thread_destination(self->mux[0])->quirks->counts_frames;
}

static bool wants_global_header(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (mux_thread_destination(self->mux[k])->container->flags & AVFMT_GLOBALHEADER)
            return true;
    return false;
}

// Whoever begins to watch waits for a key frame.
static bool is_joined_midway(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++) {
        const struct destination *destination = mux_thread_destination(self->mux[k]);
        if (destination->kind == DESTINATION_ADDRESS || destination_is_playlist(destination))
            return true;
    }
    return false;
}

static void set_defaults(const struct encode_sink *self, AVDictionary **options)
{
    const int flags = AV_DICT_DONT_OVERWRITE;
    // Frames that an encoder keeps back are late, and lost when the program is ended by force.
    if (self->video.live && av_match_name(self->codec->name, "libx264,libx265"))
        av_dict_set(options, "tune", "zerolatency", flags);
    double rate = self->video.frame_rate.num > 0 ? av_q2d(self->video.frame_rate) : 25;
    if (is_joined_midway(self) && rate < 1000 && encoder_has_option(self->codec, "g"))
        av_dict_set_int(options, "g", (int64_t)(2 * rate + 0.5), flags);
}

static enum status open_encoder(struct encode_sink *self, const AVFrame *frame)
{
    struct encoder_video video = {
        .frame = frame,
        .time_base = self->video.time_base,
        .rate = self->video.frame_rate,
        .constant_rate = counts_frames(self),
        .global_header = wants_global_header(self),
        .still = self->base.one_frame,
    };
    AVDictionary *options = NULL;
    av_dict_copy(&options, self->encoder_options, 0);
    set_defaults(self, &options);
    enum status status = encoder_create(self->codec, &video, &options, self->log, &self->encoder);
    av_dict_free(&options);
    self->width = frame->width;
    self->height = frame->height;
    self->base.pixel = frame->format;
    self->full = pixel_is_full(frame);
    return status;
}

static bool takes(const struct encode_sink *self, enum AVPixelFormat pixel)
{
    const enum AVPixelFormat *candidates = self->base.formats.candidates;
    for (int k = 0; candidates && candidates[k] != AV_PIX_FMT_NONE; k++)
        if (candidates[k] == pixel)
            return true;
    return !candidates;
}

// The encoder's pixel format for frames like this one, which the filter made for another output, or
// could not give one of its own.
static enum AVPixelFormat encodable(const struct encode_sink *self, const AVFrame *frame)
{
    const struct sink_formats *formats = &self->base.formats;
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
    return best != AV_PIX_FMT_NONE
               ? best
               : avcodec_find_best_pix_fmt_of_list(formats->candidates, known, from.alpha, NULL);
}

// The range that the encoder's pictures have to have; UNSPECIFIED: that of the frames.
static enum AVColorRange needed_range(const struct encode_sink *self, enum AVPixelFormat pixel)
{
    const struct sink_formats *formats = &self->base.formats;
    bool yuv = av_pix_fmt_desc_get(pixel)->nb_components >= 3;
    enum sink_range range = formats->asked_range != SINK_RANGE_ANY ? formats->asked_range
                            : yuv                                  ? formats->range
                                                                   : SINK_RANGE_ANY;
    return range == SINK_RANGE_FULL      ? AVCOL_RANGE_JPEG
           : range == SINK_RANGE_LIMITED ? AVCOL_RANGE_MPEG
                                         : AVCOL_RANGE_UNSPECIFIED;
}

// Make `shown`, a view of a frame, what the encoder gets for it.
static enum status choose_pixel(struct encode_sink *self, AVFrame *shown)
{
    enum AVPixelFormat from = shown->format, pixel = encodable(self, shown);
    if (pixel == AV_PIX_FMT_NONE)
        return fail(self->log, STATUS_OUTPUT, "the encoder %s takes no format like %s",
                    self->codec->name, av_get_pix_fmt_name(from));
    bool was_full = pixel_is_full(shown);
    scaler_tag(pixel, needed_range(self, pixel), shown);
    if (pixel != from || pixel_is_full(shown) != was_full)
        log_print(self->log, LOG_INFO, "libswscale converts %s to %s for the encoder %s",
                  av_get_pix_fmt_name(from), av_get_pix_fmt_name(pixel), self->codec->name);
    return STATUS_OK;
}

static bool all_carry_rotation(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (!mux_thread_destination(self->mux[k])->quirks->rotation)
            return false;
    return true;
}

// Choose the rotation of pictures, and what they are then like: `shown`, a view of the
// first.
static void choose_rotation(struct encode_sink *self, AVFrame *shown)
{
    const int32_t *matrix =
        display_matrix(self->video.from->streams[self->stream], self->video.first);
    struct color_tags tags = color_tags_of(shown);
    struct format format;
    if (!matrix || all_carry_rotation(self))
        return;
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
                  self->container->name, av_get_pix_fmt_name(shown->format));
        return;
    }
    self->rotation = rotation;
    shown->format = rotated;
    if (rotation.transpose) {
        FFSWAP(int, shown->width, shown->height);
        shown->sample_aspect_ratio = av_inv_q(shown->sample_aspect_ratio);
    }
}

// What the encoder makes, for mux threads. `codec` is freed by the caller.
static enum status describe(const struct encode_sink *self, AVCodecParameters **codec,
                            struct muxer_streams *streams)
{
    const AVCodecContext *context = encoder_context(self->encoder);
    *codec = avcodec_parameters_alloc();
    if (!*codec || avcodec_parameters_from_context(*codec, context) < 0)
        return STATUS_MEMORY;
    *streams = (struct muxer_streams){
        .name = self->video.name,
        .from = self->video.from,
        .video = self->stream,
        .live = self->video.live,
        .codec = *codec,
        .time_base = context->time_base,
        .frame_rate = context->framerate,
        .global_header = context->flags & AV_CODEC_FLAG_GLOBAL_HEADER,
        .first = self->video.first,
        .shift = self->video.shift,
        .end = self->video.end,
        .rotated = !rotation_is_none(self->rotation),
    };
    return STATUS_OK;
}

// A live source waits for nobody, but for the one file that there is: frames are then dropped
// before they are encoded, which is kinder to the picture.
static bool skips(const struct encode_sink *self, const struct mux_thread *mux)
{
    return self->video.live && (self->video.has_siblings || self->muxes > 1 ||
                                destination_is_live(mux_thread_destination(mux)));
}

static enum status open_muxes(struct encode_sink *self)
{
    AVCodecParameters *codec;
    struct mux_thread_opening opening = {.watch = self->video.watch};
    enum status status = describe(self, &codec, &opening.streams);
    for (int k = 0; k < self->muxes && !status; k++) {
        opening.skips = skips(self, self->mux[k]);
        opening.must_connect = !self->video.has_siblings && self->muxes == 1 && !self->await_start;
        status = mux_thread_open(self->mux[k], &opening);
        if (!status)
            status =
                passthrough_join(&self->base.passthrough, mux_thread_passthrough(self->mux[k]));
        opening.watch = (struct mux_thread_watch){0};
    }
    avcodec_parameters_free(&codec);
    return status;
}

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    self->video = *video;
    self->stream = video->stream;
    AVFrame shown = *video->first; // a view, to open the encoder by
    choose_rotation(self, &shown);
    enum status status = choose_pixel(self, &shown);
    if (!status)
        status = open_encoder(self, &shown);
    return status ? status : open_muxes(self);
}

// Give a packet to all mux threads. The first failure, where none of them takes it.
static enum status push(struct encode_sink *self, const struct packet *packet, bool other)
{
    enum status first = STATUS_OK;
    int taken = 0;
    for (int k = 0; k < self->muxes; k++) {
        const struct passthrough *passthrough = mux_thread_passthrough(self->mux[k]);
        if (other && !passthrough_accepts(passthrough, packet->av->stream_index))
            continue;
        enum status status = mux_thread_push(self->mux[k], packet);
        taken += !status;
        first = first ? first : status;
    }
    return taken ? STATUS_OK : first;
}

static enum status pass_packets(struct encode_sink *self)
{
    struct packet *packet = packet_create();
    enum status status = packet ? STATUS_OK : STATUS_MEMORY;
    bool got = true;
    while (!status) {
        status = encoder_receive(self->encoder, packet->av, &got);
        if (!got || status)
            break;
        packet->av->stream_index = self->stream;
        packet->pts_us = av_rescale_q(packet->av->pts, encoder_context(self->encoder)->time_base,
                                      AV_TIME_BASE_Q);
        status =
            self->stop && stop_is_late(self->stop) ? STATUS_STOPPED : push(self, packet, false);
        self->base.kept += !status;
        av_packet_unref(packet->av);
    }
    packet_destroy(&packet);
    return status == STATUS_EOF && !got ? STATUS_OK : status;
}

// Another encoder for other pictures, once this one has given all that it holds.
static enum status renew_encoder(struct encode_sink *self, const AVFrame *frame)
{
    bool sent;
    enum status status = encoder_send(self->encoder, NULL, &sent);
    if (!status)
        status = pass_packets(self);
    encoder_destroy(&self->encoder);
    return status ? status : open_encoder(self, frame);
}

static bool is_all_segments(const struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++)
        if (mux_thread_destination(self->mux[k])->kind != DESTINATION_SEGMENTS)
            return false;
    return true;
}

// Pictures of another size begin another segment.
static enum status change_segment(struct encode_sink *self, const AVFrame *frame)
{
    AVCodecParameters *codec = NULL;
    struct muxer_streams streams;
    log_print(self->log, LOG_INFO, "the picture changes to %dx%d: a new segment begins",
              frame->width, frame->height);
    enum status status = renew_encoder(self, frame);
    if (!status)
        status = describe(self, &codec, &streams);
    for (int k = 0; k < self->muxes && !status; k++)
        status = mux_thread_change(self->mux[k], &streams);
    avcodec_parameters_free(&codec);
    return status;
}

// A picture of another size or format than the encoder's: images and segments get an encoder of
// their own, all else is scaled.
static enum status fit(struct encode_sink *self, const AVFrame *frame, AVFrame *fitted)
{
    enum AVColorRange range = needed_range(self, frame->format);
    bool ranged =
        range == AVCOL_RANGE_UNSPECIFIED || pixel_is_full(frame) == (range == AVCOL_RANGE_JPEG);
    bool encodes = encodable(self, frame) == frame->format;
    if (encodes && ranged && (self->one_a_file || is_all_segments(self))) {
        enum status status =
            self->one_a_file ? renew_encoder(self, frame) : change_segment(self, frame);
        return status ? status : av_frame_ref(fitted, frame) < 0 ? STATUS_MEMORY : STATUS_OK;
    }
    bool resized = frame->width != self->width || frame->height != self->height;
    if (resized && !self->logged_scaled) {
        self->logged_scaled = true;
        log_print(self->log, self->video.silent ? LOG_DEBUG : LOG_INFO,
                  "the picture changes to %dx%d: it is scaled to the output's %dx%d", frame->width,
                  frame->height, self->width, self->height);
    }
    enum status status = scaler_convert(&self->scaler, frame, self->base.pixel,
                                        self->full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG,
                                        self->width, self->height, fitted);
    return status == STATUS_FAILED
               ? fail(self->log, STATUS_OUTPUT, "libswscale cannot convert %s to %s",
                      av_get_pix_fmt_name(frame->format), av_get_pix_fmt_name(self->base.pixel))
               : status;
}

// Rotate a picture into `to`, an empty frame.
static enum status rotate_frame(const struct encode_sink *self, const AVFrame *frame, AVFrame *to)
{
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

static void note_dropped(struct encode_sink *self, bool sent)
{
    if (!sent && !self->base.dropped++)
        log_print(self->log, LOG_WARNING,
                  "frames come faster than the clock of %s ticks: some are left out",
                  self->container->name);
}

static bool wants_key(struct encode_sink *self, const AVFrame *frame)
{
    int64_t pts_us = av_rescale_q(frame->pts, self->video.time_base, AV_TIME_BASE_Q);
    bool wants = false;
    for (int k = 0; k < self->muxes; k++)
        wants |= mux_thread_takes_key(self->mux[k], pts_us);
    return wants;
}

static enum status encode_frame(struct encode_sink *self, AVFrame *frame)
{
    AVFrame *fitted = NULL;
    enum status status = STATUS_OK;
    if (frame && (frame->width != self->width || frame->height != self->height ||
                  frame->format != self->base.pixel || pixel_is_full(frame) != self->full)) {
        fitted = av_frame_alloc();
        status = fitted ? fit(self, frame, fitted) : STATUS_MEMORY;
    }
    bool sent = true;
    if (!status && frame && wants_key(self, frame))
        encoder_want_key(self->encoder);
    if (!status)
        status = encoder_send(self->encoder, fitted ? fitted : frame, &sent);
    note_dropped(self, sent);
    if (!status)
        status = pass_packets(self);
    av_frame_free(&fitted);
    return status;
}

// Where nobody watches, one frame a second will do, for whoever comes.
static bool is_idle(struct encode_sink *self)
{
    const int64_t second_ns = 1000 * INT64_C(1000000);
    int64_t now_ns = meter_now_ns();
    for (int k = 0; k < self->muxes; k++)
        if (!mux_thread_is_idle(self->mux[k]))
            return false;
    if (now_ns - self->seen_ns < second_ns)
        return true;
    self->seen_ns = now_ns;
    return false;
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    bool full = self->base.one_frame && self->base.kept > 0; // beside outputs that hold more
    self->taken += frame != NULL;
    if (frame && (full || is_idle(self))) {
        self->base.kept++;
        self->base.unwanted++;
        return STATUS_OK;
    }
    if (!frame || rotation_is_none(self->rotation))
        return encode_frame(self, frame);
    AVFrame *rotated = av_frame_alloc();
    enum status status = rotated ? rotate_frame(self, frame, rotated) : STATUS_MEMORY;
    if (!status)
        status = encode_frame(self, rotated);
    av_frame_free(&rotated);
    return status;
}

static enum status write_packet(struct sink *sink, const struct packet *packet)
{
    return push((struct encode_sink *)sink, packet, true);
}

static void cancel(struct sink *sink)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    for (int k = 0; k < self->muxes; k++)
        mux_thread_cancel(self->mux[k]);
}

static void discard_outputs(struct encode_sink *self)
{
    for (int k = 0; k < self->muxes; k++) {
        log_print(self->log, LOG_WARNING,
                  "stopped before the encoder gave its first frame: there is no output %s",
                  mux_thread_destination(self->mux[k])->shown);
        mux_thread_discard(self->mux[k]);
    }
}

static enum status finish(struct sink *sink, bool cut)
{
    struct encode_sink *self = (struct encode_sink *)sink;
    enum status status = STATUS_OK;
    sink->absent = self->stop && self->stop->asked && !sink->kept;
    if (sink->absent)
        discard_outputs(self);
    for (int k = 0; k < self->muxes && !sink->absent; k++)
        mux_thread_finish(self->mux[k], cut);
    for (int k = 0; k < self->muxes; k++)
        status = status_join(status, mux_thread_join(self->mux[k]));
    return status;
}

static void print_steps(const struct sink *sink, const enum AVPixelFormat *pixel, FILE *to)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    const AVFrame shown = {
        .format = *pixel, .width = 64, .height = 64, .colorspace = AVCOL_SPC_UNSPECIFIED};
    enum AVPixelFormat wanted = encodable(self, &shown);
    char purpose[96];
    snprintf(purpose, sizeof purpose, "for the encoder %s", self->codec->name);
    if (wanted != *pixel && wanted != AV_PIX_FMT_NONE)
        scaler_print_step(*pixel, wanted, purpose, to);
}

static int64_t pending(const struct sink *sink)
{
    int64_t frames = ((const struct encode_sink *)sink)->taken - sink->kept - sink->dropped;
    return frames > 0 ? frames : 0;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    int count = self->muxes < most ? self->muxes : most;
    for (int k = 0; k < count; k++) {
        const struct destination *destination = mux_thread_destination(self->mux[k]);
        struct mux_thread_figures figures;
        mux_thread_figures(self->mux[k], &figures);
        list[k] = (struct sink_output){
            .name = destination->shown,
            .encoder = self->codec->name,
            .container = destination->container->name,
            .frames = figures.packets,
            .dropped = figures.skipped,
            .unwatched = sink->one_frame ? 0 : sink->unwanted,
            .missing = figures.missing,
            .bytes = sink->absent ? 0 : figures.bytes,
            .files = sink->absent ? 0 : figures.files,
            .connects = figures.connects,
            .connected = figures.connected,
            .failed = status_is_failure(figures.status),
        };
    }
    return count;
}

static int64_t memory(const struct sink *sink, int64_t frame_bytes)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    return budget_of_encoder(encoder_context(self->encoder), frame_bytes) +
           self->muxes * 2 * budget_packets;
}

static enum status check(const struct sink *sink)
{
    const struct encode_sink *self = (const struct encode_sink *)sink;
    enum status status = STATUS_OK;
    for (int k = 0; k < self->muxes && !status; k++)
        status = destination_check(mux_thread_destination(self->mux[k]), self->log);
    return status;
}

static void destroy(struct sink **sink)
{
    struct encode_sink *self = (struct encode_sink *)*sink;
    for (int k = 0; k < self->muxes; k++)
        mux_thread_destroy(&self->mux[k]);
    encoder_destroy(&self->encoder);
    scaler_destroy(&self->scaler);
    av_dict_free(&self->encoder_options);
    free(self);
    *sink = NULL;
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

// What a window or a page gets is for eyes that are there, and too large or too poor to be kept.
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
    struct encode_sink *self = (struct encode_sink *)sink, *from = (struct encode_sink *)*other;
    bool codec =
        from->codec_named ? from->codec == self->codec : from->codec->id == self->codec->id;
    bool options = !from->encoder_options || is_same(from->encoder_options, self->encoder_options);
    bool format = !sink_is_asked(&from->base.formats) || asks_the_same(self, from);
    if (!codec || !options || !format || self->one_a_file || from->one_a_file ||
        (is_for_show(self) && !is_for_show(from)) || counts_frames(self) != counts_frames(from))
        return;
    for (int k = 0; k < from->muxes; k++)
        self->mux[self->muxes++] = from->mux[k];
    self->base.is_live |= from->base.is_live;
    from->muxes = 0;
    destroy(other);
}

// ---- creation ----

static enum status create_mux(struct encode_sink *self, const struct sink_request *request)
{
    struct mux_thread_request mux = {
        .name = request->output,
        .format = request->format,
        .overwrite = request->overwrite,
        .segment = request->segment,
        .conflicts = request->conflicts,
        .open_timeout = request->open_timeout,
        .stall_timeout = request->stall_timeout,
        .reconnects = request->reconnects,
    };
    enum status status = mux_thread_create(&mux, self->log, self->stop, &self->mux[0]);
    self->muxes = !status;
    return status;
}

static enum status choose_encoder(struct encode_sink *self, const struct sink_request *request)
{
    const struct destination *destination = mux_thread_destination(self->mux[0]);
    AVDictionary *muxer_options = NULL;
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
    choose_formats(self);
    enum status status = sink_ask(&self->base, request, self->codec->name, self->log);
    if (!status)
        status = add_options(self, request, &muxer_options);
    mux_thread_set_options(self->mux[0], &muxer_options);
    return status;
}

enum status sink_encode_create(const struct sink_request *request, const struct log *log,
                               const struct stop *stop, struct sink **sink)
{
    struct encode_sink *self = calloc(1, sizeof *self);
    *sink = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .accepts_streams = true,
        .check = check,
        .open = open,
        .write = write,
        .write_packet = write_packet,
        .cancel = cancel,
        .finish = finish,
        .print_steps = print_steps,
        .pending = pending,
        .outputs = outputs,
        .memory = memory,
        .destroy = destroy,
    };
    self->log = log;
    self->stop = stop;
    self->await_start = request->await_start;
    *sink = &self->base;
    enum status status = create_mux(self, request);
    if (!status)
        status = choose_encoder(self, request);
    if (status)
        destroy(sink);
    return status;
}
