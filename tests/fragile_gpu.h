// A GPU for tests of what becomes of jobs whose GPU fails: the CPU, by another name.
#pragma once

#include "tests/unit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "plan/backend.h"

enum { NEVER = -1, FRAGILE_SLOTS = 64 };

// The CPU, which from one call on answers as a GPU does whose context is gone, and has written
// anything into the frames that it did not finish.
struct fragile {
    struct backend base;
    struct backend *cpu;
    const struct log *log;
    int submit_fails, wait_fails; // at which call; NEVER
    bool make_fails;
    atomic_bool gone;
    size_t room; // free bytes of its memory
    atomic_int submits, waits, pinned;
    struct fragile *before; // that was made
};

struct fragile_executor {
    struct executor base;
    struct fragile *gpu;
    struct executor *cpu;
    struct work work[FRAGILE_SLOTS];
    bool begun[FRAGILE_SLOTS];
};

static enum status break_down(struct fragile *gpu)
{
    if (!gpu->gone)
        log_print(gpu->log, LOG_ERROR, "GPU 9 failed in cudaBreakDown: it is broken");
    gpu->gone = true;
    return STATUS_DEVICE;
}

// The bytes of the picture's first plane, and what follows its rows.
static size_t plane_bytes(const struct image *image)
{
    return (size_t)image->stride[0] * (size_t)image->height;
}

// The context is gone, and what the GPU's memory had for this work.
static enum status lose(struct fragile *gpu, const struct work *work)
{
    if (work->source_on_device && work->source.data[0])
        memset(work->source.data[0], 0x5a, plane_bytes(&work->source));
    return break_down(gpu);
}

static enum status fragile_submit(struct executor *executor, int slot, const struct work *work)
{
    struct fragile_executor *self = (struct fragile_executor *)executor;
    self->begun[slot] = false;
    if (self->gpu->submits++ == self->gpu->submit_fails || self->gpu->gone)
        return lose(self->gpu, work);
    self->work[slot] = *work;
    self->begun[slot] = true;
    return self->cpu->submit_async(self->cpu, slot, work);
}

static enum status fragile_wait(struct executor *executor, int slot, struct work_times *times)
{
    struct fragile_executor *self = (struct fragile_executor *)executor;
    enum status status = self->begun[slot] ? self->cpu->wait(self->cpu, slot, times) : STATUS_OK;
    if (self->gpu->waits++ != self->gpu->wait_fails && !self->gpu->gone)
        return status;
    if (self->begun[slot])
        memset(self->work[slot].target.data[0], 0xa5, plane_bytes(&self->work[slot].target) / 2);
    return self->begun[slot] ? lose(self->gpu, &self->work[slot]) : break_down(self->gpu);
}

static void fragile_destroy(struct executor **executor)
{
    executor_destroy(&((struct fragile_executor *)*executor)->cpu);
    free(*executor);
    *executor = NULL;
}

static enum status fragile_create(struct backend *backend, const struct plan *plan, int width,
                                  int height, int slots, bool frames_in_flight,
                                  struct executor **executor)
{
    struct fragile *gpu = (struct fragile *)backend;
    *executor = NULL;
    if (gpu->make_fails)
        return break_down(gpu);
    struct fragile_executor *self = calloc(1, sizeof *self);
    self->base = (struct executor){fragile_submit, fragile_wait, fragile_destroy, .memory = 7};
    self->gpu = gpu;
    *executor = &self->base;
    return gpu->cpu->executor_create(gpu->cpu, plan, width, height, slots, frames_in_flight,
                                     &self->cpu);
}

// Blocks that others have allocated are not its own to free.
static void *fragile_alloc(struct backend *backend, size_t bytes)
{
    struct fragile *gpu = (struct fragile *)backend;
    gpu->pinned += !gpu->gone;
    return gpu->gone ? NULL : malloc(bytes);
}

static void fragile_free(struct backend *backend, void *memory, size_t bytes)
{
    (void)bytes;
    ((struct fragile *)backend)->pinned--;
    free(memory);
}

static enum status fragile_measure(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor_need *need)
{
    struct fragile *gpu = (struct fragile *)backend;
    (void)plan, (void)width, (void)height, (void)slots, (void)frames_in_flight;
    *need = (struct executor_need){.host = 1, .device = 2};
    return gpu->gone ? STATUS_DEVICE : STATUS_OK;
}

static size_t fragile_room(struct backend *backend)
{
    return ((struct fragile *)backend)->room;
}

// Its figures can be read for as long as the test runs.
static void fragile_end(struct backend **backend)
{
    backend_destroy(&((struct fragile *)*backend)->cpu);
    *backend = NULL;
}

static struct fragile *fragile; // the last one, and by it those before

static struct backend *create_fragile(const struct log *log, struct fragile how)
{
    static const struct log silent;
    struct fragile *gpu = malloc(sizeof *gpu);
    *gpu = how;
    gpu->before = fragile;
    fragile = gpu;
    gpu->log = log;
    assert_int_equal(backend_cpu_create(2, &silent, &gpu->cpu), STATUS_OK);
    gpu->base = (struct backend){.name = "cuda",
                                 .description = "a GPU that fails",
                                 .limits = gpu->cpu->limits,
                                 .gpus = 1,
                                 .parallel = 1,
                                 .executor_create = fragile_create,
                                 .executor_measure = fragile_measure,
                                 .device_room = fragile_room,
                                 .alloc = fragile_alloc,
                                 .free = fragile_free,
                                 .destroy = fragile_end};
    return &gpu->base;
}
