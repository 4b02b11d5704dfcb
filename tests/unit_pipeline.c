// The pipeline's parts: files, pixel formats, names, packets.
#include "tests/unit.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/ffmpeg/frame_hash.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/io/reach.h"
#include "pipeline/input/source.h"
#include "pipeline/output/file/file.h"

// ---- files ----

static char folder[] = "/tmp/sluice-unit-XXXXXX";
static char name[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(name, sizeof name, "%s/out.bin", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(name);
    return rmdir(folder); // fails if a temporary was left behind
}

static void write_text(struct file *file, const char *text)
{
    avio_write(file_io(file), (const unsigned char *)text, (int)strlen(text));
}

static void read_text(char *text, size_t size)
{
    FILE *from = fopen(name, "r");
    assert_non_null(from);
    text[fread(text, 1, size - 1, from)] = 0;
    fclose(from);
}

static void files_appear_whole_or_not_at_all(void **state)
{
    (void)state;
    struct log silent = {0};
    struct file *file;
    char text[32];
    assert_int_equal(file_create(name, false, &silent, NULL, &file), STATUS_OK);
    write_text(file, "first");
    assert_int_equal(access(name, F_OK), -1); // not before the commit
    assert_int_equal(file_commit(&file), STATUS_OK);
    assert_null(file);
    read_text(text, sizeof text);
    assert_string_equal(text, "first");

    assert_int_equal(file_check(name, false, &silent), STATUS_OUTPUT);
    assert_int_equal(file_create(name, true, &silent, NULL, &file), STATUS_OK);
    write_text(file, "second");
    avio_flush(file_io(file));
    file_discard(&file);
    read_text(text, sizeof text);
    assert_string_equal(text, "first"); // untouched

    assert_int_equal(file_create(name, true, &silent, NULL, &file), STATUS_OK);
    write_text(file, "third");
    assert_int_equal(file_commit(&file), STATUS_OK);
    read_text(text, sizeof text);
    assert_string_equal(text, "third");
}

static void a_file_that_appeared_meanwhile_is_not_replaced(void **state)
{
    (void)state;
    struct log silent = {0};
    struct file *file;
    char text[32];
    unlink(name);
    assert_int_equal(file_create(name, false, &silent, NULL, &file), STATUS_OK);
    write_text(file, "mine");
    FILE *other = fopen(name, "w");
    fputs("theirs", other);
    fclose(other);
    assert_int_equal(file_commit(&file), STATUS_OUTPUT);
    read_text(text, sizeof text);
    assert_string_equal(text, "theirs");
}

static void failed_writes_are_noticed(void **state)
{
    (void)state;
    struct log silent = {0};
    struct file *file;
    if (access("/dev/full", W_OK))
        skip();
    assert_int_equal(file_create("/dev/full", true, &silent, NULL, &file), STATUS_OK);
    write_text(file, "anything");
    assert_int_equal(file_commit(&file), STATUS_OUTPUT);
}

// ---- pixel formats ----

// Each format that can be described is found again by its description.
static void pixel_formats_go_both_ways(void **state)
{
    (void)state;
    const struct color_tags none = {0};
    int described = 0;
    for (const AVPixFmtDescriptor *at = NULL; (at = av_pix_fmt_desc_next(at));) {
        enum AVPixelFormat pixel = av_pix_fmt_desc_get_id(at);
        struct format format;
        if (!pixel_describe(pixel, &none, 64, 64, &format))
            continue;
        described++;
        enum AVPixelFormat found = pixel_find(&format);
        struct format again;
        assert_true(pixel_describe(found, &none, 64, 64, &again));
        if (!format_same_storage(&format, &again))
            fail_msg("%s is found as %s", at->name, av_get_pix_fmt_name(found));
    }
    assert_true(described > 100);
}

static void outputs_take_the_least_loss(void **state)
{
    (void)state;
    static const enum AVPixelFormat x264[] = {
        AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P,  AV_PIX_FMT_YUV422P,   AV_PIX_FMT_YUV444P,
        AV_PIX_FMT_NV12,    AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV422P10, AV_PIX_FMT_YUV444P10,
        AV_PIX_FMT_GRAY8,   AV_PIX_FMT_GRAY10,    AV_PIX_FMT_NONE};
    static const enum AVPixelFormat vp9[] = {
        AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVA420P,  AV_PIX_FMT_YUV422P,
        AV_PIX_FMT_YUV444P, AV_PIX_FMT_YUV420P10, AV_PIX_FMT_YUV444P10,
        AV_PIX_FMT_GBRP,    AV_PIX_FMT_GBRP10,    AV_PIX_FMT_NONE};
    static const enum AVPixelFormat png[] = {
        AV_PIX_FMT_RGB24, AV_PIX_FMT_RGBA,  AV_PIX_FMT_RGB48BE,  AV_PIX_FMT_RGBA64BE,
        AV_PIX_FMT_PAL8,  AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY16BE, AV_PIX_FMT_NONE};
    static const enum AVPixelFormat gif[] = {AV_PIX_FMT_RGB8, AV_PIX_FMT_GRAY8, AV_PIX_FMT_PAL8,
                                             AV_PIX_FMT_NONE};
    static const struct {
        enum AVPixelFormat from;
        const enum AVPixelFormat *candidates;
        bool playable;
        enum AVPixelFormat chosen;
        bool odd;
        int everywhere;
    } rows[] = {
        {AV_PIX_FMT_YUV420P, x264, true, AV_PIX_FMT_YUV420P},
        {AV_PIX_FMT_YUVJ420P, x264, true, AV_PIX_FMT_YUVJ420P},
        {AV_PIX_FMT_NV12, x264, true, AV_PIX_FMT_NV12},
        {AV_PIX_FMT_GRAY8, x264, true, AV_PIX_FMT_YUVJ420P}, // gray is full range
        {AV_PIX_FMT_GRAY8, x264, false, AV_PIX_FMT_GRAY8},
        {AV_PIX_FMT_GRAY16, x264, true, AV_PIX_FMT_YUV420P10},
        {AV_PIX_FMT_YUV420P10, x264, true, AV_PIX_FMT_YUV420P10},
        {AV_PIX_FMT_YUV411P, x264, true, AV_PIX_FMT_YUV422P},
        {AV_PIX_FMT_RGB24, x264, true, AV_PIX_FMT_YUV420P},
        {AV_PIX_FMT_YUV420P, x264, true, AV_PIX_FMT_YUV444P, .odd = true},
        {AV_PIX_FMT_GRAY8, x264, true, AV_PIX_FMT_YUVJ420P, .everywhere = 8},
        {AV_PIX_FMT_GRAY16, x264, true, AV_PIX_FMT_YUVJ420P, .everywhere = 8},
        {AV_PIX_FMT_GRAY10, x264, true, AV_PIX_FMT_YUV420P10, .everywhere = 10},
        {AV_PIX_FMT_YUV420P10, x264, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_YUV420P12, x264, true, AV_PIX_FMT_YUV420P10, .everywhere = 10},
        {AV_PIX_FMT_YUV422P, x264, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_YUV444P10, x264, true, AV_PIX_FMT_YUV420P10, .everywhere = 10},
        {AV_PIX_FMT_YUV420P, x264, true, AV_PIX_FMT_YUV444P, .odd = true, .everywhere = 8},
        {AV_PIX_FMT_GRAY8, vp9, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_GRAY10, vp9, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_RGB24, vp9, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_GBRP10, vp9, true, AV_PIX_FMT_YUV420P, .everywhere = 8},
        {AV_PIX_FMT_BGRA, vp9, true, AV_PIX_FMT_YUVA420P, .everywhere = 8},
        {AV_PIX_FMT_BGRA, png, false, AV_PIX_FMT_RGBA},
        {AV_PIX_FMT_YUV420P, png, false, AV_PIX_FMT_RGB24},
        {AV_PIX_FMT_GRAY16, png, false, AV_PIX_FMT_GRAY16BE},
        {AV_PIX_FMT_YUV420P10, png, false, AV_PIX_FMT_RGB48BE},
        {AV_PIX_FMT_GRAY8, gif, false, AV_PIX_FMT_GRAY8},
        {AV_PIX_FMT_RGB24, gif, false, AV_PIX_FMT_NONE}, // palettes are libswscale's
    };
    const struct color_tags none = {0};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct format from;
        assert_true(pixel_describe(rows[k].from, &none, 64, 64, &from));
        int size = rows[k].odd ? 63 : 64;
        const struct pixel_wishes wishes = {.playable = rows[k].playable,
                                            .everywhere = rows[k].everywhere,
                                            .whole_chroma = rows[k].playable};
        enum AVPixelFormat chosen = pixel_choose(&from, size, size, rows[k].candidates, wishes);
        if (chosen != rows[k].chosen)
            fail_msg("%s goes into %s, not %s", av_get_pix_fmt_name(rows[k].from),
                     av_get_pix_fmt_name(chosen), av_get_pix_fmt_name(rows[k].chosen));
    }
}

