// The job's threads by themselves: wired as a job wires them, around a sink that only counts.
#include "tests/unit.h"

#include <libavutil/avutil.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/queue.h"
#include "base/stop.h"
#include "pipeline/engine/filter/change.h"
#include "pipeline/engine/threads/decode.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/owner.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/selection.h"
#include "pipeline/engine/threads/snapshot.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/picture.h"
#include "pipeline/input/source.h"
#include "pipeline/output/sink.h"
#include "sluice/sluice.h"

enum { WIDTH = 16, HEIGHT = 8, FRAMES = 40, TICK_US = 40000, SLOTS = 3, THREADS = 4 };

// ---- a sink that counts ----

struct counting_sink {
    struct sink base;
    int64_t ends_at; // frames after which nobody watches; 0: somebody does
    int written;
};

static enum status count_frame(struct sink *sink, AVFrame *frame)
{
    struct counting_sink *self = (struct counting_sink *)sink;
    if (!frame)
        return STATUS_OK;
    if (self->ends_at && self->written == self->ends_at)
        return STATUS_EOF;
    self->written++;
    sink->kept++;
    return STATUS_OK;
}

// ---- parts, wired ----

// Names of threads that do not run, for the tests that leave one out.
enum { DEMUX, DECODE, SUBMIT, ENCODE, NONE };

struct parts {
    struct log log;
    struct stop stop;
    struct selection selection;
    struct decoded_kind kind;
    struct source *source;
    struct backend *backend;
    struct decoder *decoder;
    struct queue *packets, *frames;
    struct ring *ring;
    struct changes *changes;
    struct snapshot *snapshot;
    struct tap tap;
    struct counting_sink sink;
    struct sink_formats formats[MAX_PICTURES];
    struct sink_video video;
    AVFrame *first;
    struct demux *demux;
    struct decode *decode;
    struct submit *submit;
    struct encode *encode;
};

static void drop_packet(void *packet)
{
    packet_drop(packet);
}

static void drop_frame(void *frame_)
{
    AVFrame *frame = frame_;
    av_frame_free(&frame);
}

static enum status any_chain(void *checker, const struct chain *chain, const struct log *log)
{
    (void)checker, (void)chain, (void)log;
    return STATUS_OK;
}

static const char *const input = "input.y4m";

static void write_input(void)
{
    uint8_t frame[WIDTH * HEIGHT];
    FILE *file = fopen(input, "w");
    fprintf(file, "YUV4MPEG2 W%d H%d F25:1 Cmono\n", WIDTH, HEIGHT);
    for (int k = 0; k < FRAMES; k++) {
        memset(frame, k, sizeof frame);
        fputs("FRAME\n", file);
        fwrite(frame, 1, sizeof frame, file);
    }
    fclose(file);
}

static void open_ends(struct parts *parts)
{
    struct decoder_request request = {.frames_held = SLOTS + 4, .max_pixels = 1 << 20};
    assert_int_equal(source_open(&(struct source_request){.name = input, .max_pixels = 1 << 20},
                                 &parts->log, &parts->stop.asked, &parts->source),
                     STATUS_OK);
    assert_int_equal(backend_scalar_create(&parts->log, &parts->backend), STATUS_OK);
    assert_int_equal(decoder_create(&request, parts->source, parts->backend, &parts->decoder),
                     STATUS_OK);
    parts->sink.base.write = count_frame;
    parts->first = av_frame_alloc();
    parts->first->pts = 0;
    parts->video = (struct sink_video){.first = parts->first,
                                       .time_base = source_video(parts->source)->time_base};
}

static void open_shared(struct parts *parts, struct chain *chain)
{
    parts->selection = (struct selection){.begin_us = AV_NOPTS_VALUE,
                                          .end_us = INT64_MAX,
                                          .frame_limit = INT64_MAX,
                                          .video_only = true};
    parts->formats[0].natural = true;
    assert_int_equal(queue_create(4, 1, drop_packet, &parts->packets), STATUS_OK);
    assert_int_equal(queue_create(2, 1, drop_frame, &parts->frames), STATUS_OK);
    assert_int_equal(ring_create(SLOTS, 1, &parts->ring), STATUS_OK);
    assert_int_equal(snapshot_create(&parts->snapshot), STATUS_OK);
    struct schedule schedule;
    assert_int_equal(schedule_read("invert", NULL, &parts->log, &schedule), STATUS_OK);
    assert_int_equal(chain_copy(schedule.chain, chain), STATUS_OK);
    assert_int_equal(changes_create(&(struct changes_request){.schedule = &schedule,
                                                              .check = any_chain,
                                                              .log = &parts->log},
                                    &parts->changes),
                     STATUS_OK);
}

