#include "pipeline/engine/job.h"

#include <libavutil/avutil.h>
#include <libavutil/cpu.h>
#include <libavutil/mathematics.h>
#include <libavutil/pixdesc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/job_files.h"
#include "pipeline/engine/metrics.h"
#include "pipeline/ffmpeg/format.h"
#include "pipeline/ffmpeg/url.h"
#include "pipeline/input/picture.h"

_Static_assert((int)SLUICE_STATUS_DEVICE == (int)STATUS_DEVICE,
               "sluice_status mirrors enum status");
_Static_assert((int)SLUICE_STATUS_USAGE == (int)STATUS_USAGE, "sluice_status mirrors enum status");
_Static_assert((int)SLUICE_STATUS_STOPPED == (int)STATUS_STOPPED,
               "sluice_status mirrors enum status");

enum {
    PACKETS_QUEUED = 32,
    FRAMES_QUEUED = 2,
};

// Nothing new was shown for so long, and for what frames may take: the picture stands still.
static const int64_t stands_ns = 500 * INT64_C(1000000);

// How much of other streams may come before the first frame of video, and how much is read beyond
// it for what only packets tell.
static const int64_t max_early_bytes = 256 << 20, max_learning_bytes = 8 << 20;

void job_span(struct sluice_job *job, enum sluice_part part, int64_t begin_ns, int64_t frame)
{
    static const struct {
        enum trace_track track;
        const char *name;
    } spans[SLUICE_PART_COUNT] = {
        [SLUICE_PART_DEMUX] = {TRACE_DEMUX, "read"},
        [SLUICE_PART_DECODE] = {TRACE_DECODE, "decode"},
        [SLUICE_PART_ENCODE] = {TRACE_ENCODE, "encode"},
        [SLUICE_PART_MUX] = {TRACE_MUX, "write"},
    };
    int64_t end_ns = meter_now_ns();
    job->meter[part].busy_ns += end_ns - begin_ns;
    trace_span(job->trace, (int)spans[part].track, spans[part].name, begin_ns, end_ns, frame);
}

void job_start_span(struct sluice_job *job, const char *name, int64_t begin_ns)
{
    trace_span(job->trace, TRACE_START, name, begin_ns, meter_now_ns(), -1);
}

static bool picture_stands(const struct sluice_job *job)
{
    return job->latency_ns && job->shown_ns &&
           meter_now_ns() - job->shown_ns > stands_ns + job->latency_ns;
}

bool frame_is_late(const struct sluice_job *job, const AVFrame *frame, int64_t ahead_ns)
{
    // Where even the freshest are late, some are shown all the same: better than a still.
    if (!job->latency || !job->latency_ns || !job->shown_ns || picture_stands(job))
        return false;
    AVRational base = source_video(job->source)->time_base;
    return latency_age_ns(job->latency, av_rescale_q(frame->pts, base, AV_TIME_BASE_Q)) >
           job->latency_ns - ahead_ns;
}

void drop_frame(void *frame_)
{
    AVFrame *frame = frame_;
    av_frame_free(&frame);
}

// ---- creation ----

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
        {"ring", config->ring, MAX_SLOTS},
        {"verify", config->verify, 1e9},
        {"open_timeout", config->open_timeout, 1e6},
        {"stall_timeout", config->stall_timeout, 1e6},
        {"max_latency", config->max_latency, 1e6},
        {"stream", config->stream, 1e6},
        {"input_width", config->input_width, 1e6},
        {"input_height", config->input_height, 1e6},
        {"input_rate.num", config->input_rate.num, INT_MAX},
        {"input_rate.den", config->input_rate.den, INT_MAX},
    };
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (!(numbers[k].value >= 0 && numbers[k].value <= numbers[k].most))
            return fail(&job->log, STATUS_USAGE, "%s is %g; the range is 0 .. %g", numbers[k].name,
                        numbers[k].value, numbers[k].most);
    if (!config->input_width != !config->input_height ||
        !config->input_rate.num != !config->input_rate.den)
        return fail(
            &job->log, STATUS_USAGE,
            "input_width goes with input_height, and the two numbers of input_rate together");
    if (!config->input || !*config->input)
        return fail(&job->log, STATUS_USAGE, "no input is named");
    if (config->repeatable && config->hwdec == SLUICE_HWDEC_REQUIRE)
        return fail(
            &job->log, STATUS_USAGE,
            "--repeatable decodes on the CPU, and --hwdec require on the GPU: leave out one");
    return STATUS_OK;
}

