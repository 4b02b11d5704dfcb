#include "pipeline/engine/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "pipeline/ffmpeg/budget.h"
#include "pipeline/ffmpeg/check.h"
#include "pipeline/ffmpeg/url.h"

// ---- the caller's struct ----

_Static_assert((int)SLUICE_LOG_DEBUG == (int)LOG_DEBUG, "sluice_log_level mirrors log_level");

static void print_to_caller(void *target_, enum log_level level, const char *sentence)
{
    const struct config_log *target = target_;
    target->print(target->opaque, (enum sluice_log_level)level, sentence);
}

struct log config_log(const struct sluice_config *config, struct config_log *target)
{
    *target = (struct config_log){config->log, config->opaque};
    return config->log ? (struct log){print_to_caller, target} : (struct log){0};
}

static bool is_reserved(const struct sluice_output *output)
{
    for (size_t k = 0; k < sizeof output->reserved / sizeof *output->reserved; k++)
        if (output->reserved[k])
            return false;
    return true;
}

static bool has_unknown_members(const struct sluice_config *config)
{
    bool unknown = !is_reserved(&config->output);
    for (const struct sluice_output *more = config->more_outputs; more && more->name; more++)
        unknown |= !is_reserved(more);
    for (const struct sluice_change *next = config->changes; next && next->chain; next++)
        unknown |= next->reserved[0] || next->reserved[1];
    return unknown;
}

enum status config_read(const struct sluice_config *given, struct sluice_config *config,
                        struct config_log *target, struct log *log)
{
    // `opaque` is the last member of interface 1.0, so that every caller has a log.
    const size_t least = offsetof(struct sluice_config, opaque) + sizeof given->opaque;
    *log = config_log(given, target);
    bool read = sized_read(config, sizeof *config, given, least);
    if (!read && given->size < least)
        return log_fail(
            log, STATUS_USAGE,
            "sluice_config.size is %zu; it has to be sizeof(struct sluice_config), %zu or more",
            given->size, least);
    if (!read || has_unknown_members(config))
        return log_fail(
            log, STATUS_USAGE,
            "the configuration has members that libsluice %d.%d does not know: the program "
            "was built for a newer one",
            SLUICE_API_MAJOR, SLUICE_API_MINOR);
    return STATUS_OK;
}

enum sluice_status config_memory(const struct sluice_config *given)
{
    struct sluice_config config;
    struct config_log target;
    struct log log;
    enum status status = config_read(given, &config, &target, &log);
    return (enum sluice_status)(status ? status : log_memory(&log, STATUS_MEMORY));
}

// ---- requests ----

int64_t config_max_pixels(const struct sluice_config *config)
{
    return config->max_pixels ? config->max_pixels : INT64_C(1) << 28;
}

struct source_request config_source(const struct sluice_config *config)
{
    return (struct source_request){.name = config->input ? url_plain(config->input, false) : NULL,
                                   .push = config->push,
                                   .push_clock = config->push_clock,
                                   .format = config->input_format,
                                   .width = config->input_width,
                                   .height = config->input_height,
                                   .rate = config->input_rate,
                                   .pixfmt = config->input_pixfmt,
                                   .stream = config->stream,
                                   .start = config->start,
                                   .live = config->live,
                                   .rtsp_transport = config->rtsp_transport,
                                   .open_timeout = config->open_timeout,
                                   .stall_timeout = config->stall_timeout,
                                   .reconnects = config->reconnects,
                                   .await_start = config->await_start,
                                   .simulate = config->simulate,
                                   .playlist_hosts = config->playlist_hosts,
                                   .tls_verify = config->tls_verify,
                                   .ca_file = config->ca_file,
                                   .max_pixels = config_max_pixels(config)};
}

