// Pictures from files, as templates: decoded by FFmpeg, and made gray by the operations that make a
// picture's own, so that what is cut out of a frame is found there to the bit.
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/pixel.h"
#include "pipeline/scaler.h"
#include "stages/backend.h"
#include "stages/template.h"

enum { OPAQUE = 128 };

struct reason {
    char *why;
    size_t size;
};

static enum status refuse(const struct reason *reason, const char *sentence, const char *detail)
{
    snprintf(reason->why, reason->size, "%s%s%s", sentence, *detail ? ": " : "", detail);
    return STATUS_USAGE;
}

static enum status refuse_code(const struct reason *reason, const char *sentence, int error)
{
    if (error == AVERROR(ENOMEM))
        return STATUS_MEMORY;
    return refuse(reason, sentence, av_err2str(error));
}

// ---- decoding ----

// Packet after packet, until there is a frame.
static int first_frame(AVFormatContext *file, AVCodecContext *decoder, int stream, AVPacket *packet,
                       AVFrame *frame)
{
    int error = AVERROR(EAGAIN);
    while (error == AVERROR(EAGAIN)) {
        int read = av_read_frame(file, packet);
        if (read >= 0 && packet->stream_index != stream) {
            av_packet_unref(packet);
            continue;
        }
        error = avcodec_send_packet(decoder, read < 0 ? NULL : packet);
        av_packet_unref(packet);
        if (error >= 0)
            error = avcodec_receive_frame(decoder, frame);
    }
    return error;
}

static int open_decoder(AVFormatContext *file, int *stream, AVCodecContext **decoder)
{
    const AVCodec *codec = NULL;
    int error = avformat_find_stream_info(file, NULL);
    if (error >= 0)
        error = *stream = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (error < 0)
        return error;
    *decoder = avcodec_alloc_context3(codec);
    if (!*decoder)
        return AVERROR(ENOMEM);
    (*decoder)->thread_count = 1;
    error = avcodec_parameters_to_context(*decoder, file->streams[*stream]->codecpar);
    return error < 0 ? error : avcodec_open2(*decoder, codec, NULL);
}

// A name is a file's, whatever colons and percent signs it has; and nothing else is opened for it.
static int open_file(const char *name, AVFormatContext **file)
{
    char *url = av_asprintf("file:%s", name);
    AVDictionary *options = NULL;
    av_dict_set(&options, "protocol_whitelist", "file", 0);
    av_dict_set(&options, "pattern_type", "none", 0);
    int error = url ? avformat_open_input(file, url, NULL, &options) : AVERROR(ENOMEM);
    av_dict_free(&options);
    av_free(url);
    return error;
}

static enum status decode(const char *name, AVFrame *frame, const struct reason *reason)
{
    AVFormatContext *file = NULL;
    AVCodecContext *decoder = NULL;
    AVPacket *packet = av_packet_alloc();
    int stream, error = packet ? open_file(name, &file) : AVERROR(ENOMEM);
    if (error >= 0)
        error = open_decoder(file, &stream, &decoder);
    if (error >= 0)
        error = first_frame(file, decoder, stream, packet, frame);
    avcodec_free_context(&decoder);
    avformat_close_input(&file);
    av_packet_free(&packet);
    return error < 0 ? refuse_code(reason, "it is no picture that FFmpeg can read", error)
                     : STATUS_OK;
}

// ---- to gray ----

// What loads do not know, libswscale makes known.
static enum status make_known(AVFrame *frame, const struct reason *reason)
{
    struct color_tags none = {0};
    struct format format;
    if (pixel_describe(frame->format, &none, 1, 1, &format))
        return STATUS_OK;
    struct scaler *scaler = NULL;
    AVFrame *known = av_frame_alloc();
    enum status status = known ? STATUS_OK : STATUS_MEMORY;
    if (!status)
        status = scaler_convert(&scaler, frame, pixel_nearest(frame->format),
                                AVCOL_RANGE_UNSPECIFIED, frame->width, frame->height, known);
    if (!status) {
        av_frame_unref(frame);
        av_frame_move_ref(frame, known);
    }
    av_frame_free(&known);
    scaler_destroy(&scaler);
    return status && status != STATUS_MEMORY
               ? refuse(reason, "its pixels cannot be converted by libswscale", "")
               : status;
}