static enum status check_outputs(struct sluice_job *job, const struct sluice_config *config,
                                 struct sink_request *outputs, int count)
{
    if (count > MAX_OUTPUTS)
        return fail(&job->log, STATUS_USAGE, "a job writes up to %d outputs, tees among them",
                    MAX_OUTPUTS);
    for (int k = 0; k < count; k++)
        if (!outputs[k].output || !*outputs[k].output)
            return fail(&job->log, STATUS_USAGE, "no output is named");
    enum status status = job_files_claim(config, &job->chain, &job->log, &job->conflicts);
    for (int k = 0; k < count; k++)
        outputs[k].conflicts = job->conflicts;
    return status;
}

static enum status check_next(void *job_, const struct chain *chain, const struct log *log)
{
    const struct sluice_job *job = job_;
    return path_conflicts_check_chain(job->conflicts, chain, log);
}

static enum status check_changes(struct sluice_job *job, const struct sluice_config *config)
{
    enum status status = STATUS_OK;
    const struct sluice_change *change = config->changes;
    for (; change && change->chain && !status; change++) {
        struct chain planned;
        status = chain_parse_logged(change->chain, &picture_reader, &job->log, &planned);
        struct chain_error error;
        if (!status && !chain_writes_alike(&planned, &job->chain, &error))
            status = fail(&job->log, STATUS_USAGE, "%s", error.message);
        if (!status)
            status = check_next(job, &planned, &job->log);
        chain_free(&planned);
    }
    return status;
}

static void set_range(struct sluice_job *job, const struct sluice_config *config)
{
    int64_t begin = job->source->format->start_time;
    if (job->source->start != AV_NOPTS_VALUE)
        begin = job->source->start;
    else if (begin == AV_NOPTS_VALUE)
        begin = 0;
    job->end =
        config->duration > 0 ? begin + (int64_t)(config->duration * AV_TIME_BASE) : INT64_MAX;
    job->frame_limit = config->frames > 0 ? config->frames : INT64_MAX;
    if (!job->sink->one_frame || job->frame_limit == 1)
        return;
    job->frame_limit = 1;
    if (source_frames(job->source) > 1)
        log_print(&job->log, LOG_INFO,
                  "%s holds one picture: the first frame is written; a name with %%04d takes all",
                  job->output_name);
}

// Live sources do not wait: frames that cannot be dealt with in time are dropped, the oldest first.
// A file's are only if a limit is set, and a playlist's, which come many at once.
static enum status set_latency(struct sluice_job *job, const struct sluice_config *config)
{
    bool waits = !job->source->live || job->source->is_playlist;
    double limit = config->max_latency > 0 ? config->max_latency : waits ? 0 : 2;
    job->latency_ns = (int64_t)(limit * 1e9);
    return source_is_live(job->source) ? latency_create(&job->latency) : STATUS_OK;
}

static enum status create_decoder(struct sluice_job *job, const struct sluice_config *config)
{
    int64_t begin_ns = meter_now_ns();
    job->slots = config_slots(config, job->backend, job->source);
    trace_slots(job->trace, job->slots);
    struct decoder_request request = {
        .hwdec = (enum hwdec)config->hwdec,
        .repeatable = config->repeatable,
        .max_pixels = config_max_pixels(config),
        .frames_held = job->slots + FRAMES_QUEUED + 2,
        .max_latency = config->max_latency,
    };
    set_range(job, config);
    enum status status = set_latency(job, config);
    if (!status)
        status = decoder_create(&request, job->source, job->backend, &job->decoder);
    job_start_span(job, "open the decoder", begin_ns);
    return status;
}