static struct sink_request request_of(const struct sluice_config *config,
                                      const struct sluice_output *output, int number)
{
    const char *name = output->name ? output->name : config->take ? sink_take_name : NULL;
    return (struct sink_request){
        .output = name ? url_plain(name, true) : NULL,
        .format = output->format,
        .encoder = output->encoder,
        .crf = output->crf,
        .preset = output->preset,
        .bitrate = output->bitrate,
        .options = output->options,
        .segment = output->segment,
        .threads = config->codec_threads,
        .pixfmt = output->pixfmt,
        .range = (enum sink_range)output->range,
        .overwrite = config->overwrite,
        .open_timeout = config->open_timeout > 0 ? config->open_timeout : 10,
        .stall_timeout = config->stall_timeout > 0 ? config->stall_timeout : 5,
        .reconnects = config->reconnects,
        .await_start = config->await_start,
        .taker = {config->take, config->opaque, number},
    };
}

int config_sinks(const struct sluice_config *config, struct sink_request *requests)
{
    int count = 1;
    requests[0] = request_of(config, &config->output, 0);
    const struct sluice_output *more = config->more_outputs;
    for (; more && more->name && count < MAX_OUTPUTS; more++)
        requests[count] = request_of(config, more, count), count++;
    return more && more->name ? MAX_OUTPUTS + 1 : count;
}

int config_add_tees(const struct sluice_config *config, const struct chain *chain,
                    struct sink_request *requests, int count)
{
    struct chain_file list[MAX_PICTURES];
    int tees = chain_files(chain, WRITES_PICTURES, list, MAX_PICTURES);
    for (int k = 0; k < tees && count + k < MAX_OUTPUTS; k++) {
        const struct sluice_output output = {.name = list[k].name};
        requests[count + k] = request_of(config, &output, count + k);
        requests[count + k].picture = k + 1;
    }
    return count + tees;
}

static enum status create_cpu(const struct sluice_config *config, const struct log *log,
                              struct backend **backend)
{
    return config->backend == SLUICE_BACKEND_SCALAR
               ? backend_scalar_create(log, backend)
               : backend_cpu_create(config->threads, log, backend);
}

// ---- GPUs ----

static enum status refuse_devices(const struct log *log, const char *text)
{
    return log_fail(
        log, STATUS_USAGE,
        "--device is '%s'; it takes the number of a GPU, up to %d of them as in 0,1, or all", text,
        MAX_GPUS);
}

enum status config_devices(const char *text, const struct log *log, struct devices *devices)
{
    *devices = (struct devices){.all = text && !strcmp(text, "all"), .count = !text};
    for (const char *at = text; at && !devices->all; devices->count++) {
        char *end;
        long number = strtol(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end && *end != ',') || number > 1024 ||
            devices->count == MAX_GPUS)
            return refuse_devices(log, text);
        for (int k = 0; k < devices->count; k++)
            if (devices->device[k] == number)
                return log_fail(log, STATUS_USAGE, "--device is '%s', which names GPU %ld twice",
                                text, number);
        devices->device[devices->count] = (int)number;
        at = *end ? end + 1 : NULL;
    }
    return STATUS_OK;
}

// All that there are. What cannot be used is left out with a warning, unless it is the only one.
static enum status open_all(const struct log *log, struct backend **parts, int *count, char *reason,
                            size_t size)
{
    int there = backend_cuda_describe(0, reason, size);
    enum status status = there ? STATUS_OK : STATUS_DEVICE;
    for (int k = 0; k < there && *count < MAX_GPUS && (!status || status == STATUS_DEVICE); k++) {
        status = backend_cuda_create(k, log, &parts[*count], reason, size);
        if (status == STATUS_DEVICE && there > 1)
            log_print(log, LOG_WARNING, "GPU %d is left out: %s", k, reason);
        *count += !status;
    }
    return status == STATUS_DEVICE && *count ? STATUS_OK : status;
}

static enum status open_devices(const struct devices *devices, const struct log *log,
                                struct backend **parts, int *count, char *reason, size_t size)
{
    enum status status = STATUS_OK;
    *count = 0;
    if (devices->all)
        return open_all(log, parts, count, reason, size);
    for (int k = 0; k < devices->count && !status; k++) {
        status = backend_cuda_create(devices->device[k], log, &parts[k], reason, size);
        *count += !status;
    }
    return status;
}

