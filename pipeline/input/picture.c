// Pictures from files, as templates: decoded by FFmpeg, and made gray by the operations that make a
// picture's own, so that what is cut out of a frame is found there to the bit.
#include "pipeline/input/picture.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"
#include "pipeline/input/io/probe.h"
#include "pipeline/input/io/reach.h"
#include "plan/backend.h"

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

// ---- files ----

// A picture's file: libavformat reads its bytes, and nothing else is opened.
struct picture_file {
    const char *name;
    struct reach *reach;
    AVIOContext *io;
    AVFormatContext *file;
    int stream;
    AVCodecParameters *about; // of the stream
    AVPacket *packet;         // the first of the stream
};

// Close the file: the first packet stays.
static void picture_file_close(struct picture_file *picture)
{
    avformat_close_input(&picture->file);
    avio_closep(&picture->io);
    reach_unref(&picture->reach);
}

static void picture_file_finish(struct picture_file *picture)
{
    picture_file_close(picture);
    av_packet_free(&picture->packet);
    avcodec_parameters_free(&picture->about);
}

static void picture_file_destroy(struct picture_file **picture)
{
    if (*picture)
        picture_file_finish(*picture);
    free(*picture);
    *picture = NULL;
}

// A name is a file's, whatever colons and percent signs it has.
static int open_bytes(struct picture_file *picture, char *url)
{
    AVDictionary *options = NULL;
    int error = av_dict_set(&options, "protocol_whitelist", "file", 0);
    if (error >= 0)
        error = avio_open2(&picture->io, url, AVIO_FLAG_READ, NULL, &options);
    av_dict_free(&options);
    return error;
}

static int open_format_of(struct picture_file *picture, const char *url)
{
    AVDictionary *options = NULL;
    const AVInputFormat *format = NULL;
    int error = reach_bind(picture->reach, picture->file, &options);
    if (error < 0) {
        av_dict_free(&options);
        return error;
    }
    picture->file->pb = picture->io;
    picture->file->flags |= AVFMT_FLAG_CUSTOM_IO;
    error = reach_probe(picture->io, url, picture->file, &format);
    if (error < AVPROBE_SCORE_RETRY) { // some images are known by their extensions only
        format = av_find_input_format("image2");
        error = av_dict_set(&options, "pattern_type", "none", 0);
    }
    if (error >= 0 && !reach_allows(picture->reach, format))
        error = AVERROR(EACCES);
    if (error >= 0)
        error = open_format(&picture->file, url, format, &options);
    av_dict_free(&options);
    return error;
}

// Read up to the first packet of video.
static int find_packet(struct picture_file *picture)
{
    AVFormatContext *file = picture->file;
    int best = av_find_best_stream(file, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0), error;
    while ((error = av_read_frame(file, picture->packet)) >= 0) {
        picture->stream = picture->packet->stream_index;
        const AVCodecParameters *about = file->streams[picture->stream]->codecpar;
        bool video = about->codec_type == AVMEDIA_TYPE_VIDEO && about->codec_id;
        if (best >= 0 ? picture->stream == best : video)
            return avcodec_parameters_copy(picture->about, about);
        av_packet_unref(picture->packet);
    }
    return error == AVERROR_EOF ? AVERROR_INVALIDDATA : error;
}

static int picture_file_init(const char *name, struct picture_file *picture)
{
    *picture = (struct picture_file){.name = name,
                                     .reach = reach_create(&(struct reach_request){0}),
                                     .file = avformat_alloc_context(),
                                     .about = avcodec_parameters_alloc(),
                                     .packet = av_packet_alloc()};
    char *url = av_asprintf("file:%s", name);
    bool whole = url && picture->reach && picture->file && picture->about && picture->packet;
    int error = whole ? 0 : AVERROR(ENOMEM);
    if (error >= 0)
        error = open_bytes(picture, url);
    if (error >= 0)
        error = open_format_of(picture, url);
    if (error >= 0)
        error = find_packet(picture);
    av_free(url);
    return error;
}

// ---- decoding ----

// Decode the first frame, of the packets from here on. AVERROR(EAGAIN) where more of them are
// needed than a closed file has.
static int first_frame(const struct picture_file *picture, AVCodecContext *decoder, AVFrame *frame)
{
    AVPacket *packet = picture->packet;
    int error = AVERROR(EAGAIN), read = 0;
    while (error == AVERROR(EAGAIN)) {
        if (read >= 0 && packet->size && packet->stream_index != picture->stream) {
            av_packet_unref(packet);
            read = av_read_frame(picture->file, packet);
            continue;
        }
        error = avcodec_send_packet(decoder, read < 0 ? NULL : packet);
        av_packet_unref(packet);
        if (error >= 0)
            error = avcodec_receive_frame(decoder, frame);
        if (error == AVERROR(EAGAIN) && !picture->file)
            break;
        if (error == AVERROR(EAGAIN))
            read = av_read_frame(picture->file, packet);
    }
    return error;
}

