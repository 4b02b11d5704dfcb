#include "pipeline/output/encoder.h"

#include <assert.h>
#include <libavutil/avstring.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"

struct encoder {
    const struct log *log;
    AVCodecContext *codec;
    AVRational from; // time base of the frames that come
    AVFrame *frame;  // the one being sent: its own timestamps on the caller's data
    int64_t last_pts;
    bool wants_key;
};

// ---- choice ----

// The encoders to try by container; other containers have av_guess_codec()'s.
static const struct {
    const char *muxers;
    const char *encoders[4];
} favourites[] = {
    {"mp4,mov,ipod,matroska,flv,mpegts,avi,m4v,3gp,hls,rtsp,rtp_mpegts",
     {"libx264", "libopenh264", "mpeg4"}},
    {"webm", {"libvpx-vp9", "libvpx"}},
    {"nut", {"ffv1"}},
};

static bool container_takes(const AVOutputFormat *container, const AVCodec *codec)
{
    return avformat_query_codec(container, codec->id, FF_COMPLIANCE_UNOFFICIAL) != 0;
}

static const AVCodec *favourite(const AVOutputFormat *container)
{
    for (size_t k = 0; k < sizeof favourites / sizeof *favourites; k++) {
        if (!av_match_name(container->name, favourites[k].muxers))
            continue;
        for (const char *const *name = favourites[k].encoders; *name; name++) {
            const AVCodec *codec = avcodec_find_encoder_by_name(*name);
            if (codec)
                return codec;
        }
    }
    return NULL;
}

static const AVCodec *find_named(const char *name, const AVOutputFormat *container,
                                 const struct log *log)
{
    if (!strcmp(name, "copy")) {
        log_print(log, LOG_ERROR,
                  "-c:v copy: every frame is filtered, so video is always encoded; audio and "
                  "subtitles are copied anyway");
        return NULL;
    }
    const AVCodec *codec = avcodec_find_encoder_by_name(name);
    const AVCodecDescriptor *about = avcodec_descriptor_get_by_name(name);
    if (!codec && about)
        codec = avcodec_find_encoder(about->id);
    if (!codec) {
        log_print(log, LOG_ERROR,
                  "there is no encoder '%s' in this FFmpeg; 'ffmpeg -encoders' "
                  "lists those there are",
                  name);
        return NULL;
    }
    if (codec->type != AVMEDIA_TYPE_VIDEO) {
        log_print(log, LOG_ERROR, "%s is no video encoder", codec->name);
        return NULL;
    }
    if (!container_takes(container, codec)) {
        log_print(log, LOG_ERROR, "the container %s takes no %s; mkv takes nearly everything",
                  container->name, avcodec_get_name(codec->id));
        return NULL;
    }
    return codec;
}

const AVCodec *encoder_find(const char *name, const AVOutputFormat *container, const char *file,
                            const struct log *log)
{
    if (name)
        return find_named(name, container, log);
    const AVCodec *codec = favourite(container);
    if (!codec) {
        enum AVCodecID id =
            av_guess_codec((AVOutputFormat *)container, NULL, file, NULL, AVMEDIA_TYPE_VIDEO);
        codec = id == AV_CODEC_ID_NONE ? NULL : avcodec_find_encoder(id);
    }
    if (!codec)
        log_print(log, LOG_ERROR, "no encoder in this FFmpeg makes video for %s; name one by -c:v",
                  container->name);
    return codec;
}

enum sink_range encoder_range(const AVCodec *codec)
{
    switch (codec->id) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_FFV1:
    case AV_CODEC_ID_RAWVIDEO:
    case AV_CODEC_ID_WRAPPED_AVFRAME:
        return SINK_RANGE_ANY;
    case AV_CODEC_ID_MJPEG: // JFIF knows no other
        return SINK_RANGE_FULL;
    default:
        return SINK_RANGE_LIMITED;
    }
}

