// Stands in for the CUDA backend in builds without nvcc.
#include "plan/backend.h"
#include "plan/ladder.h"

enum status backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                char *reason, size_t reason_size)
{
    (void)device, (void)log;
    *backend = NULL;
    if (reason)
        snprintf(reason, reason_size, "this build has no CUDA backend");
    return STATUS_DEVICE;
}

int backend_cuda_describe(int device, char *line, size_t size)
{
    (void)device;
    if (line)
        snprintf(line, size, "this build has no CUDA backend");
    return 0;
}

const char *backend_cuda_version(void)
{
    return "built without CUDA";
}

enum status ladder_cuda_create(struct backend *backend, const struct ladder_task *task,
                               struct ladder **ladder)
{
    (void)backend, (void)task;
    *ladder = NULL;
    return STATUS_DEVICE;
}

enum status ladder_match_create(struct backend *backend, const struct ladder_match_task *task,
                                struct ladder_match **ladder)
{
    (void)backend, (void)task;
    *ladder = NULL;
    return STATUS_DEVICE;
}

enum status ladder_match_make(struct ladder_match *ladder, enum ladder_match_step step)
{
    (void)ladder, (void)step;
    return STATUS_DEVICE;
}

enum status ladder_match_repeat(struct ladder_match *ladder, enum ladder_match_step step, int times)
{
    (void)ladder, (void)step, (void)times;
    return STATUS_DEVICE;
}

void ladder_match_destroy(struct ladder_match **ladder)
{
    *ladder = NULL;
}