// The names of the outputs, which outlive them.
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
    return changes_create(&(struct changes_request){.first = &job->chain,
                                                    .planned = config->changes,
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
                                                                .log = &job->log,
                                                                .stop = &job->stop},
                                &job->report_writer);
}

static enum status create_watchers(struct sluice_job *job, const struct sluice_config *config)
{
    enum status status = STATUS_OK;
    if (config->metrics)
        status = metrics_create(config->metrics, &job->log, &job->metrics);
    if (!status && config->trace)
        status =
            trace_create(url_plain(config->trace, true), config->overwrite, &job->log, &job->trace);
    return status;
}

// Open the input, when the outputs have been found to be possible.
static enum status open_source(struct sluice_job *job, const struct sluice_config *config)
{
    struct source_request input = config_source(config);
    int64_t begin_ns = meter_now_ns();
    input.live |= job->sink->is_live;
    enum status status = source_check(&input, &job->log);
    if (!status)
        status = sink_check(job->sink);
    if (!status)
        status = source_open(&input, &job->log, &job->stop.asked, &job->source);
    if (!status)
        job_start_span(job, "open the input", begin_ns);
    return status;
}

static enum status open_backend(struct sluice_job *job, const struct sluice_config *config)
{
    char reason[256];
    int64_t begin_ns = meter_now_ns();
    enum status status = config_backend(config, job->source->is_still, &job->log, &job->backend,
                                        reason, sizeof reason);
    if (status)
        return status;
    job_start_span(job, "open the device", begin_ns);
    if (*reason)
        log_print(&job->log, LOG_DEBUG, "the CPU filters: %s", reason);
    return STATUS_OK;
}

static enum status create(struct sluice_job *job, const struct sluice_config *config)
{
    struct sink_request outputs[MAX_OUTPUTS];
    int count = config_sinks(config, outputs);
    char shown[4300];
    url_without_secrets(config->output.name ? config->output.name : "", shown, sizeof shown);
    job->output_name = strdup(shown);
    job->verify = config->verify;
    job->overwrite = config->overwrite;
    job->max_pixels = config_max_pixels(config);
    job->gap_kind = (enum gap_kind)config->gap;
    struct devices devices;
    enum status status = job->output_name ? check_numbers(job, config) : STATUS_MEMORY;
    if (!status)
        status = config_devices(config->device, &job->log, &devices);
    if (!status)
        status = config_chain(config, &job->log, &job->chain);
    if (!status)
        count = config_add_tees(config, &job->chain, outputs, count);
    job->pictures = 1 + chain_files(&job->chain, WRITES_PICTURES, NULL, 0);
    if (!status)
        status = snapshot_create(&job->snapshot);
    if (!status)
        status = create_changes(job, config);
    if (!status)
        status = create_report_writer(job, config);
    if (!status)
        status = check_outputs(job, config, outputs, count);
    if (!status)
        status = check_changes(job, config);
    if (!status)
        status = create_watchers(job, config);
    if (!status)
        status = sink_create(outputs, count, &job->log, &job->stop, &job->sink);
    if (status)
        return status;
    sink_list_formats(job->sink, job->formats);
    job->sink->meter = &job->meter[SLUICE_PART_ENCODE];
    status = name_outputs(job);
    if (!status)
        status = open_source(job, config);
    if (!status)
        status = open_backend(job, config);
    return status ? status : create_decoder(job, config);
}

enum sluice_status sluice_job_create(const struct sluice_config *given, struct sluice_job **job)
{
    struct sluice_config config;
    *job = calloc(1, sizeof **job);
    if (!*job)
        return SLUICE_STATUS_MEMORY;
    monitor_init(&(*job)->threads_lock);
    enum status status = config_read(given, &config, &(*job)->log_target, &(*job)->log);
    if (!status)
        status = create(*job, &config);
    if (status == STATUS_MEMORY)
        log_print(&(*job)->log, LOG_ERROR, "out of memory");
    if (status)
        sluice_job_destroy(job);
    else if ((*job)->metrics)
        metrics_watch((*job)->metrics, *job);
    return (enum sluice_status)status;
}

// ---- the first frame ----

