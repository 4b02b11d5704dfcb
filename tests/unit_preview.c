// The control page's pictures: what viewers get of frames, and what it costs.
#include "tests/unit.h"

#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/intreadwrite.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/meter.h"
#include "page/preview/compare.h"
#include "page/preview/preview.h"
#include "page/preview/record.h"
#include "page/preview/stream.h"
#include "pipeline/output/http/http.h"

static const struct sluice_config config = {.size = sizeof config, .threads = 2};

static void print_nothing(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque, (void)level, (void)sentence;
}

static const struct log quiet = {print_nothing, NULL};

static void rest_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

// ---- frames ----

static uint8_t sample(int x, int y, int c, int n)
{
    return (uint8_t)(x * 2 + y * 3 + c * 50 + n * 7);
}

// A picture of slopes, number `n`.
static AVFrame *make_frame(enum AVPixelFormat pixel, int width, int height, int n)
{
    AVFrame *frame = av_frame_alloc();
    frame->format = pixel;
    frame->width = width;
    frame->height = height;
    frame->pts = n;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    int bytes = pixel == AV_PIX_FMT_RGB24 ? 3 : 1;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width * bytes; x++)
            frame->data[0][y * frame->linesize[0] + x] = sample(x / bytes, y, x % bytes, n);
    for (int p = 1; pixel == AV_PIX_FMT_YUV420P && p < 3; p++)
        for (int y = 0; y < (height + 1) / 2; y++)
            memset(frame->data[p] + y * frame->linesize[p], 128, (size_t)(width + 1) / 2);
    return frame;
}

static void offer(struct preview *preview, const AVFrame *frame)
{
    const struct tap_frame about = {.time_base = {1, 25}, .pts_us = frame->pts * 40000};
    preview_offer(preview, frame, &about);
}

static void offer_new(struct preview *preview, enum AVPixelFormat pixel, int width, int height,
                      int n)
{
    AVFrame *frame = make_frame(pixel, width, height, n);
    offer(preview, frame);
    av_frame_free(&frame);
}

static struct preview *make_preview(const char *chain)
{
    struct preview *preview;
    const struct preview_request request = {&config, &quiet};
    assert_int_equal(preview_create(&request, &preview), STATUS_OK);
    assert_int_equal(preview_set_chain(preview, chain), STATUS_OK);
    return preview;
}

// ---- what libraries make of it ----

struct bytes {
    uint8_t *data;
    size_t size, at;
};

static int read_bytes(void *bytes_, uint8_t *to, int size)
{
    struct bytes *bytes = bytes_;
    size_t left = bytes->size - bytes->at, count = left < (size_t)size ? left : (size_t)size;
    memcpy(to, bytes->data + bytes->at, count);
    bytes->at += count;
    return count ? (int)count : AVERROR_EOF;
}

struct decoded {
    AVFrame *frame[400];
    int frames;
    int64_t pts[400]; // of packets, in ticks
    char name[32];
    int width, height;
};

static void free_decoded(struct decoded *decoded)
{
    for (int k = 0; k < decoded->frames; k++)
        av_frame_free(&decoded->frame[k]);
}

static void receive_all(AVCodecContext *codec, struct decoded *decoded)
{
    AVFrame *frame = av_frame_alloc();
    while (avcodec_receive_frame(codec, frame) >= 0) {
        decoded->frame[decoded->frames++] = av_frame_clone(frame);
        av_frame_unref(frame);
    }
    av_frame_free(&frame);
}

static void decode_stream(AVFormatContext *format, struct decoded *decoded)
{
    AVCodecParameters *about = format->streams[0]->codecpar;
    AVCodecContext *codec = avcodec_alloc_context3(avcodec_find_decoder(about->codec_id));
    AVPacket *packet = av_packet_alloc();
    avcodec_parameters_to_context(codec, about);
    codec->err_recognition = AV_EF_EXPLODE;
    assert_int_equal(avcodec_open2(codec, NULL, NULL), 0);
    decoded->width = about->width;
    decoded->height = about->height;
    if (about->extradata_size > 3) // avcC
        snprintf(decoded->name, sizeof decoded->name, "avc1.%02x%02x%02x", about->extradata[1],
                 about->extradata[2], about->extradata[3]);
    for (int k = 0; av_read_frame(format, packet) >= 0; k++) {
        AVRational ticks = {1, STREAM_CLOCK};
        decoded->pts[k] = av_rescale_q(packet->pts, format->streams[0]->time_base, ticks);
        if (!k)
            assert_true(packet->flags & AV_PKT_FLAG_KEY);
        assert_int_equal(avcodec_send_packet(codec, packet), 0);
        av_packet_unref(packet);
        receive_all(codec, decoded);
    }
    avcodec_send_packet(codec, NULL);
    receive_all(codec, decoded);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
}

