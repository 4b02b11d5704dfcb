// Frames that a GPU has decoded and lost: which packets are kept for them, and that software decodes
// the same ones again. And a GPU that comes while software decodes, which begins at a key frame before. The
// GPU's decoder is a software one that passes for it.
#include "tests/film.h"

#include <stdio.h>
#include <unistd.h>

#include "pipeline/engine/lost_frames.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/input/decoder_internal.h"

enum { HELD = 9 };

static const char *const films[][2] = {
    {"b.mp4", SOURCE X264 "-g 12 -bf 3 b.mp4"},
    {"one.mp4", SOURCE X264 "-g 1000 -bf 2 one.mp4"},
    {"open.mkv", SOURCE X264 "-x264-params keyint=12:open-gop=1:bframes=3:b-adapt=0 open.mkv"},
    {"open.mp4", SOURCE "-c:v libx265 -preset ultrafast -x265-params "
                        "keyint=15:open-gop=1:bframes=3:b-adapt=0:log-level=none open.mp4"},
    {"vp9.webm", SOURCE "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 20 vp9.webm"},
    {"deep.mkv", SOURCE "-pix_fmt yuv420p10le -c:v libx265 -preset ultrafast -x265-params "
                        "keyint=10:log-level=none deep.mkv"},
};
enum { FILMS = sizeof films / sizeof *films };

// ---- a decoder that passes for the GPU's ----

struct run {
    struct source *source;
    struct backend *backend;
    struct decoder *decoder;
    struct film whole, given; // `given` by the decoder so far
    int64_t pts[MAX_FRAMES];  // of `given`, in the stream's time base
    int sent;                 // packets
    bool ended;               // all of them
};

static int threads = 1; // of the decoders; with several, damage is told later

static void begin(struct run *run, const char *name)
{
    struct source_request request = request_of(name, NULL);
    struct decoder_request codec = {
        .max_pixels = MAX_PIXELS, .frames_held = HELD, .threads = threads};
    memset(run, 0, sizeof *run);
    watch_file(name, NULL, 0, &run->whole, NULL, NULL);
    assert_int_equal(source_open(&request, &silence, &never, &run->source), STATUS_OK);
    assert_int_equal(backend_scalar_create(&silence, &run->backend), STATUS_OK);
    assert_int_equal(decoder_create(&codec, run->source, run->backend, &run->decoder), STATUS_OK);
    struct decoder *decoder = run->decoder;
    decoder->hardware = av_buffer_alloc(1);
    decoder->began = true; // a first frame in the host's memory would show what it is
    assert_int_equal(history_create(decoder->about, HELD, &decoder->history), STATUS_OK);
    assert_int_equal(rescue_create(&decoder->rescue), STATUS_OK);
}

static void end(struct run *run)
{
    decoder_destroy(&run->decoder);
    backend_destroy(&run->backend);
    source_close(&run->source);
}

static void take(struct run *run, const AVFrame *frame)
{
    run->pts[run->given.count] = frame->pts;
    watch(&run->given, frame, source_video(run->source)->time_base);
}

// Packets of the video whose data is junk, by their number from 1 on.
static int junk[4];

static bool is_junk(int number)
{
    for (size_t k = 0; k < sizeof junk / sizeof *junk; k++)
        if (number == junk[k])
            return true;
    return false;
}

// Send the next packet of the video, or the end.
static void send_next(struct run *run)
{
    struct packet *packet = NULL;
    enum status status;
    assert_false(run->ended);
    while (!(status = source_read(run->source, &packet)) &&
           packet->av->stream_index != run->source->video)
        packet_destroy(&packet);
    run->ended = status == STATUS_EOF;
    if (packet && is_junk(++run->sent)) {
        assert_int_equal(av_packet_make_writable(packet->av), 0);
        memset(packet->av->data, 0xff, (size_t)packet->av->size);
    }
    assert_int_equal(decoder_send(run->decoder, packet), STATUS_OK);
    packet_destroy(&packet);
}

// Go on until so many frames were given out, or the last.
static void go_on(struct run *run, int frames)
{
    AVFrame *frame = av_frame_alloc();
    while (run->given.count < frames) {
        bool got;
        enum status status = decoder_receive(run->decoder, frame, &got);
        if (status == STATUS_EOF)
            break;
        assert_int_equal(status, STATUS_OK);
        if (got)
            take(run, frame);
        else
            send_next(run);
        av_frame_unref(frame);
    }
    av_frame_free(&frame);
}