static enum status keep_early(struct sluice_job *job, struct packet **packet)
{
    job->early_bytes += (*packet)->av->size;
    if (job->early_bytes > max_early_bytes)
        return fail(&job->log, STATUS_INPUT,
                    "%s has no frame of video within its first %lld MiB of other streams",
                    job->source->name, (long long)max_early_bytes >> 20);
    struct packet **list = realloc(job->early, (size_t)(job->earlies + 1) * sizeof *list);
    if (!list)
        return STATUS_MEMORY;
    job->early = list;
    list[job->earlies++] = *packet;
    *packet = NULL;
    return STATUS_OK;
}

// Read until the decoder has something to say. STATUS_EOF: there is no more to read.
static enum status feed(struct sluice_job *job)
{
    struct packet *packet = NULL;
    enum status status = source_read(job->source, &packet);
    if (!status && packet->av->stream_index == job->source->video)
        status = decoder_send(job->decoder, packet);
    else if (!status && job->sink->accepts_streams)
        status = keep_early(job, &packet);
    packet_destroy(&packet);
    return status;
}

// Learn of the other streams what only their packets tell: from those that came already, then from
// as many more as it takes, which wait for their turn.
static enum status learn_streams(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    int64_t most = job->early_bytes + max_learning_bytes;
    for (int k = 0; k < job->earlies && !status; k++)
        status = source_probe(job->source, job->early[k]->av);
    while (!status && job->sink->accepts_streams && !source_is_probed(job->source) &&
           job->early_bytes < most) {
        struct packet *packet = NULL;
        status = source_read(job->source, &packet);
        if (!status)
            status = source_probe(job->source, packet->av);
        if (!status)
            status = keep_early(job, &packet);
        packet_destroy(&packet);
    }
    return status == STATUS_EOF ? STATUS_OK : status;
}

static enum status say_no_frame(const struct sluice_job *job)
{
    const char *name = job->source->name;
    char why[256];
    if (job->frames_in)
        return fail(&job->log, STATUS_INPUT, "%s has no frame in the range that was asked for",
                    name);
    if (source_is_scrambled(job->source))
        return fail(&job->log, STATUS_INPUT, "%s is encrypted; sluice needs the video in the clear",
                    name);
    if (source_lacks_index(job->source))
        return fail(&job->log, STATUS_INPUT,
                    "%s has its index at the end, where a pipe cannot look first; give the file by "
                    "name, or one that was written with -movflags +faststart",
                    name);
    if (source_is_empty(job->source))
        return fail(&job->log, STATUS_INPUT, "%s is empty (0 bytes); a video was expected", name);
    decoder_explain(job->decoder, why, sizeof why);
    return fail(&job->log, STATUS_INPUT, "%s has no frame that can be decoded: %s", name, why);
}

static enum status first_frame(struct sluice_job *job, AVFrame **frame)
{
    bool at_end = false;
    enum status status = STATUS_OK;
    while (!status) {
        status = decode_next(job, frame);
        if (status || *frame)
            break;
        status = feed(job);
        if (status == STATUS_EOF && !at_end) {
            at_end = true;
            status = decoder_send(job->decoder, NULL);
        }
    }
    return status == STATUS_EOF ? say_no_frame(job) : status;
}

// Where the output will end before its input does, in microseconds; INT64_MAX: it will not, as far
// as is known.
static int64_t end_of_output(const struct sluice_job *job, const AVFrame *first)
{
    AVStream *video = source_video(job->source);
    AVRational rate = av_guess_frame_rate(job->source->format, video, NULL);
    if (job->frame_limit == INT64_MAX || rate.num <= 0)
        return job->end;
    int64_t end = av_rescale_q(first->pts, video->time_base, AV_TIME_BASE_Q) +
                  av_rescale_q(job->frame_limit, av_inv_q(rate), AV_TIME_BASE_Q);
    return end < job->end ? end : job->end;
}

// The first output has a packet written.
static void note_written(void *job_, int64_t pts_us, int64_t begin_ns)
{
    struct sluice_job *job = job_;
    if (pts_us != AV_NOPTS_VALUE && job->latency)
        latency_note_out(job->latency, pts_us);
    job_span(job, SLUICE_PART_MUX, begin_ns, -1);
}

