#include "pipeline/input/decoder.h"

#include <assert.h>
#include <libavutil/cpu.h>
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/memory.h"
#include "pipeline/input/io/probe.h"

// libavutil's header wants two types of cuda.h, which a machine without CUDA has not.
#define CUDA_VERSION 0
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
#include <libavutil/hwcontext_cuda.h>

struct decoder {
    const struct source *source;
    const struct log *log;
    struct backend *backend;
    struct decoder_request request;
    AVCodecContext *codec;
    void *stream;          // of the GPU
    AVBufferRef *hardware; // NULL: software
    char name[64];
    int64_t next_pts; // for frames without a timestamp

    // Packets sent before the first frame: should the GPU turn out unable, software gets them
    // again.
    AVPacket **preroll;
    int prerolled, replayed;
    bool began, draining, replaying;

    struct packet *pending;   // a restart: what is in the decoder comes out before; NULL: none
    AVCodecParameters *about; // of the stream, now

    // Frames for software decoding into the backend's memory. Frame threads ask at once.
    pthread_mutex_t pool_lock;
    AVBufferPool *pool;
    size_t pool_size;

    int64_t packets; // given to libavcodec
    int last_error;  // that it returned; 0: none
    int marked;      // packets that came with the mark of damage, less those refused since
    _Atomic int64_t damaged_packets, damaged_frames;
};

// ---- memory ----

static AVBufferRef *pool_get(struct decoder *decoder, size_t size)
{
    pthread_mutex_lock(&decoder->pool_lock);
    if (decoder->pool_size != size) {
        av_buffer_pool_uninit(&decoder->pool);
        decoder->pool =
            av_buffer_pool_init2((buffer_size)size, decoder->backend, memory_alloc, NULL);
        decoder->pool_size = size;
    }
    AVBufferRef *buffer = decoder->pool ? av_buffer_pool_get(decoder->pool) : NULL;
    pthread_mutex_unlock(&decoder->pool_lock);
    return buffer;
}

// Lay out a frame as libavcodec's own allocator does (get_buffer.c): dimensions and strides as the
// codec wants them, all planes in one block with some bytes between.
static int get_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    struct decoder *decoder = codec->opaque;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(frame->format);
    if (!about || about->flags & (AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL) ||
        !(codec->codec->capabilities & AV_CODEC_CAP_DR1))
        return avcodec_default_get_buffer2(codec, frame, flags);
    int width = frame->width, height = frame->height, align[AV_NUM_DATA_POINTERS], unaligned;
    avcodec_align_dimensions2(codec, &width, &height, align);
    do {
        int error = av_image_fill_linesizes(frame->linesize, frame->format, width);
        if (error < 0)
            return error;
        width += width & ~(width - 1);
        unaligned = 0;
        for (int p = 0; p < 4; p++)
            unaligned |= frame->linesize[p] % (align[p] ? align[p] : 1);
    } while (unaligned);
    size_t size[4], total = 0;
    for (int p = 0; p < 4; p++) {
        int rows = p == 1 || p == 2 ? AV_CEIL_RSHIFT(height, about->log2_chroma_h) : height;
        size[p] = (size_t)frame->linesize[p] * (size_t)rows;
        total += size[p] ? (size[p] + 64 + 63) / 64 * 64 : 0;
    }
    frame->buf[0] = pool_get(decoder, total);
    if (!frame->buf[0])
        return AVERROR(ENOMEM);
    uint8_t *at = frame->buf[0]->data;
    for (int p = 0; p < 4 && size[p]; p++) {
        frame->data[p] = at;
        at += (size[p] + 64 + 63) / 64 * 64;
    }
    frame->extended_data = frame->data;
    return 0;
}

