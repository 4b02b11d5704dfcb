// The preview's filters, kept: one for each chain and stage that viewers see, as long as the same
// kind of frame comes.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavutil/frame.h>

#include "base/log.h"
#include "base/status.h"
#include "sluice/sluice.h"
#include "stages/chain.h"

struct filters;

// A chain, up to a stage. `text` tells chains apart: filters are kept by it.
struct filters_chain {
    const struct chain *chain;
    const char *text;
    int stage; // so many of its links; -1, or more than it has: all
};

// The filters run on a CPU backend of their own, with the threads and the ceilings of `config`. Both
// outlive the filters.
enum status filters_create(const struct sluice_config *config, const struct log *log,
                           struct filters **filters);

// Frames that were made stay valid only as long as the filters. Leaves NULL, accepts NULL behind it.
void filters_destroy(struct filters **filters);

// Forget what was made of the frame so far: another comes, or the frame's memory goes.
void filters_next(struct filters *filters);

// True if it was made of the frame already.
bool filters_has(const struct filters *filters, const struct filters_chain *chain);

// Filter `frame`, which lies in the host's memory, equal to what the job makes of it, and write
// nothing. *out is the caller's and not to be written to; planes that no stage touches are the
// frame's; a format that cannot be drawn (compose.h) becomes one that can. What was made of it since filters_next() is not made again. A chain that cannot
// filter such frames fails with one sentence in the log, and again without.
enum status filters_run(struct filters *filters, const struct filters_chain *chain,
                        const AVFrame *frame, AVFrame **out);