static void decode(struct bytes *bytes, const char *format_name, struct decoded *decoded)
{
    AVFormatContext *format = avformat_alloc_context();
    AVIOContext *io = avio_alloc_context(av_malloc(4096), 4096, 0, bytes, read_bytes, NULL, NULL);
    *decoded = (struct decoded){0};
    format->pb = io;
    assert_int_equal(avformat_open_input(&format, NULL, av_find_input_format(format_name), NULL),
                     0);
    assert_int_equal(format->nb_streams, 1);
    decode_stream(format, decoded);
    avformat_close_input(&format);
    av_freep(&io->buffer);
    avio_context_free(&io);
}

static AVFrame *decode_png(const uint8_t *data, size_t size)
{
    AVCodecContext *codec = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_PNG));
    AVPacket *packet = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    codec->thread_count = 1;
    assert_int_equal(avcodec_open2(codec, NULL, NULL), 0);
    assert_int_equal(av_new_packet(packet, (int)size), 0);
    memcpy(packet->data, data, size);
    assert_int_equal(avcodec_send_packet(codec, packet), 0);
    assert_int_equal(avcodec_receive_frame(codec, frame), 0);
    av_packet_free(&packet);
    avcodec_free_context(&codec);
    return frame;
}

// What follows the next box of this kind, which is none of others' data; NULL: there is none.
static const uint8_t *next_box(const struct bytes *bytes, size_t *at, const char *kind)
{
    for (; *at + 24 < bytes->size; ++*at)
        if (!memcmp(bytes->data + *at, kind, 4)) {
            *at += 4;
            return bytes->data + *at;
        }
    return NULL;
}

// Each fragment begins where the one before ended, the first at 0; the first, and each behind some
// that were left out, is a key frame. Returns how often some were.
static int check_fragments(const struct bytes *bytes, int fragments)
{
    const uint8_t *number, *head, *time, *run;
    uint64_t next = 0;
    uint32_t last = 0;
    size_t at = 0;
    int count = 0, jumps = 0;
    for (; (number = next_box(bytes, &at, "mfhd")); count++) {
        assert_non_null(head = next_box(bytes, &at, "tfhd"));
        assert_non_null(time = next_box(bytes, &at, "tfdt"));
        assert_non_null(run = next_box(bytes, &at, "trun"));
        bool jumped = count && AV_RB32(number + 4) != last + 1;
        if (jumped || !count)
            assert_int_equal(AV_RB32(run) & 4, 4);    // a sample that differs from the usual
        assert_int_equal(AV_RB32(head) & 0xff, 0x38); // duration, size and flags
        assert_int_equal(AV_RB64(time + 4), next);
        next += AV_RB32(head + 8);
        last = AV_RB32(number + 4);
        jumps += jumped;
    }
    assert_int_equal(count, fragments);
    return jumps;
}

// ---- viewers ----

static const struct view after = {.kind = VIEW_AFTER, .stage = -1};

static struct http_answer ask(struct preview *preview, const struct view *view)
{
    struct http_answer answer = {0};
    preview_answer_stream(preview, view, &answer);
    return answer;
}

static struct http_stream *join(struct preview *preview, const struct view *view)
{
    struct http_answer answer = ask(preview, view);
    assert_non_null(answer.stream);
    return answer.stream;
}

// Read what there is, waiting up to `ms` for the first byte. Below 0: the end.
static ssize_t read_some(struct http_stream *stream, struct bytes *bytes, int ms)
{
    char piece[65536];
    ssize_t got = stream->read(stream, piece, sizeof piece);
    for (int k = 0; k < ms && got == 0; k++) {
        rest_ms(1);
        got = stream->read(stream, piece, sizeof piece);
    }
    for (; got > 0; got = stream->read(stream, piece, sizeof piece)) {
        bytes->data = realloc(bytes->data, bytes->size + (size_t)got);
        memcpy(bytes->data + bytes->size, piece, (size_t)got);
        bytes->size += (size_t)got;
    }
    return got < 0 ? got : (ssize_t)bytes->size;
}

