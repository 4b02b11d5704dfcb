// The sink that encodes into a container, one file or one per image.
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/check.h"
#include "pipeline/encoder.h"
#include "pipeline/compat.h"
#include "pipeline/file.h"
#include "pipeline/output.h"
#include "pipeline/pixel.h"
#include "pipeline/scaler.h"
#include "pipeline/sink.h"
#include "stages/turn.h"

struct file_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    char *name;
    bool overwrite;
    const AVOutputFormat *muxer;
    const AVCodec *codec;
    AVDictionary *encoder_options, *muxer_options;
    struct encoder *encoder;
    struct output *output;
    struct sink_video video;
    int stream; // of the source: the filtered one
    struct scaler *scaler;
    bool said_scaled;
    struct turn turn; // of every frame, because the container cannot ask for it
    // The encoder's geometry.
    int width, height;
};

// ---- options ----

// Try a value on an object that has the option; -o and the like are refused before anything opens.
static enum status try_option(const struct file_sink *self, void *object, const char *key,
                              const char *value, const char *owner)
{
    int error = av_opt_set(object, key, value, AV_OPT_SEARCH_CHILDREN);
    if (error >= 0)
        return STATUS_OK;
    const AVOption *option = av_opt_find(object, key, NULL, 0, AV_OPT_SEARCH_CHILDREN);
    char range[96] = "";
    if (option && option->type != AV_OPT_TYPE_STRING && option->min < option->max)
        snprintf(range, sizeof range, ", the range is %g .. %g", option->min, option->max);
    return fail(self->log, STATUS_USAGE, "%s=%s: %s does not take this value%s%s%s", key, value,
                owner, range, option && option->help ? "; it is: " : "",
                option && option->help ? option->help : "");
}

static enum status add_option(struct file_sink *self, const char *key, const char *value)
{
    enum status status;
    if (encoder_has_option(self->codec, key)) {
        AVCodecContext *trial = avcodec_alloc_context3(self->codec);
        if (!trial)
            return STATUS_MEMORY;
        status = try_option(self, trial, key, value, self->codec->name);
        avcodec_free_context(&trial);
        if (!status && !encoder_takes(self->codec, key, value))
            status = fail(self->log, STATUS_USAGE, "the encoder %s does not take %s=%s",
                          self->codec->name, key, value);
        av_dict_set(&self->encoder_options, key, value, 0);
        return status;
    }
    if (output_has_option(self->muxer, key)) {
        AVFormatContext *trial = NULL;
        if (avformat_alloc_output_context2(&trial, (AVOutputFormat *)self->muxer, NULL, NULL) < 0)
            return STATUS_MEMORY;
        status = try_option(self, trial, key, value, self->muxer->name);
        avformat_free_context(trial);
        av_dict_set(&self->muxer_options, key, value, 0);
        return status;
    }
    return fail(self->log, STATUS_USAGE,
                "neither the encoder %s nor the container %s has an option '%s'; 'ffmpeg -h "
                "encoder=%s' and 'ffmpeg -h muxer=%s' list them",
                self->codec->name, self->muxer->name, key, self->codec->name, self->muxer->name);
}

static enum status add_options(struct file_sink *self, const struct sink_request *request)
{
    const struct {
        const char *flag, *key, *value;
    } named[] = {{"--crf", "crf", request->crf},
                 {"--preset", "preset", request->preset},
                 {"-b:v", "b", request->bitrate}};
    for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
        if (!named[k].value)
            continue;
        if (!encoder_has_option(self->codec, named[k].key))
            return fail(self->log, STATUS_USAGE,
                        "%s: the encoder %s has no such option; -b:v may do", named[k].flag,
                        self->codec->name);
        enum status status = add_option(self, named[k].key, named[k].value);
        if (status)
            return status;
    }
    for (const char *const *text = request->options; text && *text; text++) {
        const char *value = strchr(*text, '=');
        if (!value || value == *text)
            return fail(self->log, STATUS_USAGE, "-o is '%s'; it takes key=value", *text);
        char key[128];
        snprintf(key, sizeof key, "%.*s", (int)(value - *text), *text);
        enum status status = add_option(self, key, value + 1);
        if (status)
            return status;
    }
    return STATUS_OK;
}

// ---- formats ----

