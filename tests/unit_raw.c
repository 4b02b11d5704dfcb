// Raw video whose packets are the file's own pages: they are those that the demuxer would give, and a file that
// somebody shortens meanwhile is no crash.
#include "tests/unit.h"

#include <libavformat/avformat.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/io/mapped.h"
#include "pipeline/input/raw.h"
#include "pipeline/input/source.h"

enum {
    WIDE = 640,
    HIGH = 480,
    FRAME = WIDE * HIGH * 3 / 2,
    FRAMES = 50,
    REST = 1000,
    MOST = 2 * FRAMES,
    LONGER = 30
};

static const struct log silence;
static const atomic_bool never;
static const char name[] = "raw.yuv", y4m[] = "raw.y4m";

// Write some bytes that are never the same.
static void put_bytes(FILE *to, int count)
{
    static uint32_t state = 1;
    for (int k = 0; k < count; k++) {
        state = state * 1664525 + 1013904223;
        fputc((int)(state >> 24), to);
    }
}

// Make a file of FRAMES frames of WIDE x HIGH, yuv420p, and the beginning of another.
static void make_file(void)
{
    FILE *to = fopen(name, "wb");
    put_bytes(to, FRAMES * FRAME + REST);
    assert_int_equal(fclose(to), 0);
}

// The same in YUV4MPEG2; one frame in the middle has a header with more in it.
static void make_y4m(void)
{
    FILE *to = fopen(y4m, "wb");
    fprintf(to, "YUV4MPEG2 W%d H%d F25:1 Ip C420jpeg\n", WIDE, HIGH);
    for (int k = 0; k < FRAMES; k++) {
        fprintf(to, k == LONGER ? "FRAME Ip\n" : "FRAME\n");
        put_bytes(to, FRAME);
    }
    fprintf(to, "FRAME\n");
    put_bytes(to, REST);
    assert_int_equal(fclose(to), 0);
}

// `width` 0: in YUV4MPEG2.
static struct source *open_source(bool maps, int width)
{
    struct source_request request = {.name = y4m, .max_pixels = 1 << 20};
    struct source *source;
    if (width)
        request = (struct source_request){.name = name,
                                          .format = "rawvideo",
                                          .pixfmt = "yuv420p",
                                          .width = width,
                                          .height = HIGH,
                                          .rate = {25, 1},
                                          .max_pixels = 1 << 20};
    assert_int_equal(source_open(&request, &silence, &never, &source), STATUS_OK);
    if (maps)
        source_map(source);
    assert_int_equal(source->raw != NULL, maps);
    return source;
}

static struct packet *next(struct source *source)
{
    struct packet *packet;
    enum status status = source_read(source, &packet);
    assert_true(status == STATUS_OK || status == STATUS_EOF);
    return packet;
}

// True if its data is the file's own.
static bool is_mapped(const struct packet *packet)
{
    return !av_buffer_is_writable(packet->av->buf);
}

static void assert_same(const struct packet *got, const struct packet *want)
{
    assert_int_equal(got->av->pts, want->av->pts);
    assert_int_equal(got->av->dts, want->av->dts);
    assert_int_equal(got->av->duration, want->av->duration);
    assert_int_equal(got->av->pos, want->av->pos);
    assert_int_equal(got->av->flags, want->av->flags);
    assert_int_equal(got->av->stream_index, want->av->stream_index);
    assert_int_equal(got->pts_us, want->pts_us);
    assert_int_equal(got->av->size, want->av->size);
    assert_memory_equal(got->av->data, want->av->data, (size_t)want->av->size);
}

// The next packet from a time on.
static struct packet *next_from(struct source *source, int64_t from_us)
{
    struct packet *packet = next(source);
    while (packet && packet->pts_us < from_us) {
        packet_destroy(&packet);
        packet = next(source);
    }
    return packet;
}

// Read both from a time on to their ends; how many packets were mapped.
static int compare(struct source *got, struct source *want, int64_t from_us)
{
    int mapped = 0, count = 0;
    for (;;) {
        struct packet *one = next_from(got, from_us), *other = next_from(want, from_us);
        assert_int_equal(!one, !other);
        if (!one)
            break;
        assert_same(one, other);
        mapped += is_mapped(one);
        packet_destroy(&one);
        packet_destroy(&other);
        assert_true(++count <= MOST);
    }
    assert_int_equal(source_is_truncated(got), source_is_truncated(want));
    return mapped;
}

