#include "pipeline/engine/filter/spare.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Memory of the GPU's host that it did not pin, as one that has failed does not.
struct block {
    void *memory;
    struct block *next;
};

struct spare {
    struct spare_request request;
    struct spare_finder finder;
    struct log log; // of the GPU's backend
    pthread_mutex_t lock;
    // ---- guarded by lock ----
    struct backend *cpu; // NULL: it was not needed yet
    char why[256];       // the error that the GPU's backend told
    bool keeps;          // errors: those of a GPU at work
    bool failed, told;
    long long submitted, done; // frames
    long long taken_over;      // of them: given to the CPU
    struct block *blocks;
};

struct guarded {
    struct backend base;
    struct backend *gpu;
    struct spare *spare;
};

// A slot's work is the GPU's until that fails, then the CPU's.
struct guarded_executor {
    struct executor base;
    struct spare *spare;
    struct executor *gpu; // NULL: it could not be made, the CPU has taken over before
    struct {
        struct work work;
        bool on_cpu;
        void *memory; // the finder's, of a source that was found again; NULL: it was not lost
    } * seat;
    const struct plan *plan; // the GPU's
    int width, height, slots;
    bool frames_in_flight;
    // ---- guarded by the spare's lock ----
    struct plan *cpu_plan;
    struct executor *cpu; // NULL: it was not needed yet
};

// ---- the log ----

static void print(void *opaque, enum log_level level, const char *sentence)
{
    struct spare *spare = opaque;
    pthread_mutex_lock(&spare->lock);
    bool kept = level == LOG_ERROR && spare->keeps;
    if (kept)
        snprintf(spare->why, sizeof spare->why, "%s", sentence);
    pthread_mutex_unlock(&spare->lock);
    if (!kept)
        log_print(spare->request.log, level, "%s", sentence);
}

enum status spare_create(const struct spare_request *request, struct spare **spare)
{
    assert(request->log);
    *spare = calloc(1, sizeof **spare);
    if (!*spare)
        return STATUS_MEMORY;
    (*spare)->request = *request;
    (*spare)->log = (struct log){print, *spare};
    strcpy((*spare)->why, "the GPU failed");
    pthread_mutex_init(&(*spare)->lock, NULL);
    return STATUS_OK;
}

void spare_destroy(struct spare **spare)
{
    if (!*spare)
        return;
    assert(!(*spare)->blocks);
    backend_destroy(&(*spare)->cpu);
    pthread_mutex_destroy(&(*spare)->lock);
    free(*spare);
    *spare = NULL;
}

void spare_begin_at(struct spare *spare, long long frame)
{
    pthread_mutex_lock(&spare->lock);
    spare->submitted = spare->done = frame;
    pthread_mutex_unlock(&spare->lock);
}

long long spare_frames(struct spare *spare)
{
    if (!spare)
        return 0;
    pthread_mutex_lock(&spare->lock);
    long long frames = spare->taken_over;
    pthread_mutex_unlock(&spare->lock);
    return frames;
}

const struct log *spare_log(struct spare *spare)
{
    return &spare->log;
}

void spare_set_finder(struct spare *spare, const struct spare_finder *finder)
{
    spare->finder = *finder;
}

// ---- the failure ----

enum outcome { GOES_ON, GOES_ON_DECODED, LOST, ASKED_FOR };

// Tell once what becomes of the job whose GPU has failed at frame `frame`.
static void tell(struct spare *spare, enum outcome outcome, long long frame)
{
    char why[sizeof spare->why];
    pthread_mutex_lock(&spare->lock);
    bool first = !spare->told;
    spare->failed = spare->told = true;
    memcpy(why, spare->why, sizeof why);
    pthread_mutex_unlock(&spare->lock);
    if (!first)
        return;
    if (outcome == GOES_ON || outcome == GOES_ON_DECODED)
        log_print(spare->request.log, LOG_WARNING,
                  "%s: the CPU %sfilters from frame %lld on, with the same result", why,
                  outcome == GOES_ON ? "" : "decodes and ", frame);
    else
        log_print(spare->request.log, LOG_ERROR, "frame %lld: %s%s", frame, why,
                  outcome == ASKED_FOR ? ""
                                       : "; what the GPU has decoded is lost with it: --hwdec off "
                                         "decodes on the CPU, which can go on");
}