// What a y4m header has a name for.
static const enum AVPixelFormat y4m_formats[] = {
    AV_PIX_FMT_GRAY8,     AV_PIX_FMT_GRAY9,     AV_PIX_FMT_GRAY10,    AV_PIX_FMT_GRAY12,
    AV_PIX_FMT_GRAY16,    AV_PIX_FMT_YUV411P,   AV_PIX_FMT_YUV420P,   AV_PIX_FMT_YUV422P,
    AV_PIX_FMT_YUV444P,   AV_PIX_FMT_YUV420P9,  AV_PIX_FMT_YUV422P9,  AV_PIX_FMT_YUV444P9,
    AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV444P10, AV_PIX_FMT_YUV420P12,
    AV_PIX_FMT_YUV422P12, AV_PIX_FMT_YUV444P12, AV_PIX_FMT_YUV420P14, AV_PIX_FMT_YUV422P14,
    AV_PIX_FMT_YUV444P14, AV_PIX_FMT_YUV420P16, AV_PIX_FMT_YUV422P16, AV_PIX_FMT_YUV444P16,
    AV_PIX_FMT_NONE,
};

static void choose_formats(struct file_sink *self)
{
    struct sink_formats *formats = &self->base.formats;
    formats->candidates = encoder_pixel_formats(self->codec);
    if (!strcmp(self->muxer->name, "yuv4mpegpipe"))
        formats->candidates = y4m_formats;
    formats->natural = !formats->candidates;
    formats->wishes = encoder_wishes(self->codec);
    formats->range = encoder_range(self->codec);
}

// ---- frames and packets ----

static enum status open_encoder(struct file_sink *self, const AVFrame *frame)
{
    // Containers that count frames instead of timing them. Their flags do not tell.
    bool counts =
        av_match_name(self->muxer->name, "avi,dv,gxf,mxf,mxf_d10,mxf_opatom,roq,swf,yuv4mpegpipe");
    struct encoder_video video = {
        .frame = frame,
        .time_base = self->video.time_base,
        .rate = self->video.frame_rate,
        .constant_rate = counts,
        .global_header = self->muxer->flags & AVFMT_GLOBALHEADER,
        .still = self->base.one_frame,
    };
    AVDictionary *options = NULL;
    av_dict_copy(&options, self->encoder_options, 0);
    // Frames that an encoder keeps back are late, and lost when the program is ended by force.
    if (source_is_live(self->video.source) && av_match_name(self->codec->name, "libx264,libx265"))
        av_dict_set(&options, "tune", "zerolatency", AV_DICT_DONT_OVERWRITE);
    enum status status = encoder_create(self->codec, &video, &options, self->log, &self->encoder);
    av_dict_free(&options);
    self->width = frame->width;
    self->height = frame->height;
    self->base.pixel = frame->format;
    return status;
}

// The encoder's pixel format for frames that the filter could not give one of its own.
static enum AVPixelFormat encodable(const struct file_sink *self, enum AVPixelFormat pixel)
{
    const enum AVPixelFormat *candidates = self->base.formats.candidates;
    for (int k = 0; candidates && candidates[k] != AV_PIX_FMT_NONE; k++)
        if (candidates[k] == pixel)
            return pixel;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(pixel);
    bool alpha = about->flags & AV_PIX_FMT_FLAG_ALPHA;
    return candidates ? avcodec_find_best_pix_fmt_of_list(candidates, pixel, alpha, NULL) : pixel;
}

// The pixel format that the encoder gets for frames of `pixel`.
static enum status choose_pixel(struct file_sink *self, enum AVPixelFormat from,
                                enum AVPixelFormat *pixel)
{
    *pixel = encodable(self, from);
    if (*pixel == AV_PIX_FMT_NONE)
        return fail(self->log, STATUS_OUTPUT, "the encoder %s takes no format like %s",
                    self->codec->name, av_get_pix_fmt_name(from));
    if (*pixel != from)
        log_print(self->log, LOG_INFO, "libswscale converts %s to %s for the encoder %s",
                  av_get_pix_fmt_name(from), av_get_pix_fmt_name(*pixel), self->codec->name);
    return STATUS_OK;
}