// `few`: packets that the demuxer reads behind a seek, at most.
static void compare_with_seeks(int width, int few)
{
    static const int seeks_us[] = {0, 1000000, 1960000, 40000, 900000};
    struct source *mapped = open_source(true, width), *read = open_source(false, width);
    assert_true(compare(mapped, read, 0) >= FRAMES - few);
    for (size_t k = 0; k < sizeof seeks_us / sizeof *seeks_us; k++) {
        int frames = FRAMES - seeks_us[k] / 40000;
        assert_int_equal(source_seek(mapped, seeks_us[k]), source_seek(read, seeks_us[k]));
        assert_true(compare(mapped, read, seeks_us[k]) >= frames - few);
    }
    source_close(&mapped);
    source_close(&read);
}

static void packets_are_those_of_the_demuxer(void **state)
{
    (void)state;
    compare_with_seeks(WIDE, 4);
}

static void packets_of_yuv4mpeg2_are_too(void **state)
{
    (void)state;
    compare_with_seeks(0, 5);
}

static void small_pictures_are_read(void **state)
{
    (void)state;
    struct source *mapped = open_source(true, 64), *read = open_source(false, 64);
    for (int k = 0; k < MOST; k++) {
        struct packet *one = next(mapped), *other = next(read);
        assert_same(one, other);
        assert_false(is_mapped(one));
        packet_destroy(&one);
        packet_destroy(&other);
    }
    source_close(&mapped);
    source_close(&read);
}

static void packets_outlive_their_source(void **state)
{
    (void)state;
    struct source *source = open_source(true, WIDE);
    struct packet *kept[FRAMES] = {NULL};
    int count = 0;
    while (count < FRAMES && (kept[count] = next(source)))
        count++;
    source_close(&source);
    source = open_source(false, WIDE);
    for (int k = 0; k < count; k++) {
        struct packet *want = next(source);
        assert_same(kept[k], want);
        packet_destroy(&want);
        packet_destroy(&kept[k]);
    }
    source_close(&source);
}

// Zeros stand where the file was, the source ends early and says so.
static void a_file_may_be_shortened(void **state)
{
    (void)state;
    struct source *source = open_source(true, WIDE);
    struct packet *packet = NULL;
    for (int k = 0; k < 9; k++) {
        packet_destroy(&packet);
        packet = next(source);
    }
    assert_true(is_mapped(packet));
    assert_false(source_is_torn(source));
    assert_int_equal(truncate(name, packet->av->pos + FRAME / 2), 0);
    int sum = 0;
    for (int k = 0; k < FRAME; k++)
        sum |= k > FRAME / 2 ? packet->av->data[k] : 0;
    assert_int_equal(sum, 0);
    assert_true(raw_is_torn(source->raw));
    assert_true(source_is_torn(source));
    packet_destroy(&packet);
    packet = next(source);
    assert_true(!packet || packet->av->size < FRAME);
    packet_destroy(&packet);
    source_close(&source);
    make_file();
}

// ---- signals that are not ours ----

static void end_well(int signal)
{
    (void)signal;
    _exit(3);
}

enum { READS, IS_SENT };

// Get the signal in a child, which reads memory of a file that has none there, or sends it to itself; its
// exit code, or a signal as a negative number.
static int get_signal(int how, void (*handler)(int))
{
    pid_t child = fork();
    if (!child) {
        signal(SIGBUS, handler);
        FILE *file = tmpfile();
        struct mapped *mapped = mapped_open(fileno(file)); // the first in this process
        const volatile char *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
        if (how == IS_SENT)
            _exit(mapped && !kill(getpid(), SIGBUS) ? 0 : 9);
        _exit(mapped && memory != MAP_FAILED ? memory[0] : 9);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void other_memory_is_not_ours(void **state)
{
    (void)state;
    assert_int_equal(get_signal(READS, SIG_DFL), -SIGBUS);
    assert_int_equal(get_signal(READS, SIG_IGN), -SIGBUS);
    assert_int_equal(get_signal(READS, end_well), 3);
    assert_int_equal(get_signal(IS_SENT, SIG_DFL), -SIGBUS);
    assert_int_equal(get_signal(IS_SENT, SIG_IGN), 0);
    assert_int_equal(get_signal(IS_SENT, end_well), 3);
}

static int enter(void **state)
{
    static char folder[] = "/tmp/unit_raw.XXXXXX";
    *state = folder;
    if (!mkdtemp(folder) || chdir(folder))
        return -1;
    av_log_set_level(AV_LOG_QUIET);
    make_file();
    make_y4m();
    return 0;
}

static int leave(void **state)
{
    return unlink(name) || unlink(y4m) || chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        // Our handler comes with the first file that is mapped, in a child here. cmocka sets its own ahead of each
        // test: the second has ours, none behind it.
        cmocka_unit_test(other_memory_is_not_ours),
        cmocka_unit_test(a_file_may_be_shortened),
        cmocka_unit_test(packets_are_those_of_the_demuxer),
        cmocka_unit_test(packets_of_yuv4mpeg2_are_too),
        cmocka_unit_test(small_pictures_are_read),
        cmocka_unit_test(packets_outlive_their_source),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