struct pixel_wishes encoder_wishes(const AVCodec *codec)
{
    switch (codec->id) {
    case AV_CODEC_ID_H264: // the encoders of these two refuse 4:2:0 of odd sizes
        return (struct pixel_wishes){.playable = true, .everywhere = 8, .whole_chroma = true};
    case AV_CODEC_ID_HEVC:
        return (struct pixel_wishes){
            .playable = true, .everywhere = 10, .opaque = true, .whole_chroma = true};
    case AV_CODEC_ID_AV1:
        return (struct pixel_wishes){.playable = true, .everywhere = 10};
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_MPEG2VIDEO:
    case AV_CODEC_ID_MPEG4:
        return (struct pixel_wishes){.playable = true, .everywhere = 8};
    case AV_CODEC_ID_MJPEG:
        return (struct pixel_wishes){.playable = true};
    default:
        return (struct pixel_wishes){0};
    }
}

bool encoder_has_option(const AVCodec *codec, const char *key)
{
    const AVClass *generic = avcodec_get_class(), *own = codec->priv_class;
    int flags = AV_OPT_FLAG_ENCODING_PARAM | AV_OPT_FLAG_VIDEO_PARAM;
    const AVOption *option = av_opt_find(&generic, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
    if (option && (option->flags & flags) == flags)
        return true;
    return own && av_opt_find(&own, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ);
}

// ---- trial ----

static bool is_text(const AVCodec *codec, const char *key)
{
    const AVClass *own = codec->priv_class;
    const AVOption *option = own ? av_opt_find(&own, key, NULL, 0, AV_OPT_SEARCH_FAKE_OBJ) : NULL;
    return option && option->type == AV_OPT_TYPE_STRING;
}

// Open the encoder for a picture that all of them take, with one option or none. True without
// memory, too: nothing is known against the option then.
static bool opens(const AVCodec *codec, const char *key, const char *value)
{
    AVDictionary *options = NULL;
    AVCodecContext *trial = avcodec_alloc_context3(codec);
    const enum AVPixelFormat *formats = encoder_pixel_formats(codec);
    const AVRational *rates = encoder_frame_rates(codec);
    if (!trial)
        return true;
    trial->width = 640;
    trial->height = 480;
    trial->pix_fmt = formats ? *formats : AV_PIX_FMT_YUV420P;
    trial->time_base = rates ? av_inv_q(*rates) : (AVRational){1, 25};
    trial->thread_count = 1;
    trial->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
    bool set = !key || av_dict_set(&options, key, value, 0) >= 0;
    bool opened = !set || avcodec_open2(trial, codec, &options) >= 0;
    avcodec_free_context(&trial);
    av_dict_free(&options);
    return opened;
}

static const char presets[] =
    "ultrafast,superfast,veryfast,faster,fast,medium,slow,slower,veryslow,placebo";

// Values that libraries accept silently, or refuse on standard error.
static const struct {
    const char *encoders, *key;
    const char *words; // separated by commas; NULL: a number
    double most;       // of numbers; below 0: none will do
} known_values[] = {
    {"libx264,libx264rgb", "preset", presets, 9},
    {"libx265", "preset", presets, 9},
    {"libx264,libx264rgb", "tune",
     "film,animation,grain,stillimage,psnr,ssim,fastdecode,zerolatency", -1},
    {"libx265", "tune", "psnr,ssim,grain,zerolatency,fastdecode,animation", -1},
    {"libx264,libx264rgb", "profile", "baseline,main,high,high10,high422,high444", -1},
    {"libx264,libx264rgb,libx265", "crf", NULL, 51},
    {"libvpx,libvpx-vp9,libaom-av1,libsvtav1", "crf", NULL, 63},
};

static bool is_number(const char *text, double most)
{
    char *end;
    double value = strtod(text, &end);
    return end != text && !*end && value >= 0 && value <= most;
}

// True if each word of `text` ("grain,fastdecode") is in the list.
static bool are_words(const char *text, const char *list)
{
    char word[32];
    for (const char *at = text; *at; at += strspn(at, ",./-+")) {
        size_t length = strcspn(at, ",./-+");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length >= sizeof word || !av_match_name(word, list))
            return false;
        at += length;
    }
    return *text;
}

