// The tee: every frame goes to several sinks, each in a thread of its own, as the picture that it
// is for: the chain's result, or that of a `tee` stage. Live: a slow sink drops frames; otherwise
// all are waited for. One that fails is left behind.
#include <assert.h>
#include <libavutil/frame.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/monitor.h"
#include "base/queue.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/output/sink.h"

// Live: the queue absorbs short stalls; an output that stays slow drops frames.
enum { FRAMES_WAITING = 4, FRAMES_SKIPPING = 64 };

struct branch {
    struct sink *sink;
    int picture;
    struct queue *frames;
    bool skips;
    bool (*is_late)(void *opaque, const AVFrame *frame); // NULL: never
    void *opaque;
    pthread_t thread;
    bool opened;
    struct meter *meter; // the tee's; NULL: none
    int64_t busy_ns;     // the thread's
    _Atomic int64_t given, dropped;
    atomic_int status; // enum status
    atomic_bool finished;
    struct monitor lock;
    // ---- guarded by lock ----
    bool ended;
};

struct tee_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    struct branch branch[MAX_OUTPUTS];
    int branches;
};

static void drop_frame(void *frame_)
{
    AVFrame *frame = frame_;
    av_frame_free(&frame);
}

// ---- a branch ----

// Write a frame. The tee's meter is that of the busiest thread.
static enum status write_metered(struct branch *branch, AVFrame *frame)
{
    int64_t begin_ns = meter_now_ns();
    enum status status = branch->sink->write(branch->sink, frame);
    branch->busy_ns += meter_now_ns() - begin_ns;
    if (!branch->meter)
        return status;
    int64_t most = branch->meter->busy_ns;
    while (branch->busy_ns > most &&
           !atomic_compare_exchange_weak(&branch->meter->busy_ns, &most, branch->busy_ns))
        ;
    return status;
}

static void *run(void *branch_)
{
    struct branch *branch = branch_;
    enum status status = STATUS_OK;
    AVFrame *frame = NULL;
    while (!status && !queue_pop(branch->frames, &frame)) {
        bool late = branch->is_late && branch->is_late(branch->opaque, frame);
        branch->dropped += late;
        if (!late)
            status = write_metered(branch, frame);
        av_frame_free(&frame);
    }
    if (!status)
        status = write_metered(branch, NULL);
    int none = STATUS_OK; // give() may have failed first
    atomic_compare_exchange_strong(&branch->status, &none, (int)status);
    branch->dropped += queue_cancel(branch->frames);
    monitor_lock(&branch->lock);
    branch->ended = true;
    monitor_notify(&branch->lock);
    monitor_unlock(&branch->lock);
    return NULL;
}

static enum status open_branch(struct branch *branch, const struct sink_video *video,
                               const struct log *log)
{
    branch->skips = video->live;
    branch->is_late = video->is_late;
    branch->opaque = video->opaque;
    struct sink_video mine = *video;
    if (branch->picture)
        mine.first = video->tee[branch->picture - 1];
    branch->sink->pixel = mine.first->format;
    enum status status = branch->sink->open(branch->sink, &mine);
    if (!status)
        status = queue_create(branch->skips ? FRAMES_SKIPPING : FRAMES_WAITING, 1, drop_frame,
                              &branch->frames);
    if (status)
        return status;
    queue_limit(branch->frames, budget_frames, budget_of_frame);
    branch->opened = !pthread_create(&branch->thread, NULL, run, branch);
    return branch->opened ? STATUS_OK
                          : log_fail(log, STATUS_FAILED, "a thread could not be started");
}

// Give a branch a frame. After a failure or the end: its status.
static enum status give(struct branch *branch, const AVFrame *frame)
{
    bool taken = true;
    branch->given++;
    if (branch->status)
        return (enum status)branch->status;
    AVFrame *copy = av_frame_clone(frame);
    if (!copy) { // the other branches go on, but this one is not whole
        branch->status = STATUS_MEMORY;
        queue_close(branch->frames);
        return STATUS_MEMORY;
    }
    enum status status = branch->skips ? queue_offer(branch->frames, &copy, &taken)
                                       : queue_push(branch->frames, &copy);
    branch->dropped += !taken;
    av_frame_free(&copy);
    if (status != STATUS_EOF)
        return status;
    return branch->status ? (enum status)branch->status : STATUS_STOPPED;
}

// Wait for a branch's thread, but not for an encoder when no time is left. A sink without cancel()
// ends by itself then, and its file must not go meanwhile.
static void await_branch(struct branch *branch, const struct stop *stop)
{
    bool may_detach = stop && branch->sink->cancel;
    const int64_t look_ns = 20 * INT64_C(1000000);
    monitor_lock(&branch->lock);
    while (!branch->ended && !(may_detach && stop_is_late(stop)))
        monitor_wait_until(&branch->lock, meter_now_ns() + look_ns);
    monitor_unlock(&branch->lock);
}

