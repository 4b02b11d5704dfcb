// What just happened, once more: packets that are kept, the exact frame of a time, orders.
#include "tests/unit.h"

#include <libavutil/adler32.h>
#include <libavutil/avutil.h>
#include <libavutil/pixdesc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "page/cursor.h"
#include "page/keep.h"
#include "page/player.h"
#include "page/reel.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "sluice/sluice.h"

enum { MAX_FRAMES = 400, MAX_PIXELS = 1 << 20 };

static const struct log silence;
static const atomic_bool never;

// ---- what is kept ----

static const AVRational ms = {1, 1000};
static AVCodecParameters *about; // of packets that are made here

static void put(struct keep *keep, int64_t at_ms, int size, bool key)
{
    struct packet *packet = packet_create();
    assert_int_equal(av_new_packet(packet->av, size), 0);
    packet->av->pts = packet->av->dts = at_ms;
    packet->av->duration = 100;
    packet->pts_us = at_ms * 1000;
    if (key)
        packet->av->flags |= AV_PKT_FLAG_KEY;
    keep_put(keep, packet);
    packet_destroy(&packet);
}

// Packets of 100 ms, every fifth a key frame.
static void put_many(struct keep *keep, int from, int count, int size)
{
    for (int k = from; k < from + count; k++)
        put(keep, 100 * (int64_t)k, size, k % 5 == 0);
}

static struct keep *make_keep(double seconds, int64_t bytes)
{
    struct keep *keep;
    assert_int_equal(keep_create(&(struct keep_request){seconds, bytes, ms, 100000, about}, &keep),
                     STATUS_OK);
    return keep;
}

static void is_kept(struct keep *keep, int64_t begin_ms, int64_t end_ms)
{
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(span.begin_us, begin_ms * 1000);
    assert_int_equal(span.end_us, end_ms * 1000);
}

static bool is_empty(struct keep *keep)
{
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(span.first == span.end, span.begin_us == AV_NOPTS_VALUE);
    return span.first == span.end;
}

static void the_last_seconds_are_kept_from_a_key_frame_on(void **state)
{
    (void)state;
    struct keep *keep = make_keep(2, 1 << 20);
    put_many(keep, 2, 3, 10);
    assert_true(is_empty(keep)); // no key frame yet
    put_many(keep, 5, 26, 10);
    is_kept(keep, 1000, 3100); // 500 goes when 1000 is two seconds old, not before
    struct packet *packet;
    struct keep_span span;
    keep_measure(keep, &span);
    assert_int_equal(keep_read(keep, span.first, &packet), STATUS_OK);
    assert_true(packet->av->flags & AV_PKT_FLAG_KEY);
    packet_destroy(&packet);
    assert_int_equal(keep_read(keep, span.first - 1, &packet), STATUS_EOF);
    assert_int_equal(keep_read(keep, span.end, &packet), STATUS_EOF);
    keep_destroy(&keep);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    const int64_t most = 20000;
    struct keep *keep = make_keep(1000, most);
    struct keep_span span;
    for (int k = 0; k < 100; k++) {
        put(keep, 100 * (int64_t)k, 500, k % 5 == 0);
        keep_measure(keep, &span);
        assert_in_range(span.bytes, 1, most);
        assert_int_equal(span.begin_us % 500000, 0); // always a key frame's
    }
    assert_true(span.end - span.first > 10);
    keep_destroy(&keep);
}

static void a_group_that_is_too_large_is_dropped(void **state)
{
    (void)state;
    struct keep *keep = make_keep(1000, 20000);
    put(keep, 0, 10000, true);
    put(keep, 100, 5000, false);
    assert_false(is_empty(keep));
    put(keep, 200, 5000, false);
    assert_true(is_empty(keep));
    put(keep, 300, 10, false); // its beginning is missing
    assert_true(is_empty(keep));
    put(keep, 400, 10, true);
    is_kept(keep, 400, 500);
    keep_destroy(&keep);
}

static void a_long_group_is_kept_whole(void **state)
{
    (void)state;
    struct keep *keep = make_keep(1, 1 << 20);
    for (int k = 0; k < 100; k++)
        put(keep, 100 * (int64_t)k, 10, k == 0);
    is_kept(keep, 0, 10000);
    keep_destroy(&keep);
}

static void what_is_held_stays(void **state)
{
    (void)state;
    struct keep *keep = make_keep(2, 1 << 20);
    struct keep_span span;
    put_many(keep, 0, 20, 10);
    keep_hold(keep, true);
    put_many(keep, 20, 15, 10);
    is_kept(keep, 0, 3500); // it grows
    put_many(keep, 35, 100, 10);
    keep_measure(keep, &span);
    assert_int_equal(span.begin_us, 0);
    assert_in_range(span.end_us, 4000000, 4200000); // twice the bound
    assert_false(span.more);
    keep_hold(keep, false);
    is_kept(keep, 11500, 13500); // what came meanwhile
    put_many(keep, 135, 10, 10);
    is_kept(keep, 12500, 14500);
    keep_destroy(&keep);
}

