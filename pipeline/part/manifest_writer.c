#include "pipeline/part/manifest_writer.h"

#include <inttypes.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/mem.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/output/file/file.h"

struct manifest_writer {
    const struct log *log;
    char *name;
    struct file *file;
    json_t *identity;
    struct hash_tree frames, packets;
    int64_t first_pts; // of packets
};

// ---- lines ----

static enum status check_file(const struct manifest_writer *writer)
{
    int error = file_error(writer->file);
    return error ? log_fail(writer->log, STATUS_OUTPUT, "%s could not be written: %s", writer->name,
                            strerror(error))
                 : STATUS_OK;
}

static enum status write_json(struct manifest_writer *writer, const json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return STATUS_MEMORY;
    avio_write(file_io(writer->file), (unsigned char *)text, (int)strlen(text));
    avio_w8(file_io(writer->file), '\n');
    free(text);
    return check_file(writer);
}

static enum status write_line(struct manifest_writer *writer, struct hash_tree *tree,
                              const char *line)
{
    hash_tree_add(tree, line, strlen(line));
    avio_write(file_io(writer->file), (const unsigned char *)line, (int)strlen(line));
    avio_w8(file_io(writer->file), '\n');
    return check_file(writer);
}

enum status manifest_writer_add(struct manifest_writer *writer, const struct manifest_frame *frame)
{
    char line[128];
    snprintf(line, sizeof line, "[\"frame\", %" PRId64 ", \"%s\"]", frame->pts, frame->hash);
    return write_line(writer, &writer->frames, line);
}

static enum status add_packet(struct manifest_writer *writer, const AVPacket *packet, int64_t pts)
{
    char line[160], hash[FRAME_HASH_TEXT];
    bytes_hash(packet->data, (size_t)packet->size, hash);
    if (pts != AV_NOPTS_VALUE && (writer->first_pts == AV_NOPTS_VALUE || pts < writer->first_pts))
        writer->first_pts = pts;
    snprintf(line, sizeof line, "[\"packet\", %" PRId64 ", %s, %d, \"%s\"]", pts,
             packet->flags & AV_PKT_FLAG_KEY ? "true" : "false", packet->size, hash);
    return write_line(writer, &writer->packets, line);
}

// ---- the video ----

static enum status read_packets(struct manifest_writer *writer, AVFormatContext *file,
                                const struct manifest_video_file *from)
{
    int64_t shift = av_rescale_q(from->shift_us, AV_TIME_BASE_Q, from->time_base);
    int video = format_find_video(file), error = 0;
    AVPacket *packet = av_packet_alloc();
    enum status status = packet ? STATUS_OK : STATUS_MEMORY;
    while (!status && (error = format_read(file, packet)) >= 0) {
        int64_t pts = packet->pts;
        const AVStream *stream = file->streams[packet->stream_index];
        if (pts != AV_NOPTS_VALUE)
            pts = shift + av_rescale_q(pts, stream->time_base, from->time_base);
        if (packet->stream_index == video)
            status = add_packet(writer, packet, pts);
        else if (from->other)
            status = from->other(from->opaque, packet, stream);
        av_packet_unref(packet);
    }
    av_packet_free(&packet);
    return status || error == AVERROR_EOF ? status
                                          : check_failed(writer->log, STATUS_OUTPUT, error,
                                                         "%s cannot be read back", from->name);
}

// The name counts for what kind of file it is, wherever it is read from.
static bool open_video(const struct manifest_video_file *video, AVFormatContext **file)
{
    char *url = av_asprintf("file:%s", video->name);
    AVIOContext *io = NULL;
    *file = avformat_alloc_context();
    bool opened =
        url && *file && avio_open(&io, video->url ? video->url : url, AVIO_FLAG_READ) >= 0;
    if (opened)
        (*file)->pb = io;
    if (opened)
        opened = avformat_open_input(file, url, NULL, NULL) >= 0; // else it has freed *file
    else
        avformat_free_context(*file);
    if (!opened) {
        *file = NULL;
        avio_closep(&io);
    }
    av_free(url);
    return opened;
}

enum status manifest_writer_read(struct manifest_writer *writer,
                                 const struct manifest_video_file *video)
{
    AVFormatContext *file;
    if (!open_video(video, &file))
        return log_fail(writer->log, STATUS_OUTPUT, "%s cannot be read back", video->name);
    enum status status = read_packets(writer, file, video);
    AVIOContext *io = file->pb; // which avformat_close_input() leaves
    avformat_close_input(&file);
    avio_closep(&io);
    return status;
}

// ---- life ----

static enum status begin(struct manifest_writer *writer,
                         const struct manifest_writer_request *request)
{
    enum status status = writer->name ? hash_tree_init(&writer->frames) : STATUS_MEMORY;
    if (!status)
        status = hash_tree_init(&writer->packets);
    if (!status)
        status = file_create(request->name, request->overwrite, request->log, NULL, &writer->file);
    writer->identity = json_deep_copy(request->identity);
    if (!status && !writer->identity)
        status = STATUS_MEMORY;
    return status ? status : write_json(writer, writer->identity);
}

enum status manifest_writer_create(const struct manifest_writer_request *request,
                                   struct manifest_writer **writer)
{
    *writer = calloc(1, sizeof **writer);
    if (!*writer)
        return STATUS_MEMORY;
    (*writer)->log = request->log;
    (*writer)->name = strdup(request->name);
    (*writer)->first_pts = AV_NOPTS_VALUE;
    enum status status = begin(*writer, request);
    if (status)
        manifest_writer_destroy(writer);
    return status;
}

void manifest_writer_destroy(struct manifest_writer **writer)
{
    if (!*writer)
        return;
    file_discard(&(*writer)->file);
    hash_tree_finish(&(*writer)->frames);
    hash_tree_finish(&(*writer)->packets);
    json_decref((*writer)->identity);
    free((*writer)->name);
    free(*writer);
    *writer = NULL;
}

int64_t manifest_writer_first_pts(const struct manifest_writer *writer)
{
    return writer->first_pts;
}

void manifest_writer_root(const struct manifest_writer *writer, char text[HASH_TREE_TEXT])
{
    hash_tree_root(&writer->frames, text);
}

int64_t manifest_writer_frames(const struct manifest_writer *writer)
{
    return (int64_t)writer->frames.count;
}

static enum status add_counts(const struct manifest_writer *writer, json_t *end)
{
    char frames[HASH_TREE_TEXT], packets[HASH_TREE_TEXT];
    hash_tree_root(&writer->frames, frames);
    hash_tree_root(&writer->packets, packets);
    json_t *counts =
        json_pack("{sI ss sI ss}", "frames", (json_int_t)writer->frames.count, "root", frames,
                  "packets", (json_int_t)writer->packets.count, "packet_root", packets);
    bool added = counts && !json_object_update(end, counts);
    json_decref(counts);
    char seal[FRAME_HASH_TEXT];
    if (!added || manifest_seal(writer->identity, end, seal))
        return STATUS_MEMORY;
    return json_object_set_new(end, "seal", json_string(seal)) ? STATUS_MEMORY : STATUS_OK;
}

enum status manifest_writer_finish(struct manifest_writer **writer, json_t *end, struct file **file)
{
    enum status status = add_counts(*writer, end);
    if (!status)
        status = write_json(*writer, end);
    if (!status)
        avio_flush(file_io((*writer)->file));
    if (!status)
        status = check_file(*writer);
    if (!status)
        status = file_hold((*writer)->file);
    *file = NULL;
    if (!status) {
        *file = (*writer)->file;
        (*writer)->file = NULL;
    }
    manifest_writer_destroy(writer);
    return status;
}