static int64_t encoded(struct preview *preview)
{
    struct preview_figures figures;
    preview_figures(preview, &figures);
    return figures.encoded;
}

static void await_encoded(struct preview *preview, int64_t count)
{
    for (int k = 0; k < 3000 && encoded(preview) < count; k++)
        rest_ms(1);
    assert_true(encoded(preview) >= count);
}

// Offer a frame and wait until it was encoded, or the one before it once more.
static void offer_and_await(struct preview *preview, int n)
{
    int64_t begin = encoded(preview);
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, n);
    await_encoded(preview, begin + 1);
}

// How far the luma is from what was expected, in the mean.
static double error_of(const AVFrame *frame, int width, int height, int begin, bool inverted, int n)
{
    double sum = 0;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int want = sample(x, y, 0, n), got = frame->data[0][y * frame->linesize[0] + begin + x];
            want = inverted ? 255 - want : want;
            want = frame->color_range == AVCOL_RANGE_MPEG ? 16 + want * 219 / 255 : want;
            sum += abs(got - want);
        }
    return sum / width / height;
}

static struct decoded watch_one(const struct view *view, const char *chain, int width, int height)
{
    struct preview *preview = make_preview(chain);
    struct bytes bytes = {0};
    struct decoded decoded;
    offer_new(preview, AV_PIX_FMT_GRAY8, width, height, 3);
    struct http_answer answer = ask(preview, view);
    assert_non_null(answer.stream);
    char type[64];
    snprintf(type, sizeof type, "%s", answer.type);
    await_encoded(preview, 1);
    read_some(answer.stream, &bytes, 2000);
    bool mp4 = strstr(type, "mp4");
    decode(&bytes, mp4 ? "mp4" : "mpjpeg", &decoded);
    if (mp4) {
        char want[64];
        snprintf(want, sizeof want, "video/mp4; codecs=\"%s\"", decoded.name);
        assert_string_equal(type, want);
    }
    answer.stream->close(answer.stream);
    preview_destroy(&preview);
    free(bytes.data);
    return decoded;
}

static void streams_are_what_was_filtered(void **state)
{
    (void)state;
    static const struct {
        struct view view;
        int parts;
    } rows[] = {{{.kind = VIEW_AFTER, .stage = -1}, 1},
                {{.kind = VIEW_BEFORE}, 1},
                {{.kind = VIEW_SPLIT, .stage = -1}, 2},
                {{.kind = VIEW_AFTER, .stage = -1, .codec = VIEW_MJPEG}, 1}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct view *view = &rows[k].view;
        struct decoded decoded = watch_one(view, "null,invert", 192, 128);
        assert_true(decoded.frames >= 1);
        const AVFrame *frame = decoded.frame[0];
        assert_int_equal(frame->width, 192 * rows[k].parts);
        assert_int_equal(frame->height, 128);
        if (view->codec == VIEW_H264) {
            assert_int_equal(frame->color_range, AVCOL_RANGE_MPEG);
            assert_int_equal(frame->colorspace, AVCOL_SPC_SMPTE170M);
            assert_int_equal(decoded.pts[0], 0);
        }
        int right = rows[k].parts == 2 ? 192 : 0;
        assert_true(error_of(frame, 192, 128, 0, view->kind == VIEW_AFTER, 3) < 4);
        assert_true(error_of(frame, 192, 128, right, view->kind != VIEW_BEFORE, 3) < 4);
        free_decoded(&decoded);
    }
}

static void a_stream_follows_the_frames_and_the_chain(void **state)
{
    (void)state;
    struct preview *preview = make_preview("");
    struct bytes bytes = {0};
    struct decoded decoded;
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, 0);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    for (int n = 1; n < 10; n++)
        offer_and_await(preview, n);
    int64_t begin = encoded(preview);
    assert_int_equal(preview_set_chain(preview, "brightness=255"), STATUS_OK);
    await_encoded(preview, begin + 1);
    read_some(stream, &bytes, 0);
    decode(&bytes, "mp4", &decoded);
    assert_true(decoded.frames >= 11);
    assert_int_equal(check_fragments(&bytes, decoded.frames), 0);
    assert_int_equal(decoded.pts[0], 0);
    const AVFrame *last = decoded.frame[decoded.frames - 1];
    assert_true(last->data[0][20 * last->linesize[0] + 20] > 230);
    free_decoded(&decoded);
    free(bytes.data);
    stream->close(stream);
    preview_destroy(&preview);
}

