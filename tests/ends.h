// For tests of jobs that begin in the caller, who pushes frames, or end there, who takes them.
#pragma once

#include "tests/unit.h"

#include <libavutil/md5.h>
#include <libavutil/mem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sluice/sluice.h"

enum { WIDTH = 70, HEIGHT = 38, FRAMES = 12, MOST = 400, PAD = 29 };

static char folder[64];

static inline const char *path(const char *name)
{
    static char room[4][128];
    static int next;
    char *to = room[next++ % 4];
    snprintf(to, sizeof room[0], "%s/%s", folder, name);
    return to;
}

// ---- frames: 4:2:0, of noise, with padding of their own behind each row ----

static inline int plane_width(int p)
{
    return p ? WIDTH / 2 : WIDTH;
}

static inline int plane_height(int p)
{
    return p ? HEIGHT / 2 : HEIGHT;
}

static inline uint8_t sample(int frame, int p, int x, int y)
{
    uint32_t mixed = (uint32_t)(frame * 7919 + p * 104729 + y * 1299709 + x * 15485863 + 1);
    mixed = (mixed ^ (mixed >> 13)) * 2654435761u;
    return (uint8_t)(mixed >> 24);
}

struct noise {
    uint8_t memory[3][HEIGHT * (WIDTH + PAD)];
    struct sluice_frame frame;
};

static inline void make_picture(struct noise *picture, int number)
{
    picture->frame = (struct sluice_frame){.size = sizeof picture->frame, .pts = 40000 * number};
    for (int p = 0; p < 3; p++) {
        int stride = plane_width(p) + PAD;
        memset(picture->memory[p], 0xEE, sizeof picture->memory[p]);
        for (int y = 0; y < plane_height(p); y++)
            for (int x = 0; x < plane_width(p); x++)
                picture->memory[p][y * stride + x] = sample(number, p, x, y);
        picture->frame.data[p] = picture->memory[p];
        picture->frame.stride[p] = stride;
    }
}

static const struct sluice_format yuv420p = {
    .size = sizeof yuv420p, .pixfmt = "yuv420p", .width = WIDTH, .height = HEIGHT};

// The first so many of the same frames as a file of raw video.
static inline const char *raw_file_of(const char *base, int frames)
{
    const char *name = path(base);
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    for (int n = 0; n < frames; n++)
        for (int p = 0; p < 3; p++)
            for (int y = 0; y < plane_height(p); y++)
                for (int x = 0; x < plane_width(p); x++)
                    fputc(sample(n, p, x, y), file);
    assert_int_equal(fclose(file), 0);
    return name;
}

static inline const char *raw_file(void)
{
    return raw_file_of("in.yuv", FRAMES);
}

// ---- a job, its callbacks and its pushing thread ----

struct ends {
    struct sluice_config config;
    struct sluice_job *job;
    enum sluice_status status; // of sluice_job_run()
    pthread_t thread;
    // the log
    atomic_int errors;
    char last[512];
    // what was taken
    atomic_int taken[2];
    char md5[2][MOST][33];
    int64_t pts[2][MOST];
    bool interlaced[MOST];
    uint8_t *kept; // (optional) room for the first plane of each frame
    char pixfmt[2][32];
    int width[2], height[2];
    enum sluice_range range;
    pthread_t taker;
    // what the taker does
    int end_after, delay_us;
    enum sluice_status answer;
    bool stops; // by sluice_job_stop()
};

static inline void note(void *ends_, enum sluice_log_level level, const char *sentence)
{
    struct ends *ends = ends_;
    if (level != SLUICE_LOG_ERROR)
        return;
    snprintf(ends->last, sizeof ends->last, "%s", sentence);
    ends->errors++;
}

static inline void hash(const struct sluice_format *format, const struct sluice_frame *frame,
                        char *text)
{
    struct AVMD5 *md5 = av_md5_alloc();
    uint8_t digest[16];
    size_t bytes;
    int rows;
    av_md5_init(md5);
    for (int p = 0; p < SLUICE_PLANES && frame->data[p]; p++) {
        bool whole = p == 0 || !strchr(format->pixfmt, 'v');
        bytes = (size_t)format->width * (strcmp(format->pixfmt, "rgb24") ? 1 : 3) / (whole ? 1 : 2);
        rows = format->height / (whole ? 1 : 2);
        for (int y = 0; y < rows; y++)
            av_md5_update(md5, frame->data[p] + y * frame->stride[p], bytes);
    }
    av_md5_final(md5, digest);
    for (int k = 0; k < 16; k++)
        snprintf(text + 2 * k, 3, "%02x", digest[k]);
    av_free(md5);
}