// ---- names ----

static void secrets_are_left_out(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"in.mp4", "in.mp4"},
        {"rtsp://cam/1", "rtsp://cam/1"},
        {"rtsp://token@cam:554/1", "rtsp://***@cam:554/1"},
        {"rtsp://to/k+en@cam:554/1", "rtsp://***@cam:554/1"},
        {"http://token@h/a@b", "http://***@h/a@b"},
        {"rtsp://user:12/34@cam/1", "rtsp://user:***@cam/1"},
        {"rtsp://user:secret@cam/1?mail=a@b", "rtsp://user:***@cam/1?mail=a@b"},
        {"rtsp://***@cam/1", "rtsp://***@cam/1"},
        {"udp://@239.0.0.1:1234", "udp://@239.0.0.1:1234"},
        {"rtsp://c/user=admin_password=secret_channel=1.sdp?x=1",
         "rtsp://c/user=admin_password=***"},
        {"srt://h?streamid=publish:cam:user:secret&x=1", "srt://h?streamid=publish:cam:***&x=1"},
        {"srt://h?streamid=read:cam&x=1", "srt://h?streamid=read:cam&x=1"},
        {"srt://h?passphrase=se#cr,et&x=1", "srt://h?passphrase=***&x=1"},
        {"http://h/?url=rtsp://user:secret@c", "http://h/?url=rtsp://user:***@c"},
        {"rtsp://user:secret@cam:554/1?x=1", "rtsp://user:***@cam:554/1?x=1"},
        {"rtsp://user:se@cret@cam/1", "rtsp://user:***@cam/1"},
        {"rtsp://:secret@cam", "rtsp://:***@cam"},
        {"rtsp://user:#se/cr?et@cam/1", "rtsp://user:***@cam/1"},
        {"http://h:80/a@b:c/d", "http://h:80/a@b:c/d"},
        {"http://[::1]:80/a@b", "http://[::1]:80/a@b"},
        {"http://[fe80::1%eth0]/a@b", "http://[fe80::1%eth0]/a@b"},
        {"rtsp://[user:secret@cam/1", "rtsp://[user:***@cam/1"},
        {"rtsp://[token]@cam/1", "rtsp://***@cam/1"},
        {"rtsp://[a]:secret@cam/1", "rtsp://[a]:***@cam/1"},
        {"srt://h:9?mode=caller&passphrase=secret", "srt://h:9?mode=caller&passphrase=***"},
        {"http://h/p?access_token=secret&y=2#z", "http://h/p?access_token=***&y=2#z"},
        {"http://h/a@b:c/d", "http://h/a@b:c/d"},
        {"rtmp://h/live?Key=secret", "rtmp://h/live?Key=***"},
        {"rtmp://h/live/camera", "rtmp://h/live/camera"},
        {"rtmps://h:443/live2/abcd-efgh-ijkl-mnop?x=1", "rtmps://h:443/live2/***?x=1"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char shown[128], small[16];
        url_without_secrets(names[k][0], shown, sizeof shown);
        assert_string_equal(shown, names[k][1]);
        url_without_secrets(names[k][0], small, sizeof small); // stays within
    }
}

