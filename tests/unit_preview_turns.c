// The control page's renderer, and those who wait for it while frames come without end.
#include "tests/unit.h"

#include <libavutil/frame.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/meter.h"
#include "page/preview/preview.h"

static const struct sluice_config config = {.size = sizeof config, .threads = 1};
static const struct log silent = {0};

static void rest_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

// Offers frame after frame until it is told to end.
struct feeder {
    struct preview *preview;
    atomic_bool done;
    pthread_t thread;
};

static void *feed(void *feeder_)
{
    struct feeder *feeder = feeder_;
    AVFrame *frame = av_frame_alloc();
    frame->format = AV_PIX_FMT_GRAY8;
    frame->width = frame->height = 64;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    memset(frame->data[0], 99, (size_t)frame->linesize[0] * 64);
    for (int n = 0; !feeder->done; n++) {
        const struct tap_frame about = {.time_base = {1, 1000}, .pts_us = n * INT64_C(1000)};
        preview_offer(feeder->preview, frame, &about);
        rest_ms(1);
    }
    av_frame_free(&frame);
    return NULL;
}

static void see_slowly(void *seen, const AVFrame *after, int64_t pts_us)
{
    (void)after, (void)pts_us;
    rest_ms(30);
    ++*(atomic_int *)seen;
}

// A renderer that has always something to do lets others in between two pictures, and the frames
// that it has no time for are counted.
static void who_waits_for_the_renderer_is_next(void **state)
{
    (void)state;
    atomic_int seen = 0;
    atomic_llong missed = 0;
    struct feeder feeder = {0};
    const struct preview_request request = {&config, &silent};
    assert_int_equal(preview_create(&request, &feeder.preview), STATUS_OK);
    assert_int_equal(preview_set_chain(feeder.preview, "invert"), STATUS_OK);
    preview_watch(feeder.preview, &(struct preview_watch){see_slowly, &seen, &missed});
    assert_int_equal(pthread_create(&feeder.thread, NULL, feed, &feeder), 0);
    while (seen < 2)
        rest_ms(1);
    int longest = 0;
    for (int k = 0; k < 20; k++) {
        AVFrame *frame;
        char *chain;
        int before = seen;
        assert_int_equal(preview_newest(feeder.preview, &frame, &chain), STATUS_OK);
        longest = seen - before > longest ? seen - before : longest;
        av_frame_free(&frame);
        free(chain);
    }
    assert_true(longest <= 2);
    assert_true(missed > seen);
    feeder.done = true;
    pthread_join(feeder.thread, NULL);
    preview_destroy(&feeder.preview);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_waits_for_the_renderer_is_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