static void is_whole(const struct run *run)
{
    assert_int_equal(run->given.count, run->whole.count);
    assert_memory_equal(run->given.us, run->whole.us, sizeof run->whole.us);
    assert_memory_equal(run->given.hash, run->whole.hash, sizeof run->whole.hash);
    assert_null(run->decoder->hardware);
    assert_int_equal(decoder_damaged_frames(run->decoder), 0);
    assert_int_equal(decoder_damaged_packets(run->decoder), 0);
}

static void rescue_one(struct run *run, int n)
{
    AVFrame *frame = av_frame_alloc();
    assert_int_equal(decoder_rescue(run->decoder, run->pts[n], frame), STATUS_OK);
    assert_int_equal(hash_of(frame), run->whole.hash[n]);
    av_frame_free(&frame);
}

// ---- frames ----

// The frames that are held are asked for in an order that two threads may have, and some twice.
static void rescue_held(struct run *run)
{
    int count = run->given.count < HELD ? run->given.count : HELD;
    for (int k = 0; k < 2 * count; k++)
        rescue_one(run, run->given.count - 1 - k * 5 % count);
}

static void all_frames_are_had_wherever_the_gpu_is_lost(void **state)
{
    (void)state;
    for (int f = 0; f < FILMS; f++)
        for (int at = 0; at <= 100; at += at < 4 || at > 94 ? 1 : 7) {
            struct run run;
            begin(&run, films[f][0]);
            go_on(&run, at);
            rescue_held(&run);
            history_freeze(run.decoder->history); // where none was asked for
            go_on(&run, MAX_FRAMES);
            is_whole(&run);
            end(&run);
        }
}

// The decode thread gives some frames more before it notices, and others are asked for meanwhile.
static void frames_that_come_behind_the_loss_are_had(void **state)
{
    (void)state;
    for (int at = 20; at < 40; at += 3) {
        struct run run;
        begin(&run, "b.mp4");
        go_on(&run, at);
        rescue_one(&run, at - 1);
        send_next(&run);
        send_next(&run);
        rescue_one(&run, at - HELD + 1);
        go_on(&run, at + 3);
        rescue_one(&run, at - 2);
        go_on(&run, MAX_FRAMES);
        is_whole(&run);
        end(&run);
    }
}

static bool gone;

static bool is_lost(struct backend *backend)
{
    (void)backend;
    return gone;
}

// A packet that nothing can be made of passes for a call that failed.
static void send_junk(struct run *run, int size)
{
    struct packet *packet = packet_create();
    assert_int_equal(av_new_packet(packet->av, size), 0);
    memset(packet->av->data, 0xff, (size_t)size);
    assert_int_equal(decoder_send(run->decoder, packet), STATUS_OK);
    packet_destroy(&packet);
}

static void the_decoder_notices_a_loss_by_itself(void **state)
{
    (void)state;
    for (int dead = 0; dead < 2; dead++) {
        struct run run;
        begin(&run, "b.mp4");
        run.backend->is_lost = is_lost;
        gone = dead;
        go_on(&run, 30);
        assert_non_null(run.decoder->hardware);
        send_junk(&run, 40);
        go_on(&run, MAX_FRAMES);
        assert_int_equal(run.given.count, run.whole.count);
        assert_memory_equal(run.given.hash, run.whole.hash, sizeof run.whole.hash);
        assert_int_equal(run.decoder->hardware == NULL, dead);
        end(&run);
    }
}

// Nothing comes of as many packets as may be kept: software gets them, and only its refusals count.
static void a_gpu_that_gives_nothing_is_left(void **state)
{
    (void)state;
    struct run run;
    AVFrame *frame = av_frame_alloc();
    AVPacket *kept;
    const int packets = (int)(budget_history >> 20) + 8;
    begin(&run, "b.mp4");
    run.decoder->began = false;
    for (int k = 0; k < packets; k++) {
        bool got = true;
        assert_int_equal(run.decoder->hardware == NULL, k >= budget_history >> 20);
        send_junk(&run, 1 << 20);
        assert_int_equal(decoder_receive(run.decoder, frame, &got), STATUS_OK);
        assert_false(got);
    }
    assert_int_equal(history_packet(run.decoder->history, 0, &kept), STATUS_OK);
    assert_null(kept);
    assert_int_equal(decoder_damaged_packets(run.decoder), packets);
    go_on(&run, MAX_FRAMES);
    assert_int_equal(run.given.count, run.whole.count);
    assert_memory_equal(run.given.hash, run.whole.hash, sizeof run.whole.hash);
    assert_int_equal(decoder_damaged_packets(run.decoder), packets);
    av_frame_free(&frame);
    end(&run);
}

