#include "pipeline/input/seek/cursor.h"

#include <assert.h>
#include <libavcodec/avcodec.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/key_frame.h"
#include "pipeline/input/seek/reel.h"
#include "pipeline/input/source.h"

enum { MAX_SEEN = 1024 };

// A decoded frame.
struct seen {
    AVFrame *frame;
    int64_t at_us, bytes;
};

struct cursor {
    struct cursor_request request;
    struct backend *backend;
    struct decoder *decoder;
    struct packet *ahead; // read already
    // Frames one after another, up to the last that was decoded.
    struct seen seen[MAX_SEEN];
    int count, at;
    int64_t bytes;
    bool has_first; // seen[0] is the first that there is
    bool draining;  // the decoder was told that nothing comes any more
    bool drained;   // ... and has given out all
    // The last key frame that was sent, and the longest group seen so far.
    int64_t key_us, group_us;
};

enum status cursor_create(const struct cursor_request *request, struct cursor **cursor)
{
    assert(request->reel && request->log && request->stop && request->max_pixels > 0);
    *cursor = calloc(1, sizeof **cursor);
    if (!*cursor)
        return STATUS_MEMORY;
    struct cursor *made = *cursor;
    made->request = *request;
    made->key_us = AV_NOPTS_VALUE;
    if (made->request.cache_bytes <= 0)
        made->request.cache_bytes = cursor_cache;
    // The decoder only wants to know of the backend that frames lie in the host's memory.
    enum status status = backend_scalar_create(request->log, &made->backend);
    if (status)
        cursor_destroy(cursor);
    return status;
}

void cursor_destroy(struct cursor **cursor)
{
    if (!*cursor)
        return;
    cursor_clear(*cursor);
    backend_destroy(&(*cursor)->backend);
    free(*cursor);
    *cursor = NULL;
}

// ---- frames that were decoded ----

static void drop_first(struct cursor *cursor)
{
    cursor->bytes -= cursor->seen[0].bytes;
    av_frame_free(&cursor->seen[0].frame);
    cursor->count--;
    memmove(cursor->seen, cursor->seen + 1, (size_t)cursor->count * sizeof *cursor->seen);
    cursor->at -= cursor->at > 0;
    cursor->has_first = false;
}

void cursor_clear(struct cursor *cursor)
{
    while (cursor->count)
        drop_first(cursor);
    packet_destroy(&cursor->ahead);
    cursor->at = 0;
    cursor->draining = cursor->drained = false;
    decoder_destroy(&cursor->decoder);
}

static void add(struct cursor *cursor, AVFrame **frame)
{
    AVRational base = cursor_time_base(cursor);
    int64_t bytes = budget_of_frame(*frame);
    while (cursor->count == MAX_SEEN ||
           (cursor->count > 1 && cursor->bytes + bytes > cursor->request.cache_bytes))
        drop_first(cursor);
    cursor->seen[cursor->count++] =
        (struct seen){.frame = *frame,
                      .at_us = av_rescale_q((*frame)->pts, base, AV_TIME_BASE_Q),
                      .bytes = bytes};
    cursor->bytes += bytes;
    *frame = NULL;
}

static int64_t first_us(const struct cursor *cursor)
{
    return cursor->seen[0].at_us;
}

static int64_t last_us(const struct cursor *cursor)
{
    return cursor->seen[cursor->count - 1].at_us;
}

const AVFrame *cursor_frame(const struct cursor *cursor)
{
    return cursor->count ? cursor->seen[cursor->at].frame : NULL;
}

int64_t cursor_us(const struct cursor *cursor)
{
    return cursor->count ? cursor->seen[cursor->at].at_us : AV_NOPTS_VALUE;
}

AVRational cursor_time_base(const struct cursor *cursor)
{
    return source_video(cursor->request.reel->source)->time_base;
}

// ---- decoding ----

// Notice how long groups are.
static void note_packet(struct cursor *cursor, const struct packet *packet)
{
    if (packet->pts_us == AV_NOPTS_VALUE)
        return;
    if (cursor->key_us != AV_NOPTS_VALUE && packet->pts_us - cursor->key_us > cursor->group_us)
        cursor->group_us = packet->pts_us - cursor->key_us;
    if (packet->av->flags & AV_PKT_FLAG_KEY)
        cursor->key_us = packet->pts_us;
}

static enum status read_packet(struct cursor *cursor, struct packet **packet)
{
    *packet = cursor->ahead;
    cursor->ahead = NULL;
    return *packet ? STATUS_OK : cursor->request.reel->read(cursor->request.reel, packet);
}

