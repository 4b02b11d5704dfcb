// Frames of an output computed again: decoded from the source, filtered on the CPU.
//
// Thread-safety: one thread.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/source.h"
#include "sluice/sluice.h"

struct recompute;

struct recompute_request {
    const struct sluice_config *config; // backend, threads, max_pixels
    struct source_request source;       // of the file
    const char *chain;
    int links;                // of the chain, the first so many; -1: all
    enum AVPixelFormat pixel; // of the frames; AV_PIX_FMT_NONE: as the chain leaves them
    enum AVColorRange range;
    bool repeatable; // the file is decoded from its beginning (pass.h), not sought in
    const struct log *log;
};

// The chain's text is not needed afterwards, all else is. Fails as
// source_open() and sluice_chain_parse(); STATUS_USAGE if the backend is to be CUDA.
enum status recompute_create(const struct recompute_request *request, struct recompute **recompute);

// Leaves NULL, accepts NULL behind it.
void recompute_destroy(struct recompute **recompute);

// Compute the frame of this pts; of several that damage has given one, the next with each call where
// the source is repeatable. STATUS_EOF: the source has none of that pts. *frame is the caller's,
// and stays valid only as long as `recompute`.
enum status recompute_frame(struct recompute *recompute, int64_t pts, AVFrame **frame);

// ---- frames of the source that are not computed, where it is sought in ----

// Go to the first one: *at_us is its time. STATUS_EOF: there is none.
enum status recompute_first(struct recompute *recompute, int64_t *at_us);

// Go to the one of this pts. STATUS_EOF: there is none.
enum status recompute_go(struct recompute *recompute, int64_t pts);

// Find the one behind that which was computed or gone to last. STATUS_EOF: there is none.
enum status recompute_peek(struct recompute *recompute, int64_t *at_us);