// Damaged packets that are counted where the GPU is lost behind frame `at`.
static int64_t count_damaged(const char *name, int at)
{
    struct run run;
    begin(&run, name);
    go_on(&run, at);
    if (at < MAX_FRAMES)
        history_freeze(run.decoder->history);
    go_on(&run, MAX_FRAMES);
    int64_t count = decoder_damaged_packets(run.decoder);
    end(&run);
    return count;
}

// None of the packets is a key frame, without which other frames are lost.
static void damage_counts_once_wherever_the_gpu_is_lost(void **state)
{
    (void)state;
    const int numbers[][4] = {{30}, {31, 32, 33}, {2, 26, 63, 99}, {14, 15, 38, 100}};
    const char *const names[] = {"b.mp4", "one.mp4", "vp9.webm"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            memcpy(junk, numbers[k], sizeof junk);
            int64_t whole = count_damaged(names[n], MAX_FRAMES);
            assert_in_range(whole, 1, 4);
            for (int at = 0; at < 100; at++)
                assert_int_equal(count_damaged(names[n], at), whole);
        }
    memset(junk, 0, sizeof junk);
}

// Make junk of a packet that the decoder has had, counted from the last; its time, or AV_NOPTS_VALUE if
// it is a key frame or not kept.
static int64_t spoil(const struct run *run, int back)
{
    AVPacket *packet = NULL;
    int count = 0;
    while (!history_packet(run->decoder->history, count, &packet) && packet) {
        count++;
        av_packet_free(&packet);
    }
    int64_t pts = AV_NOPTS_VALUE;
    if (count > back)
        assert_int_equal(history_packet(run->decoder->history, count - 1 - back, &packet), 0);
    if (packet && !(packet->flags & AV_PKT_FLAG_KEY)) {
        pts = packet->pts;
        memset(packet->data, 0xff, (size_t)packet->size); // the history has the same
    }
    av_packet_free(&packet);
    return pts;
}

// The GPU takes a packet that software refuses. It counts unless its frame was given out: it is missing.
static void what_only_software_refuses_counts_if_a_frame_is_missing(void **state)
{
    (void)state;
    const char *const names[] = {"b.mp4", "one.mp4", "vp9.webm"};
    int missing = 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int k = 0; k < 8 * 12; k++) {
            struct run run;
            begin(&run, names[n]);
            go_on(&run, 12 + k / 8 * 2);
            int64_t last = run.decoder->given_pts, pts = spoil(&run, k % 8);
            bool counts = pts != AV_NOPTS_VALUE && pts > last;
            history_freeze(run.decoder->history);
            go_on(&run, MAX_FRAMES);
            missing += counts;
            assert_int_equal(run.given.count, run.whole.count - counts);
            assert_int_equal(decoder_damaged_packets(run.decoder), counts);
            end(&run);
        }
    assert_true(missing > 10);
}

static void frames_too_old_are_not_had(void **state)
{
    (void)state;
    struct run run;
    AVFrame *frame = av_frame_alloc();
    begin(&run, "b.mp4");
    go_on(&run, 90);
    assert_int_equal(decoder_rescue(run.decoder, run.pts[10], frame), STATUS_DEVICE);
    assert_int_equal(decoder_rescue(run.decoder, run.pts[89] + 1, frame), STATUS_DEVICE);
    rescue_one(&run, 89);
    av_frame_free(&frame);
    end(&run);
}

// ---- a GPU that comes later ----

static int count_kept(struct history *history)
{
    for (int count = 0;; count++) {
        AVPacket *packet;
        assert_int_equal(history_packet(history, count, &packet), STATUS_OK);
        if (!packet)
            return count;
        av_packet_free(&packet);
    }
}

