#include "pipeline/ffmpeg/budget.h"

#include <libavutil/cpu.h>
#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <stdbool.h>
#include <string.h>

int64_t budget_of_frame(const void *item)
{
    const AVFrame *frame = item;
    int64_t bytes = av_image_get_buffer_size(frame->format, frame->width, frame->height, 1);
    return bytes > 0 ? bytes : 0;
}

// True if it gives a packet for every frame at once.
static bool looks_ahead(const AVCodecContext *codec)
{
    uint8_t *tune = NULL;
    bool intra = avcodec_descriptor_get(codec->codec_id)->props & AV_CODEC_PROP_INTRA_ONLY;
    bool hurries = codec->codec->priv_class &&
                   av_opt_get(codec->priv_data, "tune", 0, &tune) >= 0 && tune &&
                   strstr((const char *)tune, "zerolatency");
    av_free(tune);
    return !intra && !hurries;
}

int64_t budget_of_encoder(const AVCodecContext *codec, int64_t frame_bytes)
{
    enum { REFERENCES = 20, AHEAD = 80, COPIES = 3 };
    int threads = codec->thread_count > 0 ? codec->thread_count : 2;
    return (REFERENCES + threads + (looks_ahead(codec) ? AHEAD : 0)) * COPIES * frame_bytes;
}

int64_t budget_of_decoder(int threads, int64_t frame_bytes)
{
    enum { REFERENCES = 20 };
    return (REFERENCES + 2 * threads) * frame_bytes * 5 / 4;
}

static bool is_intra(enum AVCodecID id)
{
    const AVCodecDescriptor *about = avcodec_descriptor_get(id);
    return about && about->props & AV_CODEC_PROP_INTRA_ONLY;
}

static bool is_raw(enum AVCodecID id)
{
    return id == AV_CODEC_ID_RAWVIDEO || id == AV_CODEC_ID_WRAPPED_AVFRAME;
}

// Threads that libavcodec starts where nobody says.
static int threads_of(int asked)
{
    enum { MOST = 16 };
    int all = av_cpu_count() + 1;
    return asked ? asked : all < MOST ? all : MOST;
}

// Frames that an encoder holds beside those of its threads, by measuring on two cores: x264 132, and
// 190 with its slower presets, 15 in a hurry; SVT-AV1 137, x265 103, libvpx-vp9 86; of libavcodec
// FFV1 125, MJPEG 17, MPEG-4 7.
static int held_by(const AVCodec *codec, enum pace pace)
{
    enum { OWN = 18 };
    static const int ahead[] = {[PACE_HURRIED] = OWN, [PACE_USUAL] = 135, [PACE_SLOW] = 200};
    bool library = codec->wrapper_name || !strncmp(codec->name, "lib", 3);
    if (codec->id == AV_CODEC_ID_FFV1)
        return 125;
    return library && !is_intra(codec->id) ? ahead[pace] : OWN;
}

int64_t budget_estimate_encoder(const AVCodec *codec, int threads, enum pace pace,
                                int64_t frame_bytes)
{
    enum { OF_THREAD = 2 };
    return is_raw(codec->id) // a packet is the frame, or a copy
               ? frame_bytes
               : budget_codec +
                     (held_by(codec, pace) + OF_THREAD * threads_of(threads)) * frame_bytes;
}

int64_t budget_estimate_decoder(enum AVCodecID codec, int threads, int64_t frame_bytes)
{
    enum { REFERENCES = 8 };
    if (is_raw(codec))
        return 0; // its frames are the packets
    return ((is_intra(codec) ? 0 : REFERENCES) + threads_of(threads)) * frame_bytes * 5 / 4;
}

int64_t budget_of_queue(int items, int64_t limit, int64_t item_bytes)
{
    int64_t all = items * item_bytes;
    return all < limit + item_bytes ? all : limit + item_bytes;
}
