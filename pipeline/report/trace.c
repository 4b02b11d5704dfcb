#include "pipeline/report/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/meter.h"
#include "pipeline/output/file/file.h"

// Trace Event Format (Google, 2016): "X" is a complete event, "M" names a thread; times are
// microseconds.
struct trace {
    int64_t began_ns;
    pthread_mutex_t lock;
    struct file *file; // guarded by lock
};

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
    static const char *const threads[TRACE_SLOTS] = {"start",  "demux",  "decode",
                                                     "submit", "encode", "mux"};
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
    enum status status = file_create(file, overwrite, log, NULL, &(*trace)->file);
    if (status)
        trace_discard(trace);
    else
        write_header(*trace);
    return status;
}

void trace_slots(struct trace *trace, int slots)
{
    static const char *const phases[3] = {"upload", "filter", "download"};
    for (int slot = 0; trace && slot < slots; slot++)
        for (int phase = 0; phase < 3; phase++)
            name_track(trace, TRACE_SLOTS + 3 * slot + phase, phases[phase], slot);
}

void trace_span(struct trace *trace, int track, const char *name, int64_t begin_ns, int64_t end_ns,
                int64_t frame)
{
    assert(track >= 0);
    if (!trace)
        return;
    pthread_mutex_lock(&trace->lock);
    AVIOContext *io = file_io(trace->file);
    avio_printf(
        io, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", name,
        track + 1, (double)(begin_ns - trace->began_ns) * 1e-3, (double)(end_ns - begin_ns) * 1e-3);
    if (frame >= 0)
        avio_printf(io, ",\"args\":{\"frame\":%" PRId64 "}", frame);
    avio_printf(io, "}");
    pthread_mutex_unlock(&trace->lock);
}

static void free_trace(struct trace **trace)
{
    pthread_mutex_destroy(&(*trace)->lock);
    free(*trace);
    *trace = NULL;
}

void trace_busy(struct trace *trace, struct meter *meter, enum trace_track track, const char *name,
                int64_t begin_ns, int64_t frame)
{
    int64_t end_ns = meter_now_ns();
    meter->busy_ns += end_ns - begin_ns;
    trace_span(trace, (int)track, name, begin_ns, end_ns, frame);
}

enum status trace_finish(struct trace **trace)
{
    if (!*trace)
        return STATUS_OK;
    avio_printf(file_io((*trace)->file), "\n]}\n");
    enum status status = file_commit(&(*trace)->file);
    free_trace(trace);
    return status;
}

void trace_discard(struct trace **trace)
{
    if (!*trace)
        return;
    file_discard(&(*trace)->file);
    free_trace(trace);
}
