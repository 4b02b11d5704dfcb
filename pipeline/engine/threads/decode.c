#include "pipeline/engine/threads/decode.h"

#include <assert.h>
#include <libavutil/mathematics.h>
#include <stdlib.h>

#include "base/meter.h"
#include "base/queue.h"
#include "base/stop.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/owner.h"
#include "pipeline/engine/threads/selection.h"
#include "pipeline/ffmpeg/compat.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/part_span.h"
#include "pipeline/input/source.h"
#include "pipeline/part/part.h"
#include "pipeline/report/trace.h"
#include "sluice/sluice.h"

struct decode {
    struct decode_ports ports;
    struct owner owner;
    AVRational time_base; // of frames
    bool seen;            // a frame was decoded
    int64_t last_us;      // its time
    bool falls;           // ... which is not behind that of the frame before
    bool catches_up;      // packets are left out up to a key frame that is fresh
    int64_t behind_ns;    // when decoding was last fast enough
    // ---- any thread reads ----
    _Atomic int64_t frames_in, dropped_range, dropped_stop, packets_skipped;
    struct meter busy;
};

enum status decode_create(const struct decode_ports *ports, struct decode **decode)
{
    *decode = calloc(1, sizeof **decode);
    if (!*decode)
        return STATUS_MEMORY;
    assert(ports->decoder && ports->packets && ports->frames && ports->selection && ports->stop);
    (*decode)->ports = *ports;
    (*decode)->time_base = source_video(ports->source)->time_base;
    (*decode)->last_us = AV_NOPTS_VALUE;
    return STATUS_OK;
}

void decode_destroy(struct decode **decode)
{
    free(*decode);
    *decode = NULL;
}

void decode_count(const struct decode *decode, struct sluice_ledger *ledger)
{
    ledger->frames_in += decode->frames_in;
    ledger->dropped_range += decode->dropped_range;
    ledger->dropped_stop += decode->dropped_stop;
    ledger->packets_skipped += decode->packets_skipped;
}

bool decode_saw_frames(const struct decode *decode)
{
    return decode->seen;
}

int64_t decode_busy_ns(const struct decode *decode)
{
    return decode->busy.busy_ns;
}

// ---- frames ----

// The output has all its frames: note where it ends, so that other streams end there too.
static void complete(struct decode *decode, int64_t end_us)
{
    struct selection *selection = decode->ports.selection;
    selection->last_end_us = end_us < selection->end_us ? end_us : selection->end_us;
    selection->complete = true;
    if (selection->video_only) // nothing else is waited for
        source_cancel(decode->ports.source);
    else
        source_end_at_loss(decode->ports.source);
}

// True if the frame lies before what is wanted. STATUS_EOF if it lies behind.
static enum status check_range(struct decode *decode, const AVFrame *frame, bool *before)
{
    const struct decode_ports *ports = &decode->ports;
    const struct selection *selection = ports->selection;
    int64_t at = av_rescale_q(frame->pts, decode->time_base, AV_TIME_BASE_Q);
    *before = selection->begin_us != AV_NOPTS_VALUE && at < selection->begin_us;
    if (*before || at < selection->end_us)
        return STATUS_OK;
    if (selection->all_read) {
        *before = true;
        return STATUS_OK;
    }
    complete(decode, selection->end_us);
    return STATUS_EOF;
}

// True if a part's frames are not what those of a whole file are: there is damage, they do not rise
// in time, or the frame at a cut is not the one that the cut was made for.
static bool is_doubtful(struct decode *decode, const AVFrame *frame, bool wanted, bool behind)
{
    const struct decode_ports *ports = &decode->ports;
    const struct part_span *span = ports->span;
    int64_t at = av_rescale_q(frame->pts, decode->time_base, AV_TIME_BASE_Q);
    bool first = wanted && !decode->frames_in && span->begin_us != INT64_MIN && span->begins_at_key;
    return decoder_damaged_frames(ports->decoder) || decoder_damaged_packets(ports->decoder) ||
           (decode->falls && (wanted || behind)) || (first && at != span->begin_us) ||
           (behind && !decode->frames_in && span->begins_at_key && span->begin_us != INT64_MIN) ||
           (behind && span->ends_at_key && at != span->end_us);
}

// Of a part: note the frames at its cuts. STATUS_AGAIN where it is in doubt whether they are those
// that the whole would have.
static enum status note_part(struct decode *decode, const AVFrame *frame, bool wanted)
{
    const struct decode_ports *ports = &decode->ports;
    int64_t at = av_rescale_q(frame->pts, decode->time_base, AV_TIME_BASE_Q);
    bool behind = at >= ports->selection->end_us;
    decode->falls = decode->last_us != AV_NOPTS_VALUE && at <= decode->last_us;
    decode->last_us = at;
    if (!ports->selection->all_read && is_doubtful(decode, frame, wanted, behind))
        return STATUS_AGAIN;
    if (ports->part && decode->falls)
        part_note_disorder(ports->part);
    if (!ports->part || !(wanted || behind))
        return STATUS_OK;
    return part_note_edge(ports->part, behind ? PART_NEXT : PART_FIRST, frame);
}

