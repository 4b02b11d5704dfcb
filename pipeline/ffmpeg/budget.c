#include "pipeline/ffmpeg/budget.h"

#include <libavutil/imgutils.h>
#include <libavutil/opt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

int64_t budget_resident(void)
{
    long long pages = 0;
    FILE *from = fopen("/proc/self/statm", "r");
    bool known = from && fscanf(from, "%*s %lld", &pages) == 1;
    if (from)
        fclose(from);
    return known ? pages * sysconf(_SC_PAGESIZE) : 0;
}