// Give the decoder its next packet, or the end. STATUS_EOF: there is neither.
static enum status feed(struct cursor *cursor, bool drain)
{
    struct packet *packet = NULL;
    if (cursor->draining)
        return STATUS_EOF;
    enum status status = read_packet(cursor, &packet);
    if (status == STATUS_EOF && drain) {
        cursor->draining = true;
        return decoder_send(cursor->decoder, NULL);
    }
    if (!status) {
        note_packet(cursor, packet);
        status = decoder_send(cursor->decoder, packet);
    }
    packet_destroy(&packet);
    return status;
}

// True if a frame comes before the key frame that decoding began with: it refers to what was not
// decoded.
static bool is_leading(const struct cursor *cursor, const AVFrame *frame)
{
    int64_t at_us = av_rescale_q(frame->pts, cursor_time_base(cursor), AV_TIME_BASE_Q);
    return !cursor->count && at_us < cursor->request.reel->from_us;
}

static enum status receive(struct cursor *cursor, AVFrame *frame, bool *got)
{
    if (atomic_load(cursor->request.stop))
        return STATUS_STOPPED;
    enum status status = decoder_receive(cursor->decoder, frame, got);
    if (*got && is_leading(cursor, frame)) {
        av_frame_unref(frame);
        *got = false;
        return receive(cursor, frame, got);
    }
    return status;
}

// Decode one frame more. Without `drain` STATUS_EOF leaves in the decoder what packets to come will
// bring out.
static enum status decode(struct cursor *cursor, bool drain)
{
    AVFrame *frame = av_frame_alloc();
    enum status status = frame ? STATUS_OK : STATUS_MEMORY;
    bool got = false;
    while (!status && !got) {
        status = receive(cursor, frame, &got);
        if (!status && !got)
            status = feed(cursor, drain);
    }
    if (got)
        add(cursor, &frame);
    cursor->drained = cursor->draining && status == STATUS_EOF;
    av_frame_free(&frame);
    return status;
}

