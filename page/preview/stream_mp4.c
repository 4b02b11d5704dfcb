#include "page/preview/stream_mp4.h"

#include <libavformat/avformat.h>
#include <libavutil/intreadwrite.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/compat.h"

struct fragments {
    const struct log *log;
    AVFormatContext *format;
    AVRational clock; // the encoder's
    struct chunk *head;
    // Bytes that libavformat has written since the last chunk.
    uint8_t *bytes;
    size_t size, room;
    bool is_short; // memory was not to be had
};

enum { BUFFER = 1 << 16 };

// ---- what libavformat writes ----

static bool grow(struct fragments *fragments, size_t size)
{
    size_t room = fragments->room ? fragments->room : BUFFER;
    while (room < size)
        room *= 2;
    if (room == fragments->room)
        return true;
    uint8_t *bytes = realloc(fragments->bytes, room);
    if (!bytes)
        return false;
    fragments->bytes = bytes;
    fragments->room = room;
    return true;
}

#if LIBAVFORMAT_VERSION_MAJOR < 61
static int keep(void *fragments_, uint8_t *data, int size)
#else
static int keep(void *fragments_, const uint8_t *data, int size)
#endif
{
    struct fragments *fragments = fragments_;
    if (!grow(fragments, fragments->size + (size_t)size)) {
        fragments->is_short = true;
        return AVERROR(ENOMEM);
    }
    memcpy(fragments->bytes + fragments->size, data, (size_t)size);
    fragments->size += (size_t)size;
    return size;
}

// ---- boxes ----

static size_t box_size(const uint8_t *at, size_t left)
{
    uint32_t size = left >= 8 ? AV_RB32(at) : 0;
    return size >= 8 && size <= left ? size : 0;
}

// The first box of this kind, at or within `size` bytes of boxes; NULL: there is none.
static const uint8_t *find_box(const uint8_t *at, size_t size, const char *kind, size_t *box)
{
    while ((*box = box_size(at, size))) {
        if (!memcmp(at + 4, kind, 4))
            return at;
        at += *box;
        size -= *box;
    }
    return NULL;
}

// The offset of a fragment's decode time: moof, traf, tfdt with 64 bits. 0: it has none.
static size_t find_time(const uint8_t *bytes, size_t size)
{
    const char *const path[] = {"moof", "traf", "tfdt"};
    const uint8_t *at = bytes, *found = NULL;
    size_t left = size, box = 0;
    for (size_t k = 0; k < sizeof path / sizeof *path; k++) {
        found = find_box(at, left, path[k], &box);
        if (!found)
            return 0;
        at = found + 8;
        left = box - 8;
    }
    return left >= 12 && *at == 1 ? (size_t)(at + 4 - bytes) : 0;
}

// ---- construction ----

static enum status take_chunk(struct fragments *fragments, struct chunk **chunk)
{
    avio_flush(fragments->format->pb);
    *chunk = fragments->is_short ? NULL : chunk_create(fragments->size);
    if (*chunk)
        memcpy((*chunk)->data, fragments->bytes, fragments->size);
    fragments->size = 0;
    return *chunk ? STATUS_OK : STATUS_MEMORY;
}

static enum status open_muxer(struct fragments *fragments, const AVCodecContext *codec)
{
    if (avformat_alloc_output_context2(&fragments->format, NULL, "mp4", NULL) < 0)
        return STATUS_MEMORY;
    AVFormatContext *format = fragments->format;
    uint8_t *buffer = av_malloc(BUFFER);
    AVStream *stream = avformat_new_stream(format, NULL);
    format->pb = buffer ? avio_alloc_context(buffer, BUFFER, 1, fragments, NULL, keep, NULL) : NULL;
    if (!format->pb)
        av_free(buffer);
    if (!stream || !format->pb || avcodec_parameters_from_context(stream->codecpar, codec) < 0)
        return STATUS_MEMORY;
    format->pb->seekable = 0;
    stream->time_base = codec->time_base;
    stream->sample_aspect_ratio = codec->sample_aspect_ratio;
    return STATUS_OK;
}

// Fragments end when we say so, which is after each packet: libavformat's own way would wait for
// the next to know how long one lasts. Without a trailer it remembers nothing of them.
static enum status write_head(struct fragments *fragments)
{
    AVDictionary *options = NULL;
    int error = av_dict_set(&options, "movflags",
                            "frag_custom+empty_moov+default_base_moof+skip_trailer+skip_sidx", 0);
    if (error >= 0)
        error = av_dict_set(&options, "use_editlist", "0", 0);
    if (error >= 0)
        error = avformat_write_header(fragments->format, &options);
    av_dict_free(&options);
    return error < 0 ? check_failed(fragments->log, STATUS_OUTPUT, error,
                                    "the page's stream cannot be written as MP4")
                     : STATUS_OK;
}

enum status fragments_create(const AVCodecContext *codec, const struct log *log,
                             struct fragments **fragments)
{
    struct fragments *made = *fragments = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->log = log;
    made->clock = codec->time_base;
    enum status status = open_muxer(made, codec);
    if (!status)
        status = write_head(made);
    if (!status)
        status = take_chunk(made, &made->head);
    if (status)
        fragments_destroy(fragments);
    return status;
}

void fragments_destroy(struct fragments **fragments)
{
    struct fragments *old = *fragments;
    if (!old)
        return;
    AVIOContext *io = old->format ? old->format->pb : NULL;
    avformat_free_context(old->format);
    if (io)
        av_freep(&io->buffer);
    avio_context_free(&io);
    free(old->head);
    free(old->bytes);
    free(old);
    *fragments = NULL;
}

struct chunk *fragments_take_head(struct fragments *fragments)
{
    struct chunk *head = fragments->head;
    fragments->head = NULL;
    return head;
}

enum status fragments_write(struct fragments *fragments, AVPacket *packet, struct chunk **chunk)
{
    AVStream *stream = fragments->format->streams[0];
    bool key = packet->flags & AV_PKT_FLAG_KEY;
    int64_t duration = packet->duration;
    *chunk = NULL;
    packet->stream_index = 0;
    av_packet_rescale_ts(packet, fragments->clock, stream->time_base);
    int error = av_write_frame(fragments->format, packet);
    if (error >= 0)
        error = av_write_frame(fragments->format, NULL);
    if (error < 0)
        return check_failed(fragments->log, STATUS_OUTPUT, error,
                            "the page's stream cannot be written as MP4");
    enum status status = take_chunk(fragments, chunk);
    if (status)
        return status;
    (*chunk)->key = key;
    (*chunk)->duration = duration;
    (*chunk)->time_at = find_time((*chunk)->data, (*chunk)->size);
    return STATUS_OK;
}