// The same with zeros: some decoders leave what they cannot decode of a picture as memory had it,
// and which earlier picture that was depends on the pace of the rest.
static int get_clear_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    const struct decoder *decoder = codec->opaque;
    int error = decoder->backend->has_device_memory
                    ? get_buffer(codec, frame, flags)
                    : avcodec_default_get_buffer2(codec, frame, flags);
    for (int k = 0; k < AV_NUM_DATA_POINTERS && error >= 0 && frame->buf[k]; k++)
        memset(frame->buf[k]->data, 0, (size_t)frame->buf[k]->size);
    return error;
}

// ---- opening ----

static enum AVPixelFormat choose_format(AVCodecContext *codec, const enum AVPixelFormat *formats)
{
    const struct decoder *decoder = codec->opaque;
    for (int k = 0; decoder->hardware && formats[k] != AV_PIX_FMT_NONE; k++)
        if (formats[k] == AV_PIX_FMT_CUDA)
            return formats[k];
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

// Standards before H.264 leave the inverse transform's rounding open: two decoders differ by a code
// value here and there, and where a job runs must not change its result.
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

// A device context over the backend's, with a stream of its own.
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

// Decoders whose frame threads race in some FFmpeg: 5.1 gives Theora other samples now and then.
static bool is_racy(enum AVCodecID id)
{
    return id == AV_CODEC_ID_VP3 || id == AV_CODEC_ID_VP4 || id == AV_CODEC_ID_THEORA;
}

// Of damaged input FFmpeg's decoders make other pictures in every run when they have several
// threads.
static bool wants_one_thread(const struct decoder *decoder, enum AVCodecID id)
{
    return decoder->request.repeatable || is_racy(id);
}

// Each of a decoder's frame threads makes a frame wait for another one: they may have a quarter of
// the time there is, if there are cores for them. 0: as many as FFmpeg likes.
static int frame_threads(const struct decoder *decoder)
{
    AVRational rate = source_video(decoder->source)->avg_frame_rate;
    double limit = decoder->request.max_latency;
    double fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 30;
    return limit <= 0 || limit * fps / 4 > av_cpu_count() ? 0 : 1 + (int)(limit * fps / 4);
}

static enum status open_codec(struct decoder *decoder)
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
    // All that a stream cuts off at the left goes, not only multiples of what this processor likes.
    context->flags |= AV_CODEC_FLAG_UNALIGNED;
    if (decoder->hardware) {
        context->hw_device_ctx = av_buffer_ref(decoder->hardware);
        context->extra_hw_frames = decoder->request.frames_held + 2;
        context->thread_count = 1; // more would take surfaces, not time
    } else {
        context->thread_count = wants_one_thread(decoder, codec->id) ? 1 : frame_threads(decoder);
        allow_threaded_callbacks(context);
        if (decoder->backend->has_device_memory)
            context->get_buffer2 = get_buffer;
        if (decoder->request.repeatable)
            context->get_buffer2 = get_clear_buffer;
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

static enum status check_pixels(const struct decoder *decoder, int width, int height)
{
    int64_t pixels = (int64_t)width * height, most = decoder->request.max_pixels;
    if (pixels <= most)
        return STATUS_OK;
    return fail(decoder->log, STATUS_INPUT,
                "%s has pictures of %dx%d, %lld pixels; the limit is %lld: raise --max-pixels if "
                "the memory is there",
                decoder->source->name, width, height, (long long)pixels, (long long)most);
}

static enum status check_stream(const struct decoder *decoder)
{
    const AVCodecParameters *about = decoder->about;
    const char *name = decoder->source->name;
    if (source_is_encrypted(decoder->source))
        return fail(decoder->log, STATUS_INPUT,
                    "%s is encrypted; sluice needs the video in the clear", name);
    if (!avcodec_find_decoder(about->codec_id)) {
        char tag[AV_FOURCC_MAX_STRING_SIZE];
        av_fourcc_make_string(tag, about->codec_tag);
        return fail(decoder->log, STATUS_INPUT,
                    "%s holds video that this FFmpeg (libavcodec %d) cannot decode: %s, tag %s; a "
                    "newer FFmpeg may",
                    name, LIBAVCODEC_VERSION_MAJOR, avcodec_get_name(about->codec_id), tag);
    }
    return check_pixels(decoder, about->width, about->height);
}

static enum status hardware_or_not(struct decoder *decoder)
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
        return fail(decoder->log, STATUS_DEVICE,
                    "--hwdec require: %s cannot be decoded on the GPU: %s",
                    avcodec_get_name(about->codec_id), why);
    return STATUS_OK;
}

enum status decoder_create(const struct decoder_request *request, const struct source *source,
                           struct backend *backend, struct decoder **decoder)
{
    *decoder = calloc(1, sizeof **decoder);
    struct decoder *made = *decoder;
    if (!made)
        return STATUS_MEMORY;
    made->source = source;
    made->log = source->log;
    made->backend = backend;
    made->request = *request;
    pthread_mutex_init(&made->pool_lock, NULL);
    made->about = avcodec_parameters_alloc();
    enum status status = STATUS_MEMORY;
    if (made->about && avcodec_parameters_copy(made->about, source_video(source)->codecpar) >= 0)
        status = check_stream(made);
    if (!status)
        status = hardware_or_not(made);
    if (!status)
        status = open_codec(made);
    if (status)
        decoder_destroy(decoder);
    return status;
}

static void drop_preroll(struct decoder *decoder)
{
    for (int k = 0; k < decoder->prerolled; k++)
        av_packet_free(&decoder->preroll[k]);
    free(decoder->preroll);
    decoder->preroll = NULL;
    decoder->prerolled = decoder->replayed = 0;
}

void decoder_destroy(struct decoder **decoder)
{
    if (!*decoder)
        return;
    struct decoder *old = *decoder;
    avcodec_free_context(&old->codec);
    av_buffer_unref(&old->hardware);
    if (old->stream)
        old->backend->stream_destroy(old->backend, &old->stream);
    av_buffer_pool_uninit(&old->pool);
    drop_preroll(old);
    packet_destroy(&old->pending);
    avcodec_parameters_free(&old->about);
    pthread_mutex_destroy(&old->pool_lock);
    free(old);
    *decoder = NULL;
}

// ---- decoding ----

static enum status keep_preroll(struct decoder *decoder, const AVPacket *packet)
{
    if (decoder->began || !decoder->hardware || !packet)
        return STATUS_OK;
    AVPacket **list =
        realloc(decoder->preroll, (size_t)(decoder->prerolled + 1) * sizeof *decoder->preroll);
    if (!list)
        return STATUS_MEMORY;
    decoder->preroll = list;
    list[decoder->prerolled] = av_packet_clone(packet);
    return list[decoder->prerolled++] ? STATUS_OK : STATUS_MEMORY;
}

// The demuxer knows that a part of the packet is missing or wrong, and a decoder may not notice: a
// picture of HEVC that lost its tail is given out as whole.
static void count_marked(struct decoder *decoder, const AVPacket *packet)
{
    if (!packet || !(packet->flags & AV_PKT_FLAG_CORRUPT))
        return;
    decoder->marked++;
    decoder->damaged_packets++;
}

// The decoder refuses a packet. Those that were marked are counted already.
static void count_refused(struct decoder *decoder, int error)
{
    decoder->last_error = error;
    if (decoder->marked)
        decoder->marked--;
    else
        decoder->damaged_packets++;
}

// What libavcodec's error says, where some pictures of the stream's size find room. The memory may
// be the GPU's, which is not asked.
static int decoder_error(const struct decoder *decoder, int error)
{
    if (decoder->hardware)
        return error;
    const int64_t pictures = 4, bytes_of_pixel = 8;
    const AVCodecParameters *about = decoder->about;
    return input_error(error, (int64_t)about->width * about->height * pictures * bytes_of_pixel);
}

// A packet of nothing says that the picture stays: Theora in Ogg has such, as FFmpeg 9.0 reads it.
static bool is_nothing(const AVPacket *packet)
{
    return packet && !packet->size && (packet->data || !packet->side_data_elems);
}

static enum status send(struct decoder *decoder, const AVPacket *packet)
{
    if (is_nothing(packet))
        return STATUS_OK;
    int error = decoder_error(decoder, avcodec_send_packet(decoder->codec, packet));
    decoder->packets += packet && packet->size;
    if (error == AVERROR(ENOMEM))
        return STATUS_MEMORY;
    if (error < 0 && error != AVERROR_EOF)
        count_refused(decoder, error);
    return STATUS_OK;
}

static enum status check_encryption(const struct decoder *decoder, const AVPacket *packet)
{
    if (packet && av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL))
        return fail(decoder->log, STATUS_INPUT,
                    "%s is encrypted; sluice needs the video in the clear", decoder->source->name);
    return STATUS_OK;
}

