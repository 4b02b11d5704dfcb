// Reports of a job: progress, outputs, summary, verdict.
#include "pipeline/engine/job.h"
#include "pipeline/engine/job_device.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "pipeline/engine/filter/spare.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "pipeline/report/report_writer.h"
#include "plan/backend.h"

// Write a public struct to the caller's, which may be of another version.
static enum sluice_status hand_out(void *to, const void *from, size_t size)
{
    return sized_write(to, from, size) ? SLUICE_STATUS_OK : SLUICE_STATUS_USAGE;
}

// The sink's figures while the job runs; zero before and without it.
struct sink_figures {
    int64_t dropped, kept, missing, pending;
    bool accepts_streams;
};

// A recording in segments as the only output: what is in its files counts, and frames that its disk
// has no room for are kept by nobody.
static void ask_recording(const struct sink_output *only, struct sink_figures *figures)
{
    if (!only->files)
        return;
    figures->kept = only->frames;
    figures->missing = only->missing;
}

static struct sink_figures ask_sink(const struct sluice_job *job)
{
    struct sink_figures figures = {0};
    monitor_lock(job->sink_lock);
    struct sink_output list[MAX_OUTPUTS];
    if (job->sink && job->output_open)
        figures = (struct sink_figures){
            .dropped = job->sink->dropped,
            .kept = job->sink->kept,
            .pending = job->sink->pending ? job->sink->pending(job->sink) : 0,
            .accepts_streams = job->sink->accepts_streams,
        };
    if (job->sink && job->output_open && job->outputs == 1) {
        job->sink->outputs(job->sink, list, 1);
        ask_recording(list, &figures);
    }
    monitor_unlock(job->sink_lock);
    return figures;
}

static int64_t bytes_out(const struct sluice_job *job)
{
    struct sluice_output_figures output = {.size = sizeof output};
    int64_t bytes = 0;
    for (int k = 0; !sluice_job_output(job, k, &output); k++)
        bytes += output.bytes;
    return bytes;
}

void job_count(const struct sluice_job *job, struct sluice_ledger *ledger)
{
    *ledger = (struct sluice_ledger){0};
    decode_count(job->decode, ledger);
    submit_count(job->submit, ledger);
    encode_count(job->encode, ledger);
}

// Report frames so far, or at the end. Where frames become packets `frames_out` counts those
// written: an encoder keeps some frames back.
static void report_frames(const struct sluice_job *job, struct sluice_ledger *to)
{
    if (job->ran) {
        *to = job->ledger;
        return;
    }
    struct sink_figures sink = ask_sink(job);
    job_count(job, to);
    if (sink.accepts_streams)
        to->frames_out = sink.kept;
    to->dropped_clock = sink.dropped;
    to->dropped_disk = sink.missing;
}

static void report_ledger(const struct sluice_job *job, const struct live_figures *live,
                          struct sluice_ledger *to)
{
    report_frames(job, to);
    to->frames_damaged = decoder_damaged_frames(job->decoder);
    to->packets_damaged = decoder_damaged_packets(job->decoder);
    to->losses = live->losses;
    to->reconnects = live->reconnects;
    to->lost_seconds = (double)live->lost_us * 1e-6;
    to->frames_taken_over = spare_frames(job->spare);
}

static int64_t busy_ns(const struct sluice_job *job, enum sluice_part part)
{
    struct encode_figures encode;
    encode_figures(job->encode, &encode);
    switch (part) {
    case SLUICE_PART_DEMUX:
        return demux_busy_ns(job->demux);
    case SLUICE_PART_DECODE:
        return decode_busy_ns(job->decode);
    case SLUICE_PART_UPLOAD:
        return encode.upload_ns;
    case SLUICE_PART_FILTER:
        return encode.filter_ns;
    case SLUICE_PART_DOWNLOAD:
        return encode.download_ns;
    case SLUICE_PART_ENCODE: // in its thread or, of several outputs, in the sink's
        return encode.encode_ns + job->sink_meter.busy_ns;
    case SLUICE_PART_MUX:
        return job->watch.muxing.busy_ns;
    default:
        return 0;
    }
}

static double busy_seconds(const struct sluice_job *job, enum sluice_part part)
{
    return (double)busy_ns(job, part) * 1e-9;
}

static void report_pace(const struct sluice_job *job, struct sluice_progress *progress)
{
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        progress->busy_seconds[part] = busy_seconds(job, (enum sluice_part)part);
    progress->ring = job->slots;
    progress->ring_used = ring_used(job->ring);
    progress->ring_occupancy = ring_occupancy(job->ring);
}

