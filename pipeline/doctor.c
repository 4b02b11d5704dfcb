// Reports about this machine and about plans, as text.
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_memory.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/filter.h"
#include "pipeline/engine/job_memory.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "pipeline/output/sink.h"

// The job that a report is about, as far as it can be opened: everything may be missing, and is
// freed by subject_finish().
struct subject {
    struct config_log log_target;
    struct log log;
    struct schedule schedule;
    struct source *source; // NULL: no input was named
    struct sink *sink;     // NULL: no output was named
    struct backend *backend;
    char reason[256]; // why the CPU
    atomic_bool stop;
};

static void subject_finish(struct subject *subject)
{
    schedule_free(&subject->schedule);
    source_close(&subject->source);
    sink_destroy(&subject->sink);
    backend_destroy(&subject->backend);
}

static enum status open_source(struct subject *subject, const struct sluice_config *config)
{
    struct source_request request = config_source(config);
    request.start = 0;
    return config->input ? source_open(&request, &subject->log, &subject->stop, &subject->source)
                         : STATUS_OK;
}

static enum status subject_init(struct subject *subject, const struct sluice_config *config)
{
    struct sink_request sinks[MAX_OUTPUTS];
    int count = config_sinks(config, sinks);
    enum status status = config_schedule(config, &subject->log, &subject->schedule);
    if (!status)
        count = config_add_tees(config, subject->schedule.chain, sinks, count);
    for (int k = 0; k < count && k < MAX_OUTPUTS; k++)
        sinks[k].overwrite = true;
    if (!status)
        status = open_source(subject, config);
    if (!status && config->output.name && count <= MAX_OUTPUTS)
        status = sink_create(sinks, count, &subject->log, NULL, &subject->sink);
    if (!status && subject->sink)
        status = sink_check(subject->sink);
    if (!status)
        status = config_backend(config, subject->source && subject->source->is_still, &subject->log,
                                &subject->backend, subject->reason, sizeof subject->reason);
    return status;
}

// Shape a frame, where there is no input, as the configuration describes raw video.
static enum status shape_as_asked(const struct subject *subject, const struct sluice_config *config,
                                  AVFrame *frame)
{
    enum AVPixelFormat pixel = frame->format;
    enum status status = config->input_pixfmt
                             ? pixel_asked_for(config->input_pixfmt, &subject->log, &pixel)
                             : STATUS_OK;
    frame->format = pixel;
    if (config->input_width > 0 && config->input_height > 0) {
        frame->width = config->input_width;
        frame->height = config->input_height;
    }
    return status;
}

// A frame without samples, shaped like those of the input, or as asked, or 4:2:0 of 1920x1080.
static enum status shape_frame(const struct subject *subject, const struct sluice_config *config,
                               AVFrame *frame)
{
    bool known = memory_shape(subject->source, frame);
    enum status status = subject->source ? STATUS_OK : shape_as_asked(subject, config, frame);
    if (status)
        return status;
    struct color_tags tags = color_tags_of(frame);
    struct format format;
    if (!known && frame->format == AV_PIX_FMT_NONE)
        return log_fail(&subject->log, STATUS_INPUT,
                        "the pixel format of %s is not known before decoding",
                        subject->source->name);
    if (!pixel_describe(frame->format, &tags, 1, 1, &format))
        frame->format = pixel_nearest(frame->format);
    return STATUS_OK;
}

// ---- plan ----

static const char *range_name(const struct format *format)
{
    return format->range == RANGE_FULL ? "full range" : "limited range";
}

// Those of the outputs, or as the chain leaves them.
static void list_formats(const struct subject *subject, struct sink_formats *formats)
{
    for (int n = 0; n < MAX_PICTURES; n++)
        formats[n] = (struct sink_formats){.natural = true};
    if (subject->sink)
        sink_list_formats(subject->sink, formats);
}

static void print_tees(const struct subject *subject, const struct program *program,
                       const enum AVPixelFormat *output, FILE *to)
{
    struct chain_file list[MAX_PICTURES];
    chain_files(subject->schedule.chain, WRITES_PICTURES, list, MAX_PICTURES);
    for (int k = 0; k < program->tees; k++) {
        char shown[4300];
        url_without_secrets(list[k].name, shown, sizeof shown);
        fprintf(to, "tee %d -> %s: %s %s\n", k + 1, shown, av_get_pix_fmt_name(output[k + 1]),
                range_name(program_format(program, k + 1)));
    }
}