static void ten_viewers_cost_one_encoding(void **state)
{
    (void)state;
    struct preview *preview = make_preview("invert");
    struct http_stream *stream[10];
    struct preview_figures figures;
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, 0);
    for (int k = 0; k < 10; k++)
        stream[k] = join(preview, &after);
    await_encoded(preview, 1);
    rest_ms(100);
    int64_t begin = encoded(preview);
    for (int n = 1; n <= 10; n++)
        offer_and_await(preview, n);
    preview_figures(preview, &figures);
    assert_int_equal(figures.viewers, 10);
    assert_int_equal(figures.views, 1);
    assert_in_range(figures.encoded - begin, 10, 16);
    for (int k = 0; k < 10; k++) {
        struct bytes bytes = {0};
        struct decoded decoded;
        assert_true(read_some(stream[k], &bytes, 0) > 0);
        decode(&bytes, "mp4", &decoded);
        assert_true(decoded.frames >= 5);
        free_decoded(&decoded);
        free(bytes.data);
        stream[k]->close(stream[k]);
    }
    preview_destroy(&preview);
}

static void without_viewers_nothing_is_made(void **state)
{
    (void)state;
    struct preview *preview = make_preview("invert");
    struct preview_figures figures;
    for (int n = 0; n < 10; n++) {
        offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, n);
        rest_ms(10);
    }
    preview_figures(preview, &figures);
    assert_int_equal(figures.rendered, 0);
    assert_int_equal(figures.pts_us, 9 * 40000);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    stream->close(stream);
    rest_ms(100);
    int64_t begin = encoded(preview);
    for (int n = 0; n < 10; n++) {
        offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, n);
        rest_ms(60);
    }
    assert_int_equal(encoded(preview), begin);
    preview_destroy(&preview);
}

// A picture that no encoder makes small.
static AVFrame *make_noise(int size, unsigned n)
{
    AVFrame *frame = make_frame(AV_PIX_FMT_GRAY8, size, size, 0);
    unsigned value = n * 2654435761U + 1;
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            value = value * 1664525U + 1013904223U;
            frame->data[0][y * frame->linesize[0] + x] = (uint8_t)(value >> 24);
        }
    return frame;
}

static void a_slow_viewer_goes_on_at_a_key_frame(void **state)
{
    (void)state;
    struct preview *preview = make_preview("");
    struct bytes bytes = {0};
    struct decoded decoded;
    AVFrame *noise[4];
    for (unsigned n = 0; n < 4; n++)
        noise[n] = make_noise(512, n);
    offer(preview, noise[0]);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    char piece[5000];
    assert_true(stream->read(stream, piece, sizeof piece) == sizeof piece);
    for (int n = 1; n < 110; n++) {
        int64_t begin = encoded(preview);
        offer(preview, noise[n % 4]);
        await_encoded(preview, begin + 1);
    }
    bytes.data = malloc(sizeof piece);
    memcpy(bytes.data, piece, sizeof piece);
    bytes.size = sizeof piece;
    read_some(stream, &bytes, 0);
    assert_true(encoded(preview) > 100);
    assert_true(bytes.size < STREAM_BYTES + (2 << 20));
    decode(&bytes, "mp4", &decoded); // fails at a missing reference
    assert_true(decoded.frames > 2);
    assert_true(decoded.frames < 70);
    assert_true(check_fragments(&bytes, decoded.frames) > 0);
    for (int n = 0; n < 4; n++)
        av_frame_free(&noise[n]);
    free_decoded(&decoded);
    free(bytes.data);
    stream->close(stream);
    preview_destroy(&preview);
}

static void another_size_ends_streams(void **state)
{
    (void)state;
    struct preview *preview = make_preview("invert");
    struct bytes bytes = {0};
    struct decoded decoded;
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, 0);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    read_some(stream, &bytes, 100);
    offer_new(preview, AV_PIX_FMT_GRAY8, 128, 64, 1);
    ssize_t got = 0;
    for (int k = 0; k < 1000 && got >= 0; k++)
        got = read_some(stream, &bytes, 2);
    assert_true(got < 0);
    struct http_stream *again = join(preview, &after);
    await_encoded(preview, 2);
    bytes.size = bytes.at = 0;
    read_some(again, &bytes, 1000);
    decode(&bytes, "mp4", &decoded);
    assert_int_equal(decoded.width, 128);
    free_decoded(&decoded);
    free(bytes.data);
    stream->close(stream);
    again->close(again);
    preview_destroy(&preview);
}