// Behind a slow encoder, one of several, frames wait.
static bool has_waited_too_long(void *job, const AVFrame *frame)
{
    return frame_is_late(job, frame, 0);
}

static enum status keep_shapes(struct sluice_job *job, const struct slot *slot)
{
    for (int n = 0; n < job->pictures; n++)
        if (!(job->shape[n] = av_frame_clone(slot->out[n])))
            return STATUS_MEMORY;
    return STATUS_OK;
}

// The output, opened when the first filtered frame is under way and so is known in shape.
static enum status open_sink(struct sluice_job *job, const struct slot *slot)
{
    AVStream *video = source_video(job->source);
    job->described = format_describe(job->source->format);
    enum status status = keep_shapes(job, slot);
    if (status || !job->described)
        return STATUS_MEMORY;
    const AVFrame *shape = job->shape[0];
    int64_t start = job->source->start;
    job->video = (struct sink_video){
        .name = job->source->name,
        .from = job->described,
        .stream = job->source->video,
        .live = source_is_live(job->source),
        .first = shape,
        .tee = job->shape + 1,
        .time_base = video->time_base,
        .frame_rate = av_guess_frame_rate(job->source->format, video, NULL),
        .shift = start == AV_NOPTS_VALUE ? 0 : start,
        .end = end_of_output(job, shape),
        .watch = {note_written, job},
        .is_late = has_waited_too_long,
        .opaque = job,
    };
    job->width = shape->width;
    job->height = shape->height;
    job->sink->pixel = shape->format;
    int64_t begin_ns = meter_now_ns();
    status = job->sink->open(job->sink, &job->video);
    if (!status && job->report_writer)
        status = report_writer_open(job->report_writer, job->video.time_base, job->video.live);
    job_start_span(job, "open the output", begin_ns);
    job->alone = !status && passthrough_is_empty(&job->sink->passthrough);
    for (int n = 0; n < job->pictures && !status && source_may_be_lost(job->source); n++)
        status =
            gap_create(job->gap_kind, job->video.time_base, job->video.frame_rate, &job->gap[n]);
    snprintf(job->output_format, sizeof job->output_format, "%s",
             av_get_pix_fmt_name(job->sink->pixel));
    return status;
}

// What the job may take, now that all is open. Files are not asked: they end.
static void tell_memory(struct sluice_job *job, int64_t frame_bytes)
{
    int64_t out_bytes = 0, most_bytes = 0;
    for (int n = 0; n < job->pictures; n++) {
        int64_t bytes = budget_of_frame(job->shape[n]);
        out_bytes += bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    int64_t slots = (job->slots + FRAMES_QUEUED + 4) * (frame_bytes + out_bytes) +
                    filter_analysis_bytes(job->filter);
    int64_t analysis_bytes = filter_analysis_bytes(job->filter) / job->slots;
    int64_t records =
        job->report_writer ? report_writer_memory(job->report_writer, analysis_bytes) : 0;
    job->max_memory = budget_resident() + slots + 3 * budget_packets +
                      budget_of_decoder(av_cpu_count(), frame_bytes) + filter_memory(job->filter) +
                      job->sink->memory(job->sink, most_bytes) + records;
    if (source_is_live(job->source))
        log_print(&job->log, LOG_INFO, "memory stays below %lld MiB",
                  (long long)(job->max_memory >> 20) + 1);
}

static enum status begin(struct sluice_job *job)
{
    enum status status = ring_create(job->slots, job->pictures, &job->ring);
    if (!status)
        status = queue_create(PACKETS_QUEUED, 1, packet_drop, &job->packets);
    if (!status)
        status = queue_create(FRAMES_QUEUED, 1, drop_frame, &job->frames);
    if (!status)
        queue_limit(job->packets, budget_packets, packet_weigh);
    AVFrame *first = NULL;
    if (!status)
        status = first_frame(job, &first);
    if (!status)
        status = learn_streams(job);
    if (!status) {
        const char *pixel = av_get_pix_fmt_name(decoder_pixel(job->decoder));
        snprintf(job->input_format, sizeof job->input_format, "%s", pixel ? pixel : "unknown");
        int64_t frame_bytes = budget_of_frame(first);
        status = submit_frame(job, &first, open_sink);
        if (!status)
            tell_memory(job, frame_bytes);
    }
    av_frame_free(&first);
    return status;
}

// ---- threads ----

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    struct sluice_job *job = thread->job;
    enum status status = thread->run(job);
    if (status_is_failure(status)) // a source that is lost is not waited for any more
        source_cancel(job->source);
    monitor_lock(&job->threads_lock);
    thread->status = status;
    thread->ended = true;
    job->running--;
    monitor_notify(&job->threads_lock);
    monitor_unlock(&job->threads_lock);
    return NULL;
}