static void open_parts(struct parts *parts)
{
    struct chain chain;
    *parts = (struct parts){0};
    open_ends(parts);
    open_shared(parts, &chain);
    const struct demux_ports demux = {.source = parts->source,
                                      .sink = &parts->sink.base,
                                      .packets = parts->packets,
                                      .selection = &parts->selection,
                                      .tap = &parts->tap,
                                      .log = &parts->log};
    const struct decode_ports decode = {.decoder = parts->decoder,
                                        .source = parts->source,
                                        .packets = parts->packets,
                                        .frames = parts->frames,
                                        .selection = &parts->selection,
                                        .kind = &parts->kind,
                                        .stop = &parts->stop};
    const struct submit_ports submit = {.frames = parts->frames,
                                        .ring = parts->ring,
                                        .changes = parts->changes,
                                        .filter = {.formats = parts->formats,
                                                   .backend = parts->backend,
                                                   .slots = SLOTS,
                                                   .log = &parts->log},
                                        .kind = &parts->kind,
                                        .time_base = parts->video.time_base,
                                        .stream = source_video(parts->source),
                                        .stop = &parts->stop,
                                        .tap = &parts->tap};
    const struct encode_ports encode = {.ring = parts->ring,
                                        .sink = &parts->sink.base,
                                        .source = parts->source,
                                        .selection = &parts->selection,
                                        .stop = &parts->stop,
                                        .snapshot = parts->snapshot,
                                        .pictures = 1,
                                        .verify = 1};
    assert_int_equal(demux_create(&demux, &parts->demux), STATUS_OK);
    assert_int_equal(decode_create(&decode, &parts->decode), STATUS_OK);
    assert_int_equal(submit_create(&submit, &chain, &parts->submit), STATUS_OK);
    assert_int_equal(encode_create(&encode, &parts->encode), STATUS_OK);
    assert_int_equal(encode_open(parts->encode, &parts->video), STATUS_OK);
}

static void close_parts(struct parts *parts)
{
    encode_destroy(&parts->encode);
    queue_destroy(&parts->frames);
    queue_destroy(&parts->packets);
    snapshot_destroy(&parts->snapshot);
    ring_destroy(&parts->ring);
    submit_destroy(&parts->submit);
    decode_destroy(&parts->decode);
    demux_destroy(&parts->demux);
    decoder_destroy(&parts->decoder);
    source_close(&parts->source);
    backend_destroy(&parts->backend);
    changes_destroy(&parts->changes);
    av_frame_free(&parts->first);
}

// ---- threads ----

struct body {
    enum status (*run)(void *part);
    void (*instead)(void *part);
    void *part;
    enum status status;
};

static void *run_body(void *body_)
{
    struct body *body = body_;
    body->status = body->run(body->part);
    return NULL;
}

// Run all threads but `left_out` to their end.
static void run_parts(struct parts *parts, int left_out)
{
    struct body body[THREADS] = {
        [DEMUX] = {demux_run, demux_skip, parts->demux, STATUS_OK},
        [DECODE] = {decode_run, decode_skip, parts->decode, STATUS_OK},
        [SUBMIT] = {submit_run, submit_skip, parts->submit, STATUS_OK},
        [ENCODE] = {encode_run, encode_skip, parts->encode, STATUS_OK},
    };
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++)
        if (k != left_out)
            assert_int_equal(pthread_create(&thread[k], NULL, run_body, &body[k]), 0);
    if (left_out != NONE)
        body[left_out].instead(body[left_out].part);
    for (int k = 0; k < THREADS; k++) {
        if (k != left_out)
            pthread_join(thread[k], NULL);
        assert_false(status_is_failure(body[k].status));
    }
}

