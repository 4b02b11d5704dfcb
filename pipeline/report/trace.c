#include "pipeline/report/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/meter.h"
#include "pipeline/output/file/file.h"

// Trace Event Format (Google, 2016): "X" is a complete event, "M" names a thread; times are
// microseconds.
struct span {
    int track;
    const char *name;
    int64_t begin_ns, end_ns, frame;
};

struct trace {
    int64_t began_ns;
    atomic_bool keeps, writes; // whether there are `kept` and `file`
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct file *file;
    struct span *kept;   // span k of all is at k % TRACE_KEPT
    int64_t kept_so_far; // all
};

static const char *const threads[TRACE_SLOTS] = {"start",  "demux", "decode", "submit",
                                                 "encode", "mux",   "device"};
static const char *const phases[3] = {"upload", "filter", "download"};

static void name_track(struct trace *trace, int track, const char *name, int slot)
{
    AVIOContext *io = file_io(trace->file);
    avio_printf(io, "%s{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,\"args\":{",
                track ? ",\n" : "", track + 1);
    if (slot >= 0)
        avio_printf(io, "\"name\":\"slot %d %s\"}}", slot, name);
    else
        avio_printf(io, "\"name\":\"%s\"}}", name);
    avio_printf(io,
                ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":1,\"tid\":%d,\"args\":{"
                "\"sort_index\":%d}}",
                track + 1, track);
}

static void write_header(struct trace *trace)
{
    avio_printf(file_io(trace->file), "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int track = 0; track < TRACE_SLOTS; track++)
        name_track(trace, track, threads[track], -1);
}

enum status trace_create(const char *file, bool overwrite, const struct log *log,
                         struct trace **trace)
{
    *trace = calloc(1, sizeof **trace);
    if (!*trace)
        return STATUS_MEMORY;
    pthread_mutex_init(&(*trace)->lock, NULL);
    (*trace)->began_ns = meter_now_ns();
    enum status status =
        file ? file_create(file, overwrite, log, NULL, &(*trace)->file) : STATUS_OK;
    if (status)
        trace_destroy(trace);
    else if (file)
        write_header(*trace);
    if (!status)
        (*trace)->writes = file;
    return status;
}

void trace_slots(struct trace *trace, int slots)
{
    if (!trace || !trace->writes)
        return;
    pthread_mutex_lock(&trace->lock);
    for (int slot = 0; slot < slots; slot++)
        for (int phase = 0; phase < 3; phase++)
            name_track(trace, TRACE_SLOTS + 3 * slot + phase, phases[phase], slot);
    pthread_mutex_unlock(&trace->lock);
}

static void write_locked(struct trace *trace, const struct span *span)
{
    AVIOContext *io = file_io(trace->file);
    avio_printf(io,
                ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                span->name, span->track + 1, (double)(span->begin_ns - trace->began_ns) * 1e-3,
                (double)(span->end_ns - span->begin_ns) * 1e-3);
    if (span->frame >= 0)
        avio_printf(io, ",\"args\":{\"frame\":%" PRId64 "}", span->frame);
    avio_printf(io, "}");
}

void trace_span(struct trace *trace, int track, const char *name, int64_t begin_ns, int64_t end_ns,
                int64_t frame)
{
    assert(track >= 0);
    if (!trace || (!trace->writes && !trace->keeps))
        return;
    const struct span span = {track, name, begin_ns, end_ns, frame < 0 ? -1 : frame};
    pthread_mutex_lock(&trace->lock);
    if (trace->file)
        write_locked(trace, &span);
    if (trace->kept)
        trace->kept[trace->kept_so_far++ % TRACE_KEPT] = span;
    pthread_mutex_unlock(&trace->lock);
}

void trace_busy(struct trace *trace, struct meter *meter, enum trace_track track, const char *name,
                int64_t begin_ns, int64_t frame)
{
    int64_t end_ns = meter_now_ns();
    meter->busy_ns += end_ns - begin_ns;
    trace_span(trace, (int)track, name, begin_ns, end_ns, frame);
}

enum status trace_finish(struct trace *trace)
{
    if (!trace)
        return STATUS_OK;
    pthread_mutex_lock(&trace->lock);
    struct file *file = trace->file;
    trace->file = NULL;
    trace->writes = false;
    pthread_mutex_unlock(&trace->lock);
    if (!file)
        return STATUS_OK;
    avio_printf(file_io(file), "\n]}\n");
    return file_commit(&file);
}

void trace_destroy(struct trace **trace)
{
    if (!*trace)
        return;
    if ((*trace)->file)
        file_discard(&(*trace)->file);
    pthread_mutex_destroy(&(*trace)->lock);
    free((*trace)->kept);
    free(*trace);
    *trace = NULL;
}

// ---- the newest spans ----

void trace_keep(struct trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    if (!trace->kept)
        trace->kept = calloc(TRACE_KEPT, sizeof *trace->kept);
    trace->keeps = trace->kept;
    pthread_mutex_unlock(&trace->lock);
}

static struct trace_kept describe(const struct trace *trace, const struct span *span)
{
    int slot = span->track - TRACE_SLOTS;
    return (struct trace_kept){.part = slot < 0 ? threads[span->track] : phases[slot % 3],
                               .name = span->name,
                               .slot = slot < 0 ? -1 : slot / 3,
                               .begin_us = (span->begin_ns - trace->began_ns) / 1000,
                               .end_us = (span->end_ns - trace->began_ns) / 1000,
                               .frame = span->frame};
}

int trace_recent(struct trace *trace, int64_t since_us, struct trace_kept *to, int max)
{
    int count = 0;
    pthread_mutex_lock(&trace->lock);
    int64_t end = trace->kept ? trace->kept_so_far : 0;
    int64_t begin = end > TRACE_KEPT ? end - TRACE_KEPT : 0;
    begin = end - begin > max ? end - max : begin;
    for (int64_t k = begin; k < end; k++) {
        to[count] = describe(trace, &trace->kept[k % TRACE_KEPT]);
        count += to[count].end_us >= since_us;
    }
    pthread_mutex_unlock(&trace->lock);
    return count;
}

int64_t trace_now_us(const struct trace *trace)
{
    return (meter_now_ns() - trace->began_ns) / 1000;
}
