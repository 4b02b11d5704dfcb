// The calls of sluice.h that make, run and end a job.
#include "pipeline/engine/job.h"

#include <assert.h>
#include <libavutil/cpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/queue.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/change.h"
#include "pipeline/engine/job_device.h"
#include "pipeline/engine/job_part.h"
#include "pipeline/engine/metrics.h"
#include "pipeline/engine/tap.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/snapshot.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "pipeline/output/file/path_conflicts.h"
#include "pipeline/part/part.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/report/trace.h"
#include "plan/backend.h"

_Static_assert((int)SLUICE_STATUS_DEVICE == (int)STATUS_DEVICE,
               "sluice_status mirrors enum status");
_Static_assert((int)SLUICE_STATUS_USAGE == (int)STATUS_USAGE, "sluice_status mirrors enum status");
_Static_assert((int)SLUICE_STATUS_STOPPED == (int)STATUS_STOPPED,
               "sluice_status mirrors enum status");

// ---- creation ----

static void tell_begun(const struct job_begun *begun, struct sluice_job *job)
{
    if (begun)
        begun->note(begun->opaque, job);
}

enum sluice_status job_create(const struct sluice_config *given, const struct job_begun *begun,
                              struct sluice_job **job)
{
    struct sluice_config config;
    *job = calloc(1, sizeof **job);
    if (!*job)
        return config_memory(given);
    monitor_init(&(*job)->threads.lock);
    monitor_init(&(*job)->sink_monitor);
    (*job)->sink_lock = &(*job)->sink_monitor;
    enum status status = config_read(given, &config, &(*job)->log_target, &(*job)->log);
    tell_begun(begun, *job);
    if (!status)
        status = job_open(*job, &config);
    log_memory(&(*job)->log, status);
    if (status)
        tell_begun(begun, NULL);
    if (status)
        sluice_job_destroy(job);
    else
        metrics_watch((*job)->metrics, *job);
    return (enum sluice_status)status;
}

enum sluice_status sluice_job_create(const struct sluice_config *config, struct sluice_job **job)
{
    return job_create(config, NULL, job);
}

void sluice_job_destroy(struct sluice_job **job)
{
    if (!*job)
        return;
    struct sluice_job *old = *job;
    job_threads_join(old);
    metrics_destroy(&old->metrics);
    job_device_settle(old);
    // Holders of frames go before the makers of frames.
    sink_destroy(&old->sink);
    report_writer_destroy(&old->report_writer);
    for (int n = 0; n < MAX_PICTURES; n++)
        av_frame_free(&old->first_props[n]);
    encode_destroy(&old->encode);
    queue_destroy(&old->frames);
    queue_destroy(&old->packets);
    latency_destroy(&old->latency);
    snapshot_destroy(&old->snapshot);
    avformat_free_context(old->described);
    ring_destroy(&old->ring);
    submit_destroy(&old->submit);
    decode_destroy(&old->decode);
    demux_destroy(&old->demux);
    decoder_destroy(&old->decoder);
    source_close(&old->source);
    job_device_close(old);
    ceiling_close(&old->ceiling);
    changes_destroy(&old->changes);
    chain_free(&old->chain);
    schedule_free(&old->schedule);
    trace_destroy(&old->trace);
    for (int k = 0; k < old->outputs; k++)
        free(old->output_names[k]);
    free(old->output_name);
    job_part_end(old);
    path_conflicts_destroy(&old->conflicts);
    monitor_finish(&old->threads.lock);
    monitor_finish(old->sink_lock);
    free(old);
    *job = NULL;
}

// ---- the run ----

// Keep what the sink says of its outputs, while others may be asking, too; with `destroy`, destroy
// it: what is half done does not stay.
static void close_sink(struct sluice_job *job, bool destroy)
{
    if (destroy)
        job_device_settle(job);
    monitor_lock(job->sink_lock);
    struct sink *sink = job->sink;
    if (sink)
        sink->outputs(sink, job->output, MAX_OUTPUTS);
    if (destroy)
        job->sink = NULL;
    monitor_unlock(job->sink_lock);
    if (destroy)
        sink_destroy(&sink);
}