// Print how the pictures of a program are converted for the encoders.
static void print_steps(const struct sink *sink, const struct program *program,
                        const AVFrame *frame, const enum AVPixelFormat *output, FILE *to)
{
    AVFrame picture[MAX_PICTURES]; // views
    struct color_tags tags = color_tags_of(frame);
    for (int n = 0; n < program_pictures(program); n++) {
        struct color_tags made = pixel_tags(&program->input, program_format(program, n), &tags);
        picture[n] = *frame;
        picture[n].format = output[n];
        color_tags_apply(&made, &picture[n]);
    }
    if (sink && sink->print_steps)
        sink->print_steps(sink, picture, to);
}

// Check that a job would filter the input so, and work out its memory. Without an input there is no
// size that anything must fit.
static enum status check_plan(const struct subject *subject, const struct sluice_config *config,
                              const struct sink_formats *formats, const AVFrame *frame,
                              struct ceiling *ceiling, struct need *need)
{
    const struct source *source = subject->source;
    struct need_job job;
    memory_of_job(config, source, subject->backend, subject->sink, ceiling, &job);
    struct filter_request request = {
        .chain = subject->schedule.chain,
        .formats = formats,
        .backend = subject->backend,
        .slots = config_slots(config, subject->backend, source),
        .frames_in_flight = !source || !source->is_still,
        .max_pixels = config_max_pixels(config),
        .strict = source,
        .software_pixel = frame->format,
        .job = &job,
        .log = &subject->log,
    };
    enum status status = STATUS_OK;
    if (source)
        status = need_fit(&request, frame, &request.slots);
    if (!status && source)
        status = filter_check(&request, frame);
    return status ? status : filter_need(&request, frame, need);
}

static enum status print_plan(const struct subject *subject, const struct sluice_config *config,
                              FILE *to)
{
    struct sink_formats formats[MAX_PICTURES];
    AVFrame *frame = av_frame_alloc();
    struct program program = {0};
    struct plan *plan = NULL;
    struct ceiling ceiling;
    struct need need;
    enum AVPixelFormat output[MAX_PICTURES];
    list_formats(subject, formats);
    ceiling_open(config->mem, config->vram, subject->backend, &subject->log, &ceiling);
    enum status status = frame ? shape_frame(subject, config, frame) : STATUS_MEMORY;
    if (!status)
        status = check_plan(subject, config, formats, frame, &ceiling, &need);
    if (!status)
        status = chain_load(subject->schedule.chain, config_max_pixels(config), &subject->log);
    if (!status)
        status = filter_lower(subject->schedule.chain, formats, frame, frame->format, &program,
                              output, NULL);
    if (!status)
        status = plan_create(&program, subject->backend->limits, &plan);
    if (!status) {
        enum AVPixelFormat decoded =
            subject->source ? (enum AVPixelFormat)source_video(subject->source)->codecpar->format
                            : (enum AVPixelFormat)frame->format;
        enum AVPixelFormat loaded = (enum AVPixelFormat)frame->format;
        if (decoded != loaded && chain_is_empty(subject->schedule.chain))
            loaded = output[0] = decoded; // it passes by the filters
        else if (decoded != loaded)
            scaler_print_step(decoded, loaded, "for the filters", to);
        fprintf(to, "%s %s -> %s %s, %dx%d, on %s\n", av_get_pix_fmt_name(loaded),
                range_name(&program.input), av_get_pix_fmt_name(output[0]),
                range_name(&program.output), frame->width, frame->height, subject->backend->name);
        chain_print_aliases(subject->schedule.chain, to);
        print_tees(subject, &program, output, to);
        plan_print(plan, frame->width, frame->height, to);
        print_steps(subject->sink, &program, frame, output, to);
        need_print(&need, &ceiling, to);
    }
    ceiling_close(&ceiling);
    plan_destroy(&plan);
    program_free(&program);
    av_frame_free(&frame);
    return status;
}