static void destroy_branch(struct branch *branch)
{
    if (branch->opened) {
        queue_close(branch->frames);
        if (branch->sink->cancel)
            branch->sink->cancel(branch->sink);
        pthread_join(branch->thread, NULL);
    }
    sink_destroy(&branch->sink);
    queue_destroy(&branch->frames);
    monitor_finish(&branch->lock);
}

// ---- the sink ----

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct tee_sink *self = (struct tee_sink *)sink;
    struct sink_video mine = *video;
    mine.has_siblings = true;
    for (int k = 0; k < self->branches; k++) {
        self->branch[k].meter = sink->meter;
        enum status status = open_branch(&self->branch[k], &mine, self->log);
        if (!status)
            status = passthrough_join(&sink->passthrough, &self->branch[k].sink->passthrough);
        if (status)
            return status;
        mine.watch = (struct mux_thread_watch){0};
        mine.silent |= self->branch[k].sink->encoder != NULL;
    }
    self->base.pixel = self->branch[0].sink->pixel;
    return STATUS_OK;
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    struct tee_sink *self = (struct tee_sink *)sink;
    enum status first = STATUS_OK;
    int taken = 0;
    for (int k = 0; frame && k < self->branches; k++) {
        int picture = self->branch[k].picture;
        enum status status = give(&self->branch[k], picture ? sink->tee[picture - 1] : frame);
        taken += !status;
        first = first ? first : status;
    }
    self->base.kept += taken > 0;
    return taken ? STATUS_OK : first;
}

static enum status write_packet(struct sink *sink, const struct packet *packet)
{
    struct tee_sink *self = (struct tee_sink *)sink;
    for (int k = 0; k < self->branches; k++) {
        struct sink *one = self->branch[k].sink;
        if (passthrough_accepts(&one->passthrough, packet->av->stream_index))
            one->write_packet(one, packet); // its failure shows where it takes frames
    }
    return STATUS_OK;
}

static void cancel(struct sink *sink)
{
    struct tee_sink *self = (struct tee_sink *)sink;
    for (int k = 0; k < self->branches; k++) {
        struct sink *one = self->branch[k].sink;
        queue_close(self->branch[k].frames);
        if (one->cancel)
            one->cancel(one);
    }
}

static enum status finish(struct sink *sink, bool cut)
{
    struct tee_sink *self = (struct tee_sink *)sink;
    enum status status = STATUS_OK;
    int absent = 0;
    for (int k = 0; k < self->branches; k++)
        queue_close(self->branch[k].frames);
    for (int k = 0; k < self->branches; k++) {
        struct branch *branch = &self->branch[k];
        await_branch(branch, self->stop);
        enum status one = (enum status)branch->status;
        if (!status_is_failure(one))
            one = branch->sink->finish(branch->sink, cut);
        branch->finished = true;
        absent += branch->sink->absent;
        status = status_join(status, status_is_failure(one) ? one : STATUS_OK);
    }
    sink->absent = absent == self->branches;
    return status;
}

static int64_t pending(const struct sink *sink)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    int64_t most = 0;
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        const struct sink *one = branch->sink;
        int64_t frames = branch->given - branch->dropped - one->kept - one->dropped;
        if (one->accepts_streams && !branch->status && frames > most)
            most = frames;
    }
    return most;
}

// Count as dropped what an output has neither written nor left out by the end: it is still in its
// encoder.
static void count_missing(const struct branch *branch, struct sink_output *output)
{
    int64_t missing = branch->given - output->frames - output->dropped - branch->sink->unwanted;
    if (branch->finished && missing > 0)
        output->dropped += missing;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    int count = 0;
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        int more = branch->sink->outputs(branch->sink, list + count, most - count);
        for (int n = count; n < count + more; n++) {
            list[n].tee = branch->picture > 0;
            list[n].dropped += branch->dropped + branch->sink->dropped;
            list[n].failed |= status_is_failure((enum status)branch->status);
            count_missing(branch, &list[n]);
        }
        count += more;
    }
    return count;
}

static void print_steps(const struct sink *sink, const AVFrame *picture, FILE *to)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        if (branch->sink->print_steps)
            branch->sink->print_steps(branch->sink, picture + branch->picture, to);
    }
}

static int64_t memory(const struct sink *sink, int64_t frame_bytes)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    int64_t bytes = 0;
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        int64_t all = FRAMES_WAITING * frame_bytes;
        bytes += branch->skips || all > budget_frames ? budget_frames + frame_bytes : all;
        bytes += sink_memory(branch->sink, frame_bytes);
    }
    return bytes;
}