static void a_scheme_is_one_name(void **state)
{
    (void)state;
    assert_non_null(reach_protocols("rtsps://cam/1"));
    assert_non_null(reach_protocols("HTTP://cam/1"));
    assert_null(reach_protocols("file:///etc/passwd"));
    assert_null(reach_protocols("rtsp,rtsps://cam/1"));
    assert_null(reach_protocols("http,https://cam/1"));
}

static int lookup_error; // of getaddrinfo()

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    (void)host, (void)service, (void)hints;
    *found = NULL;
    return lookup_error;
}

// A name server that does not answer says nothing of the host.
static void only_a_host_that_is_not_known_is_said_to_be(void **state)
{
    (void)state;
    char host[64];
    lookup_error = EAI_NONAME;
    assert_string_equal(url_host_trouble("rtsp://cam:554/1", host, sizeof host), "is not known");
    assert_string_equal(host, "cam");
    lookup_error = EAI_AGAIN;
    assert_string_equal(url_host_trouble("rtsp://cam/1", host, sizeof host),
                        "cannot be looked up now");
    lookup_error = EAI_SYSTEM;
    assert_null(url_host_trouble("rtsp://cam/1", host, sizeof host));
    lookup_error = EAI_NONAME;
    assert_null(url_host_trouble("in.mp4", host, sizeof host));
    lookup_error = 0;
    assert_null(url_host_trouble("rtsp://cam/1", host, sizeof host));
}