bool encoder_knows(const AVCodec *codec, const char *key, const char *value, char *wanted,
                   size_t size)
{
    for (size_t k = 0; k < sizeof known_values / sizeof *known_values; k++) {
        const char *words = known_values[k].words;
        double most = known_values[k].most;
        if (strcmp(known_values[k].key, key) != 0 ||
            !av_match_name(codec->name, known_values[k].encoders))
            continue;
        if (words)
            snprintf(wanted, size, "%s", words);
        else
            snprintf(wanted, size, "a number, 0 .. %g", most);
        return is_number(value, most) || (words && are_words(value, words));
    }
    return true;
}

bool encoder_takes(const AVCodec *codec, const char *key, const char *value)
{
    return !is_text(codec, key) || opens(codec, key, value) || !opens(codec, NULL, NULL);
}

// ---- opening ----

static AVRational nearest_rate(const AVRational *rates, AVRational wanted)
{
    int best = 0;
    for (int k = 1; rates[k].num; k++)
        if (av_nearer_q(wanted, rates[k], rates[best]) > 0)
            best = k;
    return rates[best];
}

// The clock of the encoder: that of the frames where encoder and container can have it.
static AVRational time_base(const AVCodec *codec, const struct encoder_video *video)
{
    const AVRational *rates = encoder_frame_rates(codec);
    AVRational rate = video->rate.num ? video->rate : (AVRational){25, 1};
    if (rates)
        return av_inv_q(nearest_rate(rates, rate));
    if (codec->id == AV_CODEC_ID_GIF) // delays are hundredths of a second
        return (AVRational){1, 100};
    if (video->constant_rate || codec->id == AV_CODEC_ID_THEORA) // which counts frames, too
        return av_inv_q(rate);
    if (codec->id == AV_CODEC_ID_MPEG4 && video->time_base.den > 65535) {
        // The finest clock that MPEG-4 can write, in which frames of the usual rate lie exactly.
        int fine = 65535 / rate.num;
        if (fine < 1)
            av_reduce(&rate.num, &rate.den, rate.num, rate.den, 65535);
        return (AVRational){rate.den, rate.num * (fine < 1 ? 1 : fine)};
    }
    return video->time_base;
}

static void describe_interlacing(AVCodecContext *codec, const AVFrame *frame)
{
    if (!frame_is_interlaced(frame)) {
        codec->field_order = AV_FIELD_PROGRESSIVE;
        return;
    }
    codec->flags |= AV_CODEC_FLAG_INTERLACED_DCT | AV_CODEC_FLAG_INTERLACED_ME;
    codec->field_order = frame_is_top_field_first(frame) ? AV_FIELD_TT : AV_FIELD_BB;
}

static void configure(AVCodecContext *codec, const struct encoder_video *video)
{
    const AVFrame *frame = video->frame;
    codec->width = frame->width;
    codec->height = frame->height;
    codec->pix_fmt = frame->format;
    codec->time_base = time_base(codec->codec, video);
    codec->framerate = video->rate;
    codec->sample_aspect_ratio = frame->sample_aspect_ratio;
    codec->color_range = frame->color_range;
    codec->color_primaries = frame->color_primaries;
    codec->color_trc = frame->color_trc;
    codec->colorspace = frame->colorspace;
    codec->chroma_sample_location = frame->chroma_location;
    bool copies = codec->codec_id == AV_CODEC_ID_RAWVIDEO; // frame threads would only delay it
    codec->thread_count = video->still || copies ? 1 : video->threads;
    if (video->global_header)
        codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    describe_interlacing(codec, frame);
    // JPEG of full range takes a deprecated pixel format, but in newer FFmpeg.
    codec->strict_std_compliance = FF_COMPLIANCE_UNOFFICIAL;
}