static bool has_failed(struct spare *spare)
{
    pthread_mutex_lock(&spare->lock);
    bool failed = spare->failed;
    pthread_mutex_unlock(&spare->lock);
    return failed;
}

// Make the CPU's backend. The lock is held.
static enum status make_cpu(struct spare *spare)
{
    return spare->cpu ? STATUS_OK
                      : backend_cpu_create(spare->request.threads, spare->request.log, &spare->cpu);
}

// Make the CPU's executor. The lock is held.
static enum status make_cpu_executor(struct guarded_executor *self)
{
    struct spare *spare = self->spare;
    enum status status = make_cpu(spare);
    if (!status)
        status = plan_create(self->plan->program, spare->cpu->limits, &self->cpu_plan);
    if (!status)
        status = spare->cpu->executor_create(spare->cpu, self->cpu_plan, self->width, self->height,
                                             self->slots, self->frames_in_flight, &self->cpu);
    if (status)
        plan_destroy(&self->cpu_plan);
    return status;
}

// Have a source that was on the GPU decoded again.
static enum status find_source(struct guarded_executor *self, int slot)
{
    const struct spare_finder *finder = &self->spare->finder;
    struct work *work = &self->seat[slot].work;
    struct image found;
    if (!finder->find)
        return STATUS_DEVICE;
    enum status status = finder->find(finder->opaque, work, &found, &self->seat[slot].memory);
    if (status)
        return status;
    work->source = found;
    work->source_on_device = false;
    work->source_stream = NULL;
    return STATUS_OK;
}

static void forget_source(struct guarded_executor *self, int slot)
{
    const struct spare_finder *finder = &self->spare->finder;
    if (self->seat[slot].memory)
        finder->forget(finder->opaque, &self->seat[slot].memory);
}

// Planes that the output shares with the source, and that the GPU would have brought to the host: the
// CPU leaves them to who has given it the frame.
static void copy_references(const struct guarded_executor *self, const struct work *work)
{
    for (int n = 0; n < program_pictures(self->cpu_plan->program); n++) {
        const struct image *to = work_target(work, n), *from = &work->source;
        for (int p = 0; p < to->format->planes; p++) {
            const struct plan_plane *plane = &self->cpu_plan->picture[n].plane[p];
            if (to->data[p] && plane->origin == PLANE_REFERENCE)
                av_image_copy_plane(to->data[p], (int)to->stride[p], from->data[plane->source],
                                    (int)from->stride[plane->source],
                                    (int)format_row_bytes(to->format, p, to->width),
                                    format_rows(to->format, p, to->height));
        }
    }
}

// Let the CPU begin with the slot's work. Both threads of the executor come here: those that submit,
// and those that find what was submitted failed.
static enum status submit_to_cpu(struct guarded_executor *self, int slot)
{
    pthread_mutex_lock(&self->spare->lock);
    enum status status = self->cpu ? STATUS_OK : make_cpu_executor(self);
    if (!status)
        status = self->cpu->submit_async(self->cpu, slot, &self->seat[slot].work);
    self->seat[slot].on_cpu = !status;
    self->spare->taken_over += !status;
    pthread_mutex_unlock(&self->spare->lock);
    return status;
}

// The GPU has failed at a frame: let the CPU have it, if the job goes on so.
static enum status take_over(struct guarded_executor *self, int slot, long long frame)
{
    struct spare *spare = self->spare;
    bool lost = self->seat[slot].work.source_on_device;
    enum outcome outcome = !spare->request.goes_on ? ASKED_FOR : lost ? GOES_ON_DECODED : GOES_ON;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&spare->lock);
    spare->failed = true; // ahead of the finder, which takes its time: nothing more goes to the GPU
    pthread_mutex_unlock(&spare->lock);
    if (outcome == GOES_ON_DECODED)
        status = find_source(self, slot);
    tell(spare, status ? LOST : outcome, frame);
    if (!status)
        status = outcome == ASKED_FOR ? STATUS_DEVICE : submit_to_cpu(self, slot);
    if (status)
        forget_source(self, slot);
    return status;
}

// ---- executors ----

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    struct guarded_executor *self = (struct guarded_executor *)executor;
    struct spare *spare = self->spare;
    pthread_mutex_lock(&spare->lock);
    long long frame = spare->submitted++;
    bool failed = spare->failed;
    pthread_mutex_unlock(&spare->lock);
    self->seat[slot].work = *work;
    self->seat[slot].on_cpu = false;
    enum status status = failed ? STATUS_DEVICE : self->gpu->submit_async(self->gpu, slot, work);
    return status == STATUS_DEVICE ? take_over(self, slot, frame) : status;
}