// What to do for a thread that could not be started, so that the others end.
static void never_ran(struct sluice_job *job, enum status (*run)(struct sluice_job *job))
{
    if (run == demux_run)
        queue_finish(job->packets);
    if (run == decode_run)
        queue_cancel(job->packets), queue_finish(job->frames);
    if (run == submit_run)
        queue_cancel(job->frames), ring_finish(job->ring);
    if (run == encode_run)
        ring_cancel(job->ring), encode_run(job);
}

static enum status start_threads(struct sluice_job *job)
{
    static enum status (*const run[JOB_THREADS])(struct sluice_job *) = {demux_run, decode_run,
                                                                         submit_run, encode_run};
    enum status status = STATUS_OK;
    job->running = 0;
    for (int k = 0; k < JOB_THREADS; k++) {
        struct thread *thread = &job->thread[k];
        *thread = (struct thread){.job = job, .run = run[k]};
        monitor_lock(&job->threads_lock);
        thread->started = !pthread_create(&thread->thread, NULL, thread_main, thread);
        job->running += thread->started;
        monitor_unlock(&job->threads_lock);
        if (!thread->started) {
            status = fail(&job->log, STATUS_FAILED, "a thread could not be started");
            never_ran(job, thread->run);
        }
    }
    return status;
}

// Whether all that is still running is not waited for: the job was stopped, and its time is over.
// Only an encoder is deep in a frame then; the demux thread is not in the sink any more.
static bool is_left_alone_locked(const struct sluice_job *job)
{
    return job->sink->cancel && job->thread[0].ended && stop_is_late(&job->stop) &&
           meter_now_ns() > job->stop.at_ns + stop_flush_ns + stop_frame_ns;
}

// Wait for the threads. Returns how many are left alone.
static int await_threads(struct sluice_job *job)
{
    const int64_t look_ns = 100 * INT64_C(1000000);
    monitor_lock(&job->threads_lock);
    while (job->running > 0 && !is_left_alone_locked(job)) {
        monitor_wait_until(&job->threads_lock, meter_now_ns() + look_ns);
        if (!job->sink->cancel || !stop_is_late(&job->stop))
            continue;
        queue_close(job->packets); // the demux thread may be waiting for a decoder that waits, too
        job->sink->cancel(job->sink);
    }
    int left = job->running;
    monitor_unlock(&job->threads_lock);
    return left;
}

static enum status join_threads(struct sluice_job *job)
{
    enum status status = STATUS_OK;
    for (int k = 0; k < JOB_THREADS; k++) {
        struct thread *thread = &job->thread[k];
        if (!thread->started)
            continue;
        pthread_join(thread->thread, NULL);
        thread->started = false;
        status = status_join(status, thread->status);
    }
    return status;
}

// A failure before the threads: the one frame that may be under way has to be waited for.
static void wait_for_first(struct sluice_job *job)
{
    struct slot *slot;
    if (!job->ring)
        return;
    ring_finish(job->ring);
    while (!ring_take(job->ring, &slot)) {
        filter_wait(slot->filter, slot->number, NULL);
        ring_release(job->ring, slot);
    }
}

