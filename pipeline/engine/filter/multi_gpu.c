#include "pipeline/engine/filter/multi_gpu.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct multi_gpu {
    struct backend base;
    struct backend *part[MAX_GPUS];
    int parts;
};

// Parts that no slot is left for have no executor.
struct multi_gpu_executor {
    struct executor base;
    struct executor *part[MAX_GPUS];
    int parts;
};

// ---- executors ----

static struct executor *part_of(struct executor *executor, int slot, int *its_slot)
{
    struct multi_gpu_executor *self = (struct multi_gpu_executor *)executor;
    *its_slot = slot / self->parts;
    return self->part[slot % self->parts];
}

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    const struct multi_gpu_executor *self = (const struct multi_gpu_executor *)executor;
    struct executor *part = part_of(executor, slot, &slot);
    struct work its = *work;
    its.source_abroad = work->source_on_device && part != self->part[0];
    return part->submit_async(part, slot, &its);
}

static enum status wait(struct executor *executor, int slot, struct work_times *times)
{
    struct executor *part = part_of(executor, slot, &slot);
    return part->wait(part, slot, times);
}

static void destroy(struct executor **executor)
{
    struct multi_gpu_executor *self = (struct multi_gpu_executor *)*executor;
    for (int k = 0; k < self->parts; k++)
        executor_destroy(&self->part[k]);
    free(self);
    *executor = NULL;
}

static enum status executor_create(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor)
{
    const struct multi_gpu *gpus = (const struct multi_gpu *)backend;
    struct multi_gpu_executor *self = calloc(1, sizeof *self);
    *executor = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct executor){submit_async, wait, destroy};
    self->parts = slots < gpus->parts ? slots : gpus->parts;
    *executor = &self->base;
    enum status status = STATUS_OK;
    for (int k = 0; k < self->parts && !status; k++) {
        struct backend *part = gpus->part[k];
        int its_slots = (slots - k + self->parts - 1) / self->parts;
        status = part->executor_create(part, plan, width, height, its_slots, frames_in_flight,
                                       &self->part[k]);
        if (!status)
            self->base.memory += self->part[k]->memory;
    }
    if (status)
        destroy(executor);
    return status;
}

// Frames in turn: the first part has the most of them.
static enum status executor_measure(struct backend *backend, const struct plan *plan, int width,
                                    int height, int slots, bool frames_in_flight,
                                    struct executor_need *need)
{
    const struct multi_gpu *gpus = (const struct multi_gpu *)backend;
    struct backend *first = gpus->part[0];
    *need = (struct executor_need){0};
    return !first->executor_measure
               ? STATUS_OK
               : first->executor_measure(first, plan, width, height,
                                         (slots + gpus->parts - 1) / gpus->parts, frames_in_flight,
                                         need);
}

// ---- the backend ----

static size_t device_room(struct backend *backend)
{
    const struct multi_gpu *gpus = (const struct multi_gpu *)backend;
    size_t least = SIZE_MAX;
    for (int k = 0; k < gpus->parts; k++) {
        struct backend *part = gpus->part[k];
        size_t room = part->device_room ? part->device_room(part) : 0;
        least = room < least ? room : least;
    }
    return least;
}

static void *alloc(struct backend *backend, size_t bytes)
{
    struct backend *first = ((struct multi_gpu *)backend)->part[0];
    return first->alloc(first, bytes);
}

static void free_memory(struct backend *backend, void *memory, size_t bytes)
{
    struct backend *first = ((struct multi_gpu *)backend)->part[0];
    first->free(first, memory, bytes);
}

static void *device_context(struct backend *backend)
{
    struct backend *first = ((struct multi_gpu *)backend)->part[0];
    return first->device_context(first);
}

static bool is_lost(struct backend *backend)
{
    const struct multi_gpu *self = (const struct multi_gpu *)backend;
    bool lost = false;
    for (int k = 0; k < self->parts && !lost; k++)
        lost = self->part[k]->is_lost && self->part[k]->is_lost(self->part[k]);
    return lost;
}

static enum status stream_create(struct backend *backend, void **stream)
{
    struct backend *first = ((struct multi_gpu *)backend)->part[0];
    return first->stream_create(first, stream);
}

static void stream_destroy(struct backend *backend, void **stream)
{
    struct backend *first = ((struct multi_gpu *)backend)->part[0];
    first->stream_destroy(first, stream);
}

static void destroy_backend(struct backend **backend)
{
    struct multi_gpu *self = (struct multi_gpu *)*backend;
    for (int k = 0; k < self->parts; k++)
        backend_destroy(&self->part[k]);
    free(self);
    *backend = NULL;
}

static int lesser(int a, int b)
{
    return a < b ? a : b;
}

// Transforms begin where they pay for every part.
static struct plan_limits common_limits(struct plan_limits a, struct plan_limits b)
{
    bool both = a.transform && b.transform;
    return (struct plan_limits){
        .stencils = lesser(a.stencils, b.stencils),
        .radius = lesser(a.radius, b.radius),
        .joins = a.joins == b.joins ? a.joins : NULL,
        .transform = !both                       ? 0
                     : a.transform > b.transform ? a.transform
                                                 : b.transform,
        .transform_size = a.transform_size,
        .transform_library = b.transform_library ? a.transform_library : NULL,
        .transform_why = b.transform_library ? a.transform_why : b.transform_why,
    };
}

// "2 x NVIDIA H200, compute capability 9.0", or all of them.
static void describe(struct multi_gpu *self)
{
    const char *first = self->part[0]->description;
    bool alike = true;
    for (int k = 1; k < self->parts; k++)
        alike = alike && !strcmp(first, self->part[k]->description);
    FILE *to = fmemopen(self->base.description, sizeof self->base.description, "w");
    if (!to)
        return;
    if (alike)
        fprintf(to, "%d x %s", self->parts, first);
    for (int k = 0; k < self->parts && !alike; k++)
        fprintf(to, "%s%s", k ? " and " : "", self->part[k]->description);
    fclose(to);
    self->base.description[sizeof self->base.description - 1] = 0;
}

enum status multi_gpu_create(struct backend **parts, int count, struct backend **backend)
{
    assert(count > 1 && count <= MAX_GPUS);
    struct multi_gpu *self = calloc(1, sizeof *self);
    *backend = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = (struct backend){.name = parts[0]->name,
                                  .limits = parts[0]->limits,
                                  .has_device_memory = parts[0]->has_device_memory,
                                  .executor_create = executor_create,
                                  .executor_measure = executor_measure,
                                  .device_room = device_room,
                                  .alloc = alloc,
                                  .free = free_memory,
                                  .device_context = device_context,
                                  .is_lost = is_lost,
                                  .stream_create = stream_create,
                                  .stream_destroy = stream_destroy,
                                  .destroy = destroy_backend};
    self->parts = count;
    for (int k = 0; k < count; k++) {
        self->base.limits = common_limits(self->base.limits, parts[k]->limits);
        self->base.parallel += parts[k]->parallel;
        self->base.in_flight += parts[k]->in_flight;
        self->base.gpus += parts[k]->gpus;
        self->part[k] = parts[k];
        parts[k] = NULL;
    }
    describe(self);
    *backend = &self->base;
    return STATUS_OK;
}