static enum status wait(struct executor *executor, int slot, struct work_times *times)
{
    struct guarded_executor *self = (struct guarded_executor *)executor;
    struct spare *spare = self->spare;
    enum status status =
        self->seat[slot].on_cpu ? STATUS_OK : self->gpu->wait(self->gpu, slot, times);
    pthread_mutex_lock(&spare->lock);
    long long frame = spare->done++;
    pthread_mutex_unlock(&spare->lock);
    if (status == STATUS_DEVICE)
        status = take_over(self, slot, frame);
    if (self->seat[slot].on_cpu)
        status = self->cpu->wait(self->cpu, slot, times);
    if (!status && self->seat[slot].memory)
        copy_references(self, &self->seat[slot].work);
    forget_source(self, slot);
    return status;
}

static void destroy(struct executor **executor)
{
    struct guarded_executor *self = (struct guarded_executor *)*executor;
    executor_destroy(&self->gpu);
    executor_destroy(&self->cpu);
    plan_destroy(&self->cpu_plan);
    free(self->seat);
    free(self);
    *executor = NULL;
}

// A GPU that fails now, for want of memory, say, is left with the first frame, which knows whether the
// CPU can have it.
static enum status make_gpu_executor(struct guarded_executor *self, struct backend *gpu)
{
    struct spare *spare = self->spare;
    if (has_failed(spare))
        return STATUS_OK;
    enum status status = gpu->executor_create(gpu, self->plan, self->width, self->height,
                                              self->slots, self->frames_in_flight, &self->gpu);
    if (status != STATUS_DEVICE)
        return status;
    pthread_mutex_lock(&spare->lock);
    spare->failed = true;
    long long frame = spare->submitted;
    pthread_mutex_unlock(&spare->lock);
    if (spare->request.goes_on)
        return STATUS_OK;
    tell(spare, ASKED_FOR, frame);
    return STATUS_DEVICE;
}

static enum status executor_create(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor)
{
    const struct guarded *guarded = (const struct guarded *)backend;
    struct guarded_executor *self = calloc(1, sizeof *self);
    *executor = NULL;
    if (!self)
        return STATUS_MEMORY;
    *self = (struct guarded_executor){.base = {submit_async, wait, destroy},
                                      .spare = guarded->spare,
                                      .seat = calloc((size_t)slots, sizeof *self->seat),
                                      .plan = plan,
                                      .width = width,
                                      .height = height,
                                      .slots = slots,
                                      .frames_in_flight = frames_in_flight};
    *executor = &self->base;
    enum status status = self->seat ? make_gpu_executor(self, guarded->gpu) : STATUS_MEMORY;
    if (status)
        destroy(executor);
    else if (self->gpu)
        self->base.memory = self->gpu->memory;
    return status;
}

// ---- the backend ----

static struct backend *gpu_of(struct backend *backend)
{
    return ((struct guarded *)backend)->gpu;
}

static void *alloc_unpinned(struct spare *spare, size_t bytes)
{
    struct block *block = malloc(sizeof *block);
    void *memory = block ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    if (!memory) {
        free(block);
        return NULL;
    }
    pthread_mutex_lock(&spare->lock);
    *block = (struct block){memory, spare->blocks};
    spare->blocks = block;
    pthread_mutex_unlock(&spare->lock);
    return memory;
}

static void *alloc(struct backend *backend, size_t bytes)
{
    struct spare *spare = ((struct guarded *)backend)->spare;
    struct backend *gpu = gpu_of(backend);
    void *memory = has_failed(spare) ? NULL : gpu->alloc(gpu, bytes);
    return memory ? memory : alloc_unpinned(spare, bytes);
}

static void free_memory(struct backend *backend, void *memory, size_t bytes)
{
    struct spare *spare = ((struct guarded *)backend)->spare;
    struct backend *gpu = gpu_of(backend);
    pthread_mutex_lock(&spare->lock);
    struct block **at = &spare->blocks;
    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    struct block *mine = *at;
    if (mine)
        *at = mine->next;
    pthread_mutex_unlock(&spare->lock);
    if (mine)
        free(memory);
    else
        gpu->free(gpu, memory, bytes);
    free(mine);
}

static void *device_context(struct backend *backend)
{
    struct backend *gpu = gpu_of(backend);
    return gpu->device_context(gpu);
}

