// Writes a manifest (manifest.h), line by line, into a file that is whole or absent.
//
// Thread-safety: one thread at a time.
#pragma once

#include <jansson.h>
#include <libavformat/avformat.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/part/hash_tree.h"
#include "pipeline/part/manifest.h"

struct file;
struct manifest_writer;

struct manifest_writer_request {
    const char *name;
    bool overwrite;
    const json_t *identity; // the first line; not needed afterwards
    const struct log *log;  // outlives the writer
};

// Begin one. Fails as file_create(). On success the caller owns *writer.
enum status manifest_writer_create(const struct manifest_writer_request *request,
                                   struct manifest_writer **writer);

// Free it; one that was not committed leaves nothing behind. Accepts NULL behind the pointer.
void manifest_writer_destroy(struct manifest_writer **writer);

// Add a frame; all come ahead of the packets. STATUS_OUTPUT, with a sentence, if it cannot be
// written: here and below.
enum status manifest_writer_add(struct manifest_writer *writer, const struct manifest_frame *frame);

// A file of video, to be read back.
struct manifest_video_file {
    const char *name;     // by which whoever reads it later knows it
    const char *url;      // (optional) where it is as long as it has no such name
    AVRational time_base; // of the pts that are written
    int64_t shift_us;     // by which they are behind those in the file
    // (optional) Takes the packets of other streams.
    enum status (*other)(void *opaque, const AVPacket *packet, const AVStream *of);
    void *opaque;
};

// Add all packets of the video in a file, as they are on the disk. STATUS_OUTPUT, with a sentence,
// where it cannot be read back to its end.
enum status manifest_writer_read(struct manifest_writer *writer,
                                 const struct manifest_video_file *video);

// The earliest pts of packets so far; AV_NOPTS_VALUE: none has one.
int64_t manifest_writer_first_pts(const struct manifest_writer *writer);

// The root over the frames so far.
void manifest_writer_root(const struct manifest_writer *writer, char text[HASH_TREE_TEXT]);

int64_t manifest_writer_frames(const struct manifest_writer *writer);

// Write the end, to which counts and roots are added. The file is the caller's, held (file_hold())
// without its name. Frees the writer either way.
enum status manifest_writer_finish(struct manifest_writer **writer, json_t *end,
                                   struct file **file);
