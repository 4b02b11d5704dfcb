// Creation of a job: its configuration checked, everything opened but the output, the threads'
// parts wired.
#include "pipeline/engine/job.h"

#include <assert.h>
#include <libavutil/cpu.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/queue.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/change.h"
#include "pipeline/engine/filter/spare.h"
#include "pipeline/engine/job_device.h"
#include "pipeline/engine/job_files.h"
#include "pipeline/engine/job_memory.h"
#include "pipeline/engine/job_part.h"
#include "pipeline/engine/lost_frames.h"
#include "pipeline/engine/metrics.h"
#include "pipeline/engine/threads/demux.h"
#include "pipeline/engine/threads/encode.h"
#include "pipeline/engine/threads/latency.h"
#include "pipeline/engine/threads/ring.h"
#include "pipeline/engine/threads/snapshot.h"
#include "pipeline/engine/threads/submit.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/packet.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/pushed.h"
#include "pipeline/input/source.h"
#include "pipeline/report/report_writer.h"
#include "pipeline/report/trace.h"

// ---- what is refused ----

static enum status check_numbers(const struct sluice_job *job, const struct sluice_config *config)
{
    const struct {
        const char *name;
        double value, most;
    } numbers[] = {
        {"start", config->start, 1e9},
        {"duration", config->duration, 1e9},
        {"frames", (double)config->frames, 1e15},
        {"max_pixels", (double)config->max_pixels, 1e12},
        {"threads", config->threads, 1024},
        {"codec_threads", config->codec_threads, 64},
        {"ring", config->ring, MAX_SLOTS},
        {"verify", config->verify, 1e9},
        {"open_timeout", config->open_timeout, 1e6},
        {"stall_timeout", config->stall_timeout, 1e6},
        {"max_latency", config->max_latency, 1e6},
        {"mem", (double)config->mem, 1e18},
        {"vram", (double)config->vram, 1e18},
        {"stream", config->stream, 1e6},
        {"input_width", config->input_width, 1e6},
        {"input_height", config->input_height, 1e6},
        {"input_rate.num", config->input_rate.num, INT_MAX},
        {"input_rate.den", config->input_rate.den, INT_MAX},
    };
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (!(numbers[k].value >= 0 && numbers[k].value <= numbers[k].most))
            return log_fail(&job->log, STATUS_USAGE, "%s is %g; the range is 0 .. %g",
                            numbers[k].name, numbers[k].value, numbers[k].most);
    if (!config->input_width != !config->input_height ||
        !config->input_rate.num != !config->input_rate.den)
        return log_fail(
            &job->log, STATUS_USAGE,
            "input_width goes with input_height, and the two numbers of input_rate together");
    if (!config->push && (!config->input || !*config->input))
        return log_fail(&job->log, STATUS_USAGE, "no input is named");
    if (config->push && (config->input || config->input_format || config->input_pixfmt ||
                         config->input_width || config->stream || config->simulate))
        return log_fail(
            &job->log, STATUS_USAGE,
            "frames are pushed: there is no input, nor its format, size, stream or faults");
    if (config->repeatable && config->hwdec == SLUICE_HWDEC_REQUIRE)
        return log_fail(
            &job->log, STATUS_USAGE,
            "--repeatable decodes on the CPU, and --hwdec require on the GPU: leave out one");
    return STATUS_OK;
}

static enum status check_outputs(struct sluice_job *job, const struct sluice_config *config,
                                 struct sink_request *outputs, int count)
{
    if (count > MAX_OUTPUTS)
        return log_fail(&job->log, STATUS_USAGE, "a job writes up to %d outputs, tees among them",
                        MAX_OUTPUTS);
    for (int k = 0; k < count; k++)
        if (!outputs[k].output || !*outputs[k].output)
            return log_fail(&job->log, STATUS_USAGE, "no output is named");
    bool taken = !config->take;
    for (int k = 0; k < count; k++)
        taken |= !strcmp(outputs[k].output, sink_take_name);
    if (!taken)
        return log_fail(&job->log, STATUS_USAGE, "frames are to be taken and no output is named %s",
                        sink_take_name);
    enum status status = job_files_reserve(config, &job->chain, &job->log, &job->conflicts);
    for (int k = 0; k < count; k++)
        outputs[k].conflicts = job->conflicts;
    return status;
}