static void wide_pictures_are_scaled(void **state)
{
    (void)state;
    static const struct {
        enum view_kind kind;
        int width, height, to_width, to_height;
    } rows[] = {
        {VIEW_AFTER, 1920, 1080, 1280, 720}, {VIEW_SPLIT, 1280, 720, 2560, 720},
        {VIEW_AFTER, 641, 361, 640, 360},    {VIEW_AFTER, 3, 2, 16, 16},
        {VIEW_SPLIT, 1920, 1080, 2560, 720},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct view view = {.kind = rows[k].kind, .stage = -1};
        struct decoded decoded = watch_one(&view, "invert", rows[k].width, rows[k].height);
        assert_int_equal(decoded.width, rows[k].to_width);
        assert_int_equal(decoded.height, rows[k].to_height);
        free_decoded(&decoded);
    }
}

static void a_change_is_seen_within_100_ms(void **state)
{
    (void)state;
    struct preview *preview = make_preview("gray,gaussian=1.4,sobel,threshold=20:240");
    struct bytes bytes = {0};
    double ms[15];
    offer_new(preview, AV_PIX_FMT_YUV420P, 1280, 720, 0);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    for (int k = 0; k < 15; k++) {
        char chain[96];
        snprintf(chain, sizeof chain, "gray,gaussian=%g,sobel,threshold=20:%d", 1 + 0.1 * k,
                 100 + k);
        rest_ms(30);
        read_some(stream, &bytes, 0);
        int64_t begin_ns = meter_now_ns(), drawn = encoded(preview);
        assert_int_equal(preview_set_chain(preview, chain), STATUS_OK);
        while (encoded(preview) == drawn)
            rest_ms(1);
        assert_true(read_some(stream, &bytes, 100) > 0);
        ms[k] = (double)(meter_now_ns() - begin_ns) * 1e-6;
    }
    struct spread spread = meter_spread(ms, 15);
    print_message("from a change to its picture: median %.1f ms, worst %.1f ms\n", spread.median,
                  spread.high);
    assert_true(spread.median < 100);
    free(bytes.data);
    stream->close(stream);
    preview_destroy(&preview);
}

// ---- single pictures ----

static AVFrame *picture(struct preview *preview, const struct view *view)
{
    char *png;
    size_t size;
    assert_int_equal(preview_picture(preview, view, &png, &size), STATUS_OK);
    AVFrame *frame = decode_png((const uint8_t *)png, size);
    free(png);
    return frame;
}

// What sample `c` at x, y of a view is, of an RGB picture that is inverted.
static int want_sample(const struct view *view, int x, int y, int c)
{
    int value = sample(x % 31, y, c, 0), inverted = view->stage == 0 ? value : 255 - value;
    int other = !*view->other ? value : value + 10 > 255 ? 255 : value + 10; // brightness=10
    switch (view->kind) {
    case VIEW_BEFORE:
        return value;
    case VIEW_SPLIT:
        return x < 31 ? other : inverted;
    case VIEW_DIFFERENCE:
        return abs(inverted - other);
    default:
        return inverted;
    }
}

static void pictures_are_exact(void **state)
{
    (void)state;
    static const struct view rows[] = {
        {VIEW_AFTER, -1},
        {VIEW_BEFORE, -1},
        {VIEW_SPLIT, -1},
        {VIEW_DIFFERENCE, -1},
        {VIEW_AFTER, 0},
        {VIEW_AFTER, 1},
        {VIEW_SPLIT, 0},
        {VIEW_DIFFERENCE, 0},
        {VIEW_DIFFERENCE, 1, "brightness=10"},
        {VIEW_AFTER, 7},
        {VIEW_SPLIT, -1, "brightness=10"},
    };
    struct preview *preview = make_preview("invert,tee=never.mkv,stats=never.json");
    offer_new(preview, AV_PIX_FMT_RGB24, 31, 17, 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        AVFrame *frame = picture(preview, &rows[k]);
        assert_int_equal(frame->width, rows[k].kind == VIEW_SPLIT ? 62 : 31);
        assert_int_equal(frame->format, AV_PIX_FMT_RGB24);
        for (int y = 0; y < 17; y++)
            for (int x = 0; x < frame->width; x++)
                for (int c = 0; c < 3; c++)
                    assert_int_equal(frame->data[0][y * frame->linesize[0] + 3 * x + c],
                                     want_sample(&rows[k], x, y, c));
        av_frame_free(&frame);
    }
    FILE *written = fopen("never.mkv", "rb");
    assert_null(written);
    preview_destroy(&preview);
}