// How many frames, and seconds, the output will have, about; 0: unknown.
static void expect(const struct sluice_job *job, int64_t *frames, double *seconds)
{
    const struct selection *selection = &job->selection;
    bool from_start = selection->begin_us == AV_NOPTS_VALUE;
    double media = *seconds = source_seconds(job->source);
    int64_t total = source_frames(job->source);
    if (!from_start || selection->end_us != INT64_MAX) {
        double end =
            selection->end_us == INT64_MAX ? media : (double)selection->end_us / AV_TIME_BASE;
        double begin = from_start ? 0 : (double)selection->begin_us / AV_TIME_BASE;
        *seconds = end - begin < media ? end - begin : media;
        total = media > 0 ? (int64_t)((double)total * *seconds / media) : 0;
    }
    *frames = total < selection->frame_limit ? total : selection->frame_limit;
}

static double seconds_so_far(const struct sluice_job *job)
{
    if (job->ran)
        return job->seconds;
    return job->began_ns ? (double)(meter_now_ns() - job->began_ns) * 1e-9 : 0;
}

enum sluice_status sluice_job_progress(const struct sluice_job *job,
                                       struct sluice_progress *progress)
{
    struct encode_figures encode;
    struct live_figures live;
    encode_figures(job->encode, &encode);
    source_figures(job->source, &live);
    struct sluice_progress now = {
        .frames = encode.frames_out,
        .seconds = seconds_so_far(job),
        .media_seconds = (double)encode.media_us * 1e-6,
        .flushing = encode.flushing,
        .stopping = job->stop.asked || job->finishing,
        .frames_pending = job->ran ? 0 : ask_sink(job).pending,
        .bytes_out = bytes_out(job),
        .lost = live.lost,
        .connecting = live.connecting,
    };
    expect(job, &now.frames_total, &now.media_total);
    report_ledger(job, &live, &now.ledger);
    if (job->latency)
        latency_figures(job->latency, &now.latency);
    report_pace(job, &now);
    return hand_out(progress, &now, sizeof now);
}

enum sluice_status sluice_job_output(const struct sluice_job *job, int index,
                                     struct sluice_output_figures *figures)
{
    struct sink_output list[MAX_OUTPUTS];
    monitor_lock(job->sink_lock);
    memcpy(list, job->output, sizeof list);
    if (job->sink && !job->ran)
        job->sink->outputs(job->sink, list, MAX_OUTPUTS);
    monitor_unlock(job->sink_lock);
    if (index < 0 || index >= job->outputs)
        return SLUICE_STATUS_END;
    const struct sink_output *from = &list[index];
    const struct sluice_output_figures now = {
        .name = job->output_names[index],
        .encoder = from->encoder,
        .container = from->container,
        .frames = from->frames,
        .dropped = from->dropped,
        .missing = from->missing,
        .bytes = from->bytes,
        .files = from->files,
        .connects = from->connects,
        .connected = from->connected,
        .failed = from->failed,
        .unwatched = from->unwatched,
        .tee = from->tee,
    };
    return hand_out(figures, &now, sizeof now);
}

enum sluice_status sluice_job_record(const struct sluice_job *job, int index,
                                     struct sluice_record *record)
{
    const struct recording *from = report_writer_recording(job->report_writer, index);
    if (!from || !job->ran)
        return SLUICE_STATUS_END;
    const struct sluice_record now = {.stage = from->stage->name,
                                      .file = from->name,
                                      .frames = from->frames - from->dropped,
                                      .dropped = from->dropped,
                                      .bytes = from->bytes,
                                      .figures = from->figures};
    return hand_out(record, &now, sizeof now);
}

enum sluice_status sluice_job_figure(const struct sluice_job *job, int index, int figure,
                                     struct sluice_figure *figures)
{
    const struct recording *from = report_writer_recording(job->report_writer, index);
    if (!from || !job->ran || figure < 0 || figure >= from->figures)
        return SLUICE_STATUS_END;
    const struct figure *one = &from->figure[figure];
    const struct sluice_figure now = {
        .name = one->name, .sum = one->sum, .values = one->values, .frames = one->frames};
    return hand_out(figures, &now, sizeof now);
}

// The share of the time that a part was working.
static double busy_share(const struct sluice_job *job, enum sluice_part part)
{
    double share = job->seconds > 0 ? busy_seconds(job, part) / job->seconds : 0;
    return share < 1 ? share : 1;
}

static enum sluice_part bottleneck(const struct sluice_job *job)
{
    enum sluice_part most = SLUICE_PART_DEMUX;
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        if (busy_share(job, (enum sluice_part)part) > busy_share(job, most))
            most = (enum sluice_part)part;
    return most;
}