static void a_clock_that_jumps_back_begins_anew(void **state)
{
    (void)state;
    struct keep *keep = make_keep(30, 1 << 20);
    put_many(keep, 1000, 20, 10);
    put_many(keep, 0, 10, 10);
    is_kept(keep, 0, 1000);
    keep_destroy(&keep);
}

static void key_frames_are_found_by_time(void **state)
{
    (void)state;
    struct keep *keep = make_keep(30, 1 << 20);
    put_many(keep, 0, 30, 10);
    assert_int_equal(keep_find(keep, 1499000, INT64_MAX), 10);
    assert_int_equal(keep_find(keep, 1500000, INT64_MAX), 15);
    assert_int_equal(keep_find(keep, 1500000, 15), 10); // an earlier one
    assert_int_equal(keep_find(keep, -5, INT64_MAX), 0);
    assert_int_equal(keep_find(keep, INT64_MAX, INT64_MAX), 25);
    assert_int_equal(keep_find(keep, 0, 0), -1);
    keep_destroy(&keep);
}

// ---- files ----

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

// Decode a file from beginning to end, as a job does; its packets go into `keep` (optional).
static void watch_file(const char *name, const char *simulate, struct film *film,
                       struct keep **keep, struct source *described)
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
        struct keep_request keeping = {100, 1 << 24, base, 40000, source_video(source)->codecpar};
        assert_int_equal(keep_create(&keeping, keep), STATUS_OK);
        *described = (struct source){.log = &silence, .video = source->video};
        described->name = strdup(source->name);
        described->format = format_describe(source->format);
    }
    while (!source_read(source, &packet)) {
        if (packet->av->stream_index == source->video) {
            if (keep)
                keep_put(*keep, packet);
            assert_int_equal(decoder_send(decoder, packet), STATUS_OK);
            receive_all(decoder, base, film);
        }
        packet_destroy(&packet);
    }
    assert_int_equal(decoder_send(decoder, NULL), STATUS_OK);
    receive_all(decoder, base, film);
    decoder_destroy(&decoder);
    backend_destroy(&backend);
    source_close(&source);
}

// The frame that is to be shown at a time.
static int frame_at(const struct film *film, int64_t at_us)
{
    int n = film->count - 1;
    while (n > 0 && film->us[n] > at_us)
        n--;
    return n;
}

#define SOURCE "ffmpeg -v error -y -nostdin -f lavfi -i testsrc2=s=64x48:r=25:d=4 -pix_fmt yuv420p "
#define X264 "-c:v libx264 -preset ultrafast -crf 30 "

// What makes a film difficult: frames out of order, times that are not even, seeking by estimate,
// no times at all.
static const struct {
    const char *name, *make;
    bool no_times;
} films[] = {
    {"b.mp4", SOURCE X264 "-g 12 -bf 3 b.mp4"},
    {"open.mkv", SOURCE X264 "-x264-params keyint=12:open-gop=1:bframes=3:b-adapt=0 open.mkv"},
    {"one.mp4", SOURCE X264 "-g 1000 -bf 2 one.mp4"},
    {"refresh.mkv", SOURCE X264 "-x264-params keyint=20:intra-refresh=1 refresh.mkv"},
    {"vfr.mp4",
     SOURCE "-vf \"select=mod(n\\,3)*mod(n\\,7)\" -vsync vfr " X264 "-g 15 -bf 2 vfr.mp4"},
    {"late.ts", SOURCE X264 "-g 25 -bf 2 -output_ts_offset 7.3 late.ts"},
    {"late.mp4", SOURCE X264 "-g 25 -bf 2 -output_ts_offset 3 late.mp4"},
    {"edit.mp4", "ffmpeg -v error -y -nostdin -ss 1.3 -i b.mp4 -c copy edit.mp4"},
    {"cut.ts", "ffmpeg -v error -y -nostdin -i late.ts -c copy -copyts -f mpegts - | tail -c "
               "+20000 > cut.ts"},
    {"parts.mp4", SOURCE X264 "-g 12 -bf 3 -movflags frag_keyframe+empty_moov parts.mp4"},
    {"two.ts", SOURCE "-c:v mpeg2video -g 12 -bf 2 two.ts"},
    {"four.avi", SOURCE "-c:v mpeg4 -g 12 four.avi"},
    {"b4.avi", SOURCE "-c:v mpeg4 -g 12 -bf 2 b4.avi"},
    {"eight.webm", SOURCE "-c:v libvpx -g 30 -auto-alt-ref 1 -lag-in-frames 10 eight.webm"},
    {"five.mkv", SOURCE
     "-c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=15:bframes=3 five.mkv"},
    {"flash.flv", SOURCE X264 "-g 20 -bf 2 flash.flv"},
    {"plain.y4m", SOURCE "-frames:v 30 plain.y4m"},
    {"bare.h264", SOURCE X264 "-g 12 -bf 2 bare.h264", true},
    {"still.png", SOURCE "-frames:v 1 still.png", true},
};
enum { FILMS = sizeof films / sizeof *films };

