#define _GNU_SOURCE
#include "page/preview/record.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/meter.h"
#include "base/monitor.h"
#include "base/queue.h"
#include "page/preview/compose.h"
#include "page/preview/preview.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/sink.h"

enum { QUEUED = 16, CLOCK = 90000, NAME = 64, MADE = 256 };

struct record {
    struct preview *preview;
    const struct log *log;
    char *folder;

    // ---- of the present file: set while no thread runs ----
    struct queue *queue; // AVFrame
    char *file;
    pthread_t thread;
    bool started; // and not joined yet

    // ---- the thread's ----
    struct sink *sink;
    AVFormatContext *described;

    // ---- see_picture()'s: the preview's renderer ----
    int64_t last_us, last_ns; // the former picture's timestamp, and when it came
    int64_t ticks;            // where the next one is
    atomic_llong missed;      // frames that the renderer was too slow for

    struct monitor lock;
    // ---- guarded by lock ----
    bool busy; // a start or a stop is under way
    struct record_state state;
    char made[MADE][NAME]; // the last files that are whole
    int64_t count;         // how many there were, ever
};

// ---- construction ----

enum status record_create(const struct record_request *request, const struct log *log,
                          struct record **record)
{
    struct record *made = *record = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->preview = request->preview;
    made->log = log;
    made->folder = strdup(request->folder);
    monitor_init(&made->lock);
    if (!made->folder)
        record_destroy(record);
    return *record ? STATUS_OK : STATUS_MEMORY;
}

// Free what belongs to a file, whose thread has ended or is about to.
static void clear(struct record *record)
{
    if (record->started)
        pthread_join(record->thread, NULL);
    record->started = false;
    queue_destroy(&record->queue);
    free(record->file);
    record->file = NULL;
}

void record_destroy(struct record **record)
{
    if (!*record)
        return;
    record_stop(*record);
    clear(*record);
    monitor_finish(&(*record)->lock);
    free((*record)->folder);
    free(*record);
    *record = NULL;
}

// ---- pictures: the preview's renderer ----

// The time since the picture before, in ticks.
static int64_t step(const struct record *record, int64_t pts_us, int64_t now_ns)
{
    int64_t by_input_us = pts_us - record->last_us;
    int64_t by_clock_us = (now_ns - record->last_ns) / 1000;
    bool jumps = by_input_us <= 0 || by_input_us > by_clock_us + 1000000;
    int64_t us = jumps ? by_clock_us : by_input_us;
    return us < 1000 ? CLOCK / 1000 : us * CLOCK / 1000000;
}

static void see_picture(void *record_, const AVFrame *after, int64_t pts_us)
{
    struct record *record = record_;
    int64_t now_ns = meter_now_ns();
    AVFrame *frame = compose_copy(after); // its memory may be the job's
    bool taken = false;
    if (record->last_ns)
        record->ticks += step(record, pts_us, now_ns);
    record->last_us = pts_us;
    record->last_ns = now_ns;
    if (frame)
        frame->pts = record->ticks;
    if (frame)
        queue_offer(record->queue, &frame, &taken);
    av_frame_free(&frame);
    if (taken)
        return;
    monitor_lock(&record->lock);
    record->state.dropped++;
    monitor_unlock(&record->lock);
}

// ---- the file: a thread of its own ----

static void drop_frame(void *frame_)
{
    AVFrame *frame = frame_;
    av_frame_free(&frame);
}

// Keeps the first error that was logged, for the state.
static void keep_error(void *record_, enum log_level level, const char *sentence)
{
    struct record *record = record_;
    if (level != LOG_ERROR)
        return;
    monitor_lock(&record->lock);
    if (!*record->state.error)
        snprintf(record->state.error, sizeof record->state.error, "%s", sentence);
    monitor_unlock(&record->lock);
    log_print(record->log, LOG_WARNING, "%s", sentence);
}

// The source as the muxer sees it: one stream of video, and nothing else.
static AVFormatContext *describe(const AVFrame *first)
{
    AVFormatContext *format = avformat_alloc_context();
    AVStream *stream = format ? avformat_new_stream(format, NULL) : NULL;
    if (!stream) {
        avformat_free_context(format);
        return NULL;
    }
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = AV_CODEC_ID_RAWVIDEO;
    stream->codecpar->width = first->width;
    stream->codecpar->height = first->height;
    stream->time_base = (AVRational){1, CLOCK};
    return format;
}

static enum status open_file(struct record *record, const AVFrame *first, const struct log *log)
{
    bool x264 = avcodec_find_encoder_by_name("libx264");
    const struct sink_request request = {
        .output = record->file, .crf = x264 ? 18 : 0, .preset = x264 ? "veryfast" : NULL};
    record->described = describe(first);
    if (!record->described)
        return STATUS_MEMORY;
    const struct sink_video video = {.name = "the page",
                                     .from = record->described,
                                     .first = first,
                                     .time_base = {1, CLOCK},
                                     .end = INT64_MAX};
    enum status status = sink_create(&request, 1, log, NULL, &record->sink);
    if (!status)
        status = sink_check(record->sink);
    return status ? status : record->sink->open(record->sink, &video);
}

