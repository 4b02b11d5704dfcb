// A timeline of a job, in the trace event format that Perfetto (ui.perfetto.dev) and Chrome open:
// one track per thread, three per slot of the ring (upload, filter, download), frames by number.
// The first track is what happens before the threads run.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/meter.h"
#include "base/status.h"

struct trace;

// The tracks, top to bottom; those of slot k are TRACE_SLOTS + 3 k and the two after it.
enum trace_track {
    TRACE_START,
    TRACE_DEMUX,
    TRACE_DECODE,
    TRACE_SUBMIT,
    TRACE_ENCODE,
    TRACE_MUX,
    TRACE_SLOTS,
};

// Begin a timeline that ends up in `file`, replacing what is there if `overwrite`. Time counts from
// now. On success the caller owns *trace.
enum status trace_create(const char *file, bool overwrite, const struct log *log,
                         struct trace **trace);

// Name the tracks of a ring's slots. Once, before any of their spans. `trace` may be NULL.
void trace_slots(struct trace *trace, int slots);

// Something that lasted from `begin_ns` to `end_ns` of CLOCK_MONOTONIC; `frame` below 0: of no
// frame. Does nothing when `trace` is NULL. Any thread.
void trace_span(struct trace *trace, int track, const char *name, int64_t begin_ns, int64_t end_ns,
                int64_t frame);

// A span that ends now, in which a part was busy: `meter` counts it, with or without a trace.
void trace_busy(struct trace *trace, struct meter *meter, enum trace_track track, const char *name,
                int64_t begin_ns, int64_t frame);

// Finish the file, or throw it away; frees *trace either way, and accepts NULL behind it.
enum status trace_finish(struct trace **trace);
void trace_discard(struct trace **trace);
