// The exact frame of a time, in files and in what was kept of them.
#include "tests/film.h"

#include <stdio.h>
#include <unistd.h>

#include "page/player/reel_keep.h"
#include "pipeline/input/seek/cursor.h"
#include "pipeline/input/seek/reel.h"

// Films with difficulties: frames out of order, times that are not even, seeking by estimate,
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
     SOURCE "-vf \"select=mod(n\\,3)*mod(n\\,7)\" -fps_mode vfr " X264 "-g 15 -bf 2 vfr.mp4"},
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
        watch_file(films[k].name, NULL, 0, &film, NULL, NULL);
        assert_in_range(film.count, films[k].no_times ? 1 : 20, MAX_FRAMES);
        if (!films[k].no_times)
            probe_agrees(films[k].name, &film);
        assert_int_equal(reel_of_file(&request, &silence, &never, &reel), STATUS_OK);
        walk(films[k].name, reel, &film, 0, 0);
        walk(films[k].name, reel, &film, 0, 4 * 64 * 48 * 3 / 2);
        reel_destroy(&reel);
    }
}

// ---- packets that were kept ----

static void forget(struct source *described)
{
    avformat_free_context(described->format);
    free(described->name);
}

// Walk over what is left in a keep of a file's packets.
static void walk_kept(const char *name, const char *simulate, double seconds, struct film *film)
{
    struct source described;
    struct keep *keep;
    struct keep_span span;
    struct reel *reel;
    watch_file(name, simulate, seconds, film, &keep, &described);
    keep_finish(keep);
    keep_measure(keep, &span);
    int first = 0;
    while (film->us[first] < span.begin_us)
        first++;
    assert_in_range(film->us[first] - span.begin_us, 0, 400000); // not all key frames are shown
    assert_int_equal(reel_of_keep(keep, &described, &reel), STATUS_OK);
    walk(name, reel, film, first, 0);
    reel_destroy(&reel);
    keep_destroy(&keep);
    forget(&described);
}

static void every_frame_that_is_kept_is_found(void **state)
{
    (void)state;
    static struct film film;
    for (int k = 0; k < FILMS; k++)
        if (!films[k].no_times && strcmp(films[k].name, "cut.ts"))
            walk_kept(films[k].name, NULL, 100, &film);
    walk_kept("b.mp4", NULL, 1.5, &film);
    assert_true(film.us[0] == 0);
}

static void decoders_begin_anew_where_parameters_change(void **state)
{
    (void)state;
    static struct film film;
    const char *half = "res-change=32x24@2";
    walk_kept("b.mp4", half, 100, &film);
    assert_int_equal(film.width[0], 64);
    assert_int_equal(film.width[film.count - 1], 32);
    walk_kept("b.mp4", half, 0.5, &film); // it begins with the smaller ones
}

static void decoders_begin_anew_behind_a_loss(void **state)
{
    (void)state;
    static struct film film;
    lost.from = 30, lost.to = 43; // in the middle of two groups
    walk_kept("b.mp4", NULL, 100, &film);
    assert_in_range(film.count, 70, 86);
    walk_kept("open.mkv", NULL, 100, &film);
    walk_kept("refresh.mkv", NULL, 100, &film);
    lost.from = lost.to = 0;
}

static int make_films(void **state)
{
    static char folder[] = "/tmp/unit_cursor.XXXXXX";
    *state = folder;
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
    return chdir("/") || rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_of_a_file_is_found),
        cmocka_unit_test(every_frame_that_is_kept_is_found),
        cmocka_unit_test(decoders_begin_anew_where_parameters_change),
        cmocka_unit_test(decoders_begin_anew_behind_a_loss),
    };
    return cmocka_run_group_tests(tests, make_films, remove_films);
}