static enum status write_frame(struct record *record, AVFrame *frame, const struct log *log)
{
    enum status status = record->sink ? STATUS_OK : open_file(record, frame, log);
    if (!status)
        status = record->sink->write(record->sink, frame);
    if (status)
        return status;
    monitor_lock(&record->lock);
    record->state.frames++;
    record->state.seconds = (double)frame->pts / CLOCK;
    monitor_unlock(&record->lock);
    return STATUS_OK;
}

static enum status write_all(struct record *record, const struct log *log, AVFrame **first)
{
    enum status status = STATUS_OK;
    while (!status) {
        AVFrame *frame = NULL;
        status = queue_pop(record->queue, &frame);
        if (!status)
            status = write_frame(record, frame, log);
        if (frame && !*first) // which describes the video, as long as the sink is there
            *first = frame, frame = NULL;
        av_frame_free(&frame);
    }
    return status;
}

static void *record_run(void *record_)
{
    struct record *record = record_;
    const struct log log = {keep_error, record};
    AVFrame *first = NULL;
    enum status status = write_all(record, &log, &first);
    if (status == STATUS_EOF && record->sink) {
        status = record->sink->write(record->sink, NULL);
        if (!status)
            status = record->sink->finish(record->sink, false);
    }
    queue_cancel(record->queue); // what comes before anybody stops it
    sink_destroy(&record->sink);
    avformat_free_context(record->described);
    record->described = NULL;
    av_frame_free(&first);
    preview_watch(record->preview, NULL); // still set where the file failed
    monitor_lock(&record->lock);
    if (!status)
        memcpy(record->made[record->count++ % MADE], record->state.name, NAME);
    record->state.recording = record->state.finishing = false;
    if (status_is_failure(status) && !*record->state.error)
        snprintf(record->state.error, sizeof record->state.error, "the recording failed");
    monitor_unlock(&record->lock);
    return NULL;
}

// ---- start and stop ----

// A name that no file has, by the time: recording-20261122-194501.mp4.
static enum status choose_name(struct record *record, char name[NAME])
{
    time_t now = time(NULL);
    struct tm local;
    struct stat about;
    char stamp[32];
    localtime_r(&now, &local);
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    for (int k = 1; k < 100; k++) {
        snprintf(name, NAME, k == 1 ? "recording-%s.mp4" : "recording-%s-%d.mp4", stamp, k);
        free(record->file);
        if (asprintf(&record->file, "%s/%s", record->folder, name) < 0)
            record->file = NULL;
        if (!record->file || lstat(record->file, &about))
            return record->file ? STATUS_OK : STATUS_MEMORY;
    }
    return STATUS_FAILED;
}

static enum status begin(struct record *record, char name[NAME])
{
    clear(record);
    record->last_ns = record->ticks = 0;
    record->missed = 0;
    enum status status = choose_name(record, name);
    if (!status)
        status = queue_create(QUEUED, 1, drop_frame, &record->queue);
    if (status)
        return status;
    queue_limit(record->queue, budget_frames, budget_of_frame);
    return STATUS_OK;
}

static enum status launch(struct record *record)
{
    record->started = !pthread_create(&record->thread, NULL, record_run, record);
    if (!record->started)
        return STATUS_FAILED;
    preview_watch(record->preview, &(struct preview_watch){see_picture, record, &record->missed});
    return STATUS_OK;
}

// True if a start or a stop may go on now; it is under way then.
static bool enter(struct record *record, bool recording)
{
    monitor_lock(&record->lock);
    bool may = !record->busy && record->state.recording == recording && !record->state.finishing;
    record->busy |= may;
    monitor_unlock(&record->lock);
    return may;
}

enum status record_start(struct record *record, char *why, size_t size)
{
    char name[NAME];
    if (!enter(record, false)) {
        snprintf(why, size, "a recording runs, or is being finished");
        return STATUS_USAGE;
    }
    enum status status = begin(record, name);
    monitor_lock(&record->lock);
    if (!status) {
        record->state = (struct record_state){.recording = true};
        memcpy(record->state.name, name, sizeof name);
    }
    monitor_unlock(&record->lock);
    if (!status)
        status = launch(record);
    monitor_lock(&record->lock);
    record->busy = false;
    if (status)
        record->state.recording = false;
    monitor_unlock(&record->lock);
    if (status)
        snprintf(why, size, "the recording could not be begun");
    return status;
}

void record_stop(struct record *record)
{
    if (!enter(record, true))
        return;
    preview_watch(record->preview, NULL);
    monitor_lock(&record->lock);
    record->state.finishing = record->state.recording; // it may just have ended by itself
    record->state.recording = false;
    monitor_unlock(&record->lock);
    queue_finish(record->queue);
    monitor_lock(&record->lock);
    record->busy = false;
    monitor_unlock(&record->lock);
}

void record_state(struct record *record, struct record_state *state)
{
    monitor_lock(&record->lock);
    *state = record->state;
    state->dropped += record->missed;
    monitor_unlock(&record->lock);
}

bool record_has_made(struct record *record, const char *name)
{
    bool made = false;
    monitor_lock(&record->lock);
    for (int k = 0; k < MADE && k < record->count; k++)
        made |= !strcmp(record->made[k], name);
    monitor_unlock(&record->lock);
    return made;
}
