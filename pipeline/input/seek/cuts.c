#include "pipeline/input/seek/cuts.h"

#include <assert.h>
#include <string.h>

#include "pipeline/ffmpeg/frame_hash.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/key_frame.h"
#include "pipeline/input/seek/reel.h"
#include "pipeline/input/source.h"

struct search {
    const struct cuts_request *request;
    struct reel *reel;
    int64_t begin_us, length_us; // of the file
    bool sequential;             // times are not sought
    bool doubtful; // something was refused: damage of the file's, or a failure of this search's
};

// A cut, and whether decoding can begin near it.
struct cut {
    int64_t us;
    bool at_key;
};

// ---- a file whose times cannot be trusted ----

static bool may_jump(const struct source *source)
{
    return source->format->iformat->flags & AVFMT_TS_DISCONT;
}

// The length of so many frames.
static int64_t length_of(const struct source *source, int64_t frames)
{
    AVRational rate = source_video(source)->avg_frame_rate;
    if (rate.num <= 0 || rate.den <= 0)
        rate = (AVRational){25, 1};
    return av_rescale_q(frames, av_inv_q(rate), AV_TIME_BASE_Q);
}

// Check that no read failed: what follows would be missing, and the cuts lie elsewhere.
static enum status check_reads(const struct cuts_request *request, const struct source *source)
{
    int error = source_read_error(source);
    return error
               ? log_fail(request->log, STATUS_INPUT, "%s cannot be read where it is to be cut: %s",
                          source->name, strerror(error))
               : STATUS_OK;
}

// Read all packets, for the length of the video, and whether its clock jumps.
static enum status survey(struct search *search)
{
    struct source *source;
    struct packet *packet = NULL;
    int64_t frames = 0, end_us = search->begin_us;
    const struct cuts_request *request = search->request;
    enum status status = source_open(request->source, request->log, request->stop, &source);
    if (status)
        return status;
    while (!(status = source_read(source, &packet))) {
        bool video = packet->av->stream_index == source->video;
        frames += video;
        if (video && packet->pts_us != AV_NOPTS_VALUE && packet->pts_us > end_us)
            end_us = packet->pts_us;
        packet_destroy(&packet);
    }
    search->sequential |= source->clock.offset_us != 0;
    search->length_us =
        end_us > search->begin_us ? end_us - search->begin_us : length_of(source, frames);
    if (status == STATUS_EOF)
        status = check_reads(request, source);
    search->doubtful |= source->broken;
    source_close(&source);
    return status;
}

static enum status begin_search(const struct cuts_request *request, struct search *search)
{
    struct reel_span span;
    *search = (struct search){.request = request};
    enum status status = reel_of_file(request->source, request->log, request->stop, &search->reel);
    if (status)
        return status;
    struct reel *reel = search->reel;
    reel->measure(reel, &span);
    search->begin_us = span.begin_us;
    search->length_us = span.end_us - span.begin_us;
    search->sequential = reel->sequential;
    if (reel->sequential || may_jump(reel->source) || search->length_us <= 0)
        return survey(search);
    return STATUS_OK;
}

// ---- one cut ----

static enum status receive_all(struct decoder *decoder)
{
    AVFrame *frame = av_frame_alloc();
    enum status status = frame ? STATUS_OK : STATUS_MEMORY;
    bool got = true;
    while (!status && got) {
        status = decoder_receive(decoder, frame, &got);
        if (got)
            av_frame_unref(frame);
    }
    av_frame_free(&frame);
    return status == STATUS_EOF ? STATUS_OK : status;
}

// A decoder that makes the same frames in every run. Both are destroyed by the caller in any case.
static enum status create_decoder(const struct search *search, struct backend **backend,
                                  struct decoder **decoder)
{
    static const struct log silence;
    struct decoder_request request = {.hwdec = HWDEC_OFF,
                                      .repeatable = true,
                                      .max_pixels = search->request->max_pixels,
                                      .frames_held = 1};
    enum status status = backend_scalar_create(&silence, backend);
    return status ? status : decoder_create(&request, search->reel->source, *backend, decoder);
}