// Receive into `frame`, and count it. *got: there is one; *before: it lies before what is wanted.
static enum status receive(struct decode *decode, AVFrame *frame, bool *got, bool *before)
{
    const struct decode_ports *ports = &decode->ports;
    int64_t begin_ns = meter_now_ns();
    enum status status = decoder_receive(ports->decoder, frame, got);
    trace_busy(ports->trace, &decode->busy, TRACE_DECODE, "decode", begin_ns,
               *got ? decode->frames_in : -1);
    if (!*got)
        return status;
    assert(frame->pts != AV_NOPTS_VALUE); // decoder_receive() says so
    ports->kind->device_stream = decoder_stream(ports->decoder);
    ports->kind->software_pixel = decoder_pixel(ports->decoder);
    ports->kind->backend = decoder_backend(ports->decoder); // last: see submit.c
    decode->seen = true;
    status = check_range(decode, frame, before);
    bool outside = *before || status;
    if (ports->selection->part) {
        enum status noted = note_part(decode, frame, !outside);
        if (noted || outside)
            return noted ? noted : status; // some other part's
    }
    decode->frames_in++;
    decode->dropped_range += outside;
    return status;
}

enum status decode_next(struct decode *decode, AVFrame **frame)
{
    assert(owner_is_me(&decode->owner));
    int64_t limit = decode->ports.selection->frame_limit;
    *frame = NULL;
    if (decode->frames_in - decode->dropped_range >= limit)
        return STATUS_EOF;
    AVFrame *next = av_frame_alloc();
    if (!next)
        return STATUS_MEMORY;
    for (;;) {
        bool got = false, before = false;
        enum status status = receive(decode, next, &got, &before);
        if (status || !got) {
            av_frame_free(&next);
            return status;
        }
        if (!before)
            break;
        av_frame_unref(next);
    }
    if (decode->frames_in - decode->dropped_range == limit)
        complete(decode,
                 av_rescale_q(next->pts + frame_duration(next), decode->time_base, AV_TIME_BASE_Q));
    *frame = next;
    return STATUS_OK;
}

enum status decode_send(struct decode *decode, const struct packet *packet)
{
    assert(owner_is_me(&decode->owner));
    int64_t begin_ns = meter_now_ns();
    enum status status = decoder_send(decode->ports.decoder, packet);
    trace_busy(decode->ports.trace, &decode->busy, TRACE_DECODE, "decode", begin_ns, -1);
    return status;
}

// ---- the thread ----

// Hand on every frame that the decoder has by now.
static enum status deliver(struct decode *decode)
{
    for (;;) {
        AVFrame *frame;
        enum status status = decode_next(decode, &frame);
        if (status || !frame)
            return status;
        status = queue_push(decode->ports.frames, &frame);
        if (status && frame) // nobody takes frames any more
            decode->dropped_stop++;
        av_frame_free(&frame);
        if (status)
            return status;
    }
}

static enum status send_and_deliver(struct decode *decode, const struct packet *packet)
{
    enum status status = decode_send(decode, packet);
    return status ? status : deliver(decode);
}

// True if decoding has been too slow for long: what there is to decode is too old, and whoever
// takes the frames waits for them. Behind an encoder that is slow they are old as well, but not for
// long.
static bool falls_behind(struct decode *decode, int64_t age_ns)
{
    const int64_t patience_ns = 1000 * INT64_C(1000000);
    int64_t now_ns = meter_now_ns();
    if (age_ns < latency_limit_ns(decode->ports.latency) || queue_count(decode->ports.frames))
        decode->behind_ns = now_ns;
    return now_ns - decode->behind_ns > patience_ns;
}

// Every frame would be late then, and the picture frozen: packets are skipped, up to a key frame
// that has just come.
static bool skips(struct decode *decode, const struct packet *packet)
{
    struct latency *latency = decode->ports.latency;
    if (!latency || !latency_limit_ns(latency) || packet->restart ||
        packet->pts_us == AV_NOPTS_VALUE)
        return decode->catches_up = false;
    int64_t age_ns = latency_age_ns(latency, packet->pts_us);
    if (falls_behind(decode, age_ns))
        decode->catches_up = true;
    if (packet->av->flags & AV_PKT_FLAG_KEY && age_ns < latency_limit_ns(latency) / 2)
        decode->catches_up = false;
    decode->packets_skipped += decode->catches_up;
    return decode->catches_up;
}

enum status decode_run(void *decode_)
{
    struct decode *decode = decode_;
    const struct decode_ports *ports = &decode->ports;
    owner_take(&decode->owner);
    decode->behind_ns = meter_now_ns();
    enum status status = deliver(decode); // those behind the first, which is filtered already
    while (!status && !ports->stop->asked) {
        struct packet *packet = NULL;
        status = queue_pop(ports->packets, &packet);
        if (status == STATUS_EOF && !ports->stop->asked) {
            status = send_and_deliver(decode, NULL);
            break;
        }
        if (!status)
            status = skips(decode, packet) ? deliver(decode) : send_and_deliver(decode, packet);
        packet_destroy(&packet);
    }
    queue_cancel(ports->packets);
    queue_finish(ports->frames);
    return status;
}

void decode_skip(void *decode)
{
    const struct decode_ports *ports = &((struct decode *)decode)->ports;
    queue_cancel(ports->packets);
    queue_finish(ports->frames);
}