static enum status create_gpus(const struct devices *devices, const struct log *log,
                               struct backend **backend, char *reason, size_t size)
{
    struct backend *part[MAX_GPUS] = {NULL};
    int count;
    enum status status = open_devices(devices, log, part, &count, reason, size);
    if (!status && count > 1)
        status = multi_gpu_create(part, count, backend);
    else if (!status)
        *backend = part[0], part[0] = NULL;
    for (int k = 0; k < count; k++)
        backend_destroy(&part[k]);
    return status;
}

bool config_wants_gpu(const struct sluice_config *config)
{
    bool named = config->backend == SLUICE_BACKEND_CPU || config->backend == SLUICE_BACKEND_SCALAR;
    return config->backend == SLUICE_BACKEND_CUDA ||
           (!named && (config->hwdec == SLUICE_HWDEC_REQUIRE || config->device));
}

static void limit_memory(const struct sluice_config *config, struct backend *backend)
{
    backend->memory_limit = (size_t)(config->mem ? config->mem : budget_memory());
}

static enum status create_gpu(const struct sluice_config *config, const struct log *log,
                              struct backend **backend, char *reason, size_t reason_size)
{
    struct devices devices;
    *backend = NULL;
    enum status status = config_devices(config->device, log, &devices);
    return status ? status : create_gpus(&devices, log, backend, reason, reason_size);
}

static void warn_of_gpu(const struct log *log, const char *reason)
{
    if (!backend_cuda_is_absent())
        log_print(log, LOG_WARNING, "the CPU filters: %s", reason);
}

enum status config_gpu(const struct sluice_config *config, const struct log *log,
                       struct backend **backend, char *reason, size_t reason_size)
{
    enum status status = create_gpu(config, log, backend, reason, reason_size);
    if (status == STATUS_DEVICE)
        warn_of_gpu(log, reason);
    else if (!status)
        limit_memory(config, *backend);
    return status;
}

// Either kind; see config_backend().
static enum status create_one(const struct sluice_config *config, bool still, const struct log *log,
                              struct backend **backend, char *reason, size_t reason_size)
{
    bool named = config->backend == SLUICE_BACKEND_CPU || config->backend == SLUICE_BACKEND_SCALAR;
    bool wants_gpu = config_wants_gpu(config);
    snprintf(reason, reason_size, "%s",
             named ? "it was asked for" : "a single picture is done before a GPU is ready");
    if (named || (still && !wants_gpu))
        return create_cpu(config, log, backend);
    enum status status = create_gpu(config, log, backend, reason, reason_size);
    if (status != STATUS_DEVICE) {
        if (!status)
            *reason = 0;
        return status;
    }
    if (wants_gpu)
        return log_fail(log, STATUS_DEVICE, "the GPU was asked for and cannot be used: %s", reason);
    warn_of_gpu(log, reason);
    return create_cpu(config, log, backend);
}

enum status config_backend(const struct sluice_config *config, bool still, const struct log *log,
                           struct backend **backend, char *reason, size_t reason_size)
{
    enum status status = create_one(config, still, log, backend, reason, reason_size);
    if (!status)
        limit_memory(config, *backend);
    return status;
}

static double frame_rate(const struct source *source)
{
    AVRational rate = av_guess_frame_rate(source->format, source_video(source), NULL);
    return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
}

int config_slots(const struct sluice_config *config, const struct backend *backend,
                 const struct source *source)
{
    if (config->ring)
        return config->ring;
    if ((source && source->is_still) || config->backend == SLUICE_BACKEND_SCALAR)
        return 1;
    double rate = source ? frame_rate(source) : 0;
    int slots = backend->in_flight ? backend->in_flight : backend->parallel + 1;
    double timely = config->max_latency > 0 && rate > 0 ? config->max_latency * rate / 2 : slots;
    if (timely < slots)
        slots = timely < 2 ? 2 : (int)timely;
    return slots < MAX_SLOTS ? slots : MAX_SLOTS;
}
