// The sink that is the program's: a callback takes the frames.
#include <assert.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/caller.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/output/sink.h"

_Static_assert((int)SLUICE_PLANES <= AV_NUM_DATA_POINTERS, "an AVFrame has all planes");

struct take_sink {
    struct sink base;
    const struct log *log;
    const struct stop *stop;
    struct sink_taker taker;
    AVRational time_base;
    int64_t shift; // microseconds
    _Atomic int64_t frames;
    atomic_bool failed;
};

static enum status open(struct sink *sink, const struct sink_video *video)
{
    struct take_sink *self = (struct take_sink *)sink;
    self->time_base = video->time_base;
    self->shift = video->shift;
    return STATUS_OK;
}

static struct sluice_frame describe(const struct take_sink *self, const AVFrame *frame)
{
    struct sluice_frame taken = {.size = sizeof taken, .interlaced = frame_is_interlaced(frame)};
    for (int p = 0; p < SLUICE_PLANES; p++) {
        taken.data[p] = frame->data[p];
        taken.stride[p] = frame->linesize[p];
    }
    taken.pts = av_rescale_q(frame->pts, self->time_base, AV_TIME_BASE_Q) - self->shift;
    return taken;
}

// Read a callback's status: END and STOPPED mean that nobody takes frames any more.
static enum status check_answer(struct take_sink *self, enum sluice_status answer)
{
    if (!answer)
        return STATUS_OK;
    if (answer == SLUICE_STATUS_END || answer == SLUICE_STATUS_STOPPED)
        return STATUS_EOF;
    self->failed = true;
    bool ours = answer >= SLUICE_STATUS_FAILED && answer <= SLUICE_STATUS_DEVICE;
    return log_fail(self->log, ours ? (enum status)answer : STATUS_FAILED,
                    "the program did not take frame %lld of %s: %s", (long long)self->frames - 1,
                    sink_take_name, sluice_status_name(answer));
}

static enum status write(struct sink *sink, AVFrame *frame)
{
    struct take_sink *self = (struct take_sink *)sink;
    if (!frame)
        return STATUS_OK;
    if (self->stop && stop_is_late(self->stop))
        return STATUS_STOPPED;
    const struct sluice_format format = caller_format(frame);
    const struct sluice_frame taken = describe(self, frame);
    self->frames++;
    sink->kept++;
    return check_answer(self,
                        self->taker.take(self->taker.opaque, self->taker.output, &format, &taken));
}

static enum status finish(struct sink *sink, bool cut)
{
    (void)sink, (void)cut;
    return STATUS_OK;
}

static int outputs(const struct sink *sink, struct sink_output *list, int most)
{
    const struct take_sink *self = (const struct take_sink *)sink;
    if (most < 1)
        return 0;
    *list = (struct sink_output){.name = sink_take_name,
                                 .container = "take",
                                 .frames = self->frames,
                                 .failed = self->failed};
    return 1;
}

static void destroy(struct sink **sink)
{
    free(*sink);
    *sink = NULL;
}

enum status sink_take_create(const struct sink_taker *taker, const struct log *log,
                             const struct stop *stop, struct sink **sink)
{
    *sink = NULL;
    if (!taker->take)
        return log_fail(
            log, STATUS_USAGE,
            "%s is for programs that take frames from libsluice; sluice itself writes them "
            "raw with -F rawvideo",
            sink_take_name);
    struct take_sink *self = calloc(1, sizeof *self);
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct sink){
        .formats = {.natural = true},
        .container = "take",
        .open = open,
        .write = write,
        .finish = finish,
        .outputs = outputs,
        .destroy = destroy,
    };
    self->log = log;
    self->stop = stop;
    self->taker = *taker;
    *sink = &self->base;
    return STATUS_OK;
}