static _Atomic(struct backend *) comes; // NULL: not yet

static struct backend *get_later(void *opaque)
{
    (void)opaque;
    return comes;
}

// A decoder in software that waits for a GPU.
static void begin_without(struct run *run, const char *name)
{
    comes = NULL;
    begin(run, name);
    struct decoder *decoder = run->decoder;
    av_buffer_unref(&decoder->hardware);
    decoder->began = false;
    decoder->request.later.get = get_later;
    decoder->awaits = true;
}

// The GPU is there: it decodes, or turns out to be unable to.
static void come(struct run *run, bool able)
{
    struct decoder *decoder = run->decoder;
    assert_true(history_reaches(decoder->history, decoder->given_pts));
    decoder->awaits = false;
    decoder->request.threads = 1;
    assert_int_equal(decoder_enter_gpu(decoder), STATUS_OK);
    decoder->hardware = av_buffer_alloc(1);
    decoder->began = able;
}

static void frames_are_the_same_whenever_the_gpu_comes(void **state)
{
    (void)state;
    for (int f = 0; f < FILMS; f++)
        for (int at = 0; at <= 100; at += at < 3 || at > 97 ? 1 : 13) {
            struct run run;
            threads = at % 2 ? 16 : 1; // which are as many packets ahead
            begin_without(&run, films[f][0]);
            go_on(&run, at);
            come(&run, true);
            go_on(&run, MAX_FRAMES);
            assert_non_null(run.decoder->hardware);
            av_buffer_unref(&run.decoder->hardware);
            is_whole(&run);
            end(&run);
        }
    threads = 1;
}

static void a_gpu_that_comes_and_cannot_decode_is_left(void **state)
{
    (void)state;
    for (int f = 0; f < FILMS; f++)
        for (int at = 0; at <= 100; at += 25) {
            struct run run;
            begin_without(&run, films[f][0]);
            go_on(&run, at);
            come(&run, false);
            go_on(&run, MAX_FRAMES);
            is_whole(&run);
            end(&run);
        }
}

static void a_gpu_that_comes_may_be_lost(void **state)
{
    (void)state;
    for (int at = 0; at < 60; at += 13)
        for (int more = 0; more < 30; more += 7) {
            struct run run;
            threads = at % 2 ? 16 : 1;
            begin_without(&run, "b.mp4");
            go_on(&run, at);
            come(&run, true);
            go_on(&run, at + more);
            if (more)
                rescue_one(&run, at + more - 1);
            history_freeze(run.decoder->history);
            go_on(&run, MAX_FRAMES);
            is_whole(&run);
            end(&run);
        }
    threads = 1;
}

static void damage_counts_once_whenever_the_gpu_comes(void **state)
{
    (void)state;
    const int numbers[][4] = {{30}, {31, 32, 33}, {2, 26, 63, 99}};
    const char *const names[] = {"b.mp4", "one.mp4", "vp9.webm"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            memcpy(junk, numbers[k], sizeof junk);
            int64_t whole = count_damaged(names[n], MAX_FRAMES);
            for (int at = 0; at < 100; at += 11) {
                struct run run;
                begin_without(&run, names[n]);
                go_on(&run, at);
                come(&run, true);
                go_on(&run, MAX_FRAMES);
                assert_int_equal(decoder_damaged_packets(run.decoder), whole);
                end(&run);
            }
        }
    memset(junk, 0, sizeof junk);
}

static enum status no_stream(struct backend *backend, void **stream)
{
    (void)backend;
    *stream = NULL;
    return STATUS_DEVICE;
}

// One that comes and is none, or whose decoder cannot be opened: software goes on, for its filters.
static void software_goes_on_where_the_gpu_cannot_decode(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        struct run run;
        struct backend *other;
        begin_without(&run, "b.mp4");
        assert_int_equal(backend_scalar_create(&silence, &other), STATUS_OK);
        other->has_device_memory = way == 2;
        other->stream_create = no_stream;
        go_on(&run, 30);
        assert_true(count_kept(run.decoder->history) > 0);
        comes = way ? other : run.backend;
        go_on(&run, 31);
        assert_false(run.decoder->awaits);
        assert_ptr_equal(decoder_backend(run.decoder), comes);
        assert_int_equal(count_kept(run.decoder->history), 0);
        go_on(&run, MAX_FRAMES);
        is_whole(&run);
        end(&run);
        backend_destroy(&other);
    }
}

