#include "pipeline/engine/threads/encode.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "base/meter.h"
#include "base/stop.h"
#include "pipeline/engine/filter/filter.h"
#include "pipeline/engine/filter/multi_gpu.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/owner.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/selection.h"
#include "pipeline/engine/threads/snapshot.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/input/source.h"
#include "pipeline/output/sink.h"
#include "pipeline/part/part.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/report/trace.h"
#include "sluice/sluice.h"

// The engines of a GPU, or the parts of a slot's work on the CPU.
enum engine { ENGINE_UPLOAD, ENGINE_FILTER, ENGINE_DOWNLOAD, ENGINES };

struct encode {
    struct encode_ports ports;
    struct owner owner;
    const struct sink_video *video;
    struct gap *gap[MAX_PICTURES];         // of each; NULL: the source cannot be lost
    int64_t engine_end[MAX_GPUS][ENGINES]; // when each GPU's engines were last busy
    int64_t frame_ns;                      // what a frame takes, at most, of late
    // ---- any thread reads ----
    _Atomic int64_t frames_out, filled, verified, dropped_late, dropped_stop;
    _Atomic int64_t media_us;
    atomic_bool flushing;
    struct meter engine[ENGINES], busy;
};

enum status encode_create(const struct encode_ports *ports, struct encode **encode)
{
    assert(ports->ring && ports->sink && ports->source && ports->selection && ports->stop);
    assert(ports->pictures >= 1 && ports->pictures <= MAX_PICTURES && ports->gpus <= MAX_GPUS);
    *encode = calloc(1, sizeof **encode);
    if (!*encode)
        return STATUS_MEMORY;
    (*encode)->ports = *ports;
    return STATUS_OK;
}

void encode_destroy(struct encode **encode)
{
    if (!*encode)
        return;
    for (int n = 0; n < MAX_PICTURES; n++)
        gap_destroy(&(*encode)->gap[n]);
    free(*encode);
    *encode = NULL;
}

enum status encode_open(struct encode *encode, const struct sink_video *video)
{
    assert(owner_is_me(&encode->owner) && !encode->video);
    const struct encode_ports *ports = &encode->ports;
    enum status status = STATUS_OK;
    encode->video = video;
    for (int n = 0; n < ports->pictures && !status && source_may_be_lost(ports->source); n++)
        status = gap_create(ports->gap_kind, video->time_base, video->frame_rate, &encode->gap[n]);
    return status;
}

void encode_count(const struct encode *encode, struct sluice_ledger *ledger)
{
    ledger->frames_out += encode->frames_out;
    ledger->frames_filled += encode->filled;
    ledger->verified += encode->verified;
    ledger->dropped_late += encode->dropped_late;
    ledger->dropped_stop += encode->dropped_stop;
}

void encode_figures(const struct encode *encode, struct encode_figures *figures)
{
    *figures = (struct encode_figures){
        .frames_out = encode->frames_out,
        .media_us = encode->media_us,
        .flushing = encode->flushing,
        .upload_ns = encode->engine[ENGINE_UPLOAD].busy_ns,
        .filter_ns = encode->engine[ENGINE_FILTER].busy_ns,
        .download_ns = encode->engine[ENGINE_DOWNLOAD].busy_ns,
        .encode_ns = encode->busy.busy_ns,
    };
}

// Count frames that a stopped job's encoder was not given the time for as dropped.
static void drop_unfinished(struct encode *encode)
{
    const struct sink *sink = encode->ports.sink;
    int64_t lost = encode->frames_out - sink->kept - sink->dropped;
    encode->frames_out -= lost;
    encode->dropped_stop += lost;
}

// ---- times ----

// Note a span of an engine's work. Frames come in order, so what it did for the one before is
// known; *end is when that ended.
static void note_span(struct encode *encode, enum engine engine, int64_t *end, int track,
                      const struct work_span *span)
{
    static const char *const names[ENGINES] = {"upload", "filter", "download"};
    if (!span->begin_ns)
        return;
    int64_t begin = span->begin_ns > *end ? span->begin_ns : *end;
    int64_t took = span->end_ns > begin ? span->end_ns - begin : 0;
    int gpus = encode->ports.gpus > 1 ? encode->ports.gpus : 1;
    int threads = encode->ports.threads > 1 ? encode->ports.threads : 1;
    int64_t busy = span->busy_ns ? span->busy_ns / threads : took / gpus;
    if (span->end_ns > *end)
        *end = span->end_ns;
    encode->engine[engine].busy_ns += busy;
    trace_span(encode->ports.trace, track, names[engine], span->begin_ns, span->end_ns,
               encode->frames_out);
}