static struct sluice_ledger count(const struct parts *parts)
{
    struct sluice_ledger ledger = {0};
    decode_count(parts->decode, &ledger);
    submit_count(parts->submit, &ledger);
    encode_count(parts->encode, &ledger);
    return ledger;
}

static void assert_adds_up(const struct sluice_ledger *ledger)
{
    assert_int_equal(ledger->frames_in + ledger->frames_filled,
                     ledger->frames_out + ledger->dropped_range + ledger->dropped_stop +
                         ledger->dropped_late);
}

// ---- tests ----

static void frames_go_through_all_threads(void **state)
{
    (void)state;
    struct parts parts;
    struct encode_figures figures;
    open_parts(&parts);
    run_parts(&parts, NONE);
    struct sluice_ledger ledger = count(&parts);
    assert_adds_up(&ledger);
    assert_int_equal(ledger.frames_in, FRAMES);
    assert_int_equal(ledger.frames_out, FRAMES);
    assert_int_equal(ledger.verified, FRAMES);
    assert_int_equal(parts.sink.written, FRAMES);
    encode_figures(parts.encode, &figures);
    assert_int_equal(figures.media_us, FRAMES * TICK_US);
    assert_true(figures.flushing);
    assert_true(demux_busy_ns(parts.demux) > 0);
    assert_true(decode_busy_ns(parts.decode) > 0);
    close_parts(&parts);
}

struct tapped {
    int64_t packets, frames, next_us;
};

static void see_packet(void *tapped, const struct packet *packet)
{
    assert_non_null(packet->av->data);
    ((struct tapped *)tapped)->packets++;
}

static void see_frame(void *tapped_, const AVFrame *frame, const struct tap_frame *about)
{
    struct tapped *tapped = tapped_;
    assert_non_null(frame->buf[0]);
    assert_null(about->device_stream);
    assert_int_equal(about->pts_us, tapped->next_us);
    assert_int_equal(av_rescale_q(frame->pts, about->time_base, AV_TIME_BASE_Q), about->pts_us);
    tapped->next_us += TICK_US;
    tapped->frames++;
}

static void a_tap_sees_packets_and_frames(void **state)
{
    (void)state;
    struct parts parts;
    struct tapped tapped = {0};
    open_parts(&parts);
    parts.tap = (struct tap){&tapped, see_packet, see_frame};
    run_parts(&parts, NONE);
    assert_int_equal(tapped.packets, FRAMES);
    assert_int_equal(tapped.frames, FRAMES);
    assert_int_equal(parts.sink.written, FRAMES);
    close_parts(&parts);
}