static void fill_ledger(struct sluice_job *job, bool left_alone)
{
    struct sluice_ledger *ledger = &job->ledger;
    job_count(job, ledger);
    ledger->frames_out -= job->sink->dropped;
    ledger->dropped_clock = job->sink->dropped;
    if (left_alone) { // what has not come out by now never will
        ledger->frames_out = job->sink->kept;
        ledger->dropped_stop = ledger->frames_in + ledger->frames_filled - ledger->frames_out -
                               ledger->dropped_range - ledger->dropped_clock - ledger->dropped_late;
    }
}

// Count frames for which a recording in segments, the only output, had no room: they were handed
// over, but are not out.
static void count_missing(struct sluice_job *job)
{
    if (job->outputs != 1 || !job->output[0].files)
        return;
    job->ledger.dropped_disk = job->output[0].missing;
    job->ledger.frames_out -= job->output[0].missing;
}

static enum status check_ledger(const struct sluice_job *job)
{
    const struct sluice_ledger *ledger = &job->ledger;
    int64_t accounted = ledger->frames_out + ledger->dropped_range + ledger->dropped_stop +
                        ledger->dropped_clock + ledger->dropped_late;
    if (accounted == ledger->frames_in + ledger->frames_filled)
        return STATUS_OK;
    return log_fail(
        &job->log, STATUS_FAILED,
        "the frame ledger does not add up: %lld in, %lld accounted for; please report this",
        (long long)ledger->frames_in, (long long)accounted);
}

// Make the output whole, and the reports beside it.
static enum status finish_output(struct sluice_job *job)
{
    bool cut = job->stop.asked || job->selection.complete;
    enum status status = job->sink->finish(job->sink, cut);
    if (job->sink->absent)
        report_writer_cancel(job->report_writer);
    else
        status = status_join(status, report_writer_finish(job->report_writer, INT64_MAX));
    close_sink(job, false);
    count_missing(job);
    bool torn = source_is_torn(job->source);
    if (torn)
        log_print(&job->log, LOG_WARNING,
                  "%s became shorter while it was read: frames that were being filtered have zeros "
                  "where it was",
                  job->source->name);
    job->truncated = torn || (!cut && source_is_truncated(job->source));
    return status;
}

// Check that a part has the frames that the file has. STATUS_INPUT, with a sentence: the file was
// not read as it is; another run may read it, and would take a part that has its name for whole.
// STATUS_AGAIN: damage leaves it in doubt.
static enum status check_part(const struct sluice_job *job)
{
    int error = source_read_error(job->source);
    if (!job->part)
        return STATUS_OK;
    if (source_is_torn(job->source))
        return log_fail(&job->log, STATUS_INPUT,
                        "%s became shorter while this part was made of it: the part is not kept",
                        job->source->name);
    if (error)
        return log_fail(&job->log, STATUS_INPUT, "%s could not be read: %s; the part is not kept",
                        job->source->name, strerror(error));
    return job_part_is_doubtful(job) ? STATUS_AGAIN : STATUS_OK;
}

// Run the threads to their end and make the output whole. *left_alone: some still run.
static enum status run_threads(struct sluice_job *job, bool *left_alone)
{
    enum status status = job_threads_start(job);
    *left_alone = job_threads_await(job) > 0;
    if (!*left_alone)
        status = status_join(status, job_threads_join(job));
    job->finishing = true;
    snapshot_finish(job->snapshot);
    fill_ledger(job, *left_alone);
    if (!status_is_failure(status))
        status = check_ledger(job);
    if (status_is_failure(status)) {
        if (job->latency) // what a live source gave so far is kept
            report_writer_finish(job->report_writer, meter_now_ns() + stop_flush_ns);
        return status;
    }
    enum status checked = check_part(job);
    if (checked)
        return checked;
    status = finish_output(job);
    if (!status && !job->stop.asked)
        status = job_part_commit(job, job->sink);
    return status || *left_alone ? status : trace_finish(job->trace);
}

