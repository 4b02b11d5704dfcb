#include "pipeline/engine/job_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/host_memory.h"
#include "pipeline/engine/config.h"
#include "pipeline/engine/filter/gpu_start.h"
#include "pipeline/engine/filter/spare.h"
#include "pipeline/engine/job.h"
#include "pipeline/engine/job_memory.h"
#include "pipeline/input/decoder.h"
#include "pipeline/input/source.h"
#include "pipeline/report/trace.h"

// The thread that makes the GPU ready: its own data, beside the job, whose other threads work meanwhile.
struct device_start {
    struct sluice_job *job;
    struct sluice_config config; // numbers alone
    struct chain chain;
    struct need_job need; // nothing is claimed by it
    AVFrame *shape;       // a frame without samples, like the source's
    struct gpu_start *start;
    _Atomic int64_t memory; // bytes of the host's that the GPU's context took, about
};

static enum status open_backend(struct sluice_job *job, const struct sluice_config *config)
{
    bool on_cpu = config->backend == SLUICE_BACKEND_CPU || config->backend == SLUICE_BACKEND_SCALAR;
    char reason[256];
    int64_t begin_ns = meter_now_ns();
    const struct spare_request request = {
        .goes_on = !config_wants_gpu(config), .threads = config->threads, .log = &job->log};
    enum status status = spare_create(&request, &job->spare);
    if (!status)
        status = config_backend(config, job->source->is_still,
                                on_cpu ? &job->log : spare_log(job->spare), &job->backend, reason,
                                sizeof reason);
    if (!status)
        status = spare_guard(job->spare, &job->backend);
    if (status)
        return status;
    job_start_span(job, "open the device", begin_ns);
    if (*reason && !job->device_start)
        log_print(&job->log, LOG_DEBUG, "the CPU filters: %s", reason);
    return STATUS_OK;
}

static enum status open_at_once(struct sluice_job *job, const struct sluice_config *config)
{
    enum status status = open_backend(job, config);
    if (!status)
        status = job_memory_fit(job, config);
    if (status != STATUS_DEVICE || !job->backend || config_wants_gpu(config))
        return status;
    struct sluice_config on_cpu = *config;
    on_cpu.backend = SLUICE_BACKEND_CPU;
    on_cpu.vram = 0;
    backend_destroy(&job->backend);
    spare_destroy(&job->spare);
    status = open_backend(job, &on_cpu);
    return status ? status : job_memory_fit(job, &on_cpu);
}

// ---- the CPU until the GPU is ready ----

// True if the times of packets tell where a GPU's decoder may begin. Elementary streams, which
// libavformat indexes while it reads, have none, and AVI only those of decoding.
static bool has_times(const struct source *source)
{
    const AVInputFormat *format = source->format->iformat;
    return !(format->flags & AVFMT_GENERIC_INDEX) && strcmp(format->name, "avi") != 0;
}

// True if the first frames may be the CPU's: nobody asked for a GPU or says what it may take, there may be
// one, and its share can be reckoned before a frame is decoded. What is live waits for its source
// anyway; a part is one of many, which share a GPU.
static bool may_begin_on_cpu(const struct sluice_job *job, const struct sluice_config *config,
                             AVFrame *shape)
{
    const struct source *source = job->source;
    return config->backend == SLUICE_BACKEND_AUTO && !config_wants_gpu(config) && !config->vram &&
           !config->await_gpu && !source->is_still && !source->pushed && !source_is_live(source) &&
           !job->is_part && backend_cuda_may_be_there() && memory_shape(source, shape) &&
           (has_times(source) || !memory_gpu_decodes(config, source));
}

