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

// Bytes that the reference keeps of each sample beside its planes, while it makes an operation: the planes
// of reals of a wavelet, the sums of a separable filter, the scores of a match.
static size_t bytes_beside(enum op_kind kind)
{
    return kind == OP_WAVELET ? 8 * sizeof(float) : kind == OP_SEPARABLE ? sizeof(int64_t) : 4;
}

// All planes of a frame are there at once, and what its largest operation keeps; one frame is made
// at a time.
static enum status executor_measure(struct backend *backend, const struct plan *plan, int width,
                                    int height, int slots, bool frames_in_flight,
                                    struct executor_need *need)
{
    (void)backend, (void)slots, (void)frames_in_flight;
    const struct program *program = plan->program;
    size_t samples = (size_t)width * (size_t)height, most = 0;
    *need = (struct executor_need){0};
    for (int p = 0; p < program->planes; p++)
        need->host += (size_t)subsampled(width, program->plane[p].shift_x) *
                      (size_t)subsampled(height, program->plane[p].shift_y) * sizeof(uint16_t);
    for (int k = 0; k < program->ops; k++) {
        size_t beside = bytes_beside(program->op[k].kind) * samples;
        most = beside > most ? beside : most;
    }
    need->host += most;
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
                                 .executor_measure = executor_measure,
                                 .alloc = host_alloc,
                                 .free = host_free,
                                 .destroy = backend_free};
    return STATUS_OK;
}