static void note_times(struct encode *encode, int slot, const struct work_times *times)
{
    const struct work_span *spans[ENGINES] = {&times->upload, &times->compute, &times->download};
    int gpu = encode->ports.gpus ? slot % encode->ports.gpus : 0;
    for (int k = 0; k < ENGINES; k++)
        note_span(encode, (enum engine)k, &encode->engine_end[gpu][k],
                  TRACE_SLOTS + ENGINES * slot + k, spans[k]);
}

// Note how long a frame took. A longer one counts at once, shorter ones bring the estimate down
// slowly: what is late by surprise is late all the same.
static void note_pace(struct encode *encode, int64_t took_ns)
{
    bool longer = took_ns > encode->frame_ns;
    encode->frame_ns += longer ? took_ns - encode->frame_ns : (took_ns - encode->frame_ns) / 32;
}

// ---- frames ----

// Note a frame that the sink has; picture[0] is the chain's result.
static void note_frame(struct encode *encode, AVFrame *const *picture)
{
    const AVFrame *frame = picture[0];
    int64_t end = frame->pts + frame_duration(frame) - encode->video->first->pts;
    int64_t us = av_rescale_q(end, encode->video->time_base, AV_TIME_BASE_Q);
    if (us > encode->media_us)
        encode->media_us = us;
    encode->frames_out++;
    if (encode->ports.latency)
        latency_note_shown(encode->ports.latency);
    snapshot_offer(encode->ports.snapshot, frame);
}

// Write a frame's pictures, or NULL at the end. When nobody watches any more, the job is stopped.
static enum status write_frame(struct encode *encode, AVFrame *const *picture)
{
    const struct encode_ports *ports = &encode->ports;
    struct sink *sink = ports->sink;
    int64_t begin_ns = meter_now_ns();
    sink->tee = picture ? picture + 1 : NULL;
    enum status status =
        ports->part && picture ? part_note_frame(ports->part, picture[0]) : STATUS_OK;
    if (!status)
        status = sink->write(sink, picture ? picture[0] : NULL);
    if (status == STATUS_EOF) {
        stop_ask(ports->stop);
        status = STATUS_STOPPED;
    }
    note_pace(encode, meter_now_ns() - begin_ns);
    int64_t frame = picture ? encode->frames_out : -1;
    if (sink->has_threads)
        trace_span(ports->trace, TRACE_ENCODE, "encode", begin_ns, meter_now_ns(), frame);
    else
        trace_busy(ports->trace, &encode->busy, TRACE_ENCODE, "encode", begin_ns, frame);
    return status;
}

// Write the frame's analysis to the reports.
static enum status write_reports(struct encode *encode, const struct slot *slot)
{
    void *const *analysis = filter_analysis(slot->filter, slot->number);
    if (!encode->ports.report_writer || !analysis)
        return STATUS_OK;
    const struct report_writer_frame frame = {
        .index = encode->frames_out,
        .pts = slot->out[0]->pts,
        .width = slot->out[0]->width,
        .height = slot->out[0]->height,
        .program = filter_plan(slot->filter)->program,
        .analysis = analysis,
    };
    return report_writer_write(encode->ports.report_writer, &frame);
}

// Compare the frame with the reference, if it is one of those that are verified.
static enum status verify(struct encode *encode, const struct slot *slot)
{
    int64_t index = encode->frames_out;
    int every = encode->ports.verify;
    if (!every || index % every || !filter_plan(slot->filter))
        return STATUS_OK;
    enum status status = filter_verify(slot->filter, slot->in, slot->out, index);
    encode->verified += !status;
    return status;
}

// True if a frame is not written: the gap was filled beyond it, or it will be late.
static bool is_left_out(const struct encode *encode, const AVFrame *frame)
{
    const struct encode_ports *ports = &encode->ports;
    return (encode->gap[0] && gap_covers(encode->gap[0], frame)) ||
           latency_frame_is_late(ports->latency, frame, encode->video->time_base, encode->frame_ns);
}

