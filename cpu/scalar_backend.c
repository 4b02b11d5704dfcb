// The scalar definition behind the backend's interface: slow, on the caller's thread.
#include "stages/backend.h"

#include <stdlib.h>

#include "cpu/host.h"
#include "cpu/scalar.h"

struct scalar_executor {
    struct executor base;
    const struct plan *plan;
    long long *busy_ns; // of each slot's last frame
};

static enum status submit_async(struct executor *executor, int slot, const struct work *work)
{
    struct scalar_executor *self = (struct scalar_executor *)executor;
    long long start = host_now_ns();
    enum status status =
        scalar_run_fields(self->plan->program, &work->source, &work->target, work->fields);
    self->busy_ns[slot] = host_now_ns() - start;
    return status;
}

static enum status wait(struct executor *executor, int slot, struct work_times *times)
{
    if (times)
        *times =
            (struct work_times){.compute_ns = ((struct scalar_executor *)executor)->busy_ns[slot]};
    return STATUS_OK;
}

static void destroy(struct executor **executor)
{
    free(((struct scalar_executor *)*executor)->busy_ns);
    free(*executor);
    *executor = NULL;
}

static enum status executor_create(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor)
{
    (void)backend, (void)width, (void)height, (void)frames_in_flight;
    struct scalar_executor *self = calloc(1, sizeof *self);
    long long *busy_ns = calloc((size_t)slots, sizeof *busy_ns);
    *executor = NULL;
    if (!self || !busy_ns) {
        free(self);
        free(busy_ns);
        return STATUS_MEMORY;
    }
    self->base = (struct executor){submit_async, wait, destroy};
    self->plan = plan;
    self->busy_ns = busy_ns;
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
                                 .description = "the definition, one thread",
                                 .parallel = 1,
                                 .executor_create = executor_create,
                                 .alloc = host_alloc,
                                 .free = host_free,
                                 .destroy = backend_free};
    return STATUS_OK;
}
