#include "pipeline/input/raw.h"

#include <libavutil/pixdesc.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/input/io/mapped.h"

// Smaller packets cost less to copy than to find, and libavformat reads past them instead of seeking.
enum { LEAST = 1 << 17 };

// Frames of a demuxer follow one another, each behind a header that is the same.
static const struct kind {
    const char *name, *header;
} kinds[] = {{"rawvideo", ""}, {"yuv4mpegpipe", "FRAME\n"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct raw {
    const struct kind *kind;
    bool is_deep; // samples take two bytes, which lie at even places
    struct mapped *file;
    AVPacket *last; // what was read last, without its data
    int size;       // of its data; 0: the next one's place and time cannot be known
};

struct raw *raw_open(const AVFormatContext *format, const struct input_io *io)
{
    int fd = input_io_file(io), k = 0;
    while (k < KINDS && strcmp(kinds[k].name, format->iformat->name))
        k++;
    if (fd < 0 || format->nb_streams != 1 || k == KINDS)
        return NULL;
    struct raw *raw = calloc(1, sizeof *raw);
    if (!raw)
        return NULL;
    const AVPixFmtDescriptor *about = av_pix_fmt_desc_get(format->streams[0]->codecpar->format);
    raw->kind = &kinds[k];
    raw->is_deep = !about || about->comp[0].depth > 8;
    raw->last = av_packet_alloc();
    raw->file = raw->last ? mapped_open(fd) : NULL;
    if (!raw->file)
        raw_close(&raw);
    return raw;
}

void raw_close(struct raw **raw)
{
    if (!*raw)
        return;
    mapped_close(&(*raw)->file);
    av_packet_free(&(*raw)->last);
    free(*raw);
    *raw = NULL;
}

// Remember what the packet says of itself. A frame is a tick of the clock of both demuxers.
void raw_note(struct raw *raw, const AVPacket *packet)
{
    int64_t next = packet->pos + packet->size + (int64_t)strlen(raw->kind->header);
    bool counts = packet->pos >= 0 && packet->pts != AV_NOPTS_VALUE && packet->pts == packet->dts &&
                  packet->duration == 1 && !packet->side_data_elems &&
                  !(packet->flags & AV_PKT_FLAG_CORRUPT) && !(raw->is_deep && next % 2);
    av_packet_unref(raw->last);
    raw->size = counts && av_packet_copy_props(raw->last, packet) >= 0 ? packet->size : 0;
}

// Take the bytes of the next packet, behind its header.
static bool take(struct raw *raw, int64_t at, AVPacket *packet)
{
    int header = (int)strlen(raw->kind->header);
    if (!mapped_take(raw->file, at, header + raw->size, packet))
        return false;
    bool is_next = !memcmp(packet->data, raw->kind->header, (size_t)header);
    packet->data += header;
    packet->size -= header;
    packet->pos = at + header;
    return is_next;
}

bool raw_read(struct raw *raw, AVFormatContext *format, AVPacket *packet)
{
    int64_t at = raw->last->pos + raw->size;
    if (raw->size < LEAST || avio_tell(format->pb) != at)
        return false;
    AVPacket *last = raw->last;
    bool taken = take(raw, at, packet);
    last->pos = packet->pos;
    last->pts = last->dts = last->dts + 1;
    if (taken && av_packet_copy_props(packet, last) >= 0 &&
        avio_seek(format->pb, packet->pos + packet->size, SEEK_SET) >= 0)
        return true;
    av_packet_unref(packet);
    avio_seek(format->pb, at, SEEK_SET);
    raw->size = 0;
    return false;
}

bool raw_is_torn(const struct raw *raw)
{
    return mapped_is_torn(raw->file);
}