// The GPU's decoder has not given a frame yet, and may not be able to.
static bool is_untried(const struct decoder *decoder)
{
    return decoder->hardware && !decoder->began;
}

// Where the container does not say how large the pictures are, the first packet does.
static enum status check_unknown_size(const struct decoder *decoder, const AVPacket *packet)
{
    int width, height;
    bool unknown = packet && packet->size && !decoder->began && !decoder->about->width;
    return unknown && probe_picture(decoder->about, packet, &width, &height)
               ? check_pixels(decoder, width, height)
               : STATUS_OK;
}

static enum status send_packet(struct decoder *decoder, const AVPacket *packet)
{
    enum status status = check_encryption(decoder, packet);
    if (!status)
        status = check_unknown_size(decoder, packet);
    if (!status)
        status = keep_preroll(decoder, packet);
    if (status)
        return status;
    count_marked(decoder, packet);
    decoder->draining |= !packet;
    return send(decoder, packet);
}

enum status decoder_send(struct decoder *decoder, const struct packet *packet)
{
    if (!packet || !packet->restart)
        return send_packet(decoder, packet ? packet->av : NULL);
    assert(!decoder->pending); // all that there is was received before
    decoder->pending = packet_clone(packet);
    if (!decoder->pending)
        return STATUS_MEMORY;
    return is_untried(decoder) ? STATUS_OK : send(decoder, NULL);
}