// The times that ffprobe lists are those of our frames.
static void probe_agrees(const char *name, const struct film *film)
{
    char command[256], line[64];
    snprintf(command, sizeof command,
             "ffprobe -v error -select_streams v -show_entries frame=best_effort_timestamp_time "
             "-of default=nk=1:nw=1 %s 2>&-",
             name);
    FILE *list = popen(command, "r");
    int n = 0;
    for (; fgets(line, sizeof line, list); n++)
        if (*line == '\n')
            n--; // of side data
        else if (*line != 'N' && n < film->count &&
                 llabs((int64_t)(atof(line) * 1e6 + 0.5) - film->us[n]) > 1)
            fail_msg("%s: frame %d is at %lld us, ffprobe says %s", name, n, (long long)film->us[n],
                     line);
    pclose(list);
    assert_int_equal(n, film->count);
}

static void stands_on(const char *name, const struct cursor *cursor, const struct film *film, int n)
{
    assert_non_null(cursor_frame(cursor));
    if (cursor_us(cursor) != film->us[n] || hash_of(cursor_frame(cursor)) != film->hash[n])
        fail_msg("%s: frame %d at %lld us was wanted; at %lld us, hash %x instead of %x", name, n,
                 (long long)film->us[n], (long long)cursor_us(cursor),
                 hash_of(cursor_frame(cursor)), film->hash[n]);
}

static int clamp(int n, int count)
{
    return n < 0 ? 0 : n < count ? n : count - 1;
}

// Walk at random, by time and by number, from `first` on.
static void walk(const char *name, struct reel *reel, const struct film *film, int first,
                 int64_t cache)
{
    struct cursor *cursor;
    struct cursor_request request = {.reel = reel,
                                     .max_pixels = MAX_PIXELS,
                                     .cache_bytes = cache,
                                     .log = &silence,
                                     .stop = &never};
    assert_int_equal(cursor_create(&request, &cursor), STATUS_OK);
    unsigned seed = 7;
    int64_t span = film->us[film->count - 1] - film->us[first] + 400000;
    for (int k = 0, n = 0; k < 120; k++) {
        int dice = rand_r(&seed) % 10;
        int by = (int[]){1, -1, -1, 5, -7, 30}[rand_r(&seed) % 6];
        if (k == 0 || dice < 5) {
            int64_t at = film->us[first] - 200000 + rand_r(&seed) % span;
            at = dice == 0 ? film->us[clamp(n, film->count)] : at; // exactly a frame's
            n = clamp(frame_at(film, at), film->count);
            n = n < first ? first : n;
            assert_int_equal(cursor_go(cursor, at), STATUS_OK);
        } else {
            n = clamp(n + by, film->count);
            n = n < first ? first : n;
            assert_int_equal(cursor_step(cursor, by), STATUS_OK);
        }
        stands_on(name, cursor, film, n);
    }
    cursor_destroy(&cursor);
}

static void every_frame_of_a_file_is_found(void **state)
{
    (void)state;
    static struct film film;
    for (int k = 0; k < FILMS; k++) {
        struct source_request request = request_of(films[k].name, NULL);
        struct reel *reel;
        watch_file(films[k].name, NULL, &film, NULL, NULL);
        assert_in_range(film.count, films[k].no_times ? 1 : 20, MAX_FRAMES);
        if (!films[k].no_times)
            probe_agrees(films[k].name, &film);
        assert_int_equal(reel_of_file(&request, &silence, &never, &reel), STATUS_OK);
        walk(films[k].name, reel, &film, 0, 0);
        walk(films[k].name, reel, &film, 0, 4 * 64 * 48 * 3 / 2);
        reel_destroy(&reel);
    }
}

static int make_films(void **state)
{
    static char folder[] = "/tmp/unit_player.XXXXXX";
    *state = folder;
    about = avcodec_parameters_alloc();
    av_log_set_level(AV_LOG_QUIET);
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    for (int k = 0; k < FILMS; k++)
        if (system(films[k].make))
            return -1;
    return 0;
}

static int remove_films(void **state)
{
    for (int k = 0; k < FILMS; k++)
        unlink(films[k].name);
    avcodec_parameters_free(&about);
    return chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_seconds_are_kept_from_a_key_frame_on),
        cmocka_unit_test(bytes_are_bounded),
        cmocka_unit_test(a_group_that_is_too_large_is_dropped),
        cmocka_unit_test(a_long_group_is_kept_whole),
        cmocka_unit_test(what_is_held_stays),
        cmocka_unit_test(a_clock_that_jumps_back_begins_anew),
        cmocka_unit_test(key_frames_are_found_by_time),
        cmocka_unit_test(every_frame_of_a_file_is_found),
    };
    return cmocka_run_group_tests(tests, make_films, remove_films);
}