static int64_t estimate(const struct sink *sink, const int64_t *frame_bytes, bool live)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    int64_t bytes = 0;
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        const int64_t *its = &frame_bytes[branch->picture];
        bytes += budget_of_queue(live ? FRAMES_SKIPPING : FRAMES_WAITING, budget_frames, *its) +
                 sink_estimate(branch->sink, its, live);
    }
    return bytes;
}

static enum status check(const struct sink *sink)
{
    const struct tee_sink *self = (const struct tee_sink *)sink;
    enum status status = STATUS_OK;
    for (int k = 0; k < self->branches && !status; k++)
        status = sink_check(self->branch[k].sink);
    return status;
}

static void destroy(struct sink **sink)
{
    struct tee_sink *self = (struct tee_sink *)*sink;
    for (int k = 0; k < self->branches; k++)
        destroy_branch(&self->branch[k]);
    free(self);
    *sink = NULL;
}

// ---- creation ----

static void init_branch(struct branch *branch, struct sink *sink, int picture)
{
    branch->sink = sink;
    branch->picture = picture;
    monitor_init(&branch->lock);
}

// The formats of a picture: one branch decides for all that get it, and the others convert. First a
// branch that was asked for a format; else one that is kept; else one that is watched; `natural`
// where nobody gets the picture, or all take everything.
static const struct sink_formats *who_decides(const struct tee_sink *self, int picture)
{
    static const struct sink_formats natural = {.natural = true};
    const struct sink_formats *any = &natural, *watched = NULL, *asked = NULL;
    for (int k = self->branches - 1; k >= 0; k--) {
        const struct sink *one = self->branch[k].sink;
        if (self->branch[k].picture != picture)
            continue;
        any = &one->formats;
        if (one->formats.candidates && one->is_live)
            watched = &one->formats;
        if (sink_is_asked(&one->formats))
            asked = &one->formats;
    }
    if (asked)
        return asked;
    for (int k = 0; k < self->branches; k++) {
        const struct sink *one = self->branch[k].sink;
        if (self->branch[k].picture == picture && one->formats.candidates && !one->is_live)
            return &one->formats;
    }
    return watched ? watched : any;
}

// Check that sinks without an encoder, which cannot convert, get the format that they were asked
// for.
static enum status check_asked(const struct tee_sink *self)
{
    for (int k = 0; k < self->branches; k++) {
        const struct branch *branch = &self->branch[k];
        const struct sink_formats *mine = &branch->sink->formats;
        const struct sink_formats *decided = who_decides(self, branch->picture);
        bool same = mine->asked_range == decided->asked_range &&
                    (!mine->asked || (decided->asked && *mine->candidates == *decided->candidates));
        if (!branch->sink->encoder && sink_is_asked(mine) && !same)
            return log_fail(
                self->log, STATUS_USAGE,
                "outputs of one picture have one --pix-fmt and --range where one of them "
                "is hash:, take: or null:; give all the same, or filter twice");
    }
    return STATUS_OK;
}

// Take the branches' properties together.
static void combine(struct tee_sink *self)
{
    struct sink *base = &self->base;
    base->formats = *who_decides(self, 0);
    base->encoder = self->branch[0].sink->encoder;
    base->container = self->branch[0].sink->container;
    base->one_frame = base->has_threads = true;
    for (int k = 0; k < self->branches; k++) {
        const struct sink *one = self->branch[k].sink;
        int picture = self->branch[k].picture;
        if (picture)
            base->tee_formats[picture - 1] = *who_decides(self, picture);
        base->one_frame &= one->one_frame;
        base->accepts_streams |= one->accepts_streams;
        base->is_live |= one->is_live;
    }
}

enum status sink_tee_create(struct sink **sinks, const int *picture, int count,
                            const struct log *log, const struct stop *stop, struct sink **sink)
{
    assert(count > 1 && count <= MAX_OUTPUTS);
    struct tee_sink *self = calloc(1, sizeof *self);
    *sink = self ? &self->base : NULL;
    for (int k = 0; k < count; k++) {
        if (self)
            init_branch(&self->branch[self->branches++], sinks[k], picture[k]);
        else
            sink_destroy(&sinks[k]);
        sinks[k] = NULL;
    }
    if (!self)
        return STATUS_MEMORY;
    self->log = log;
    self->stop = stop;
    self->base = (struct sink){
        .check = check,
        .open = open,
        .write = write,
        .write_packet = write_packet,
        .cancel = cancel,
        .finish = finish,
        .print_steps = print_steps,
        .pending = pending,
        .outputs = outputs,
        .memory = memory,
        .estimate = estimate,
        .destroy = destroy,
    };
    combine(self);
    enum status status = check_asked(self);
    if (status)
        destroy(sink);
    return status;
}