// Pictures are turned as players turn them, behind the filters.
static void pictures_are_turned(void **state)
{
    (void)state;
    static const struct rotation quarter = {.transpose = true, .flip_x = true};
    static const struct view rows[] = {{VIEW_AFTER, -1}, {VIEW_BEFORE, -1}, {VIEW_SPLIT, -1}};
    struct preview *preview = make_preview("invert");
    AVFrame *frame = make_frame(AV_PIX_FMT_RGB24, 31, 17, 0);
    const struct tap_frame about = {.time_base = {1, 1000}, .rotation = quarter};
    preview_offer(preview, frame, &about);
    av_frame_free(&frame);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        frame = picture(preview, &rows[k]);
        int parts = rows[k].kind == VIEW_SPLIT ? 2 : 1;
        assert_int_equal(frame->width, 17 * parts);
        assert_int_equal(frame->height, 31);
        for (int y = 0; y < 31; y++)
            for (int x = 0; x < 17 * parts; x++)
                for (int c = 0; c < 3; c++) {
                    int value = sample(y, 16 - x % 17, c, 0);
                    bool filtered = rows[k].kind == VIEW_AFTER || x >= 17;
                    assert_int_equal(frame->data[0][y * frame->linesize[0] + 3 * x + c],
                                     filtered ? 255 - value : value);
                }
        av_frame_free(&frame);
    }
    preview_destroy(&preview);
}

// libswscale reads no NV16, which cameras have: filters make something else of it.
static void any_format_is_shown(void **state)
{
    (void)state;
    static const enum AVPixelFormat formats[] = {AV_PIX_FMT_NV16, AV_PIX_FMT_NV12,
                                                 AV_PIX_FMT_P010, AV_PIX_FMT_YUYV422,
                                                 AV_PIX_FMT_PAL8, AV_PIX_FMT_GRAY16BE};
    struct preview *preview = make_preview("null");
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        AVFrame *frame = make_frame(formats[k], 30, 20, 0);
        for (int p = 0; p < 2 && frame->buf[0]; p++)
            if (frame->data[p] && formats[k] == AV_PIX_FMT_NV16)
                memset(frame->data[p], 128, (size_t)(20 * frame->linesize[p]));
        offer(preview, frame);
        av_frame_free(&frame);
        for (int kind = VIEW_AFTER; kind <= VIEW_DIFFERENCE; kind++) {
            frame = picture(preview, &(struct view){.kind = (enum view_kind)kind, .stage = -1});
            assert_int_equal(frame->height, 20);
            if (formats[k] == AV_PIX_FMT_NV16 && kind != VIEW_DIFFERENCE)
                assert_in_range(frame->data[0][5], 129, 131); // (128 - 16) * 255 / 219
            av_frame_free(&frame);
        }
    }
    preview_destroy(&preview);
}

static void figures_count_the_luma(void **state)
{
    (void)state;
    struct preview *preview = make_preview("brightness=255");
    struct preview_figures figures;
    offer_new(preview, AV_PIX_FMT_GRAY8, 31, 17, 0);
    AVFrame *frame = picture(preview, &after);
    assert_int_equal(frame->format, AV_PIX_FMT_GRAY8);
    av_frame_free(&frame);
    rest_ms(50);
    preview_figures(preview, &figures);
    assert_int_equal(figures.rendered, 1);
    assert_int_equal(figures.width, 31);
    assert_int_equal(figures.histogram[255] + figures.histogram[254] + figures.histogram[235],
                     31 * 17);
    preview_destroy(&preview);
}

