// Choice and opening of the decoder for a stream, on the GPU or the CPU.
#include <libavutil/cpu.h>
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/decoder_internal.h"
#include "pipeline/input/io/probe.h"

// libavutil's header wants two types of cuda.h, which a machine without CUDA has not.
#define CUDA_VERSION 0
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#include <libavutil/hwcontext_cuda.h>

static enum AVPixelFormat choose_format(AVCodecContext *codec, const enum AVPixelFormat *formats)
{
    struct decoder *decoder = codec->opaque;
    for (int k = 0; codec->hw_device_ctx && formats[k] != AV_PIX_FMT_NONE; k++)
        if (formats[k] == AV_PIX_FMT_CUDA) {
            decoder_choose_surfaces(decoder, codec);
            return formats[k];
        }
    for (; *formats != AV_PIX_FMT_NONE; formats++)
        if (!(av_pix_fmt_desc_get(*formats)->flags & AV_PIX_FMT_FLAG_HWACCEL))
            return *formats;
    return AV_PIX_FMT_NONE;
}

static bool codec_has_hardware(const AVCodec *codec)
{
    const AVCodecHWConfig *config;
    for (int k = 0; (config = avcodec_get_hw_config(codec, k)); k++)
        if (config->device_type == AV_HWDEVICE_TYPE_CUDA &&
            config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX)
            return true;
    return false;
}

bool decoder_has_hardware(enum AVCodecID id)
{
    const AVCodec *codec = avcodec_find_decoder(id);
    return codec && codec_has_hardware(codec);
}

// True if every decoder gives the same samples: standards before H.264 leave the inverse
// transform's rounding open, and where a job runs must not change its result.
static bool is_exact(enum AVCodecID id)
{
    return id == AV_CODEC_ID_H264 || id == AV_CODEC_ID_HEVC || id == AV_CODEC_ID_VP8 ||
           id == AV_CODEC_ID_VP9 || id == AV_CODEC_ID_AV1;
}

const char *decoder_stays_on_cpu(enum AVCodecID id)
{
    if (!decoder_has_hardware(id))
        return "this FFmpeg has no GPU decoder for it";
    if (!is_exact(id))
        return "the GPU rounds it differently; --hwdec require uses it all the same";
    return NULL;
}

bool decoder_likes_hardware(const struct decoder *decoder)
{
    enum AVCodecID id = decoder->about->codec_id;
    return decoder->request.hwdec != HWDEC_OFF && !decoder->request.repeatable &&
           !decoder_stays_on_cpu(id);
}

// Open a device context over the backend's, with a stream of its own.
static enum status open_hardware(struct decoder *decoder)
{
    struct backend *backend = decoder->backend;
    enum status status = backend->stream_create(backend, &decoder->stream);
    if (status)
        return status;
    decoder->hardware = av_hwdevice_ctx_alloc(AV_HWDEVICE_TYPE_CUDA);
    if (!decoder->hardware)
        return STATUS_DEVICE;
    AVCUDADeviceContext *device = ((AVHWDeviceContext *)decoder->hardware->data)->hwctx;
    device->cuda_ctx = backend->device_context(backend);
    device->stream = decoder->stream;
    if (av_hwdevice_ctx_init(decoder->hardware) < 0) {
        av_buffer_unref(&decoder->hardware);
        return STATUS_DEVICE;
    }
    return STATUS_OK;
}

// The decoder for a stream. FFmpeg's own for VP8 and VP9 pass over WebM's alpha.
static const AVCodec *find_decoder(const AVStream *stream, enum AVCodecID id)
{
    const AVDictionaryEntry *alpha = av_dict_get(stream->metadata, "alpha_mode", NULL, 0);
    const AVCodec *codec = NULL;
    if (alpha && !strcmp(alpha->value, "1") && (id == AV_CODEC_ID_VP8 || id == AV_CODEC_ID_VP9))
        codec = avcodec_find_decoder_by_name(id == AV_CODEC_ID_VP8 ? "libvpx" : "libvpx-vp9");
    return codec ? codec : avcodec_find_decoder(id);
}

// True if frame threads race in some FFmpeg: 5.1 gives Theora other samples now and then.
static bool is_racy(enum AVCodecID id)
{
    return id == AV_CODEC_ID_VP3 || id == AV_CODEC_ID_VP4 || id == AV_CODEC_ID_THEORA;
}

// True if threads would change the result: with several, FFmpeg's decoders make other pictures of
// damaged input in every run, and may not say that it is damaged (H.264). Parts of a file are decoded
// many at once, each in one thread.
static bool needs_one_thread(const struct decoder *decoder, enum AVCodecID id)
{
    return decoder->request.repeatable || decoder->request.part || is_racy(id);
}

// The threads of a decoder. Of a live source each frame thread makes a frame wait for another one:
// it has as many as its pictures need, by what a core decodes of H.264 and HEVC with room to spare,
// and at most a quarter of the latency that is allowed. Slices of one picture are not decoded at
// once: libavcodec then neither conceals nor reports what is damaged.
static int frame_threads(const struct decoder *decoder, const AVCodecContext *context)
{
    const double thread_pixels = 40e6;
    AVRational rate = source_video(decoder->source)->avg_frame_rate;
    double limit = decoder->request.max_latency;
    double fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 30;
    double needed = ceil((double)context->width * context->height * fps / thread_pixels);
    double most = fmin(1 + floor(limit * fps / 4), fmax(needed, 1));
    int threads = limit <= 0 || most > av_cpu_count() ? 0 : (int)most,
        asked = decoder->request.threads;
    return asked && (!threads || asked < threads) ? asked : threads;
}