static enum status check_next(void *job_, const struct chain *chain, const struct log *log)
{
    const struct sluice_job *job = job_;
    return path_conflicts_check_chain(job->conflicts, chain, log);
}

static enum status check_changes(const struct sluice_job *job)
{
    enum status status = STATUS_OK;
    for (int k = 1; k < job->schedule.count && !status; k++) {
        const struct chain *planned = &job->schedule.chain[k];
        struct chain_error error;
        if (!chain_writes_alike(planned, &job->chain, &error))
            status = log_fail(&job->log, STATUS_USAGE, "%s", error.message);
        if (!status)
            status = path_conflicts_check_chain(job->conflicts, planned, &job->log);
    }
    return status;
}

static void select_range(struct sluice_job *job, const struct sluice_config *config)
{
    struct selection *selection = &job->selection;
    int64_t begin = job->source->format->start_time;
    if (job->source->start != AV_NOPTS_VALUE)
        begin = job->source->start;
    else if (begin == AV_NOPTS_VALUE)
        begin = 0;
    selection->begin_us = job->source->start;
    if (job->is_part) {
        *selection = (struct selection){.begin_us = job->span.begin_us,
                                        .end_us = job->span.end_us,
                                        .frame_limit = INT64_MAX,
                                        .part = true,
                                        .all_read = job->repeatable};
        return;
    }
    selection->end_us =
        config->duration > 0 ? begin + (int64_t)(config->duration * AV_TIME_BASE) : INT64_MAX;
    selection->frame_limit = config->frames > 0 ? config->frames : INT64_MAX;
    if (!job->sink->one_frame || selection->frame_limit == 1)
        return;
    selection->frame_limit = 1;
    if (source_frames(job->source) > 1)
        log_print(&job->log, LOG_INFO,
                  "%s holds one picture: the first frame is written; a name with %%04d takes all",
                  job->output_name);
}

// Live sources do not wait: frames that cannot be dealt with in time are dropped, the oldest first.
// A file's are only if a limit is set, and a playlist's, which come many at once.
static double latency_limit(const struct source *source, const struct sluice_config *config)
{
    bool waits = !source->live || source->is_playlist;
    return config->max_latency > 0 ? config->max_latency : waits ? 0 : 2;
}

static enum status create_latency(struct sluice_job *job, const struct sluice_config *config)
{
    if (!source_is_live(job->source))
        return STATUS_OK;
    return latency_create((int64_t)(latency_limit(job->source, config) * 1e9), &job->latency);
}

static enum status open_decoder(struct sluice_job *job, const struct sluice_config *config)
{
    int64_t begin_ns = meter_now_ns();
    assert(job->slots > 0 && job->slots <= MAX_SLOTS);
    trace_slots(job->trace, job->slots);
    job->codec_threads = config->codec_threads;
    struct decoder_request request = {
        .hwdec = (enum hwdec)config->hwdec,
        .repeatable = config->repeatable,
        .max_pixels = config_max_pixels(config),
        .threads = config->codec_threads,
        .frames_held = job->slots + FRAMES_QUEUED + 2,
        .rescues = !config_wants_gpu(config),
        .max_latency = latency_limit(job->source, config),
        .part = job->is_part ? &job->span : NULL,
        .later = job_device_later(job),
    };
    select_range(job, config);
    enum status status = create_latency(job, config);
    if (!status)
        status = decoder_create(&request, job->source, job->backend, &job->decoder);
    if (!status) {
        const struct spare_finder finder = lost_frames_of(job->decoder);
        spare_set_finder(job->spare, &finder);
        job->need.on_device = decoder_stream(job->decoder) != NULL;
    }
    job_start_span(job, "open the decoder", begin_ns);
    return status;
}

// Keep the names of the outputs, which outlive them.
static enum status name_outputs(struct sluice_job *job)
{
    job->outputs = job->sink->outputs(job->sink, job->output, MAX_OUTPUTS);
    for (int k = 0; k < job->outputs; k++) {
        job->output_names[k] = strdup(job->output[k].name);
        if (!job->output_names[k])
            return STATUS_MEMORY;
    }
    return STATUS_OK;
}