// Stops at the first warning, and counts errors.
struct stopper {
    atomic_bool stop;
    int warnings, errors;
};

static void stop_at_warning(void *stopper_, enum log_level level, const char *sentence)
{
    struct stopper *stopper = stopper_;
    (void)sentence;
    stopper->warnings += level == LOG_WARNING;
    stopper->errors += level == LOG_ERROR;
    stopper->stop |= level == LOG_WARNING;
}

// A source that is absent is waited for, and a stop meanwhile is no failure of its own.
static void a_stop_while_a_source_is_absent_is_no_error(void **state)
{
    (void)state;
    struct stopper stopper = {0};
    const struct log log = {stop_at_warning, &stopper};
    const struct source_request request = {
        .name = "tcp://127.0.0.1:1", .await_start = true, .max_pixels = 1 << 20};
    struct source *source;
    lookup_error = EAI_NONAME;
    assert_int_equal(source_open(&request, &log, &stopper.stop, &source), STATUS_STOPPED);
    assert_null(source);
    assert_int_equal(stopper.warnings, 1);
    assert_int_equal(stopper.errors, 0);
}

static void devices_have_names(void **state)
{
    (void)state;
    const char *format, *what;
    assert_true(url_is_device("lavfi:testsrc=size=2x2", &format, &what));
    assert_string_equal(format, "lavfi");
    assert_string_equal(what, "testsrc=size=2x2");
    assert_false(url_is_device("rtsp://h/1", &format, &what));
    assert_string_equal(what, "rtsp://h/1");
    assert_false(url_is_device("in:out.mp4", &format, &what));
    assert_true(url_is_live("udp://127.0.0.1:9"));
    assert_true(url_is_live("tcp://127.0.0.1:9"));
    assert_false(url_is_live("http://h/a.mp4"));
    assert_false(url_is_live("in.mp4"));
}

// ---- packets ----

// A clone shares the bytes, and has the restart with parameters of its own; the fields that
// libavformat fills are left as they are.
static void packets_carry_their_restart(void **state)
{
    (void)state;
    static const uint8_t extradata[] = {1, 2, 3};
    AVCodecParameters *codec = avcodec_parameters_alloc();
    codec->codec_id = AV_CODEC_ID_H264;
    codec->extradata = av_mallocz(sizeof extradata + AV_INPUT_BUFFER_PADDING_SIZE);
    codec->extradata_size = sizeof extradata;
    memcpy(codec->extradata, extradata, sizeof extradata);
    struct packet *packet = packet_create();
    assert_int_equal(packet->pts_us, AV_NOPTS_VALUE);
    assert_false(packet->restart);
    assert_int_equal(av_new_packet(packet->av, 100), 0);
    packet->av->pos = 4711;
    packet->arrived_ns = 7;
    packet->pts_us = 9;
    assert_int_equal(packet_set_restart(packet, codec), STATUS_OK);
    avcodec_parameters_free(&codec);
    struct packet *clone = packet_clone(packet);
    packet_destroy(&packet);
    packet_destroy(&packet); // NULL is fine
    assert_int_equal(packet_weigh(clone), 100);
    assert_int_equal(clone->av->pos, 4711);
    assert_int_equal(clone->av->side_data_elems, 0);
    assert_int_equal(clone->arrived_ns, 7);
    assert_int_equal(clone->pts_us, 9);
    assert_true(clone->restart);
    assert_int_equal(clone->codec->codec_id, AV_CODEC_ID_H264);
    assert_memory_equal(clone->codec->extradata, extradata, sizeof extradata);
    packet_drop(clone);
}

