#include "pipeline/engine/threads/submit.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "base/meter.h"
#include "base/queue.h"
#include "base/stop.h"
#include "pipeline/engine/filter/change.h"
#include "pipeline/engine/filter/spare.h"
#include "pipeline/engine/threads/decode.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/owner.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/tap.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/report/trace.h"
#include "sluice/sluice.h"

struct submit {
    struct submit_ports ports;
    struct owner owner;
    struct chain chain;
    struct filter *filter;   // NULL: a chain has taken over, and no frame came since
    int64_t submitted;       // frames
    struct backend *backend; // the last filter's; NULL: there was none
    // ---- any thread reads ----
    _Atomic int64_t dropped_late, dropped_stop;
};

enum status submit_create(const struct submit_ports *ports, struct chain *chain,
                          struct submit **submit)
{
    *submit = calloc(1, sizeof **submit);
    if (!*submit)
        return STATUS_MEMORY;
    assert(ports->frames && ports->ring && ports->changes && ports->kind && ports->stop &&
           ports->tap);
    (*submit)->ports = *ports;
    (*submit)->chain = *chain;
    *chain = (struct chain){0};
    return STATUS_OK;
}

void submit_destroy(struct submit **submit)
{
    if (!*submit)
        return;
    filter_destroy(&(*submit)->filter);
    chain_free(&(*submit)->chain);
    free(*submit);
    *submit = NULL;
}

void submit_count(const struct submit *submit, struct sluice_ledger *ledger)
{
    ledger->dropped_late += submit->dropped_late;
    ledger->dropped_stop += submit->dropped_stop;
}

const struct filter *submit_filter(const struct submit *submit)
{
    assert(owner_is_me(&submit->owner));
    return submit->filter;
}

// ---- frames ----

// True if the frame is for another backend than those before, a GPU that is ready now. Frames that were
// decoded ahead of it, on the host where those of now are on the device, are for the one before.
static bool changes_backend(const struct submit *submit, const AVFrame *frame)
{
    const struct decoded_kind *kind = submit->ports.kind;
    const struct backend *now = kind->backend;
    return now && submit->backend && now != submit->backend &&
           (frame->hw_frames_ctx || !kind->device_stream);
}

// The GPU is ready. Where the host has no memory any more for what it takes beside, others of the process
// having claimed that, it is left at once: the CPU goes on, as planned.
static void begin_on_gpu(const struct submit *submit, const struct filter_request *request,
                         const AVFrame *frame)
{
    const struct log silent = {0};
    struct filter_request trial = *request;
    struct backend *gpu = request->backend;
    spare_begin_at(submit->ports.spare, submit->submitted);
    log_print(request->log, LOG_DEBUG, "the GPU is ready: it filters from frame %lld on",
              (long long)submit->submitted);
    trial.log = &silent;
    if (gpu->leave && filter_check(&trial, frame) == STATUS_USAGE)
        gpu->leave(gpu, "there is no memory left for frames of the GPU");
}

// Make the request of a filter for such frames.
static struct filter_request describe_filter(struct submit *submit, const AVFrame *frame)
{
    const struct submit_ports *ports = &submit->ports;
    struct filter_request request = ports->filter;
    bool changes = changes_backend(submit, frame);
    if (!submit->backend || changes)
        submit->backend = ports->kind->backend ? ports->kind->backend : ports->filter.backend;
    assert(!frame->hw_frames_ctx || submit->backend->has_device_memory);
    if (submit->backend != ports->filter.backend) {
        request.backend = submit->backend;
        request.job = ports->later_need;
    }
    request.chain = &submit->chain;
    request.strict = !submit->submitted;
    request.device_stream = ports->kind->device_stream;
    request.software_pixel = (enum AVPixelFormat)ports->kind->software_pixel;
    if (changes)
        begin_on_gpu(submit, &request, frame);
    return request;
}

// Another kind of frame than before: finish those that are being filtered, then begin with a new
// filter.
static enum status change_filter(struct submit *submit, const AVFrame *frame)
{
    const struct submit_ports *ports = &submit->ports;
    enum status status = ring_drain(ports->ring);
    if (status)
        return status;
    struct filter_request request = describe_filter(submit, frame);
    filter_destroy(&submit->filter);
    int64_t begin_ns = meter_now_ns();
    status = filter_create(&request, frame, &submit->filter);
    if (!status)
        status = changes_bind(ports->changes, &request, submit->filter, frame);
    trace_span(ports->trace, TRACE_SUBMIT, "make the filter", begin_ns, meter_now_ns(), -1);
    return status;
}

