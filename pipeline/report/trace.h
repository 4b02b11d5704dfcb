// A timeline of a job, in the trace event format that Perfetto (ui.perfetto.dev) and Chrome open:
// one track per thread, three per slot of the ring (upload, filter, download), frames by number.
// The first track is what happens before the threads run. The newest spans can be kept in memory, too,
// for who looks on.
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
    TRACE_DEVICE,
    TRACE_SLOTS,
};

// Begin a timeline. With `file` (optional) it ends up there, replacing what is there if `overwrite`.
// Time counts from now. On success the caller owns *trace.
enum status trace_create(const char *file, bool overwrite, const struct log *log,
                         struct trace **trace);

// Name the tracks of a ring's slots. Once, before any of their spans. `trace` may be NULL.
void trace_slots(struct trace *trace, int slots);

// Something that lasted from `begin_ns` to `end_ns` of CLOCK_MONOTONIC; `name` is static; `frame`
// below 0: of no frame. Does nothing when `trace` is NULL. Any thread.
void trace_span(struct trace *trace, int track, const char *name, int64_t begin_ns, int64_t end_ns,
                int64_t frame);

// A span that ends now, in which a part was busy: `meter` counts it, with or without a trace.
void trace_busy(struct trace *trace, struct meter *meter, enum trace_track track, const char *name,
                int64_t begin_ns, int64_t frame);

// Finish the file, if there is one: nothing that happens later is in it. `trace` may be NULL.
enum status trace_finish(struct trace *trace);

// Throw away a file that is not finished, and free everything. Accepts NULL behind the pointer.
void trace_destroy(struct trace **trace);

// ---- the newest spans ----

enum { TRACE_KEPT = 4096 };

// A span that was kept. Strings are static.
struct trace_kept {
    const char *part;         // the track's: "decode", "filter"
    const char *name;         // what was done: "read", "decode"
    int slot;                 // the ring's; -1: the track is a thread's
    int64_t begin_us, end_us; // since the timeline began
    int64_t frame;            // -1: of no frame
};

// Keep the newest TRACE_KEPT spans from now on; without memory none are. Any thread.
void trace_keep(struct trace *trace);

// Those kept that ended at `since_us` or later, in the order of their ends: `max` of them at most, the
// newest. Returns how many. Any thread.
int trace_recent(struct trace *trace, int64_t since_us, struct trace_kept *to, int max);

// The timeline's time now, in microseconds.
int64_t trace_now_us(const struct trace *trace);