static void what_cannot_be_shown_is_refused(void **state)
{
    (void)state;
    struct preview *preview = make_preview("");
    struct view wrong = {.kind = VIEW_DIFFERENCE, .stage = -1, .other = "gausian"};
    struct http_stream *stream[PREVIEW_VIEWERS];
    char *png;
    size_t size;
    struct http_answer answer = ask(preview, &after);
    assert_int_equal(answer.code, 503);
    free(answer.text);
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, 0);
    answer = ask(preview, &wrong);
    assert_int_equal(answer.code, 400);
    assert_non_null(strstr(answer.text, "gaussian"));
    free(answer.text);
    assert_int_equal(preview_picture(preview, &wrong, &png, &size), STATUS_USAGE);
    assert_int_equal(preview_set_chain(preview, "gausian"), STATUS_USAGE);
    for (int k = 0; k < PREVIEW_VIEWS; k++)
        stream[k] = join(preview, &(struct view){.kind = VIEW_AFTER, .stage = k});
    answer = ask(preview, &(struct view){.kind = VIEW_SPLIT});
    assert_int_equal(answer.code, 503);
    free(answer.text);
    for (int k = PREVIEW_VIEWS; k < PREVIEW_VIEWERS; k++)
        stream[k] = join(preview, &(struct view){.kind = VIEW_AFTER, .stage = 0});
    answer = ask(preview, &(struct view){.kind = VIEW_AFTER, .stage = 0});
    assert_int_equal(answer.code, 503);
    free(answer.text);
    for (int k = 0; k < PREVIEW_VIEWERS; k++)
        stream[k]->close(stream[k]);
    preview_destroy(&preview);
}

// ---- the job's memory ----

static void see_picture(void *seen, const AVFrame *frame, int64_t pts_us)
{
    (void)pts_us;
    assert_int_equal(frame->width, 64);
    ++*(atomic_int *)seen;
}

static void a_watch_gets_pictures(void **state)
{
    (void)state;
    atomic_int seen = 0;
    struct preview *preview = make_preview("invert");
    preview_watch(preview, &(struct preview_watch){see_picture, &seen});
    for (int n = 0; n < 5; n++) {
        offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, n);
        for (int k = 0; k < 3000 && seen <= n; k++)
            rest_ms(1);
    }
    preview_watch(preview, NULL);
    assert_int_equal(seen, 5);
    offer_new(preview, AV_PIX_FMT_GRAY8, 64, 64, 9);
    rest_ms(30);
    assert_int_equal(seen, 5);
    preview_destroy(&preview);
}

static void memory_of_frames_is_given_back(void **state)
{
    (void)state;
    struct preview *preview = make_preview("null");
    AVFrame *frame = make_frame(AV_PIX_FMT_GRAY8, 64, 64, 0), *copy;
    char *chain;
    offer(preview, frame);
    struct http_stream *stream = join(preview, &after);
    await_encoded(preview, 1);
    assert_int_equal(av_buffer_get_ref_count(frame->buf[0]), 2);
    preview_release(preview);
    assert_int_equal(av_buffer_get_ref_count(frame->buf[0]), 1);
    memset(frame->data[0], 0, 64);
    assert_int_equal(preview_newest(preview, &copy, &chain), STATUS_OK);
    assert_string_equal(chain, "null");
    assert_int_equal(copy->data[0][20], sample(20, 0, 0, 0));
    av_frame_free(&copy);
    av_frame_free(&frame);
    free(chain);
    AVFrame *shown = picture(preview, &after);
    assert_int_equal(shown->data[0][20], sample(20, 0, 0, 0));
    av_frame_free(&shown);
    stream->close(stream);
    preview_destroy(&preview);
}

// ---- recordings ----

static struct record_state await_file(struct record *record)
{
    struct record_state state;
    record_state(record, &state);
    for (int k = 0; k < 5000 && (state.finishing || state.recording); k++) {
        rest_ms(1);
        record_state(record, &state);
    }
    return state;
}

static void await_recorded(struct record *record, int64_t frames)
{
    struct record_state state = {0};
    for (int k = 0; k < 5000 && state.frames < frames; k++) {
        rest_ms(1);
        record_state(record, &state);
    }
    assert_true(state.frames >= frames);
}

static int count_frames(const char *file, int *width)
{
    AVFormatContext *format = NULL;
    AVPacket *packet = av_packet_alloc();
    int frames = 0;
    assert_int_equal(avformat_open_input(&format, file, NULL, NULL), 0);
    *width = format->streams[0]->codecpar->width;
    for (; av_read_frame(format, packet) >= 0; frames++)
        av_packet_unref(packet);
    av_packet_free(&packet);
    avformat_close_input(&format);
    return frames;
}