// As a job, whose GPU has no room, goes to the CPU.
static enum status print_plan_with_room(struct subject *subject, const struct sluice_config *config,
                                        FILE *to)
{
    enum status status = print_plan(subject, config, to);
    if (status != STATUS_DEVICE || !subject->backend->gpus || config_wants_gpu(config))
        return status;
    struct sluice_config on_cpu = *config;
    on_cpu.backend = SLUICE_BACKEND_CPU;
    on_cpu.vram = 0;
    backend_destroy(&subject->backend);
    status = config_backend(&on_cpu, false, &subject->log, &subject->backend, subject->reason,
                            sizeof subject->reason);
    return status ? status : print_plan(subject, &on_cpu, to);
}

// The plan of an input that a job would refuse is none.
static enum status print_plan_alone(struct subject *subject, const struct sluice_config *config,
                                    FILE *to)
{
    const struct source *source = subject->source;
    enum status status =
        source ? decoder_check_codec(source, source_video(source)->codecpar, &subject->log)
               : STATUS_OK;
    return status ? status : print_plan_with_room(subject, config, to);
}

// ---- doctor ----

static void print_gpus(FILE *to)
{
    char line[256];
    int count = backend_cuda_describe(0, line, sizeof line);
    if (!count)
        fprintf(to, "GPU       none: %s\n", line);
    for (int device = 0; device < count; device++) {
        backend_cuda_describe(device, line, sizeof line);
        fprintf(to, "GPU %-5d %s\n", device, line);
    }
}

static void print_codecs(FILE *to)
{
    static const enum AVCodecID decoders[] = {
        AV_CODEC_ID_H264,  AV_CODEC_ID_HEVC,   AV_CODEC_ID_VP8,
        AV_CODEC_ID_VP9,   AV_CODEC_ID_AV1,    AV_CODEC_ID_MPEG2VIDEO,
        AV_CODEC_ID_MJPEG, AV_CODEC_ID_PRORES, AV_CODEC_ID_FFV1};
    static const char *const encoders[] = {"libx264",    "libx265", "libvpx-vp9", "libsvtav1",
                                           "h264_nvenc", "mpeg4",   "ffv1",       "mjpeg",
                                           "png",        "gif"};
    fprintf(to, "decoders ");
    for (size_t k = 0; k < sizeof decoders / sizeof *decoders; k++) {
        const AVCodec *codec = avcodec_find_decoder(decoders[k]);
        fprintf(to, " %s%s", avcodec_get_name(decoders[k]),
                !codec                              ? " (missing)"
                : decoder_has_hardware(decoders[k]) ? " (GPU too)"
                                                    : "");
    }
    fprintf(to, "\nencoders ");
    for (size_t k = 0; k < sizeof encoders / sizeof *encoders; k++)
        fprintf(to, " %s%s", encoders[k],
                avcodec_find_encoder_by_name(encoders[k]) ? "" : " (missing)");
    fprintf(to, "\n");
}

// Whether large kernels have a library that makes them fast.
static void print_transforms(const struct backend *backend, FILE *to)
{
    const struct plan_limits *limits = &backend->limits;
    const char *why = limits->transform_why;
    if (limits->transform && limits->transform_library)
        fprintf(to, "kernels   of %d numbers and more by Fourier transforms of %s%s%s\n",
                limits->transform, limits->transform_library->name, why ? ", as " : "",
                why ? why : "");
    else if (strcmp(backend->name, "scalar"))
        fprintf(to, "kernels   number by number, however large: %s\n",
                why ? why : "libcufft.so, of the CUDA Toolkit, is not there");
}

static void print_choice(const struct subject *subject, const struct sluice_config *config,
                         FILE *to)
{
    const struct backend *backend = subject->backend;
    fprintf(to, "filters   on %s: %s", backend->name, backend->description);
    fprintf(to, *subject->reason ? ", because %s\n" : "\n", subject->reason);
    print_transforms(backend, to);
    fprintf(to, "ring      %d frames in flight\n", config_slots(config, backend, subject->source));
}