static enum status create_changes(struct sluice_job *job, const struct sluice_config *config)
{
    return changes_create(&(struct changes_request){.schedule = &job->schedule,
                                                    .changed = config->changed,
                                                    .opaque = config->opaque,
                                                    .check = check_next,
                                                    .checker = job,
                                                    .log = &job->log},
                          &job->changes);
}

static enum status create_report_writer(struct sluice_job *job, const struct sluice_config *config)
{
    return report_writer_create(&(struct report_writer_request){.chain = &job->chain,
                                                                .overwrite = config->overwrite,
                                                                .unchecked = job->part != NULL,
                                                                .log = &job->log,
                                                                .stop = &job->stop},
                                &job->report_writer);
}

static enum status create_watchers(struct sluice_job *job, const struct sluice_config *config)
{
    enum status status = STATUS_OK;
    if (config->metrics)
        status = metrics_create(config->metrics, &job->log, &job->metrics);
    if (!status)
        status = trace_create(config->trace ? url_plain(config->trace, true) : NULL,
                              config->overwrite, &job->log, &job->trace);
    return status;
}

// Open the input, when the outputs have been found to be possible.
static enum status open_source(struct sluice_job *job, const struct sluice_config *config)
{
    struct source_request input = config_source(config);
    int64_t begin_ns = meter_now_ns();
    input.live |= job->sink->is_live;
    input.part = job->is_part ? &job->span : NULL;
    if (input.push)
        input.name = "pushed frames";
    enum status status = source_check(&input, &job->log);
    if (!status && !job->part)
        status = sink_check(job->sink);
    if (!status)
        status = source_open(&input, &job->log, &job->stop.asked, &job->source);
    if (!status) {
        job->input_codec = avcodec_get_name(source_video(job->source)->codecpar->codec_id);
        job_start_span(job, "open the input", begin_ns);
    }
    return status;
}

// ---- wiring ----

static void drop_frame(void *frame_)
{
    AVFrame *frame = frame_;
    av_frame_free(&frame);
}

static enum status create_queues(struct sluice_job *job)
{
    enum status status = ring_create(job->slots, job->pictures, &job->ring);
    if (status)
        return status;
    int packets = job->source->pushed ? FRAMES_QUEUED : PACKETS_QUEUED;
    status = queue_create(packets, 1, packet_drop, &job->packets);
    if (status)
        return status;
    queue_limit(job->packets, budget_packets, packet_weigh);
    return queue_create(FRAMES_QUEUED, 1, drop_frame, &job->frames);
}

static enum status create_demux(struct sluice_job *job)
{
    return demux_create(&(struct demux_ports){.source = job->source,
                                              .sink = job->sink,
                                              .packets = job->packets,
                                              .selection = &job->selection,
                                              .latency = job->latency,
                                              .trace = job->trace,
                                              .tap = &job->tap,
                                              .log = &job->log},
                        &job->demux);
}

static enum status create_decode(struct sluice_job *job)
{
    return decode_create(&(struct decode_ports){.decoder = job->decoder,
                                                .source = job->source,
                                                .packets = job->packets,
                                                .frames = job->frames,
                                                .selection = &job->selection,
                                                .kind = &job->decoded,
                                                .stop = &job->stop,
                                                .latency = job->latency,
                                                .trace = job->trace,
                                                .part = job->part,
                                                .span = job->is_part ? &job->span : NULL},
                         &job->decode);
}

static enum status create_submit(struct sluice_job *job, const struct sluice_config *config)
{
    return submit_create(
        &(struct submit_ports){.frames = job->frames,
                               .ring = job->ring,
                               .changes = job->changes,
                               .filter = {.formats = job->formats,
                                          .backend = job->backend,
                                          .slots = job->slots,
                                          .frames_in_flight = !job->source->is_still,
                                          .max_pixels = config_max_pixels(config),
                                          .job = &job->need,
                                          .log = &job->log},
                               .later_need = &job->gpu_need,
                               .spare = job->spare,
                               .report_writer = job->report_writer,
                               .kind = &job->decoded,
                               .time_base = source_video(job->source)->time_base,
                               .stream = source_video(job->source),
                               .stop = &job->stop,
                               .latency = job->latency,
                               .trace = job->trace,
                               .tap = &job->tap},
        &job->chain, &job->submit);
}