// Decide whether pictures have to be turned, and what they are then like: `shown`, a view of the
// first.
static void choose_turn(struct file_sink *self, AVFrame *shown)
{
    const int32_t *matrix = display_matrix(source_video(self->video.source), self->video.first);
    struct color_tags tags = color_tags_of(shown);
    struct format format;
    if (!matrix || output_carries_rotation(self->muxer))
        return;
    struct turn turn = turn_of_matrix(matrix);
    if (turn_is_none(turn))
        return;
    enum AVPixelFormat turned = AV_PIX_FMT_NONE;
    if (pixel_describe(shown->format, &tags, 1, 1, &format)) {
        format = format_turned(&format, turn);
        turned = pixel_find(&format);
    }
    if (turned == AV_PIX_FMT_NONE) {
        log_print(self->log, LOG_WARNING,
                  "the picture should be turned for showing; %s cannot say "
                  "so, and %s pictures cannot be turned",
                  self->muxer->name, av_get_pix_fmt_name(shown->format));
        return;
    }
    self->turn = turn;
    shown->format = turned;
    if (turn.transpose) {
        FFSWAP(int, shown->width, shown->height);
        shown->sample_aspect_ratio = av_inv_q(shown->sample_aspect_ratio);
    }
}

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct file_sink *self = (struct file_sink *)sink;
    self->video = *video;
    self->stream = video->source->video;
    AVFrame shown = *video->first; // a view, to open the encoder by
    choose_turn(self, &shown);
    enum AVPixelFormat pixel;
    enum status status = choose_pixel(self, shown.format, &pixel);
    if (status)
        return status;
    shown.format = pixel;
    status = output_create(self->muxer, self->name, self->overwrite, self->log, self->stop,
                           &self->output);
    if (!status)
        status = open_encoder(self, &shown);
    if (!status)
        status =
            output_add_streams(self->output, video->source, encoder_context(self->encoder),
                               video->first, video->shift, video->end, !turn_is_none(self->turn));
    if (!status)
        status = output_begin(self->output, &self->muxer_options);
    return status;
}

static enum status pass_packets(struct file_sink *self, struct packet_queue *queue)
{
    for (;;) {
        bool got;
        AVPacket *packet = av_packet_alloc();
        if (!packet)
            return STATUS_MEMORY;
        enum status status = encoder_receive(self->encoder, packet, &got);
        if (!got) {
            av_packet_free(&packet);
            return status == STATUS_EOF ? STATUS_OK : status;
        }
        packet->stream_index = self->stream;
        packet->pos =
            av_rescale_q(packet->pts, encoder_context(self->encoder)->time_base, AV_TIME_BASE_Q);
        status = queue->push(queue, &packet);
        av_packet_free(&packet);
        if (status)
            return status;
    }
}

// A picture of another size or format than the encoder's: images get an encoder of their own, all
// else is scaled.
static enum status fit(struct file_sink *self, const AVFrame *frame, AVFrame *fitted,
                       struct packet_queue *queue)
{
    if (output_is_images(self->muxer) && encodable(self, frame->format) == frame->format) {
        bool sent;
        enum status status = encoder_send(self->encoder, NULL, &sent);
        if (!status)
            status = pass_packets(self, queue);
        encoder_destroy(&self->encoder);
        if (!status)
            status = open_encoder(self, frame);
        return status ? status : av_frame_ref(fitted, frame) < 0 ? STATUS_MEMORY : STATUS_OK;
    }
    bool resized = frame->width != self->width || frame->height != self->height;
    if (resized && !self->said_scaled) {
        self->said_scaled = true;
        log_print(self->log, LOG_INFO,
                  "the picture changes to %dx%d: it is scaled to the output's %dx%d", frame->width,
                  frame->height, self->width, self->height);
    }
    enum status status =
        scaler_convert(&self->scaler, frame, self->base.pixel, self->width, self->height, fitted);
    return status == STATUS_FAILED
               ? fail(self->log, STATUS_OUTPUT, "libswscale cannot convert %s to %s",
                      av_get_pix_fmt_name(frame->format), av_get_pix_fmt_name(self->base.pixel))
               : status;
}

// Turn a picture upright into `to`, an empty frame.
static enum status turn_frame(const struct file_sink *self, const AVFrame *frame, AVFrame *to)
{
    struct color_tags tags = color_tags_of(frame);
    struct format from, turned, stored;
    if (!pixel_describe(frame->format, &tags, 1, 1, &from) || av_frame_copy_props(to, frame) < 0)
        return STATUS_FAILED;
    turned = format_turned(&from, self->turn);
    to->format = pixel_find(&turned);
    to->width = self->turn.transpose ? frame->height : frame->width;
    to->height = self->turn.transpose ? frame->width : frame->height;
    if (self->turn.transpose)
        to->sample_aspect_ratio = av_inv_q(frame->sample_aspect_ratio);
    av_frame_remove_side_data(to, AV_FRAME_DATA_DISPLAYMATRIX);
    if (!pixel_describe(to->format, &tags, 1, 1, &stored) || av_frame_get_buffer(to, 0) < 0)
        return STATUS_MEMORY;
    struct image source = pixel_image(frame, &from), target = pixel_image(to, &stored);
    image_turn(&source, self->turn, &target);
    return STATUS_OK;
}

