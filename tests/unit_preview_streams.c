// The control page's streams: what viewers get of frames, and what it costs.
#include "tests/preview.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/intreadwrite.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/meter.h"
#include "page/preview/stream.h"

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
    int64_t pts[400]; // the packets', in ticks
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

// The bytes behind the head of the next box of this kind, not within other data; NULL: there is none.
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