static void fill_ledger(struct sluice_job *job, bool left_alone)
{
    struct ledger *ledger = &job->ledger;
    *ledger = (struct ledger){
        .frames_in = job->frames_in,
        .frames_out = job->frames_out - job->sink->dropped,
        .dropped_range = job->dropped_range,
        .dropped_stop = job->dropped_stop,
        .dropped_clock = job->sink->dropped,
        .dropped_late = job->dropped_late,
        .filled = job->filled,
    };
    if (left_alone) { // what has not come out by now never will
        ledger->frames_out = job->sink->kept;
        ledger->dropped_stop = ledger->frames_in + ledger->filled - ledger->frames_out -
                               ledger->dropped_range - ledger->dropped_clock - ledger->dropped_late;
    }
}

// Keep what the sink says of its outputs, while others may be asking, too; and let it go, if
// `destroy`: what is half done does not stay.
static void let_sink_go(struct sluice_job *job, bool destroy)
{
    monitor_lock(&job->threads_lock);
    struct sink *sink = job->sink;
    if (sink)
        sink->outputs(sink, job->output, MAX_OUTPUTS);
    if (destroy)
        job->sink = NULL;
    monitor_unlock(&job->threads_lock);
    if (destroy)
        sink_destroy(&sink);
}

// What a recording in segments, the only output, had no room for was handed over, but is not out.
static void count_missing(struct sluice_job *job)
{
    if (job->outputs != 1 || !job->output[0].files)
        return;
    job->ledger.dropped_disk = job->output[0].missing;
    job->ledger.frames_out -= job->output[0].missing;
}

static enum status check_ledger(const struct sluice_job *job)
{
    const struct ledger *ledger = &job->ledger;
    int64_t accounted = ledger->frames_out + ledger->dropped_range + ledger->dropped_stop +
                        ledger->dropped_clock + ledger->dropped_late;
    if (accounted == ledger->frames_in + ledger->filled)
        return STATUS_OK;
    return fail(&job->log, STATUS_FAILED,
                "the frame ledger does not add up: %lld in, %lld accounted for; please report this",
                (long long)ledger->frames_in, (long long)accounted);
}

// Run the threads to their end and make the output whole. *left_alone: some still run.
static enum status run_threads(struct sluice_job *job, bool *left_alone)
{
    enum status status = start_threads(job);
    *left_alone = await_threads(job) > 0;
    if (!*left_alone)
        status = status_join(status, join_threads(job));
    job->finishing = true;
    snapshot_finish(job->snapshot);
    fill_ledger(job, *left_alone);
    if (!status_is_failure(status))
        status = check_ledger(job);
    if (status_is_failure(status)) {
        if (job->report_writer && job->latency) // it stands, as what a live source gave so far does
            report_writer_finish(job->report_writer, meter_now_ns() + stop_flush_ns);
        return status;
    }
    status = job->sink->finish(job->sink, job->stop.asked || job->ends);
    if (job->report_writer && job->sink->absent)
        report_writer_cancel(job->report_writer);
    else if (job->report_writer)
        status = status_join(status, report_writer_finish(job->report_writer, INT64_MAX));
    let_sink_go(job, false);
    count_missing(job);
    if (!status && !*left_alone)
        status = trace_finish(&job->trace);
    job->truncated = !job->stop.asked && !job->ends && source_is_truncated(job->source);
    return status;
}

enum sluice_status sluice_job_run(struct sluice_job *job)
{
    bool left_alone = false;
    job->began_ns = meter_now_ns();
    job->began_cpu_ns = meter_process_ns();
    enum status status = begin(job);
    job->ledger.frames_in = job->frames_in;
    job->under_way = !status;
    if (status)
        wait_for_first(job);
    else
        status = run_threads(job, &left_alone);
    if (status == STATUS_MEMORY)
        log_print(&job->log, LOG_ERROR, "out of memory");
    if (status_is_failure(status))
        let_sink_go(job, !left_alone);
    job->seconds = (double)(meter_now_ns() - job->began_ns) * 1e-9;
    job->cores_busy = (double)(meter_process_ns() - job->began_cpu_ns) * 1e-9 / job->seconds /
                      (double)av_cpu_count();
    job->ran = true;
    report_verdict(job);
    if (!status && job->stop.asked)
        status = STATUS_STOPPED;
    return (enum sluice_status)status;
}