static enum status finish_slot(struct encode *encode, struct slot *slot)
{
    enum status status = verify(encode, slot);
    av_frame_unref(slot->in); // the decoder may have it back while the encoder works
    if (status)
        return status;
    if (is_left_out(encode, slot->out[0])) {
        encode->dropped_late++;
        return STATUS_OK;
    }
    status = write_reports(encode, slot);
    if (!status)
        status = write_frame(encode, slot->out);
    if (!status || status == STATUS_STOPPED) // the encoder has it, even if it may not keep it
        note_frame(encode, slot->out);
    for (int n = 0; n < encode->ports.pictures && !status && encode->gap[0]; n++)
        status = gap_note(encode->gap[n], slot->out[n]);
    return status;
}

// ---- gaps ----

// Make the next pictures of the gap, if they are due: picture[0] is NULL if not. All gaps go alike.
static enum status next_filling(struct encode *encode, int64_t clock_us, AVFrame **picture)
{
    enum status status = STATUS_OK;
    for (int n = 0; n < encode->ports.pictures && !status; n++)
        status = gap_fill(encode->gap[n], clock_us, &picture[n]);
    return status;
}

static enum status write_filling(struct encode *encode, AVFrame *const *picture)
{
    const struct encode_ports *ports = &encode->ports;
    AVRational base = encode->video->time_base;
    if (av_rescale_q(picture[0]->pts, base, AV_TIME_BASE_Q) >= ports->selection->end_us) {
        source_cancel(ports->source);
        return STATUS_OK;
    }
    enum status status = write_frame(encode, picture);
    if (!status || status == STATUS_STOPPED) {
        encode->filled++;
        note_frame(encode, picture);
    }
    return status;
}

// Emit the next gap frame, if one is due while the source is lost. *wrote: it was.
static enum status fill_gap(struct encode *encode, bool *wrote)
{
    const struct encode_ports *ports = &encode->ports;
    struct live_figures live;
    AVFrame *picture[MAX_PICTURES] = {NULL};
    source_figures(ports->source, &live);
    if (live.lost && ports->gap_kind == GAP_SKIP && live.clock_us >= ports->selection->end_us)
        source_cancel(ports->source); // the output ends in the gap
    enum status status = live.lost && !ports->stop->asked && !ports->selection->complete
                             ? next_filling(encode, live.clock_us, picture)
                             : STATUS_OK;
    *wrote = picture[0] && !status;
    if (*wrote)
        status = write_filling(encode, picture);
    for (int n = 0; n < ports->pictures; n++)
        av_frame_free(&picture[n]);
    return status;
}

// ---- the thread ----

// End the job, also while its source is lost.
static void cancel(struct encode *encode, enum status status)
{
    ring_cancel(encode->ports.ring);
    if (status_is_failure(status))
        source_cancel(encode->ports.source);
}

// Take the next filtered frame; meanwhile gaps are filled.
static enum status take_slot(struct encode *encode, enum status *status, struct slot **slot)
{
    const int64_t look_ns = 10 * INT64_C(1000000);
    const int most = 32; // frames in one of these times: 3200 a second
    const struct encode_ports *ports = &encode->ports;
    if (!encode->gap[0] || (ports->gap_kind == GAP_SKIP && ports->selection->end_us == INT64_MAX))
        return ring_take(ports->ring, slot);
    for (;;) {
        enum status taken = ring_take_until(ports->ring, slot, meter_now_ns() + look_ns);
        if (taken || *slot)
            return taken;
        bool more = true;
        for (int k = 0; k < most && more && !*status; k++)
            *status = fill_gap(encode, &more);
        if (*status)
            cancel(encode, *status);
    }
}

enum status encode_run(void *encode_)
{
    struct encode *encode = encode_;
    enum status status = STATUS_OK;
    struct slot *slot;
    assert(encode->video);
    owner_take(&encode->owner);
    while (!take_slot(encode, &status, &slot)) {
        struct work_times times;
        enum status done = filter_wait(slot->filter, slot->number, &times);
        if (!done)
            note_times(encode, slot->number, &times);
        if (status == STATUS_STOPPED)
            encode->dropped_stop++;
        else if (!status)
            status = done ? done : finish_slot(encode, slot);
        if (status)
            cancel(encode, status); // go on waiting: no slot may be freed while it runs
        ring_release(encode->ports.ring, slot);
    }
    encode->flushing = true;
    if (!status)
        status = write_frame(encode, NULL);
    if (status == STATUS_STOPPED)
        drop_unfinished(encode);
    return status;
}

void encode_skip(void *encode)
{
    struct ring *ring = ((struct encode *)encode)->ports.ring;
    struct slot *slot;
    ring_cancel(ring);
    while (!ring_take(ring, &slot)) {
        filter_wait(slot->filter, slot->number, NULL);
        ring_release(ring, slot);
    }
}