// End a job whose preroll has failed: the one frame that may be in the ring has to be waited for.
static void end_preroll(struct sluice_job *job)
{
    struct sluice_ledger so_far;
    ring_finish(job->ring);
    encode_skip(job->encode);
    job_count(job, &so_far);
    job->ledger.frames_in = so_far.frames_in;
}

// Make a part that has no frames: its manifest says so.
static enum status run_empty(struct sluice_job *job)
{
    end_preroll(job);
    job->finishing = true;
    snapshot_finish(job->snapshot);
    report_writer_cancel(job->report_writer);
    close_sink(job, true);
    // Where no frame was seen nothing was read, and where one lay behind the part, not all.
    bool ended = decode_saw_frames(job->decode) && !job->selection.complete;
    job->truncated = source_is_torn(job->source) || (ended && source_is_truncated(job->source));
    enum status status = check_part(job);
    return status ? status : job_part_commit(job, NULL);
}

// The job is over, also for who waits to push a frame.
static void end_run(struct sluice_job *job, enum status status)
{
    source_cancel(job->source);
    monitor_lock(&job->threads.lock);
    job->result = status;
    job->ran = true;
    monitor_notify(&job->threads.lock);
    monitor_unlock(&job->threads.lock);
}

enum sluice_status sluice_job_run(struct sluice_job *job)
{
    assert(!job->began_ns); // once
    bool left_alone = false;
    int64_t began_cpu_ns = meter_process_ns();
    job->began_ns = meter_now_ns();
    enum status status = job_preroll(job);
    job->output_open = !status;
    if (status == STATUS_EOF)
        status = run_empty(job);
    else if (status)
        end_preroll(job);
    else
        status = run_threads(job, &left_alone);
    log_memory(&job->log, status);
    if (status == STATUS_AGAIN)
        log_print(
            &job->log, LOG_INFO,
            "the input is damaged: the part is begun anew with --repeatable, and decoded from "
            "the beginning of the file in one thread, as the whole would be");
    if (status_is_failure(status))
        close_sink(job, !left_alone);
    job->seconds = (double)(meter_now_ns() - job->began_ns) * 1e-9;
    job->cores_busy =
        (double)(meter_process_ns() - began_cpu_ns) * 1e-9 / job->seconds / (double)av_cpu_count();
    if (!status && job->stop.asked && !job->part_made)
        status = STATUS_STOPPED;
    if (status && job->part) // sluice_job_destroy() may have to wait, and not be called
        part_discard(job->part);
    job_find_verdict(job);
    end_run(job, status);
    return (enum sluice_status)status;
}

void job_tap(struct sluice_job *job, const struct tap *tap)
{
    assert(!job->began_ns && !job->tap.frame && !job->tap.packet);
    job->tap = *tap;
}

void sluice_job_stop(struct sluice_job *job)
{
    stop_ask(&job->stop);
}

// ---- changes ----

static enum sluice_status refuse_change(char *why, size_t size)
{
    if (why && size)
        snprintf(why, size, "a part has one chain: all parts are made by the same");
    return SLUICE_STATUS_USAGE;
}

enum sluice_status sluice_job_set(struct sluice_job *job, const char *options, char *why,
                                  size_t size)
{
    return job->is_part ? refuse_change(why, size)
                        : (enum sluice_status)changes_ask_options(job->changes, options, why, size);
}

enum sluice_status sluice_job_set_chain(struct sluice_job *job, const char *chain, char *why,
                                        size_t size)
{
    return job->is_part ? refuse_change(why, size)
                        : (enum sluice_status)changes_ask_chain(job->changes, chain, why, size);
}

char *sluice_job_chain(struct sluice_job *job)
{
    return changes_text(job->changes);
}