static void a_selection_ends_the_threads(void **state)
{
    (void)state;
    static const struct {
        int64_t begin, end, limit; // frames; end 0: none
        int64_t in, out, range;
    } rows[] = {
        {0, 0, 7, 7, 7, 0},
        {5, 0, 7, 12, 7, 5},
        {0, 9, INT64_MAX, 10, 9, 1}, // the first behind the end is decoded
        {30, 35, INT64_MAX, 36, 5, 31},
        {0, 100, INT64_MAX, FRAMES, FRAMES, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct parts parts;
        open_parts(&parts);
        if (rows[k].begin)
            parts.selection.begin_us = rows[k].begin * TICK_US;
        if (rows[k].end)
            parts.selection.end_us = rows[k].end * TICK_US;
        parts.selection.frame_limit = rows[k].limit;
        run_parts(&parts, NONE);
        struct sluice_ledger ledger = count(&parts);
        assert_adds_up(&ledger);
        assert_int_equal(ledger.frames_in, rows[k].in);
        assert_int_equal(ledger.frames_out, rows[k].out);
        assert_int_equal(ledger.dropped_range, rows[k].range);
        assert_int_equal(parts.selection.complete, rows[k].out < FRAMES);
        close_parts(&parts);
    }
}

// Wherever the frames are at a stop, one thread counts each.
static void a_stop_loses_no_frame(void **state)
{
    (void)state;
    for (int ends_at = 1; ends_at < FRAMES; ends_at += 3) {
        struct parts parts;
        open_parts(&parts);
        parts.sink.ends_at = ends_at;
        run_parts(&parts, NONE);
        struct sluice_ledger ledger = count(&parts);
        assert_adds_up(&ledger);
        assert_true(parts.stop.asked);
        assert_int_equal(ledger.frames_out, ends_at);
        assert_true(ledger.dropped_stop > 0);
        close_parts(&parts);
    }
}

// Frames that wait for a submit thread which ends with the ring are its own to count.
static void frames_that_wait_at_a_stop_are_counted(void **state)
{
    (void)state;
    struct parts parts;
    open_parts(&parts);
    for (int k = 0; k < 2; k++) {
        AVFrame *frame = av_frame_alloc();
        frame->width = WIDTH;
        frame->height = HEIGHT;
        frame->format = AV_PIX_FMT_GRAY8;
        frame->pts = k;
        assert_int_equal(av_frame_get_buffer(frame, 0), 0);
        assert_int_equal(queue_push(parts.frames, &frame), STATUS_OK);
    }
    ring_cancel(parts.ring);
    assert_int_equal(submit_run(parts.submit), STATUS_EOF);
    assert_int_equal(count(&parts).dropped_stop, 2);
    close_parts(&parts);
}

// A thread that could not be started is stood in for, so that all others end.
static void any_thread_may_be_missing(void **state)
{
    (void)state;
    for (int left_out = 0; left_out < THREADS; left_out++) {
        struct parts parts;
        open_parts(&parts);
        run_parts(&parts, left_out);
        assert_int_equal(parts.sink.written, 0);
        close_parts(&parts);
    }
}

// Preroll in one thread, the loops in others: no frame comes twice or is left out.
static void preroll_goes_on_in_the_threads(void **state)
{
    (void)state;
    struct parts parts;
    struct packet *packet;
    struct slot *slot;
    AVFrame *frame = NULL;
    open_parts(&parts);
    while (!frame) {
        assert_int_equal(demux_preroll(parts.demux, &packet), STATUS_OK);
        assert_int_equal(decode_send(parts.decode, packet), STATUS_OK);
        packet_destroy(&packet);
        assert_int_equal(decode_next(parts.decode, &frame), STATUS_OK);
    }
    assert_int_equal(demux_probe(parts.demux), STATUS_OK);
    assert_int_equal(submit_fill(parts.submit, &frame, &slot), STATUS_OK);
    assert_null(frame);
    assert_non_null(submit_filter(parts.submit));
    submit_publish(parts.submit, slot, true);
    run_parts(&parts, NONE);
    struct sluice_ledger ledger = count(&parts);
    assert_adds_up(&ledger);
    assert_int_equal(ledger.frames_out, FRAMES);
    close_parts(&parts);
}

static void *ask_owner(void *owner)
{
    return owner_is_me(owner) ? owner : NULL;
}

static void a_part_belongs_to_the_thread_that_took_it(void **state)
{
    (void)state;
    struct owner owner = {0};
    pthread_t thread;
    void *is_mine;
    pthread_create(&thread, NULL, ask_owner, &owner);
    pthread_join(thread, &is_mine);
    assert_non_null(is_mine);
    owner_take(&owner);
    assert_true(owner_is_me(&owner));
    pthread_create(&thread, NULL, ask_owner, &owner);
    pthread_join(thread, &is_mine);
    assert_null(is_mine);
}

static int make_input(void **state)
{
    static char folder[] = "/tmp/unit_engine.XXXXXX";
    *state = folder;
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    write_input();
    return 0;
}

static int remove_input(void **state)
{
    unlink(input);
    return chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_go_through_all_threads),
        cmocka_unit_test(a_tap_sees_packets_and_frames),
        cmocka_unit_test(a_selection_ends_the_threads),
        cmocka_unit_test(a_stop_loses_no_frame),
        cmocka_unit_test(frames_that_wait_at_a_stop_are_counted),
        cmocka_unit_test(any_thread_may_be_missing),
        cmocka_unit_test(preroll_goes_on_in_the_threads),
        cmocka_unit_test(a_part_belongs_to_the_thread_that_took_it),
    };
    return cmocka_run_group_tests(tests, make_input, remove_input);
}
