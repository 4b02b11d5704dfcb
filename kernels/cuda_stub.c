// Stands in for the CUDA backend in builds without nvcc.
#include "plan/backend.h"
#include "plan/tutorial.h"

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

bool backend_cuda_may_be_there(void)
{
    return false;
}

bool backend_cuda_is_absent(void)
{
    return true;
}

const char *backend_cuda_version(void)
{
    return "built without CUDA";
}

enum status step_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker)
{
    (void)backend, (void)task;
    *maker = NULL;
    return STATUS_DEVICE;
}

enum status edge_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker)
{
    return step_maker_create_cuda(backend, task, maker);
}

enum status tutorial_match_create(struct backend *backend, const struct tutorial_match_task *task,
                                  struct tutorial_match **maker)
{
    (void)backend, (void)task;
    *maker = NULL;
    return STATUS_DEVICE;
}

enum status tutorial_match_make(struct tutorial_match *maker, enum tutorial_match_step step)
{
    (void)maker, (void)step;
    return STATUS_DEVICE;
}

enum status tutorial_match_repeat(struct tutorial_match *maker, enum tutorial_match_step step,
                                  int times)
{
    (void)maker, (void)step, (void)times;
    return STATUS_DEVICE;
}

void tutorial_match_destroy(struct tutorial_match **maker)
{
    *maker = NULL;
}
