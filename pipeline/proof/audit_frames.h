// Audit frames: whether the frames that a manifest lists are those that source and chain give.
//
// Thread-safety: one thread.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/source.h"
#include "pipeline/part/manifest.h"
#include "sluice/sluice.h"

struct audit_frames_request {
    const struct sluice_config *config; // backend, threads, max_pixels
    const struct manifest *manifest;
    const struct source_request *source;
    const char *name; // of the output, for messages
    int64_t samples;  // to be computed again; 0: all
    unsigned seed;    // by which they are drawn
    const struct log *log;
};

struct audit_frames_found {
    int64_t samples; // computed again, and equal
    int64_t pts;     // of the first frame that differs
};

// Compute frames again, and look for frames of the source that are not listed: before the first,
// behind the last, behind each that is computed; and everywhere where all are computed or the source
// is decoded from its beginning. STATUS_FAILED with a sentence that names the frame; otherwise as
// recompute_create().
enum status audit_frames(const struct audit_frames_request *request,
                         struct audit_frames_found *found);