static int decode(const struct picture_file *picture, int64_t max_pixels, AVFrame *frame)
{
    const AVCodec *codec = avcodec_find_decoder(picture->about->codec_id);
    AVCodecContext *decoder = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!decoder)
        return codec ? AVERROR(ENOMEM) : AVERROR_DECODER_NOT_FOUND;
    int error = avcodec_parameters_to_context(decoder, picture->about);
    decoder->thread_count = 1;
    decoder->max_pixels = coded_pixels(max_pixels);
    if (error >= 0)
        error = avcodec_open2(decoder, codec, NULL);
    if (error >= 0)
        error = first_frame(picture, decoder, frame);
    avcodec_free_context(&decoder);
    return error;
}

// ---- to gray ----

// Convert by libswscale what the loads of plans do not know.
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

static enum status make_gray(const AVFrame *frame, struct pattern *pattern)
{
    struct format format;
    struct program program;
    size_t samples = (size_t)frame->width * (size_t)frame->height;
    enum status status = lower_gray(frame, &format, &program);
    if (!status) {
        pattern->width = frame->width;
        pattern->height = frame->height;
        pattern->sample = malloc(samples);
        pattern->mask = format.alpha ? malloc(samples) : NULL;
        if (!pattern->sample || (format.alpha && !pattern->mask))
            status = STATUS_MEMORY;
    }
    const struct work work = {
        .source = pixel_image(frame, &format),
        .target = {.format = &program.output,
                   .width = frame->width,
                   .height = frame->height,
                   .data = {pattern->sample, pattern->mask},
                   .stride = {frame->width, frame->width}},
    };
    if (!status)
        status = run(&program, &work);
    for (size_t k = 0; pattern->mask && !status && k < samples; k++)
        pattern->mask[k] = pattern->mask[k] >= OPAQUE;
    if (pattern->mask && !memchr(pattern->mask, 0, samples)) { // all of it is looked for
        free(pattern->mask);
        pattern->mask = NULL;
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

static const char no_picture[] = "it is no picture that FFmpeg can read";

static enum status measure_file(struct picture_file *picture, struct pattern *pattern,
                                const struct reason *reason)
{
    int width = 0, height = 0;
    enum status status = check_file(pattern->name, reason);
    int error = status ? 0 : picture_file_init(pattern->name, picture);
    if (error < 0)
        status = refuse_code(reason, no_picture, error);
    else if (!status && !probe_picture(picture->about, picture->packet, &width, &height))
        status = refuse(reason, no_picture, "");
    else if (width > MAX_PATTERN_SIDE || height > MAX_PATTERN_SIDE)
        status = refuse(reason, "its sides are larger than 65535", "");
    pattern->width = width;
    pattern->height = height;
    return status;
}

static enum status measure(const struct picture_reader *reader, struct pattern *pattern, char *why,
                           size_t size)
{
    (void)reader;
    struct picture_file *picture = calloc(1, sizeof *picture);
    if (!picture)
        return STATUS_MEMORY;
    enum status status = measure_file(picture, pattern, &(struct reason){why, size});
    picture_file_close(picture);
    if (status)
        picture_file_destroy(&picture);
    pattern->file = picture;
    return status;
}

// Measure by the first packet alone, which is a picture; a video may need more.
static int decode_kept(struct pattern *pattern, int64_t pixels, AVFrame *frame)
{
    struct picture_file *kept = pattern->file;
    int error = kept ? decode(kept, pixels, frame) : AVERROR(EAGAIN);
    picture_file_destroy(&kept);
    pattern->file = NULL;
    return error;
}

static enum status decode_file(const char *name, int64_t pixels, AVFrame *frame,
                               const struct reason *reason)
{
    struct picture_file picture = {0};
    enum status status = check_file(name, reason);
    int error = status ? 0 : picture_file_init(name, &picture);
    if (!status && error >= 0)
        error = decode(&picture, pixels, frame);
    picture_file_finish(&picture);
    return error < 0 ? refuse_code(reason, no_picture, error) : status;
}

// A file may hold more than one header, and may have been replaced since it was measured.
static enum status check_size(const struct pattern *pattern, const AVFrame *frame,
                              const struct reason *reason)
{
    char sizes[64];
    if (frame->width == pattern->width && frame->height == pattern->height)
        return STATUS_OK;
    snprintf(sizes, sizeof sizes, "%dx%d, and then %dx%d", pattern->width, pattern->height,
             frame->width, frame->height);
    return refuse(reason, "it has two sizes", sizes);
}

static void forget(void **file)
{
    struct picture_file *kept = *file;
    picture_file_destroy(&kept);
    *file = NULL;
}

static enum status load(const struct picture_reader *reader, struct pattern *pattern, char *why,
                        size_t size)
{
    (void)reader;
    const struct reason reason = {why, size};
    AVFrame *frame = av_frame_alloc();
    if (!frame) {
        forget(&pattern->file);
        return STATUS_MEMORY;
    }
    int64_t pixels = (int64_t)pattern->width * pattern->height;
    int error = decode_kept(pattern, pixels, frame);
    enum status status = STATUS_OK;
    if (error == AVERROR(EAGAIN))
        status = decode_file(pattern->name, pixels, frame, &reason);
    else if (error < 0)
        status = refuse_code(&reason, no_picture, error);
    if (!status)
        status = check_size(pattern, frame, &reason);
    if (!status)
        status = make_known(frame, &reason);
    if (!status)
        status = make_gray(frame, pattern);
    av_frame_free(&frame);
    return status;
}

const struct picture_reader picture_reader = {.measure = measure, .load = load, .forget = forget};
