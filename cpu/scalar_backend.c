// The scalar reference behind the backend's interface: slow, on the caller's thread.
#include "plan/backend.h"

#include <stdlib.h>

#include "cpu/host.h"
#include "cpu/reference/scalar.h"

struct scalar_executor {
    struct executor base;
    const struct plan *plan;
    struct work_span *span; // of each slot's last frame
};

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    struct scalar_executor *self = (struct scalar_executor *)executor;
    long long begin = host_now_ns(), begin_busy = host_thread_ns();
    enum status status = scalar_run(self->plan->program, work);
    self->span[slot] = (struct work_span){begin, host_now_ns(), host_thread_ns() - begin_busy};
    return status;
}

static enum status wait(struct executor *executor, int slot, struct work_times *times)
{
    if (times)
        *times = (struct work_times){.compute = ((struct scalar_executor *)executor)->span[slot]};
    return STATUS_OK;
}

static void destroy(struct executor **executor)
{
    free(((struct scalar_executor *)*executor)->span);
    free(*executor);
    *executor = NULL;
}

static enum status executor_create(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor)
{
    (void)backend, (void)width, (void)height, (void)frames_in_flight;
    struct scalar_executor *self = calloc(1, sizeof *self);
    struct work_span *span = calloc((size_t)slots, sizeof *span);
    *executor = NULL;
    if (!self || !span) {
        free(self);
        free(span);
        return STATUS_MEMORY;
    }
    self->base = (struct executor){submit_async, wait, destroy};
    self->plan = plan;
    self->span = span;
    *executor = &self->base;
    return STATUS_OK;
}

static void backend_free(struct backend **backend)
{
    free(*backend);
    *backend = NULL;
}

enum status backend_scalar_create(const struct log *log, struct backend **backend)
{
    (void)log;
    *backend = calloc(1, sizeof **backend);
    if (!*backend)
        return STATUS_MEMORY;
    **backend = (struct backend){.name = "scalar",
                                 .description = "the reference, one thread",
                                 .reads_first = true,
                                 .parallel = 1,
                                 .executor_create = executor_create,
                                 .alloc = host_alloc,
                                 .free = host_free,
                                 .destroy = backend_free};
    return STATUS_OK;
}
