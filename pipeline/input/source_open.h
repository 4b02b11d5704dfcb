// How a source is opened, and what its files share; for source*.c only.
#pragma once

#include <string.h>

#include "base/meter.h"
#include "pipeline/input/source.h"

// Open the demuxer, or the connection, that the request names, and choose the stream. The source
// has its name and its deadlines. Returns what source_open() does; on failure the caller closes.
enum status source_begin(struct source *source, const struct source_request *request);

// Call open(); for addresses and devices that are absent again and again, if the request says so.
// Returns the last call's status.
enum status source_await(struct source *source, const struct source_request *request,
                         enum status (*open)(struct source *, const struct source_request *));

static inline bool source_is_mpegts(const struct source *source)
{
    return source->io && !strcmp(source->format->iformat->name, "mpegts");
}
// Log what the input named and was refused since the last call. Returns whether there was any.
bool source_log_refusal(const struct source *source);

// True if the source was cancelled or the job stopped. Any thread.
static inline bool source_is_over(const struct source *source)
{
    return atomic_load(source->stop) || source->cancelled;
}

// True if the current call has taken longer than it may. Any thread.
static inline bool source_is_late(const struct source *source)
{
    return source->deadline_ns && meter_now_ns() > source->deadline_ns;
}

// Limit the call that comes; calls on files have no limit.
static inline void source_set_deadline(struct source *source, int64_t ns)
{
    bool local = source->io || source->is_sequence;
    source->deadline_ns = local ? 0 : meter_now_ns() + ns;
}
