#include "pipeline/engine/filter/gpu_start.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct gpu_start {
    struct gpu_start_request request;
    pthread_t thread;
    bool started;
    struct backend *gpu;             // the thread's, until it is joined; NULL: there is none
    _Atomic(struct backend *) ready; // NULL: not yet
};

static void *run(void *start_)
{
    struct gpu_start *start = start_;
    const struct gpu_start_request *request = &start->request;
    if (request->make(request->opaque, &start->gpu))
        backend_destroy(&start->gpu);
    start->ready = start->gpu ? start->gpu : request->cpu;
    return NULL;
}

enum status gpu_start_create(const struct gpu_start_request *request, struct gpu_start **start)
{
    assert(request->make && request->cpu);
    struct gpu_start *made = *start = calloc(1, sizeof *made);
    if (!made)
        return STATUS_MEMORY;
    made->request = *request;
    made->started = !pthread_create(&made->thread, NULL, run, made);
    if (!made->started)
        made->ready = request->cpu;
    return STATUS_OK;
}

void gpu_start_settle(struct gpu_start *start)
{
    if (start && start->started)
        pthread_join(start->thread, NULL);
    if (start)
        start->started = false;
}

void gpu_start_destroy(struct gpu_start **start)
{
    if (!*start)
        return;
    gpu_start_settle(*start);
    backend_destroy(&(*start)->gpu);
    free(*start);
    *start = NULL;
}

struct backend *gpu_start_backend(const struct gpu_start *start)
{
    return start->ready;
}

static struct backend *get(void *start)
{
    return gpu_start_backend(start);
}

struct backend_later gpu_start_later(struct gpu_start *start)
{
    return start ? (struct backend_later){get, start} : (struct backend_later){0};
}