// What was in the decoder has come out: begin anew with the pending packet.
static enum status restart(struct decoder *decoder)
{
    enum status status = STATUS_OK;
    struct packet *packet = decoder->pending;
    decoder->pending = NULL;
    drop_preroll(decoder);
    if (packet->codec) {
        avcodec_parameters_free(&decoder->about);
        decoder->about = packet->codec;
        packet->codec = NULL;
        status = check_stream(decoder);
        if (!status && decoder->hardware && !decoder_has_hardware(decoder->about->codec_id))
            av_buffer_unref(&decoder->hardware);
        if (!status)
            status = open_codec(decoder);
        decoder->began = false;
    } else {
        avcodec_flush_buffers(decoder->codec);
    }
    if (!status && packet->av->size)
        status = send_packet(decoder, packet->av);
    packet_destroy(&packet);
    return status;
}

// The GPU was to decode and does not: begin again in software, with all packets so far.
static enum status fall_back(struct decoder *decoder)
{
    const char *codec = decoder->codec->codec->name;
    if (decoder->request.hwdec == HWDEC_REQUIRE)
        return fail(decoder->log, STATUS_DEVICE,
                    "--hwdec require: the GPU does not decode this %s stream", codec);
    log_print(decoder->log, LOG_INFO, "the GPU does not decode this %s stream: the CPU does",
              codec);
    av_buffer_unref(&decoder->hardware);
    decoder->replaying = true;
    return open_codec(decoder);
}