enum status encoder_create(const AVCodec *codec, const struct encoder_video *video,
                           AVDictionary **options, const struct log *log, struct encoder **encoder)
{
    assert(video->frame->width > 0 && video->frame->height > 0);
    assert(video->time_base.num > 0 && video->time_base.den > 0);
    *encoder = calloc(1, sizeof **encoder);
    struct encoder *made = *encoder;
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->from = video->time_base;
    made->last_pts = INT64_MIN;
    made->codec = avcodec_alloc_context3(codec);
    made->frame = av_frame_alloc();
    if (!made->codec || !made->frame) {
        encoder_destroy(encoder);
        return STATUS_MEMORY;
    }
    configure(made->codec, video);
    int error = avcodec_open2(made->codec, codec, options);
    if (error >= 0)
        return STATUS_OK;
    enum status status = check_failed(log, STATUS_OUTPUT, error,
                                      "the encoder %s does not take %dx%d %s with these options",
                                      codec->name, video->frame->width, video->frame->height,
                                      av_get_pix_fmt_name(video->frame->format));
    encoder_destroy(encoder);
    return status;
}

void encoder_destroy(struct encoder **encoder)
{
    if (!*encoder)
        return;
    avcodec_free_context(&(*encoder)->codec);
    av_frame_free(&(*encoder)->frame);
    free(*encoder);
    *encoder = NULL;
}

// ---- encoding ----

// Convert a timestamp to the encoder's clock. Two frames in one tick, which encoders refuse, are
// moved apart a little, as uneven frames may need. False where frames come faster than the clock
// ticks, and there is no room for all.
static bool encoder_pts(struct encoder *encoder, int64_t *pts)
{
    const int64_t max_late = 2;
    int64_t exact = av_rescale_q_rnd(*pts, encoder->from, encoder->codec->time_base,
                                     AV_ROUND_NEAR_INF | AV_ROUND_PASS_MINMAX);
    *pts = exact > encoder->last_pts ? exact : encoder->last_pts + 1;
    if (*pts > exact + max_late && encoder->last_pts != INT64_MIN)
        return false;
    encoder->last_pts = *pts;
    return true;
}

enum status encoder_send(struct encoder *encoder, const AVFrame *frame, bool *sent)
{
    assert(!frame ||
           (frame->width == encoder->codec->width && frame->height == encoder->codec->height));
    int error;
    *sent = true;
    if (!frame) {
        error = avcodec_send_frame(encoder->codec, NULL);
    } else {
        int64_t pts = frame->pts;
        *sent = encoder_pts(encoder, &pts);
        if (!*sent)
            return STATUS_OK;
        error = av_frame_ref(encoder->frame, frame);
        if (error < 0)
            return STATUS_MEMORY;
        encoder->frame->pts = pts;
        frame_set_duration(encoder->frame, av_rescale_q(frame_duration(frame), encoder->from,
                                                        encoder->codec->time_base));
        // The input's picture type is not kept.
        encoder->frame->pict_type = encoder->wants_key ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
        encoder->wants_key = false;
        error = avcodec_send_frame(encoder->codec, encoder->frame);
        av_frame_unref(encoder->frame);
    }
    if (error < 0 && error != AVERROR_EOF)
        return check_failed(encoder->log, STATUS_OUTPUT, error, "the encoder %s failed",
                            encoder->codec->codec->name);
    return STATUS_OK;
}

void encoder_want_key(struct encoder *encoder)
{
    encoder->wants_key = true;
}

enum status encoder_receive(struct encoder *encoder, AVPacket *packet, bool *got)
{
    int error = avcodec_receive_packet(encoder->codec, packet);
    *got = error >= 0;
    if (error >= 0 || error == AVERROR(EAGAIN))
        return STATUS_OK;
    if (error == AVERROR_EOF)
        return STATUS_EOF;
    return check_failed(encoder->log, STATUS_OUTPUT, error, "the encoder %s failed",
                        encoder->codec->codec->name);
}

const AVCodecContext *encoder_context(const struct encoder *encoder)
{
    return encoder->codec;
}