static void *come_in_a_moment(void *backend)
{
    usleep(30000);
    comes = backend;
    return NULL;
}

// Else the GPU could not begin in the midst of a long group.
static void software_waits_before_too_much_is_kept(void **state)
{
    (void)state;
    struct run run;
    pthread_t thread;
    AVFrame *frame = av_frame_alloc();
    bool got;
    begin_without(&run, "b.mp4");
    go_on(&run, 5);
    for (int k = 0; k <= budget_history >> 21; k++)
        send_junk(&run, 1 << 20);
    assert_true(history_is_half_full(run.decoder->history));
    assert_int_equal(pthread_create(&thread, NULL, come_in_a_moment, run.backend), 0);
    assert_int_equal(decoder_receive(run.decoder, frame, &got), STATUS_OK);
    assert_ptr_equal(comes, run.backend);
    assert_false(run.decoder->awaits);
    pthread_join(thread, NULL);
    av_frame_free(&frame);
    end(&run);
}

// While no frame can be had from the packets that are kept, software decodes.
static void a_gpu_waits_for_packets_that_reach_back(void **state)
{
    (void)state;
    struct run run;
    struct backend *other;
    begin_without(&run, "b.mp4");
    assert_int_equal(backend_scalar_create(&silence, &other), STATUS_OK);
    other->has_device_memory = true;
    other->stream_create = no_stream;
    go_on(&run, 15);
    history_note_frame(run.decoder->history, 0, true); // a time that is none
    comes = other;
    go_on(&run, 17);
    assert_true(run.decoder->awaits);
    go_on(&run, 15 + 2 * 12);
    assert_false(run.decoder->awaits);
    go_on(&run, MAX_FRAMES);
    is_whole(&run);
    end(&run);
    backend_destroy(&other);
}

// ---- what is kept ----

static void little_is_kept(void **state)
{
    (void)state;
    struct run run;
    begin(&run, "b.mp4");
    for (int frames = 1; frames <= 100; frames++) {
        go_on(&run, frames);
        assert_in_range(count_kept(run.decoder->history), 1, HELD + 3 * 12);
    }
    end(&run);
}

static void add(struct history *history, int64_t pts, bool key, int size)
{
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(av_new_packet(packet, size), 0);
    memset(packet->data, 0, (size_t)size);
    packet->pts = pts;
    packet->flags = key ? AV_PKT_FLAG_KEY : 0;
    assert_int_equal(history_add(history, packet), STATUS_OK);
    av_packet_free(&packet);
}

static struct history *create_history(void)
{
    struct history *history;
    AVCodecParameters *about = avcodec_parameters_alloc();
    about->codec_id = AV_CODEC_ID_VP9;
    assert_int_equal(history_create(about, 2, &history), STATUS_OK);
    avcodec_parameters_free(&about);
    return history;
}

// Groups that are too large are not kept, until the next one begins.
static void check_limit(int weight)
{
    struct history *history = create_history();
    const int size = weight - HISTORY_BESIDE, most = (int)(budget_history / weight);
    for (int k = 0; k <= most; k++) {
        add(history, k, k == 0, size);
        assert_int_equal(history_reaches(history, k), k < most);
        history_note_frame(history, k, false);
    }
    assert_int_equal(count_kept(history), 0);
    add(history, most + 1000, false, size);
    assert_int_equal(count_kept(history), 0);
    add(history, most + 1001, true, size);
    assert_int_equal(count_kept(history), 1);
    assert_false(history_reaches(history, most + 1000));
    assert_true(history_reaches(history, most + 1001));
    history_destroy(&history);
}

// Many small packets take memory beside their samples.
static void what_is_kept_is_limited(void **state)
{
    (void)state;
    check_limit(1 << 20);
    check_limit(4096);
}

static void times_that_are_no_names_are_not_kept(void **state)
{
    (void)state;
    for (int guessed = 0; guessed < 2; guessed++) {
        struct history *history = create_history();
        add(history, 5, true, 10);
        history_note_frame(history, 5, false);
        add(history, 6, false, 10);
        assert_true(history_reaches(history, 6));
        history_note_frame(history, guessed ? 6 : 5, guessed);
        assert_false(history_reaches(history, 6));
        assert_int_equal(count_kept(history), 0);
        history_destroy(&history);
    }
}