static enum status look_ahead(struct cursor *cursor)
{
    struct reel *reel = cursor->request.reel;
    packet_destroy(&cursor->ahead);
    enum status status = reel->read(reel, &cursor->ahead);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// Go to where decoding begins for a time.
static enum status rewind_to(struct cursor *cursor, int64_t at_us, bool earlier)
{
    struct reel *reel = cursor->request.reel;
    int opened = reel->opened;
    enum status status = reel->rewind(reel, at_us, earlier);
    if (status && reel->opened != opened)
        cursor_clear(cursor); // the decoder's source is closed
    if (status)
        return status;
    cursor_clear(cursor);
    cursor->key_us = AV_NOPTS_VALUE;
    status = look_ahead(cursor);
    if (status || !cursor->ahead ||
        !key_frame_is_weak(cursor->ahead->av, source_video(reel->source)->codecpar))
        return status;
    status = reel->rewind(reel, at_us, true);
    if (!status)
        return look_ahead(cursor);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status begin(struct cursor *cursor, int64_t at_us, bool earlier)
{
    struct reel *reel = cursor->request.reel;
    enum status status = rewind_to(cursor, at_us, earlier);
    if (status)
        return status;
    struct decoder_request request = {.hwdec = HWDEC_OFF,
                                      .repeatable = cursor->request.repeatable,
                                      .max_pixels = cursor->request.max_pixels,
                                      .frames_held = 1};
    return decoder_create(&request, reel->source, cursor->backend, &cursor->decoder);
}

// ---- going to a time ----

static bool is_first_after(const struct cursor *cursor, int64_t at_us)
{
    return cursor->count && first_us(cursor) > at_us && !cursor->has_first;
}

// True if nothing comes behind the last frame that was decoded.
static bool is_at_end(const struct cursor *cursor)
{
    struct reel *reel = cursor->request.reel;
    return cursor->drained && !reel->has_next(reel);
}

// True if more has come since the decoder was told that nothing would: of the frames that it gave out
// then some may have been missing in between, those whose packets were still to come.
static bool is_overtaken(const struct cursor *cursor)
{
    struct reel *reel = cursor->request.reel;
    return cursor->draining && reel->has_next(reel);
}

// True if the frame is among those that were decoded.
static bool has_seen(const struct cursor *cursor, int64_t at_us)
{
    return cursor->count && !is_overtaken(cursor) &&
           (first_us(cursor) <= at_us || cursor->has_first) &&
           (last_us(cursor) > at_us || is_at_end(cursor));
}

// True if decoding on gets there sooner than beginning at another key frame: the time lies in the
// present group, as far as is known.
static bool is_near(const struct cursor *cursor, int64_t at_us)
{
    const int64_t near_us = AV_TIME_BASE / 2;
    if (!cursor->count || cursor->draining || at_us < first_us(cursor))
        return false;
    int64_t group_end_us =
        cursor->key_us == AV_NOPTS_VALUE ? INT64_MIN : cursor->key_us + cursor->group_us;
    return cursor->request.reel->sequential || at_us < last_us(cursor) + near_us ||
           at_us < group_end_us;
}

// Decode up to the frame behind this time.
static enum status decode_to(struct cursor *cursor, int64_t at_us)
{
    enum status status = STATUS_OK;
    while (!status && (!cursor->count || last_us(cursor) <= at_us))
        status = decode(cursor, true);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// Begin at the key frame before, and further back where its first frame lies behind the time.
static enum status decode_anew(struct cursor *cursor, int64_t at_us)
{
    enum status status = begin(cursor, at_us, false);
    while (!status) {
        status = decode_to(cursor, at_us);
        if (status || (cursor->count && !is_first_after(cursor, at_us)))
            return status;
        status = begin(cursor, at_us, true);
    }
    if (status == STATUS_EOF && cursor->count) {
        cursor->has_first = true;
        return STATUS_OK;
    }
    return status;
}

// Stand on the last frame at or before this time, or else on the first.
static void stand(struct cursor *cursor, int64_t at_us)
{
    cursor->at = cursor->count - 1;
    while (cursor->at > 0 && cursor->seen[cursor->at].at_us > at_us)
        cursor->at--;
}

enum status cursor_go(struct cursor *cursor, int64_t at_us)
{
    enum status status = STATUS_OK;
    if (!has_seen(cursor, at_us))
        status = is_near(cursor, at_us) ? decode_to(cursor, at_us) : decode_anew(cursor, at_us);
    if (!status && !cursor->count)
        status = STATUS_EOF;
    if (status)
        cursor_clear(cursor);
    else
        stand(cursor, at_us);
    return status;
}

// ---- going by number ----

// Make sure that the frame behind this one is decoded.
static enum status see_next(struct cursor *cursor, bool drain)
{
    assert(cursor->count);
    enum status status = STATUS_OK;
    if (is_overtaken(cursor))
        status = cursor_go(cursor, cursor_us(cursor));
    if (status || cursor->at + 1 < cursor->count)
        return status;
    return cursor->drained ? STATUS_EOF : decode(cursor, drain);
}

enum status cursor_peek(struct cursor *cursor, int64_t *at_us)
{
    struct reel_span span;
    cursor->request.reel->measure(cursor->request.reel, &span);
    enum status status = see_next(cursor, !span.more);
    if (!status)
        *at_us = cursor->seen[cursor->at + 1].at_us;
    return status;
}

static enum status step_on(struct cursor *cursor, int frames)
{
    for (int k = 0; k < frames; k++) {
        enum status status = see_next(cursor, true);
        if (status)
            return status == STATUS_EOF ? STATUS_OK : status;
        cursor->at++;
    }
    return STATUS_OK;
}

// Go to the frame before the first that is decoded. STATUS_EOF: there is none.
static enum status step_before(struct cursor *cursor)
{
    int64_t from_us = first_us(cursor);
    if (cursor->has_first)
        return STATUS_EOF;
    enum status status = cursor_go(cursor, from_us - 1);
    return !status && cursor_us(cursor) >= from_us ? STATUS_EOF : status;
}

static enum status step_back(struct cursor *cursor, int frames)
{
    while (frames > cursor->at) {
        frames -= cursor->at + 1;
        cursor->at = 0;
        enum status status = step_before(cursor);
        if (status)
            return status == STATUS_EOF ? STATUS_OK : status;
    }
    cursor->at -= frames;
    return STATUS_OK;
}

enum status cursor_step(struct cursor *cursor, int frames)
{
    assert(cursor->count);
    enum status status = is_overtaken(cursor) ? cursor_go(cursor, cursor_us(cursor)) : STATUS_OK;
    if (status)
        return status;
    return frames < 0 ? step_back(cursor, -frames) : step_on(cursor, frames);
}

// ---- the first frame alone ----

enum status cursor_first_frame(const struct source_request *source, const struct log *log,
                               const atomic_bool *stop, AVFrame **frame)
{
    struct reel *reel;
    struct cursor *cursor = NULL;
    *frame = NULL;
    enum status status = reel_of_file(source, log, stop, &reel);
    struct cursor_request request = {
        .reel = reel, .max_pixels = source->max_pixels, .log = log, .stop = stop};
    if (!status)
        status = cursor_create(&request, &cursor);
    if (!status)
        status = cursor_go(cursor, INT64_MIN / 2);
    int error = status == STATUS_EOF && reel->source ? source_read_error(reel->source) : 0;
    if (error)
        status = log_fail(log, STATUS_INPUT, "%s cannot be read: %s", reel->source->name,
                          strerror(error));
    if (!status)
        *frame = av_frame_clone(cursor_frame(cursor));
    if (!status && !*frame)
        status = STATUS_MEMORY;
    cursor_destroy(&cursor);
    reel_destroy(&reel);
    return status;
}