static enum status lower_gray(const AVFrame *frame, struct format *format, struct program *program)
{
    struct color_tags tags = color_tags_of(frame);
    if (!pixel_describe(frame->format, &tags, frame->width, frame->height, format))
        return STATUS_FAILED;
    enum status status = program_init(program, format);
    if (status)
        return status;
    program_gray(program, 8);
    struct format gray =
        format_planar(MODEL_GRAY, 8, 0, 0, format->alpha, &program->picture.meaning);
    return program_finish(program, &gray);
}

static enum status run(const struct program *program, const struct work *work)
{
    struct log silent = {0};
    struct backend *backend = NULL;
    struct plan *plan = NULL;
    struct executor *executor = NULL;
    enum status status = backend_scalar_create(&silent, &backend);
    if (!status)
        status = plan_create(program, backend->limits, &plan);
    if (!status)
        status = backend->executor_create(backend, plan, work->source.width, work->source.height, 1,
                                          false, &executor);
    if (!status)
        status = executor->submit_async(executor, 0, work);
    if (!status)
        status = executor->wait(executor, 0, NULL);
    executor_destroy(&executor);
    plan_destroy(&plan);
    backend_destroy(&backend);
    return status;
}

static enum status make_gray(const AVFrame *frame, struct template *template)
{
    struct format format;
    struct program program;
    size_t samples = (size_t)frame->width * (size_t)frame->height;
    enum status status = lower_gray(frame, &format, &program);
    if (!status) {
        template->width = frame->width;
        template->height = frame->height;
        template->sample = malloc(samples);
        template->mask = format.alpha ? malloc(samples) : NULL;
        if (!template->sample || (format.alpha && !template->mask))
            status = STATUS_MEMORY;
    }
    const struct work work = {
        .source = pixel_image(frame, &format),
        .target = {.format = &program.output,
                   .width = frame->width,
                   .height = frame->height,
                   .data = {template->sample, template->mask},
                   .stride = {frame->width, frame->width}},
    };
    if (!status)
        status = run(&program, &work);
    for (size_t k = 0; template->mask && !status && k < samples; k++)
        template->mask[k] = template->mask[k] >= OPAQUE;
    if (template->mask && !memchr(template->mask, 0, samples)) { // all of it is looked for
        free(template->mask);
        template->mask = NULL;
    }
    program_free(&program);
    return status;
}

// ---- the whole ----

static enum status check_file(const char *name, const struct reason *reason)
{
    struct stat about;
    if (stat(name, &about))
        return refuse(reason, "it cannot be read", strerror(errno));
    return S_ISREG(about.st_mode) ? STATUS_OK : refuse(reason, "it is no regular file", "");
}

static enum status check_size(const AVFrame *frame, const struct reason *reason)
{
    char found[64];
    snprintf(found, sizeof found, "%dx%d", frame->width, frame->height);
    if (frame->width > TEMPLATE_SIDE || frame->height > TEMPLATE_SIDE)
        return refuse(reason, "its sides are larger than 65535", found);
    return STATUS_OK;
}

enum status template_load(const char *name, struct template *template, char *why, size_t size)
{
    const struct reason reason = {why, size};
    enum status status = check_file(name, &reason);
    if (status)
        return status;
    AVFrame *frame = av_frame_alloc();
    if (!frame)
        return STATUS_MEMORY;
    status = decode(name, frame, &reason);
    if (!status)
        status = check_size(frame, &reason);
    if (!status)
        status = make_known(frame, &reason);
    if (!status)
        status = make_gray(frame, template);
    av_frame_free(&frame);
    return status;
}