static void finish_frame(struct decoder *decoder, AVFrame *frame)
{
    if (frame->decode_error_flags || frame->flags & AV_FRAME_FLAG_CORRUPT)
        decoder->damaged_frames++;
    AVStream *video = source_video(decoder->source);
    int64_t duration = frame_duration(frame);
    if (duration <= 0) {
        AVRational rate = video->avg_frame_rate.num ? video->avg_frame_rate : video->r_frame_rate;
        duration = rate.num ? av_rescale_q(1, av_inv_q(rate), video->time_base) : 1;
    }
    frame->sample_aspect_ratio =
        av_guess_sample_aspect_ratio(decoder->source->format, video, frame);
    frame->pts = frame->best_effort_timestamp;
    if (frame->pts == AV_NOPTS_VALUE)
        frame->pts = decoder->next_pts;
    decoder->next_pts = frame->pts + (duration > 0 ? duration : 1);
}

// Send the next of the packets that the GPU had first, then the end if it had come. Returns whether
// there was anything to send.
static bool replay(struct decoder *decoder, enum status *status)
{
    if (decoder->hardware || !decoder->replaying)
        return false;
    if (decoder->replayed < decoder->prerolled) {
        *status = send(decoder, decoder->preroll[decoder->replayed++]);
        return true;
    }
    decoder->replaying = false;
    if (decoder->draining)
        *status = send(decoder, NULL);
    return decoder->draining;
}

enum status decoder_receive(struct decoder *decoder, AVFrame *frame, bool *got)
{
    enum status status = STATUS_OK;
    *got = false;
    while (!status) {
        if (decoder->pending && is_untried(decoder))
            status = restart(decoder);
        int error = status ? AVERROR(EAGAIN) : avcodec_receive_frame(decoder->codec, frame);
        error = decoder_error(decoder, error);
        if (error == AVERROR_EOF && decoder->pending) {
            status = restart(decoder);
            continue;
        }
        bool unable = is_untried(decoder) &&
                      (error == AVERROR_EOF || (error >= 0 && frame->format != AV_PIX_FMT_CUDA));
        if (unable) {
            av_frame_unref(frame);
            status = fall_back(decoder);
        } else if (error >= 0) {
            decoder->began = true;
            if (!decoder->replaying)
                drop_preroll(decoder);
            status = check_pixels(decoder, frame->width, frame->height);
            *got = !status;
            if (status)
                av_frame_unref(frame);
            else
                finish_frame(decoder, frame);
            return status;
        } else if (error == AVERROR(EAGAIN)) {
            if (!status && !replay(decoder, &status))
                return STATUS_OK;
        } else if (error == AVERROR_EOF) {
            return STATUS_EOF;
        } else if (error == AVERROR(ENOMEM)) {
            return STATUS_MEMORY;
        } else {
            count_refused(decoder, error);
        }
    }
    return status;
}

void decoder_explain(const struct decoder *decoder, char *text, size_t size)
{
    const char *codec = decoder->codec->codec->name;
    char words[AV_ERROR_MAX_STRING_SIZE] = "";
    bool bare = decoder->last_error == -1; // of older decoders, which have no code for it
    av_strerror(bare ? AVERROR_INVALIDDATA : decoder->last_error, words, sizeof words);
    if (!decoder->packets)
        snprintf(text, size, "of its video only the header is there");
    else if (!decoder->last_error)
        snprintf(text, size,
                 "the %s decoder makes no picture of its %lld packets and gives no reason; the key "
                 "frame may be missing (-v shows more)",
                 codec, (long long)decoder->packets);
    else
        snprintf(text, size, "the %s decoder refuses its video: %s (-v shows more)", codec, words);
}

int64_t decoder_damaged_packets(const struct decoder *decoder)
{
    return decoder->damaged_packets;
}

int64_t decoder_damaged_frames(const struct decoder *decoder)
{
    return decoder->damaged_frames;
}

const char *decoder_name(const struct decoder *decoder)
{
    return decoder->name;
}

enum AVPixelFormat decoder_pixel(const struct decoder *decoder)
{
    return decoder->hardware ? decoder->codec->sw_pix_fmt : decoder->codec->pix_fmt;
}

void *decoder_stream(const struct decoder *decoder)
{
    return decoder->hardware ? decoder->stream : NULL;
}