// Check that the GPU has room for the job's frames, and the host for what it takes beside.
static enum status check_room(struct device_start *device, struct backend *gpu)
{
    const struct sluice_job *job = device->job;
    const struct log silent = {0};
    const struct filter_request request = {.chain = &device->chain,
                                           .formats = job->formats,
                                           .backend = gpu,
                                           .slots = job->slots,
                                           .frames_in_flight = true,
                                           .max_pixels = config_max_pixels(&device->config),
                                           .job = &device->need,
                                           .log = &silent};
    struct need need;
    char lack[NEED_SENTENCE];
    enum status status = filter_need(&request, device->shape, &need);
    if (status) // the first frame tells why
        return status;
    if (need_lacks_device(&need, device->need.ceiling, lack))
        return need_check(&need, &device->need, &job->log);
    memset(need.device, 0, sizeof need.device); // it is not taken yet
    status = need_check(&need, &device->need, &silent);
    if (status)
        log_print(
            &job->log, LOG_WARNING,
            "the CPU filters: with the GPU %d frames in flight need %lld MiB of the host's "
            "memory, more than may be taken; fewer take less (--ring), or allow more by --mem",
            job->slots, (long long)(need_host(&need) >> 20));
    return status;
}

static enum status make_gpu(void *device_, struct backend **gpu)
{
    struct device_start *device = device_;
    struct sluice_job *job = device->job;
    char reason[256];
    int64_t begin_ns = meter_now_ns(), before = host_memory_resident();
    enum status status =
        config_gpu(&device->config, spare_log(job->spare), gpu, reason, sizeof reason);
    if (status == STATUS_DEVICE)
        log_print(&job->log, LOG_DEBUG, "the CPU filters: %s", reason);
    int64_t took = host_memory_resident() - before;
    device->memory = took > 0 ? took : 0;
    if (!status)
        status = spare_guard(job->spare, gpu);
    if (!status)
        ceiling_add_device(&job->ceiling, *gpu);
    if (!status)
        status = check_room(device, *gpu);
    trace_span(job->trace, TRACE_DEVICE, "make the GPU ready", begin_ns, meter_now_ns(), -1);
    return status;
}

static void destroy_start(struct device_start **device)
{
    struct device_start *old = *device;
    if (!old)
        return;
    gpu_start_destroy(&old->start);
    chain_free(&old->chain);
    av_frame_free(&old->shape);
    free(old);
    *device = NULL;
}

// Open the CPU, with the slots of a GPU, and begin to make that ready.
static enum status open_on_cpu(struct sluice_job *job, const struct sluice_config *config)
{
    struct device_start *device = job->device_start;
    struct sluice_config on_cpu = *config;
    on_cpu.backend = SLUICE_BACKEND_CPU;
    enum status status = open_backend(job, &on_cpu);
    if (status)
        return status;
    job->backend->in_flight = BACKEND_CUDA_IN_FLIGHT;
    status = job_memory_fit(job, &on_cpu);
    if (!status)
        status = chain_copy(&job->chain, &device->chain);
    if (status)
        return status;
    job->gpu_need = job->need;
    job->gpu_need.on_device = memory_gpu_decodes(config, job->source);
    device->job = job;
    device->config = (struct sluice_config){
        .mem = config->mem, .max_pixels = config->max_pixels, .threads = config->threads};
    device->need = job->gpu_need;
    device->need.leaves_gpu = true;
    const struct gpu_start_request request = {make_gpu, device, job->backend};
    return gpu_start_create(&request, &device->start);
}

enum status job_device_open(struct sluice_job *job, const struct sluice_config *config)
{
    struct device_start *device = calloc(1, sizeof *device);
    if (!device || !(device->shape = av_frame_alloc())) {
        free(device);
        return STATUS_MEMORY;
    }
    job->device_start = device;
    if (may_begin_on_cpu(job, config, device->shape))
        return open_on_cpu(job, config);
    destroy_start(&job->device_start);
    return open_at_once(job, config);
}

bool job_device_is_pending(const struct sluice_job *job)
{
    const struct device_start *device = job->device_start;
    return device && !gpu_start_backend(device->start);
}

int64_t job_device_memory(const struct sluice_job *job)
{
    return job->device_start ? job->device_start->memory : 0;
}

void job_device_settle(struct sluice_job *job)
{
    if (job->device_start)
        gpu_start_settle(job->device_start->start);
}

struct backend_later job_device_later(const struct sluice_job *job)
{
    return gpu_start_later(job->device_start ? job->device_start->start : NULL);
}

void job_device_close(struct sluice_job *job)
{
    destroy_start(&job->device_start);
    backend_destroy(&job->backend);
    spare_destroy(&job->spare);
}

const struct backend *job_backend(const struct sluice_job *job)
{
    const struct backend *later = job->decoded.backend;
    return later ? later : job->backend;
}