static void note_dropped(struct file_sink *self, bool sent)
{
    if (!sent && !self->base.dropped++)
        log_print(self->log, LOG_WARNING,
                  "frames come faster than the clock of %s ticks: some are left out",
                  self->muxer->name);
}

static enum status write_upright(struct file_sink *self, AVFrame *frame, struct packet_queue *queue)
{
    AVFrame *fitted = NULL;
    enum status status = STATUS_OK;
    if (frame && (frame->width != self->width || frame->height != self->height ||
                  frame->format != self->base.pixel)) {
        fitted = av_frame_alloc();
        status = fitted ? fit(self, frame, fitted, queue) : STATUS_MEMORY;
    }
    bool sent = true;
    if (!status)
        status = encoder_send(self->encoder, fitted ? fitted : frame, &sent);
    note_dropped(self, sent);
    if (!status)
        status = pass_packets(self, queue);
    av_frame_free(&fitted);
    return status;
}

static enum status write(struct sink *sink, AVFrame *frame, struct packet_queue *queue)
{
    struct file_sink *self = (struct file_sink *)sink;
    if (!frame || turn_is_none(self->turn))
        return write_upright(self, frame, queue);
    AVFrame *upright = av_frame_alloc();
    enum status status = upright ? turn_frame(self, frame, upright) : STATUS_MEMORY;
    if (!status)
        status = write_upright(self, upright, queue);
    av_frame_free(&upright);
    return status;
}

static bool wants(const struct sink *sink, int stream)
{
    return output_wants(((const struct file_sink *)sink)->output, stream);
}

static enum status write_packet(struct sink *sink, AVPacket *packet)
{
    return output_write(((struct file_sink *)sink)->output, packet, packet->stream_index);
}

static enum status finish(struct sink *sink)
{
    return output_finish(((struct file_sink *)sink)->output);
}

static int64_t size(const struct sink *sink)
{
    const struct file_sink *self = (const struct file_sink *)sink;
    return self->output ? output_size(self->output) : 0;
}

static void destroy(struct sink **sink)
{
    struct file_sink *self = (struct file_sink *)*sink;
    encoder_destroy(&self->encoder);
    output_destroy(&self->output);
    scaler_destroy(&self->scaler);
    av_dict_free(&self->encoder_options);
    av_dict_free(&self->muxer_options);
    free(self->name);
    free(self);
    *sink = NULL;
}

// ---- creation ----

static enum status check_place(const struct file_sink *self)
{
    char first[4096];
    if (!output_is_images(self->muxer) || !output_is_sequence(self->name))
        return file_check(self->name, self->overwrite, self->log);
    av_get_frame_filename2(first, sizeof first, self->name, 1, AV_FRAME_FILENAME_FLAGS_MULTIPLE);
    return file_check(first, self->overwrite, self->log);
}

enum status sink_file_create(const struct sink_request *request, const struct log *log,
                             const struct stop *stop, struct sink **sink)
{
    *sink = NULL;
    const AVOutputFormat *muxer = output_find(request->format, request->output, log);
    if (!muxer)
        return STATUS_USAGE;
    const AVCodec *codec = encoder_find(request->encoder, muxer, request->output, log);
    if (!codec)
        return STATUS_USAGE;
    struct file_sink *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .encoder = codec->name,
        .container = muxer->name,
        .has_packets = true,
        .one_frame = output_is_images(muxer) && !output_is_sequence(request->output),
        .open = open,
        .write = write,
        .wants = wants,
        .write_packet = write_packet,
        .finish = finish,
        .size = size,
        .destroy = destroy,
    };
    self->log = log;
    self->stop = stop;
    self->overwrite = request->overwrite;
    self->muxer = muxer;
    self->codec = codec;
    self->name = strdup(request->output);
    *sink = &self->base;
    enum status status = self->name ? STATUS_OK : STATUS_MEMORY;
    choose_formats(self);
    if (!status)
        status = add_options(self, request);
    if (!status)
        status = check_place(self);
    if (status)
        destroy(sink);
    return status;
}