static bool is_lost(struct backend *backend)
{
    struct backend *gpu = gpu_of(backend);
    return has_failed(((struct guarded *)backend)->spare) || (gpu->is_lost && gpu->is_lost(gpu));
}

static void leave(struct backend *backend, const char *why)
{
    struct spare *spare = ((struct guarded *)backend)->spare;
    pthread_mutex_lock(&spare->lock);
    if (!spare->failed)
        snprintf(spare->why, sizeof spare->why, "%s", why);
    spare->failed = true;
    pthread_mutex_unlock(&spare->lock);
}

static enum status stream_create(struct backend *backend, void **stream)
{
    struct backend *gpu = gpu_of(backend);
    return gpu->stream_create(gpu, stream);
}

static void stream_destroy(struct backend *backend, void **stream)
{
    struct backend *gpu = gpu_of(backend);
    gpu->stream_destroy(gpu, stream);
}

// Measure what the CPU takes, whose plan is another one.
static enum status measure_cpu(struct spare *spare, const struct plan *of_gpu, int width,
                               int height, int slots, bool frames_in_flight,
                               struct executor_need *need)
{
    struct plan *plan = NULL;
    pthread_mutex_lock(&spare->lock);
    enum status status = make_cpu(spare);
    if (!status)
        status = plan_create(of_gpu->program, spare->cpu->limits, &plan);
    if (!status)
        status = spare->cpu->executor_measure(spare->cpu, plan, width, height, slots,
                                              frames_in_flight, need);
    plan_destroy(&plan);
    pthread_mutex_unlock(&spare->lock);
    return status;
}

// A GPU that has failed takes nothing, and the CPU does its work; one that fails now does so in
// executor_create() as well, where it is dealt with.
static enum status executor_measure(struct backend *backend, const struct plan *plan, int width,
                                    int height, int slots, bool frames_in_flight,
                                    struct executor_need *need)
{
    struct spare *spare = ((struct guarded *)backend)->spare;
    struct backend *gpu = gpu_of(backend);
    *need = (struct executor_need){0};
    enum status status = has_failed(spare) ? STATUS_DEVICE
                                           : gpu->executor_measure(gpu, plan, width, height, slots,
                                                                   frames_in_flight, need);
    if (status != STATUS_DEVICE)
        return status;
    *need = (struct executor_need){0};
    return measure_cpu(spare, plan, width, height, slots, frames_in_flight, need);
}

static size_t device_room(struct backend *backend)
{
    struct backend *gpu = gpu_of(backend);
    return gpu->device_room(gpu);
}

static void destroy_backend(struct backend **backend)
{
    struct guarded *self = (struct guarded *)*backend;
    pthread_mutex_lock(&self->spare->lock);
    self->spare->keeps = false; // what fails from here on is no frame's
    pthread_mutex_unlock(&self->spare->lock);
    backend_destroy(&self->gpu);
    free(self);
    *backend = NULL;
}

enum status spare_guard(struct spare *spare, struct backend **backend)
{
    if (!(*backend)->gpus)
        return STATUS_OK;
    struct guarded *self = calloc(1, sizeof *self);
    if (!self) {
        backend_destroy(backend);
        return STATUS_MEMORY;
    }
    struct backend *gpu = *backend;
    self->base =
        (struct backend){.name = gpu->name,
                         .limits = gpu->limits,
                         .has_device_memory = gpu->has_device_memory,
                         .gpus = gpu->gpus,
                         .parallel = gpu->parallel,
                         .in_flight = gpu->in_flight,
                         .memory_limit = gpu->memory_limit,
                         .executor_create = executor_create,
                         .executor_measure = gpu->executor_measure ? executor_measure : NULL,
                         .device_room = gpu->device_room ? device_room : NULL,
                         .alloc = alloc,
                         .free = free_memory,
                         .device_context = device_context,
                         .is_lost = is_lost,
                         .leave = spare->request.goes_on ? leave : NULL,
                         .stream_create = stream_create,
                         .stream_destroy = stream_destroy,
                         .destroy = destroy_backend};
    memcpy(self->base.description, gpu->description, sizeof gpu->description);
    self->gpu = gpu;
    self->spare = spare;
    pthread_mutex_lock(&spare->lock);
    spare->keeps = true;
    pthread_mutex_unlock(&spare->lock);
    *backend = &self->base;
    return STATUS_OK;
}
