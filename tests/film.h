// Films for tests of the control page: a file's frames, decoded from beginning to end.
#pragma once

#include "tests/unit.h"

#include <libavformat/avformat.h>
#include <libavutil/adler32.h>
#include <libavutil/pixdesc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "page/player/keep.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"

enum { MAX_FRAMES = 400, MAX_PIXELS = 1 << 20 };

// Packets that are lost from a film: from number `from` up to `to`; 0: none.
static struct {
    int from, to;
} lost;

static const struct log silence;
static const atomic_bool never;

#define SOURCE "ffmpeg -v error -y -nostdin -f lavfi -i testsrc2=s=64x48:r=25:d=4 -pix_fmt yuv420p "
#define X264 "-c:v libx264 -preset ultrafast -crf 30 "

struct film {
    int count;
    int64_t us[MAX_FRAMES];
    uint32_t hash[MAX_FRAMES];
    int width[MAX_FRAMES];
};

static uint32_t hash_of(const AVFrame *frame)
{
    uint32_t hash = 1;
    for (int k = 0; k < 3 && frame->data[k]; k++) {
        const AVPixFmtDescriptor *kind = av_pix_fmt_desc_get(frame->format);
        int sub = k ? kind->log2_chroma_w : 0, down = k ? kind->log2_chroma_h : 0;
        for (int y = 0; y < AV_CEIL_RSHIFT(frame->height, down); y++)
            hash = av_adler32_update(hash, frame->data[k] + (ptrdiff_t)y * frame->linesize[k],
                                     (unsigned)AV_CEIL_RSHIFT(frame->width, sub));
    }
    return hash;
}

static void watch(struct film *film, const AVFrame *frame, AVRational base)
{
    assert_in_range(film->count, 0, MAX_FRAMES - 1);
    film->us[film->count] = av_rescale_q(frame->pts, base, AV_TIME_BASE_Q);
    film->hash[film->count] = hash_of(frame);
    film->width[film->count++] = frame->width;
}

static void receive_all(struct decoder *decoder, AVRational base, struct film *film)
{
    AVFrame *frame = av_frame_alloc();
    bool got = true;
    while (!decoder_receive(decoder, frame, &got) && got) {
        watch(film, frame, base);
        av_frame_unref(frame);
    }
    av_frame_free(&frame);
}

static struct source_request request_of(const char *name, const char *simulate)
{
    return (struct source_request){.name = name, .simulate = simulate, .max_pixels = MAX_PIXELS};
}

// Decode a file from beginning to end, as a job does; the last seconds of its packets go into
// `keep` (optional).
static inline void watch_file(const char *name, const char *simulate, double seconds,
                              struct film *film, struct keep **keep, struct source *described)
{
    struct source_request request = request_of(name, simulate);
    struct decoder_request codec = {.max_pixels = MAX_PIXELS, .frames_held = 1};
    struct source *source;
    struct backend *backend;
    struct decoder *decoder;
    struct packet *packet;
    memset(film, 0, sizeof *film);
    assert_int_equal(source_open(&request, &silence, &never, &source), STATUS_OK);
    assert_int_equal(backend_scalar_create(&silence, &backend), STATUS_OK);
    assert_int_equal(decoder_create(&codec, source, backend, &decoder), STATUS_OK);
    AVRational base = source_video(source)->time_base;
    if (keep) {
        struct keep_request keeping = {seconds, 1 << 24, base, 40000,
                                       source_video(source)->codecpar};
        assert_int_equal(keep_create(&keeping, keep), STATUS_OK);
        *described = (struct source){.log = &silence, .video = source->video};
        described->name = strdup(source->name);
        described->format = format_describe(source->format);
    }
    for (int n = 0; !source_read(source, &packet); packet_destroy(&packet)) {
        if (packet->av->stream_index != source->video || (n++ >= lost.from && n <= lost.to))
            continue;
        int times = lost.to && n == lost.from ? 2 : 1;
        for (int k = 0; k < times; k++) {
            if (k) // a restart without data stands at the loss
                av_packet_unref(packet->av), packet->pts_us = AV_NOPTS_VALUE,
                                             packet->restart = true;
            if (keep)
                keep_put(*keep, packet);
            assert_int_equal(decoder_send(decoder, packet), STATUS_OK);
            receive_all(decoder, base, film);
        }
    }
    assert_int_equal(decoder_send(decoder, NULL), STATUS_OK);
    receive_all(decoder, base, film);
    decoder_destroy(&decoder);
    backend_destroy(&backend);
    source_close(&source);
}

// The frame that is to be shown at a time.
static inline int frame_at(const struct film *film, int64_t at_us)
{
    int n = film->count - 1;
    while (n > 0 && film->us[n] > at_us)
        n--;
    return n;
}
