// The control page's pictures: single ones, recordings, and those of backends beside each other.
#include "tests/preview.h"

#include <jansson.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "page/preview/compare.h"
#include "page/preview/record.h"

// ---- single pictures ----

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

static AVFrame *picture(struct preview *preview, const struct view *view)
{
    char *png;
    size_t size;
    assert_int_equal(preview_picture(preview, view, &png, &size), STATUS_OK);
    AVFrame *frame = decode_png((const uint8_t *)png, size);
    free(png);
    return frame;
}

// The value of sample `c` at x, y of a view of an RGB picture that is inverted.
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