static void the_first_byte_that_differs_is_found(void **state)
{
    (void)state;
    struct format format;
    struct color_tags none = {0};
    uint8_t a[48] = {0}, b[48] = {0};
    assert_true(pixel_describe(AV_PIX_FMT_YUV420P, &none, 6, 4, &format));
    struct image got = {&format, 6, 4, {a, a + 32, a + 40}, {8, 4, 4}};
    struct image want = {&format, 6, 4, {b, b + 32, b + 40}, {8, 4, 4}};
    struct image_difference first;
    assert_true(image_compare(&got, &want, &first));
    a[6] = a[15] = a[35] = a[47] = 1; // padding
    assert_true(image_compare(&got, &want, &first));
    b[40 + 4 + 2] = 7;
    assert_false(image_compare(&got, &want, &first));
    assert_int_equal(first.plane, 2);
    assert_int_equal(first.row, 1);
    assert_int_equal(first.byte, 2);
    assert_int_equal(first.got, 0);
    assert_int_equal(first.want, 7);
    b[8 * 3 + 5] = 1;
    assert_false(image_compare(&got, &want, &first));
    assert_int_equal(first.plane, 0);
    assert_int_equal(first.row, 3);
    assert_int_equal(first.byte, 5);
    got.data[0] = got.data[2] = NULL;
    assert_true(image_compare(&got, &want, &first));
}

// ---- hashes of frames ----

// A frame whose components are numbers from `seed` on, of a format; 35x19, so that chroma is rounded.
static AVFrame *numbered_frame(enum AVPixelFormat format, int seed)
{
    enum { MOST = 64 };
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(format);
    AVFrame *frame = av_frame_alloc();
    uint16_t row[MOST];
    frame->format = format;
    frame->width = 35;
    frame->height = 19;
    assert_int_equal(av_frame_get_buffer(frame, 0), 0);
    for (int k = 0; k < AV_NUM_DATA_POINTERS && frame->buf[k]; k++)
        memset(frame->buf[k]->data, 0, frame->buf[k]->size); // lines are added to what is there
    for (int c = 0; c < about->nb_components; c++) {
        bool chroma = c > 0;
        int width = chroma ? AV_CEIL_RSHIFT(frame->width, about->log2_chroma_w) : frame->width;
        int height = chroma ? AV_CEIL_RSHIFT(frame->height, about->log2_chroma_h) : frame->height;
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++)
                row[x] =
                    (uint16_t)((seed + 7 * x + 31 * y + 101 * c) % (1 << about->comp[c].depth));
            av_write_image_line2(row, frame->data, frame->linesize, about, 0, y, c, width, 2);
        }
    }
    return frame;
}

static void hash_numbers(enum AVPixelFormat format, int seed, char samples[FRAME_HASH_TEXT],
                         char planes[FRAME_HASH_TEXT])
{
    AVFrame *frame = numbered_frame(format, seed);
    assert_int_equal(frame_hash_samples(frame, samples), STATUS_OK);
    assert_int_equal(frame_hash(frame, planes), STATUS_OK);
    av_frame_free(&frame);
}

// What decoders of GPUs and CPUs give of one stream.
static void frames_that_lie_differently_have_a_hash_in_common(void **state)
{
    (void)state;
    const enum AVPixelFormat pairs[][2] = {{AV_PIX_FMT_NV12, AV_PIX_FMT_YUV420P},
                                           {AV_PIX_FMT_P010LE, AV_PIX_FMT_YUV420P10LE}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        char samples[3][FRAME_HASH_TEXT], planes[3][FRAME_HASH_TEXT];
        hash_numbers(pairs[k][0], 5, samples[0], planes[0]);
        hash_numbers(pairs[k][1], 5, samples[1], planes[1]);
        hash_numbers(pairs[k][1], 6, samples[2], planes[2]);
        assert_string_equal(samples[0], samples[1]);
        assert_string_not_equal(samples[1], samples[2]);
        assert_string_not_equal(planes[0], planes[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_are_left_out),
        cmocka_unit_test(a_scheme_is_one_name),
        cmocka_unit_test(frames_that_lie_differently_have_a_hash_in_common),
        cmocka_unit_test(a_stop_while_a_source_is_absent_is_no_error),
        cmocka_unit_test(only_a_host_that_is_not_known_is_said_to_be),
        cmocka_unit_test(devices_have_names),
        cmocka_unit_test(files_appear_whole_or_not_at_all),
        cmocka_unit_test(a_file_that_appeared_meanwhile_is_not_replaced),
        cmocka_unit_test(failed_writes_are_noticed),
        cmocka_unit_test(pixel_formats_go_both_ways),
        cmocka_unit_test(outputs_take_the_least_loss),
        cmocka_unit_test(the_first_byte_that_differs_is_found),
        cmocka_unit_test(packets_carry_their_restart),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