static inline enum sluice_status take(void *ends_, int output, const struct sluice_format *format,
                                      const struct sluice_frame *frame)
{
    struct ends *ends = ends_;
    int number = ends->taken[output];
    assert_true(output < 2 && number < MOST);
    assert_int_equal(frame->memory, SLUICE_MEMORY_HOST);
    if (!number && !output)
        ends->taker = pthread_self();
    assert_true(output || pthread_equal(ends->taker, pthread_self()));
    hash(format, frame, ends->md5[output][number]);
    for (int y = 0; ends->kept && y < format->height; y++)
        memcpy(ends->kept + (number * format->height + y) * format->width,
               frame->data[0] + y * frame->stride[0], (size_t)format->width);
    snprintf(ends->pixfmt[output], sizeof ends->pixfmt[0], "%s", format->pixfmt);
    ends->width[output] = format->width;
    ends->height[output] = format->height;
    if (!output) {
        ends->range = format->range;
        ends->interlaced[number] = frame->interlaced;
    }
    ends->pts[output][number] = frame->pts;
    ends->taken[output]++;
    if (ends->delay_us)
        usleep((useconds_t)ends->delay_us);
    if (ends->end_after != number + 1)
        return SLUICE_STATUS_OK;
    if (ends->stops)
        sluice_job_stop(ends->job);
    return ends->answer;
}

// With SLUICE_TEST_BACKEND=cuda in the environment the frames of the caller go through a GPU.
static inline void begin_config(struct ends *ends, const char *chain)
{
    const char *backend = getenv("SLUICE_TEST_BACKEND");
    bool on_gpu = backend && !strcmp(backend, "cuda");
    memset(ends, 0, sizeof *ends);
    ends->config =
        (struct sluice_config){.size = sizeof ends->config,
                               .chain = chain,
                               .overwrite = true,
                               .backend = on_gpu ? SLUICE_BACKEND_CUDA : SLUICE_BACKEND_CPU,
                               .log = note,
                               .opaque = ends};
}

static inline void read_raw(struct ends *ends)
{
    ends->config.input = raw_file();
    ends->config.input_format = "rawvideo";
    ends->config.input_pixfmt = "yuv420p";
    ends->config.input_width = WIDTH;
    ends->config.input_height = HEIGHT;
}

static inline void create(struct ends *ends)
{
    assert_int_equal(sluice_job_create(&ends->config, &ends->job), SLUICE_STATUS_OK);
}

static inline void *run(void *ends_)
{
    struct ends *ends = ends_;
    ends->status = sluice_job_run(ends->job);
    return NULL;
}

static inline void start(struct ends *ends)
{
    create(ends);
    assert_int_equal(pthread_create(&ends->thread, NULL, run, ends), 0);
}

static inline enum sluice_status push(struct ends *ends, int number)
{
    struct noise picture;
    make_picture(&picture, number);
    return sluice_job_push(ends->job, &picture.frame);
}

static inline void push_all(struct ends *ends)
{
    for (int n = 0; n < FRAMES; n++)
        assert_int_equal(push(ends, n), SLUICE_STATUS_OK);
    sluice_job_push_end(ends->job);
    sluice_job_push_end(ends->job);
    assert_int_equal(push(ends, FRAMES), SLUICE_STATUS_END);
}

static inline struct sluice_ledger finish(struct ends *ends)
{
    struct sluice_summary summary = {.size = sizeof summary};
    sluice_job_summary(ends->job, &summary);
    sluice_job_destroy(&ends->job);
    assert_null(ends->job);
    return summary.ledger;
}

static inline enum sluice_status join(struct ends *ends)
{
    pthread_join(ends->thread, NULL);
    return ends->status;
}

static inline void run_well(struct ends *ends)
{
    create(ends);
    assert_int_equal(sluice_job_run(ends->job), SLUICE_STATUS_OK);
    assert_int_equal(finish(ends).frames_out, FRAMES);
    assert_int_equal(ends->errors, 0);
}

static inline void push_well(struct ends *ends)
{
    ends->config.push = &yuv420p;
    start(ends);
    push_all(ends);
    assert_int_equal(join(ends), SLUICE_STATUS_OK);
    struct sluice_ledger ledger = finish(ends);
    assert_int_equal(ledger.frames_in, FRAMES);
    assert_int_equal(ledger.frames_out, FRAMES);
    assert_int_equal(ends->errors, 0);
}

// ---- lists of hashes ----

struct hashes {
    int count;
    char base[32];
    int64_t pts[MOST];
    char md5[MOST][33];
};

static inline void read_hashes(const char *name, struct hashes *list)
{
    char line[256];
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    list->count = 0;
    while (fgets(line, sizeof line, file)) {
        long long pts;
        sscanf(line, "#time base %31s", list->base);
        if (sscanf(line, "%*d, %lld, %*d, %32s", &pts, list->md5[list->count]) == 2)
            list->pts[list->count++] = pts;
    }
    fclose(file);
}

static inline void same_frames(const struct hashes *list, const struct ends *ends, int output)
{
    assert_int_equal(list->count, ends->taken[output]);
    for (int k = 0; k < list->count; k++)
        assert_string_equal(list->md5[k], ends->md5[output][k]);
}

// The hashes of the raw file's frames behind a chain.
static inline void filter_raw(const char *chain, struct hashes *list)
{
    struct ends ends;
    char output[160];
    begin_config(&ends, chain);
    ends.config.backend = SLUICE_BACKEND_CPU;
    read_raw(&ends);
    snprintf(output, sizeof output, "hash:%s", path("raw.txt"));
    ends.config.output.name = output;
    run_well(&ends);
    read_hashes(path("raw.txt"), list);
    assert_int_equal(list->count, FRAMES);
}

// Setup and teardown of a group.
static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sluice-ends-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static inline int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