// Let another chain take over with this frame, if one was asked for: its filter is made anew.
static enum status take_change(struct submit *submit, const AVFrame *frame)
{
    const struct submit_ports *ports = &submit->ports;
    bool taken;
    struct chain chain = {0};
    int64_t pts_us = av_rescale_q(frame->pts, ports->time_base, AV_TIME_BASE_Q);
    enum status status = changes_take(ports->changes, pts_us, &chain, &taken);
    if (!status && taken)
        status = ring_drain(ports->ring);
    if (!status && taken) {
        filter_destroy(&submit->filter);
        chain_free(&submit->chain);
        submit->chain = chain;
        return ports->report_writer ? report_writer_bind(ports->report_writer, &submit->chain)
                                    : STATUS_OK;
    }
    chain_free(&chain);
    return status;
}

// Show a frame that will be filtered to who watches.
static void show(const struct submit_ports *ports, const AVFrame *frame)
{
    const struct tap *tap = ports->tap;
    if (!tap->frame)
        return;
    const int32_t *matrix = display_matrix(ports->stream, frame);
    const struct tap_frame about = {
        .rotation = matrix ? rotation_of_matrix(matrix) : (struct rotation){0},
        .time_base = ports->time_base,
        .pts_us = av_rescale_q(frame->pts, ports->time_base, AV_TIME_BASE_Q),
        .device_stream = frame->hw_frames_ctx ? ports->kind->device_stream : NULL,
        .software_pixel = (enum AVPixelFormat)ports->kind->software_pixel,
    };
    tap->frame(tap->opaque, frame, &about);
}

enum status submit_fill(struct submit *submit, AVFrame **frame, struct slot **slot)
{
    assert(owner_is_me(&submit->owner) && *frame);
    const struct submit_ports *ports = &submit->ports;
    enum status status = take_change(submit, *frame);
    if (!status)
        show(ports, *frame);
    if (!status && (!submit->filter || !filter_accepts(submit->filter, *frame) ||
                    changes_backend(submit, *frame)))
        status = change_filter(submit, *frame);
    if (!status)
        status = ring_claim(ports->ring, slot);
    if (status)
        return status;
    av_frame_move_ref((*slot)->in, *frame);
    av_frame_free(frame);
    (*slot)->filter = submit->filter;
    int64_t begin_ns = meter_now_ns();
    status = filter_submit((*slot)->filter, (*slot)->number, (*slot)->in, (*slot)->out);
    trace_span(ports->trace, TRACE_SUBMIT, "submit", begin_ns, meter_now_ns(), submit->submitted++);
    return status;
}

void submit_publish(struct submit *submit, struct slot *slot, bool reports)
{
    assert(owner_is_me(&submit->owner));
    ring_publish(submit->ports.ring, slot);
    if (reports)
        changes_report(submit->ports.changes);
}

// ---- the thread ----

// Filter the frame, unless it is too late for that or the job was stopped.
static enum status filter_or_drop(struct submit *submit, AVFrame **frame)
{
    const struct submit_ports *ports = &submit->ports;
    if (latency_frame_is_late(ports->latency, *frame, ports->time_base, 0)) {
        submit->dropped_late++;
        return STATUS_OK;
    }
    struct slot *slot;
    enum status status = ports->stop->asked ? STATUS_OK : submit_fill(submit, frame, &slot);
    if (*frame)
        submit->dropped_stop++;
    else if (!status)
        submit_publish(submit, slot, true);
    return status;
}

enum status submit_run(void *submit_)
{
    struct submit *submit = submit_;
    enum status status = STATUS_OK;
    owner_take(&submit->owner);
    while (!status) {
        AVFrame *frame = NULL;
        status = queue_pop(submit->ports.frames, &frame);
        if (!status)
            status = filter_or_drop(submit, &frame);
        av_frame_free(&frame);
    }
    submit->dropped_stop += queue_cancel(submit->ports.frames);
    ring_finish(submit->ports.ring);
    return status;
}

void submit_skip(void *submit)
{
    const struct submit_ports *ports = &((struct submit *)submit)->ports;
    queue_cancel(ports->frames);
    ring_finish(ports->ring);
}