enum sluice_status sluice_job_set(struct sluice_job *job, const char *options, char *why,
                                  size_t size)
{
    return (enum sluice_status)changes_ask_options(job->changes, options, why, size);
}

enum sluice_status sluice_job_set_chain(struct sluice_job *job, const char *chain, char *why,
                                        size_t size)
{
    return (enum sluice_status)changes_ask_chain(job->changes, chain, why, size);
}

char *sluice_job_chain(struct sluice_job *job)
{
    return changes_text(job->changes);
}

// ---- snapshots ----

// Keeps the first error that was logged.
struct why {
    char *text;
    size_t size;
};

static void keep_why(void *why_, enum log_level level, const char *sentence)
{
    const struct why *why = why_;
    if (level == LOG_ERROR && why->text && why->size && !*why->text)
        snprintf(why->text, why->size, "%s", sentence);
}

static enum status write_snapshot(struct sluice_job *job, const struct sink_request *request,
                                  AVFrame *frame, const struct log *log)
{
    const char *file = request->output;
    struct sink_video video = job->video;
    struct sink *sink = NULL;
    enum status status = path_conflicts_check_file(job->conflicts, file, log);
    if (!status)
        status = sink_create(request, 1, log, NULL, &sink);
    if (!status)
        status = sink_check(sink);
    if (!status && !sink->one_frame)
        status = fail(log, STATUS_USAGE, "%s is no name of an image, as snapshot.png is", file);
    video.first = frame;
    video.live = false;
    video.watch = (struct mux_thread_watch){0};
    if (!status)
        status = sink->open(sink, &video);
    if (!status)
        status = sink->write(sink, frame);
    if (!status)
        status = sink->write(sink, NULL);
    if (!status)
        status = sink->finish(sink, false);
    sink_destroy(&sink);
    return status;
}

enum sluice_status sluice_job_snapshot(struct sluice_job *job, const char *file, bool overwrite,
                                       char *why, size_t size)
{
    const struct sink_request request = {.output = file, .overwrite = overwrite || job->overwrite};
    const int64_t patience_ns = 2000 * INT64_C(1000000);
    struct why kept = {why, size};
    const struct log log = {keep_why, &kept};
    AVFrame *frame = NULL;
    if (size)
        *why = 0;
    snapshot_take(job->snapshot, meter_now_ns() + patience_ns, &frame);
    enum status status = frame ? write_snapshot(job, &request, frame, &log)
                               : fail(&log, STATUS_EOF, "no picture came within two seconds");
    av_frame_free(&frame);
    return (enum sluice_status)status;
}

void sluice_job_stop(struct sluice_job *job)
{
    if (job->stop.asked)
        return;
    job->stop.at_ns = meter_now_ns();
    job->stop.asked = true;
}

void sluice_job_destroy(struct sluice_job **job)
{
    if (!*job)
        return;
    struct sluice_job *old = *job;
    join_threads(old);
    metrics_destroy(&old->metrics);
    for (int k = 0; k < old->outputs; k++)
        free(old->output_names[k]);
    // What holds frames goes before what made them.
    sink_destroy(&old->sink);
    report_writer_destroy(&old->report_writer);
    for (int n = 0; n < MAX_PICTURES; n++) {
        av_frame_free(&old->shape[n]);
        gap_destroy(&old->gap[n]);
    }
    queue_destroy(&old->frames);
    queue_destroy(&old->packets);
    latency_destroy(&old->latency);
    snapshot_destroy(&old->snapshot);
    avformat_free_context(old->described);
    ring_destroy(&old->ring);
    filter_destroy(&old->filter);
    decoder_destroy(&old->decoder);
    source_close(&old->source);
    backend_destroy(&old->backend);
    for (int k = 0; k < old->earlies; k++)
        packet_destroy(&old->early[k]);
    free(old->early);
    changes_destroy(&old->changes);
    chain_free(&old->chain);
    trace_discard(&old->trace);
    free(old->output_name);
    path_conflicts_destroy(&old->conflicts);
    monitor_finish(&old->threads_lock);
    free(old);
    *job = NULL;
}
