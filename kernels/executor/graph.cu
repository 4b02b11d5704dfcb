#include "kernels/executor/graph.h"

#include <stdlib.h>
#include <string.h>

static bool has_kernels_of(const struct recording *a, const struct recording *b)
{
    bool same = a->launches == b->launches;
    for (int k = 0; k < a->launches && same; k++)
        same = a->launch[k].kernel == b->launch[k].kernel;
    return same;
}

// A copy without the room behind the arguments; NULL: no memory.
static struct recording *copy_of(const struct recording *recording)
{
    size_t bytes = offsetof(struct recording, data) + recording->bytes;
    struct recording *copy = (struct recording *)malloc(bytes);
    if (copy)
        memcpy((void *)copy, recording, bytes);
    return copy;
}

// The form with the kernels of `recording`, or a new one; NULL: there is none, and no room.
static struct graph_form *find_form(struct graph *graph, const struct recording *recording)
{
    for (struct graph_form &form : graph->form)
        if (!form.made || has_kernels_of(form.made, recording))
            return &form;
    return NULL;
}

// ---- nodes ----

// `argument` is room for where the arguments lie.
static struct cudaKernelNodeParams node_of(const struct recording *recording, int k,
                                           void *argument[RECORDED_ARGUMENTS])
{
    const struct recorded_launch *launch = &recording->launch[k];
    struct cudaKernelNodeParams node = {};
    recording_arguments(recording, k, argument);
    node.func = (void *)launch->kernel;
    node.gridDim = launch->grid;
    node.blockDim = launch->block;
    node.sharedMemBytes = (unsigned)launch->shared;
    node.kernelParams = argument;
    return node;
}

static bool same_shape(dim3 a, dim3 b)
{
    return a.x == b.x && a.y == b.y && a.z == b.z;
}

// Arguments of one kernel lie alike. Gaps between and within them may differ, which costs time only.
static bool is_same_launch(const struct recording *a, const struct recording *b, int k)
{
    const struct recorded_launch *first = &a->launch[k], *second = &b->launch[k];
    return same_shape(first->grid, second->grid) && same_shape(first->block, second->block) &&
           first->shared == second->shared &&
           !memcmp(a->data + first->bytes_begin, b->data + second->bytes_begin,
                   first->bytes_end - first->bytes_begin);
}

// Let launch `k` of `to` be that of `from`, which has the same kernels.
static void copy_launch(struct recording *to, const struct recording *from, int k)
{
    const struct recorded_launch *launch = &from->launch[k];
    to->launch[k] = *launch;
    memcpy(to->data + launch->bytes_begin, from->data + launch->bytes_begin,
           launch->bytes_end - launch->bytes_begin);
}

static cudaError_t set_changed(struct graph_form *form, const struct recording *recording)
{
    cudaError_t error = cudaSuccess;
    for (int k = 0; k < recording->launches && !error; k++) {
        void *argument[RECORDED_ARGUMENTS];
        if (is_same_launch(form->made, recording, k))
            continue;
        struct cudaKernelNodeParams node = node_of(recording, k, argument);
        error = cudaGraphExecKernelNodeSetParams(form->runs, form->node[k], &node);
        if (!error)
            copy_launch(form->made, recording, k);
    }
    return error;
}

// ---- making ----

static void unmake(struct graph_form *form)
{
    if (form->runs)
        cudaGraphExecDestroy(form->runs);
    if (form->graph)
        cudaGraphDestroy(form->graph);
    form->runs = NULL;
    form->graph = NULL;
}

// A graph's memory on the device is there when this returns, so that a launch finds it.
static cudaError_t make(struct graph_form *form, const struct recording *recording)
{
    cudaError_t error = cudaGraphCreate(&form->graph, 0);
    for (int k = 0; k < recording->launches && !error; k++) {
        void *argument[RECORDED_ARGUMENTS];
        struct cudaKernelNodeParams node = node_of(recording, k, argument);
        copy_launch(form->made, recording, k);
        error = cudaGraphAddKernelNode(&form->node[k], form->graph, k ? &form->node[k - 1] : NULL,
                                       k ? 1 : 0, &node);
    }
    if (!error)
        error = cudaGraphInstantiateWithFlags(&form->runs, form->graph, 0);
    return error ? error : cudaGraphUpload(form->runs, recording->stream);
}

// Another thread's capture of a stream, which may forbid what makes a graph, is none of ours.
static cudaError_t make_beside_captures(struct graph_form *form, const struct recording *recording)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaError_t error = cudaThreadExchangeStreamCaptureMode(&mode);
    if (error)
        return error;
    error = make(form, recording);
    cudaThreadExchangeStreamCaptureMode(&mode);
    return error;
}

// Launch these kernels without a graph for good. If it is the GPU that failed, they fail as well.
static void refuse(struct graph_form *form)
{
    cudaGetLastError();
    form->refused = true;
}

enum status graph_launch(struct graph *graph, struct cuda_backend *backend,
                         const struct recording *recording)
{
    struct graph_form *form = find_form(graph, recording);
    bool seen = form && form->made;
    if (!recording->launches)
        return STATUS_OK;
    if (form && !seen)
        form->made = copy_of(recording);
    if (seen && !form->refused &&
        (form->runs ? set_changed(form, recording) : make_beside_captures(form, recording)))
        refuse(form);
    if (seen && form->runs && !form->refused)
        return CUDA_CHECK(backend, cudaGraphLaunch(form->runs, recording->stream));
    return CUDA_CHECK(backend, recording_launch(recording));
}

void graph_finish(struct graph *graph)
{
    for (struct graph_form &form : graph->form) {
        unmake(&form);
        free(form.made);
        form.made = NULL;
    }
}