static void a_recording_is_a_whole_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/unit_preview_XXXXXX", file[128], why[128] = "";
    assert_non_null(mkdtemp(folder));
    struct preview *preview = make_preview("invert");
    struct record *record;
    assert_int_equal(record_create(&(struct record_request){preview, folder}, &quiet, &record),
                     STATUS_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(record_start(record, why, sizeof why), STATUS_OK);
        assert_int_equal(record_start(record, why, sizeof why), STATUS_USAGE);
        for (int n = 0; n < 10; n++) {
            offer_new(preview, AV_PIX_FMT_GRAY8, 96, 64, n);
            await_recorded(record, n + 1);
        }
        record_stop(record);
        struct record_state made = await_file(record);
        assert_string_equal(made.error, "");
        assert_in_range(made.frames, 10, 11); // the last of the round before, too
        assert_int_equal(made.dropped, 0);
        assert_true(made.seconds > 0.35 && made.seconds < 5);
        snprintf(file, sizeof file, "%s/%s", folder, made.name);
        int width, frames = count_frames(file, &width);
        assert_int_equal(frames, made.frames);
        assert_int_equal(width, 96);
        unlink(file);
    }
    assert_int_equal(rmdir(folder), 0);
    record_destroy(&record);
    preview_destroy(&preview);
}

static void a_recording_says_why_it_failed(void **state)
{
    (void)state;
    char why[128];
    struct record_state failed;
    struct preview *preview = make_preview("invert");
    struct record *record;
    assert_int_equal(record_create(&(struct record_request){preview, "/nowhere"}, &quiet, &record),
                     STATUS_OK);
    assert_int_equal(record_start(record, why, sizeof why), STATUS_OK);
    offer_new(preview, AV_PIX_FMT_GRAY8, 96, 64, 0);
    failed = await_file(record);
    assert_non_null(strstr(failed.error, "/nowhere"));
    assert_false(failed.recording);
    offer_new(preview, AV_PIX_FMT_GRAY8, 96, 64, 1);
    assert_int_equal(record_start(record, why, sizeof why), STATUS_OK); // once more
    record_destroy(&record);
    preview_destroy(&preview);
}

// ---- backends beside each other ----

static void backends_are_equal(void **state)
{
    (void)state;
    struct preview *preview =
        make_preview("gray,gaussian=1.4,sobel,threshold=20:240,tee=never.mkv");
    char *text;
    size_t size;
    assert_int_equal(compare_run(preview, &config, &text, &size), STATUS_OK);
    assert_non_null(strstr(text, "there is no picture yet"));
    free(text);
    offer_new(preview, AV_PIX_FMT_YUV420P, 320, 180, 0);
    assert_int_equal(compare_run(preview, &config, &text, &size), STATUS_OK);
    assert_int_equal(strlen(text), size);
    json_t *answer = json_loads(text, 0, NULL);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    const json_t *rows = json_object_get(answer, "rows");
    assert_true(json_array_size(rows) >= 2);
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        assert_true(json_is_true(json_object_get(row, "equal")));
        assert_true(json_real_value(json_object_get(row, "ms")) > 0);
        assert_true(json_real_value(json_object_get(row, "fps")) > 0);
    }
    assert_int_equal(json_array_size(rows) + json_array_size(json_object_get(answer, "left_out")),
                     3);
    json_decref(answer);
    free(text);
    preview_destroy(&preview);
}

int main(void)
{
    av_log_set_level(AV_LOG_FATAL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_what_was_filtered),
        cmocka_unit_test(a_stream_follows_the_frames_and_the_chain),
        cmocka_unit_test(ten_viewers_cost_one_encoding),
        cmocka_unit_test(without_viewers_nothing_is_made),
        cmocka_unit_test(a_slow_viewer_goes_on_at_a_key_frame),
        cmocka_unit_test(another_size_ends_streams),
        cmocka_unit_test(wide_pictures_are_scaled),
        cmocka_unit_test(a_change_is_seen_within_100_ms),
        cmocka_unit_test(pictures_are_exact),
        cmocka_unit_test(pictures_are_turned),
        cmocka_unit_test(any_format_is_shown),
        cmocka_unit_test(figures_count_the_luma),
        cmocka_unit_test(what_cannot_be_shown_is_refused),
        cmocka_unit_test(a_watch_gets_pictures),
        cmocka_unit_test(memory_of_frames_is_given_back),
        cmocka_unit_test(a_recording_is_a_whole_file),
        cmocka_unit_test(a_recording_says_why_it_failed),
        cmocka_unit_test(backends_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