static const struct {
    const char *name, *advice;
} words[SLUICE_PART_COUNT] = {
    [SLUICE_PART_DEMUX] = {"reading", "a faster disk or network"},
    [SLUICE_PART_DECODE] = {"decoding", "a GPU that decodes (--hwdec) or more cores"},
    [SLUICE_PART_UPLOAD] = {"uploading", "decoding on the GPU (--hwdec require)"},
    [SLUICE_PART_FILTER] = {"filtering", "a shorter chain, a GPU or more cores"},
    [SLUICE_PART_DOWNLOAD] = {"downloading", "a smaller result (gray first)"},
    [SLUICE_PART_ENCODE] = {"encoding", "a faster --preset or another -c:v"},
    [SLUICE_PART_MUX] = {"writing", "a faster disk"},
};

const char *sluice_part_name(enum sluice_part part)
{
    return (unsigned)part < SLUICE_PART_COUNT ? words[part].name : NULL;
}

const char *sluice_part_advice(enum sluice_part part)
{
    return (unsigned)part < SLUICE_PART_COUNT ? words[part].advice : NULL;
}

void job_find_verdict(struct sluice_job *job)
{
    enum sluice_part part = bottleneck(job);
    double share = busy_share(job, part);
    const char *name = sluice_part_name(part), *advice = sluice_part_advice(part);
    bool taken = job->outputs == 1 && !strcmp(job->output_names[0], sink_take_name);
    if (part == SLUICE_PART_ENCODE && taken)
        name = "the program that takes the frames", advice = "less work there";
    if (part == SLUICE_PART_DECODE && job->decoded.device_stream)
        advice = "the CPU's decoder, if cores are idle (--hwdec off),";
    if (job->cores_busy >= 0.85)
        snprintf(job->verdict, sizeof job->verdict,
                 "the processor set the pace: its cores were busy %.0f %% of the time, and %s "
                 "waited for the longest; %s would help",
                 100 * fmin(job->cores_busy, 1), name, advice);
    else if (share >= 0.5)
        snprintf(job->verdict, sizeof job->verdict,
                 "%s set the pace, busy %.0f %% of the time; %s would help", name, 100 * share,
                 advice);
    else if (source_is_live(job->source) || job->source->pushed)
        snprintf(job->verdict, sizeof job->verdict,
                 "the source set the pace; the part that worked most, %s, was busy %.0f %% of the "
                 "time",
                 name, 100 * share);
    else
        snprintf(job->verdict, sizeof job->verdict,
                 "no part was busy for even half of the time: the job is too short to say what "
                 "sets its pace");
}

enum sluice_status sluice_job_summary(const struct sluice_job *job, struct sluice_summary *summary)
{
    struct live_figures live;
    struct encode_figures encode;
    source_figures(job->source, &live);
    encode_figures(job->encode, &encode);
    struct simulate_figures faults;
    simulate_figures(job->source->simulate, &faults);
    struct sluice_summary now = {
        .stopped = job->stop.asked,
        .truncated = job->truncated,
        .simulated = {.packets_lost = faults.lost,
                      .packets_corrupted = faults.corrupted,
                      .stalls = faults.stalls,
                      .closes = faults.closes,
                      .ts_jumps = faults.ts_jumps,
                      .res_changes = faults.res_changes},
        .seconds = job->seconds,
        .media_seconds = (double)encode.media_us * 1e-6,
        .input = job->source->name,
        .input_tls = reach_peer_name(job->source->reach),
        .input_codec = job->input_codec,
        .input_format = job->input_format,
        .output = job->output_name,
        .encoder = job->sink ? job->sink->encoder : NULL,
        .output_format = job->output_format,
        .backend = job_backend(job)->name,
        .device = job_backend(job)->description,
        .decoder = decoder_name(job->decoder),
        .max_memory = job->max_memory ? job->max_memory + job_device_memory(job) : 0,
        .width = job->width,
        .height = job->height,
        .cores_busy = job->cores_busy < 1 ? job->cores_busy : 1,
        .ring_occupancy = ring_occupancy(job->ring),
        .ring = job->slots,
        .bottleneck = bottleneck(job),
        .verdict = job->verdict,
    };
    report_ledger(job, &live, &now.ledger);
    ceiling_figures(&job->ceiling, &now.need_mem, &now.need_vram);
    now.mem = job->ceiling.host;
    now.vram = job->ceiling.device;
    now.gpu_pending = job_device_is_pending(job);
    if (job->latency)
        latency_figures(job->latency, &now.latency);
    now.bytes_out = bytes_out(job);
    for (int part = 0; part < SLUICE_PART_COUNT; part++)
        now.busy[part] = busy_share(job, (enum sluice_part)part);
    return hand_out(summary, &now, sizeof now);
}