// ---- as the GPU laid them out ----

static int sample_at(const struct image *image, int c, int x, int y)
{
    const struct component *at = &image->format->component[c];
    const uint8_t *row = image->data[at->plane] + y * image->stride[at->plane];
    const uint8_t *unit = row + at->offset + (ptrdiff_t)x * at->step;
    return (at->bytes == 1 ? unit[0] : unit[0] | unit[1] << 8) >> at->shift;
}

static void check_layout(const char *name, enum AVPixelFormat pixel)
{
    struct run run;
    struct format on_gpu, plain;
    struct image found;
    void *memory = NULL;
    const struct color_tags none = {0};
    begin(&run, name);
    go_on(&run, 40);
    assert_true(pixel_describe(pixel, &none, 64, 48, &on_gpu));
    struct work work = {.source = {.format = &on_gpu, .width = 64, .height = 48},
                        .source_pts = run.pts[37]};
    struct spare_finder finder = lost_frames_of(run.decoder);
    assert_int_equal(finder.find(finder.opaque, &work, &found, &memory), STATUS_OK);
    AVFrame *frame = av_frame_alloc();
    assert_int_equal(decoder_rescue(run.decoder, run.pts[37], frame), STATUS_OK);
    assert_true(pixel_describe(frame->format, &none, 64, 48, &plain));
    const struct image from = pixel_image(frame, &plain);
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < (c ? 24 : 48); y++)
            for (int x = 0; x < (c ? 32 : 64); x++)
                assert_int_equal(sample_at(&found, c, x, y), sample_at(&from, c, x, y));
    finder.forget(finder.opaque, &memory);
    assert_null(memory);
    work.source.width = 62;
    assert_int_equal(finder.find(finder.opaque, &work, &found, &memory), STATUS_DEVICE);
    work.source_pts = -12345;
    assert_int_equal(finder.find(finder.opaque, &work, &found, &memory), STATUS_DEVICE);
    av_frame_free(&frame);
    end(&run);
}

static void frames_lie_as_the_gpu_laid_them_out(void **state)
{
    (void)state;
    check_layout("b.mp4", AV_PIX_FMT_NV12);
    check_layout("b.mp4", AV_PIX_FMT_YUV420P);
    check_layout("deep.mkv", AV_PIX_FMT_P010LE);
}

static int make_films(void **state)
{
    static char folder[] = "/tmp/unit_rescue.XXXXXX";
    *state = folder;
    av_log_set_level(AV_LOG_QUIET);
    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    for (int f = 0; f < FILMS; f++)
        if (system(films[f][1]))
            return 1;
    return 0;
}

static int remove_films(void **state)
{
    for (int f = 0; f < FILMS; f++)
        unlink(films[f][0]);
    return chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_frames_are_had_wherever_the_gpu_is_lost),
        cmocka_unit_test(frames_that_come_behind_the_loss_are_had),
        cmocka_unit_test(the_decoder_notices_a_loss_by_itself),
        cmocka_unit_test(a_gpu_that_gives_nothing_is_left),
        cmocka_unit_test(damage_counts_once_wherever_the_gpu_is_lost),
        cmocka_unit_test(what_only_software_refuses_counts_if_a_frame_is_missing),
        cmocka_unit_test(frames_too_old_are_not_had),
        cmocka_unit_test(frames_are_the_same_whenever_the_gpu_comes),
        cmocka_unit_test(a_gpu_that_comes_and_cannot_decode_is_left),
        cmocka_unit_test(a_gpu_that_comes_may_be_lost),
        cmocka_unit_test(damage_counts_once_whenever_the_gpu_comes),
        cmocka_unit_test(software_goes_on_where_the_gpu_cannot_decode),
        cmocka_unit_test(a_gpu_waits_for_packets_that_reach_back),
        cmocka_unit_test(software_waits_before_too_much_is_kept),
        cmocka_unit_test(little_is_kept),
        cmocka_unit_test(what_is_kept_is_limited),
        cmocka_unit_test(times_that_are_no_names_are_not_kept),
        cmocka_unit_test(frames_lie_as_the_gpu_laid_them_out),
    };
    return cmocka_run_group_tests(tests, make_films, remove_films);
}