// Decode a key frame by itself: *whole says whether that went without an error.
static enum status try_key(struct search *search, const struct packet *packet, bool *whole)
{
    struct backend *backend = NULL;
    struct decoder *decoder = NULL;
    enum status status = create_decoder(search, &backend, &decoder);
    if (!status)
        status = decoder_send(decoder, packet);
    if (!status)
        status = decoder_send(decoder, NULL);
    if (!status)
        status = receive_all(decoder);
    *whole = !status && !decoder_damaged_packets(decoder) && !decoder_damaged_frames(decoder);
    search->doubtful |= !*whole;
    decoder_destroy(&decoder);
    backend_destroy(&backend);
    return status;
}

// True if a part may begin at this packet, which lies at or behind the time that is wanted.
static enum status is_cut(struct search *search, const struct packet *packet, bool *cut)
{
    const AVPacket *av = packet->av;
    *cut = false;
    if (!(av->flags & AV_PKT_FLAG_KEY) || av->flags & (AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD))
        return STATUS_OK;
    if (!key_frame_is_weak(av, source_video(search->reel->source)->codecpar))
        return try_key(search, packet, cut);
    *cut = true; // it is decoded with the group before it
    return STATUS_OK;
}

// Find the first key frame at or behind a time.
static enum status find_key(struct search *search, int64_t at_us, struct cut *cut)
{
    struct reel *reel = search->reel;
    struct packet *packet = NULL;
    bool found = false;
    enum status status = reel->rewind(reel, at_us, false);
    while (!status && !found) {
        status = reel->read(reel, &packet);
        if (status)
            break;
        if (packet->pts_us == AV_NOPTS_VALUE) {
            packet_destroy(&packet);
            *cut = (struct cut){at_us, false};
            return STATUS_OK;
        }
        if (packet->pts_us >= at_us)
            status = is_cut(search, packet, &found);
        *cut = (struct cut){packet->pts_us, true};
        packet_destroy(&packet);
    }
    if (status == STATUS_EOF)
        *cut = (struct cut){INT64_MAX, true};
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status find_cut(struct search *search, int number, struct cut *cut)
{
    int parts = search->request->parts;
    *cut = (struct cut){number ? INT64_MAX : INT64_MIN, true};
    if (number == 0 || number == parts)
        return STATUS_OK;
    int64_t at_us = search->begin_us + av_rescale(search->length_us, number, parts);
    if (!search->sequential)
        return find_key(search, at_us, cut);
    *cut = (struct cut){at_us, false};
    return STATUS_OK;
}

// ---- where decoding begins ----

enum { COMPARED = 8 }; // frames behind a cut

// The first frames behind a cut, as they are when decoding begins at some place before.
struct glimpse {
    int count;
    char hash[COMPARED][FRAME_HASH_TEXT];
};

static enum status glimpse_frames(struct decoder *decoder, const struct search *search,
                                  int64_t cut_us, AVFrame *frame, struct glimpse *glimpse)
{
    AVRational base = source_video(search->reel->source)->time_base;
    bool got = true;
    enum status status = STATUS_OK;
    while (!status && got && glimpse->count < COMPARED) {
        status = decoder_receive(decoder, frame, &got);
        if (!got || status)
            break;
        if (av_rescale_q(frame->pts, base, AV_TIME_BASE_Q) >= cut_us)
            status = frame_hash(frame, glimpse->hash[glimpse->count++]);
        av_frame_unref(frame);
    }
    return status;
}

// Decode from where the reel stands.
static enum status decode_glimpse(struct search *search, int64_t cut_us, struct decoder *decoder,
                                  struct glimpse *glimpse)
{
    AVFrame *frame = av_frame_alloc();
    struct packet *packet = NULL;
    enum status status = frame ? STATUS_OK : STATUS_MEMORY;
    *glimpse = (struct glimpse){0};
    while (!status && glimpse->count < COMPARED) {
        status = search->reel->read(search->reel, &packet);
        bool ended = status == STATUS_EOF;
        if (!status || ended)
            status = decoder_send(decoder, packet);
        packet_destroy(&packet);
        if (!status)
            status = glimpse_frames(decoder, search, cut_us, frame, glimpse);
        if (ended)
            break;
    }
    av_frame_free(&frame);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status take_glimpse(struct search *search, int64_t cut_us, struct glimpse *glimpse)
{
    struct backend *backend = NULL;
    struct decoder *decoder = NULL;
    enum status status = create_decoder(search, &backend, &decoder);
    if (!status)
        status = decode_glimpse(search, cut_us, decoder, glimpse);
    decoder_destroy(&decoder);
    backend_destroy(&backend);
    return status;
}

// Begin so many groups before a weak key frame that one more makes no difference any more.
static enum status settle(struct search *search, int64_t cut_us, int64_t *seek_us)
{
    struct reel *reel = search->reel;
    struct glimpse before = {0}, now;
    for (;;) {
        enum status status = reel->rewind(reel, cut_us, true);
        if (status == STATUS_EOF) // it begins at the beginning
            return STATUS_OK;
        if (!status)
            *seek_us = reel->seek_us;
        if (!status)
            status = take_glimpse(search, cut_us, &now);
        if (status || (before.count && !memcmp(&before, &now, sizeof now)))
            return status;
        before = now;
    }
}

// Find where to seek so that all frames from the cut on come as if everything had been decoded.
static enum status find_seek(struct search *search, const struct cut *cut, int64_t *seek_us)
{
    struct reel *reel = search->reel;
    struct packet *first = NULL;
    *seek_us = INT64_MIN;
    if (!cut->at_key || cut->us == INT64_MIN || cut->us == INT64_MAX)
        return STATUS_OK;
    enum status status = reel->rewind(reel, cut->us, false);
    if (!status)
        status = reel->read(reel, &first);
    if (!status)
        *seek_us = reel->seek_us;
    if (!status && key_frame_is_weak(first->av, source_video(reel->source)->codecpar))
        status = settle(search, cut->us, seek_us);
    packet_destroy(&first);
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status find_span(const struct cuts_request *request, struct part_span *span,
                             bool *doubtful)
{
    struct search search;
    struct cut begin = {0}, end = {0};
    enum status status = begin_search(request, &search);
    if (!status)
        status = find_cut(&search, request->part, &begin);
    if (!status)
        status = find_cut(&search, request->part + 1, &end);
    if (!status)
        status = find_seek(&search, &begin, &span->seek_us);
    if (!status)
        status = check_reads(request, search.reel->source);
    if (!status) {
        *doubtful = search.doubtful || search.reel->source->broken;
        span->begin_us = begin.us;
        span->end_us = end.us;
        span->begins_at_key = begin.at_key;
        span->ends_at_key = end.at_key;
    }
    reel_destroy(&search.reel);
    return status;
}

static bool is_same(const struct part_span *a, const struct part_span *b)
{
    return a->begin_us == b->begin_us && a->end_us == b->end_us && a->seek_us == b->seek_us &&
           a->begins_at_key == b->begins_at_key && a->ends_at_key == b->ends_at_key;
}

// The parts of a damaged file are cut alike by whoever makes one: damage is found by each search. What one search found
// alone is no damage, and would give this part other frames than those beside it expect.
enum status cuts_find(const struct cuts_request *request, struct part_span *span)
{
    assert(request->parts > 0 && request->part >= 0 && request->part < request->parts);
    struct part_span first;
    bool doubtful;
    enum status status = find_span(request, span, &doubtful);
    if (status || !doubtful)
        return status;
    first = *span;
    status = find_span(request, span, &doubtful);
    if (status || !doubtful || is_same(&first, span))
        return status;
    return log_fail(request->log, STATUS_INPUT,
                    "%s is read in different ways where it is to be cut", request->source->name);
}
