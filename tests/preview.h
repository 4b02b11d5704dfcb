// Frames, previews and their viewers, for tests of the control page's pictures.
#pragma once

#include "tests/unit.h"

#include <libavutil/frame.h>
#include <time.h>

#include "page/preview/preview.h"
#include "pipeline/output/http/http.h"

static const struct sluice_config config = {.size = sizeof config, .threads = 2};

static inline void print_nothing(void *opaque, enum log_level level, const char *sentence)
{
    (void)opaque, (void)level, (void)sentence;
}

static const struct log quiet = {print_nothing, NULL};

static inline void rest_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

// ---- frames ----

static inline uint8_t sample(int x, int y, int c, int n)
{
    return (uint8_t)(x * 2 + y * 3 + c * 50 + n * 7);
}

// A picture of slopes, number `n`.
static inline AVFrame *make_frame(enum AVPixelFormat pixel, int width, int height, int n)
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

static inline void offer(struct preview *preview, const AVFrame *frame)
{
    const struct tap_frame about = {.time_base = {1, 25}, .pts_us = frame->pts * 40000};
    preview_offer(preview, frame, &about);
}

static inline void offer_new(struct preview *preview, enum AVPixelFormat pixel, int width,
                             int height, int n)
{
    AVFrame *frame = make_frame(pixel, width, height, n);
    offer(preview, frame);
    av_frame_free(&frame);
}

static inline struct preview *make_preview(const char *chain)
{
    struct preview *preview;
    const struct preview_request request = {&config, &quiet};
    assert_int_equal(preview_create(&request, &preview), STATUS_OK);
    assert_int_equal(preview_set_chain(preview, chain), STATUS_OK);
    return preview;
}

// ---- viewers ----

static const struct view after = {.kind = VIEW_AFTER, .stage = -1};

static inline struct http_answer ask(struct preview *preview, const struct view *view)
{
    struct http_answer answer = {0};
    preview_answer_stream(preview, view, &answer);
    return answer;
}

static inline struct http_stream *join(struct preview *preview, const struct view *view)
{
    struct http_answer answer = ask(preview, view);
    assert_non_null(answer.stream);
    return answer.stream;
}

static inline int64_t encoded(struct preview *preview)
{
    struct preview_figures figures;
    preview_figures(preview, &figures);
    return figures.encoded;
}

static inline void await_encoded(struct preview *preview, int64_t count)
{
    for (int k = 0; k < 3000 && encoded(preview) < count; k++)
        rest_ms(1);
    assert_true(encoded(preview) >= count);
}