// Threads of the CPU that filter frames at once: of its backend, or of a GPU's spare.
static int filter_threads(const struct sluice_job *job, const struct sluice_config *config)
{
    if (!job->backend->gpus)
        return job->backend->parallel;
    return config->threads ? config->threads : av_cpu_count();
}

static enum status create_encode(struct sluice_job *job, const struct sluice_config *config)
{
    return encode_create(&(struct encode_ports){.ring = job->ring,
                                                .sink = job->sink,
                                                .source = job->source,
                                                .selection = &job->selection,
                                                .stop = &job->stop,
                                                .report_writer = job->report_writer,
                                                .snapshot = job->snapshot,
                                                .latency = job->latency,
                                                .trace = job->trace,
                                                .part = job->part,
                                                .pictures = job->pictures,
                                                .verify = config->verify,
                                                .gpus = job->backend->gpus,
                                                .threads = filter_threads(job, config),
                                                .gap_kind = (enum gap_kind)config->gap},
                         &job->encode);
}

// Create the threads' parts, each with its ports.
static enum status create_parts(struct sluice_job *job, const struct sluice_config *config)
{
    enum status status = create_queues(job);
    if (status)
        return status;
    status = create_demux(job);
    if (status)
        return status;
    status = create_decode(job);
    if (status)
        return status;
    status = create_submit(job, config);
    return status ? status : create_encode(job, config);
}

// ---- all of it ----

// Name the job's files and check what can be known without opening anything; `outputs` gets the
// requests of the sink, *count of them.
static enum status check(struct sluice_job *job, const struct sluice_config *config,
                         struct sink_request *outputs, int *count)
{
    struct devices devices;
    char shown[4300];
    url_without_secrets(config->output.name ? config->output.name : "", shown, sizeof shown);
    job->output_name = strdup(shown);
    job->overwrite = config->overwrite;
    enum status status = job->output_name ? check_numbers(job, config) : STATUS_MEMORY;
    if (status)
        return status;
    status = config_devices(config->device, &job->log, &devices);
    if (status)
        return status;
    status = config_schedule(config, &job->log, &job->schedule);
    if (!status)
        status = chain_copy(job->schedule.chain, &job->chain);
    if (status)
        return status;
    *count = config_sinks(config, outputs);
    *count = config_add_tees(config, &job->chain, outputs, *count);
    job->pictures = 1 + chain_files(&job->chain, WRITES_PICTURES, NULL, 0);
    return STATUS_OK;
}

// Create the job's watchers and its changes, and check the files that are written.
static enum status create_outside(struct sluice_job *job, const struct sluice_config *config,
                                  struct sink_request *outputs, int count)
{
    enum status status = snapshot_create(&job->snapshot);
    if (status)
        return status;
    status = create_report_writer(job, config);
    if (status)
        return status;
    status = check_outputs(job, config, outputs, count);
    if (status)
        return status;
    status = check_changes(job);
    if (status)
        return status;
    status = create_changes(job, config);
    return status ? status : create_watchers(job, config);
}

static enum status create_sink(struct sluice_job *job, const struct sink_request *outputs,
                               int count)
{
    enum status status = sink_create(outputs, count, &job->log, &job->stop, &job->sink);
    if (status)
        return status;
    sink_list_formats(job->sink, job->formats);
    job->sink->meter = &job->sink_meter;
    return name_outputs(job);
}

enum status job_open(struct sluice_job *job, const struct sluice_config *config)
{
    struct sink_request outputs[MAX_OUTPUTS];
    int count = 0;
    enum status status = check(job, config, outputs, &count);
    if (status)
        return status;
    status = job_part_begin(job, config, outputs, count);
    if (status)
        return status;
    status = create_outside(job, config, outputs, count);
    if (status)
        return status;
    status = create_sink(job, outputs, count);
    if (status)
        return status;
    status = open_source(job, config);
    if (status)
        return status;
    status = job_device_open(job, config);
    if (status)
        return status;
    if (job->source->pushed)
        status = pushed_bind(job->source->pushed, job->backend);
    else if (config->map_input && !config->verify && !job->backend->gpus && !job->device_start)
        source_map(job->source);
    if (!status)
        status = open_decoder(job, config);
    if (status)
        return status;
    status = job_part_open(job);
    return status ? status : create_parts(job, config);
}