static void print_input(const struct subject *subject, const struct sluice_config *config, FILE *to)
{
    const AVStream *video = source_video(subject->source);
    const AVCodecParameters *about = video->codecpar;
    const AVCodec *codec = avcodec_find_decoder(about->codec_id);
    const char *pixel = av_get_pix_fmt_name(about->format);
    char unknown[256];
    decoder_name_codec(about, unknown, sizeof unknown);
    fprintf(to, "input     %s: %s, stream %d of %u: %s %dx%d%s%s, about %lld frames\n",
            subject->source->name, subject->source->format->iformat->name, subject->source->video,
            subject->source->format->nb_streams,
            codec ? avcodec_get_name(about->codec_id) : unknown, about->width, about->height,
            pixel || codec ? " " : "",
            pixel   ? pixel
            : codec ? "of a format known after decoding"
                    : "",
            (long long)source_frames(subject->source));
    const char *why = config->hwdec == SLUICE_HWDEC_OFF      ? "--hwdec off"
                      : config->repeatable                   ? "--repeatable"
                      : !subject->backend->has_device_memory ? "the filters do not run on a GPU"
                      : config->hwdec == SLUICE_HWDEC_AUTO   ? decoder_stays_on_cpu(about->codec_id)
                                                             : NULL;
    if (!codec)
        fprintf(to, "decoding  impossible: this FFmpeg (libavcodec %d) has no decoder for %s\n",
                LIBAVCODEC_VERSION_MAJOR, unknown);
    else if (why)
        fprintf(to, "decoding  by %s on the CPU: %s\n", codec->name, why);
    else
        fprintf(to, "decoding  by %s on the GPU, if the driver takes this stream\n", codec->name);
}

static void print_output(const struct subject *subject, FILE *to)
{
    struct sink_output outputs[MAX_OUTPUTS];
    int count = subject->sink->outputs(subject->sink, outputs, MAX_OUTPUTS);
    for (int k = 0; k < count; k++)
        fprintf(to, "output    %s%s%s\n", outputs[k].container,
                outputs[k].encoder ? ", encoded by " : "",
                outputs[k].encoder ? outputs[k].encoder : "");
}

static enum status print_doctor(struct subject *subject, const struct sluice_config *config,
                                FILE *to)
{
    fprintf(to, "%s\n", sluice_version());
    print_gpus(to);
    print_codecs(to);
    if (subject->source)
        print_input(subject, config, to);
    print_choice(subject, config, to);
    if (subject->sink)
        print_output(subject, to);
    return subject->source &&
                   avcodec_find_decoder(source_video(subject->source)->codecpar->codec_id)
               ? print_plan_with_room(subject, config, to)
               : STATUS_OK;
}

// ---- the public side ----

static enum sluice_status report(const struct sluice_config *given, bool doctor, char **text)
{
    struct subject subject = {0};
    struct sluice_config config;
    size_t size;
    *text = NULL;
    enum status status = config_read(given, &config, &subject.log_target, &subject.log);
    if (!status)
        status = subject_init(&subject, &config);
    FILE *to = status ? NULL : open_memstream(text, &size);
    if (!status && !to)
        status = STATUS_MEMORY;
    if (!status)
        status =
            doctor ? print_doctor(&subject, &config, to) : print_plan_alone(&subject, &config, to);
    if (to)
        fclose(to);
    if (status) {
        free(*text);
        *text = NULL;
    }
    log_memory(&subject.log, status);
    subject_finish(&subject);
    return (enum sluice_status)status;
}

enum sluice_status sluice_plan(const struct sluice_config *config, char **text)
{
    return report(config, false, text);
}

enum sluice_status sluice_doctor(const struct sluice_config *config, char **text)
{
    return report(config, true, text);
}

static char version[256]; // written once, by write_version()

static void write_version(void)
{
    unsigned format = avformat_version(), codec = avcodec_version(), scale = swscale_version();
    snprintf(version, sizeof version,
             "sluice %s (libavformat %u.%u, libavcodec %u.%u, libswscale %u.%u, %s)",
             SLUICE_VERSION, format >> 16, format >> 8 & 255, codec >> 16, codec >> 8 & 255,
             scale >> 16, scale >> 8 & 255, backend_cuda_version());
}

const char *sluice_version(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_version);
    return version;
}

int sluice_gpus(void)
{
    return backend_cuda_describe(0, NULL, 0);
}

int64_t sluice_memory_available(void)
{
    return host_memory_available();
}
