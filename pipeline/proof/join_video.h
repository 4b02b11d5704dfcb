// Join video: the video of all parts, and the other streams of their source, in one file. Parts become
// known (part_set.h) as they are read.
//
// Thread-safety: one thread.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/source.h"
#include "pipeline/output/muxer/destination.h"
#include "pipeline/proof/part_set.h"

struct file;
struct manifest_writer;

struct join_video_request {
    struct part_set *set;                // its first part with frames is known
    const struct source_request *source; // what they were made of, which has been checked
    const struct destination *to;        // a file
    const char *const *options;          // as struct sluice_output has them
    struct manifest_writer *manifest;    // gets frames and packets
    const struct log *log;
};

// Write it, when the parts are found to be the whole. The file is the caller's, held without its name, and
// so is *others, what the manifest is to say of the other streams (other_streams.h). *truncated becomes
// true if the source, read to its end for them, breaks off. STATUS_INPUT, with a sentence that names the
// part, where one is not what its manifest says; STATUS_AGAIN as part_video_read(); as source_open() and
// muxer_begin().
enum status join_video(const struct join_video_request *request, struct file **file,
                       json_t **others, bool *truncated);