enum status decoder_open_codec(struct decoder *decoder)
{
    const AVStream *video = source_video(decoder->source);
    const AVCodec *codec = find_decoder(video, decoder->about->codec_id);
    avcodec_free_context(&decoder->codec);
    decoder->codec = avcodec_alloc_context3(codec);
    if (!decoder->codec || avcodec_parameters_to_context(decoder->codec, decoder->about) < 0)
        return STATUS_MEMORY;
    AVCodecContext *context = decoder->codec;
    context->opaque = decoder;
    context->pkt_timebase = video->time_base;
    context->max_pixels = coded_pixels(decoder->request.max_pixels); // shown ones are checked
    context->get_format = choose_format;
    // Crop all that the stream says at the left, not only multiples of this processor's alignment.
    context->flags |= AV_CODEC_FLAG_UNALIGNED;
    if (decoder->hardware) {
        context->hw_device_ctx = av_buffer_ref(decoder->hardware);
        context->thread_count = 1; // more would take surfaces, not time
    } else {
        context->thread_count =
            needs_one_thread(decoder, codec->id) ? 1 : frame_threads(decoder, context);
        allow_threaded_callbacks(context);
        if (decoder->backend->has_device_memory || decoder->awaits)
            context->get_buffer2 = decoder_get_buffer;
        if (decoder->request.repeatable || decoder->request.part)
            context->get_buffer2 = decoder_get_clear_buffer;
    }
    int error = avcodec_open2(context, codec, NULL);
    if (error < 0)
        return check_failed(decoder->log, STATUS_INPUT, error,
                            "the %s decoder does not take the video of %s", codec->name,
                            decoder->source->name);
    snprintf(decoder->name, sizeof decoder->name, "%s%s", codec->name,
             decoder->hardware ? " on the GPU" : "");
    return STATUS_OK;
}

enum status decoder_check_pixels(const struct decoder *decoder, int width, int height)
{
    int64_t pixels = (int64_t)width * height, most = decoder->request.max_pixels;
    if (pixels <= most)
        return STATUS_OK;
    return log_fail(
        decoder->log, STATUS_INPUT,
        "%s has pictures of %dx%d, %lld pixels; the limit is %lld: raise --max-pixels if "
        "the memory is there",
        decoder->source->name, width, height, (long long)pixels, (long long)most);
}

// Tags of codecs that came after the oldest FFmpeg that is taken, which has no name for them.
static const struct {
    const char *tag, *name;
} later_codecs[] = {{"vvc1", "vvc (H.266)"}, {"vvi1", "vvc (H.266)"}};

void decoder_name_codec(const AVCodecParameters *about, char *to, size_t size)
{
    const AVCodecDescriptor *known = avcodec_descriptor_get(about->codec_id);
    char tag[AV_FOURCC_MAX_STRING_SIZE];
    av_fourcc_make_string(tag, about->codec_tag);
    if (known) {
        snprintf(to, size, "%s%s%s%s", known->name, known->long_name ? " (" : "",
                 known->long_name ? known->long_name : "", known->long_name ? ")" : "");
        return;
    }
    for (size_t k = 0; k < sizeof later_codecs / sizeof *later_codecs; k++)
        if (!strcmp(tag, later_codecs[k].tag)) {
            snprintf(to, size, "%s", later_codecs[k].name);
            return;
        }
    snprintf(to, size, about->codec_tag ? "an unknown codec, tag %s" : "an unknown codec", tag);
}

enum status decoder_check_codec(const struct source *source, const AVCodecParameters *about,
                                const struct log *log)
{
    char codec[256];
    if (source_is_encrypted(source))
        return log_fail(log, STATUS_INPUT, "%s is encrypted; sluice needs the video in the clear",
                        source->name);
    if (avcodec_find_decoder(about->codec_id))
        return STATUS_OK;
    decoder_name_codec(about, codec, sizeof codec);
    return log_fail(log, STATUS_INPUT,
                    "%s cannot be decoded: its video is %s, and this FFmpeg (libavcodec %d) has no "
                    "decoder for it; a newer FFmpeg may",
                    source->name, codec, LIBAVCODEC_VERSION_MAJOR);
}

enum status decoder_check_stream(const struct decoder *decoder)
{
    const AVCodecParameters *about = decoder->about;
    enum status status = decoder_check_codec(decoder->source, about, decoder->log);
    return status ? status : decoder_check_pixels(decoder, about->width, about->height);
}

enum status decoder_choose_hardware(struct decoder *decoder)
{
    const AVCodecParameters *about = decoder->about;
    const char *why = NULL;
    if (decoder->request.hwdec == HWDEC_OFF || decoder->request.repeatable)
        return STATUS_OK;
    if (!decoder->backend->has_device_memory)
        why = "the filters do not run on a GPU";
    else if (!decoder_has_hardware(about->codec_id))
        why = decoder_stays_on_cpu(about->codec_id);
    else if (decoder->request.hwdec == HWDEC_AUTO && !is_exact(about->codec_id))
        return STATUS_OK;
    else if (open_hardware(decoder))
        why = "the GPU's decoder could not be opened";
    if (why && decoder->request.hwdec == HWDEC_REQUIRE)
        return log_fail(decoder->log, STATUS_DEVICE,
                        "--hwdec require: %s cannot be decoded on the GPU: %s",
                        avcodec_get_name(about->codec_id), why);
    return STATUS_OK;
}
