// The edge filter of the tutorial on the GPU, a kernel a stage (plan/tutorial.h): what a first
// program on CUDA has. Each stage reads what the one before wrote, so that of a pixel 3 + 3, 3 + 1,
// 1 + 1 and 1 + 1 bytes go through memory, where 3 + 1 would do. sluice's plan brightens components
// by themselves, and makes the other three stages in one kernel: 3 x (1 + 1) and 3 + 1 bytes.
#include <stdlib.h>

#include "kernels/executor/cuda.h"

extern "C" {
#include "plan/tutorial.h"
}

enum { TILE = 16 };

// Arguments of all four kernels, by value. Rows of the planes between have no gaps.
struct edges {
    const uint8_t *source;
    uint8_t *target, *bright, *gray, *edge;
    ptrdiff_t source_stride, target_stride; // bytes
    int width, height;
};

// Column and row of the thread; false where the picture has ended.
static __device__ inline bool place(const struct edges *s, int *x, int *y)
{
    *x = blockIdx.x * TILE + threadIdx.x;
    *y = blockIdx.y * TILE + threadIdx.y;
    return *x < s->width && *y < s->height;
}

static __device__ inline int gray_at(const struct edges *s, int x, int y)
{
    bool inside = x >= 0 && x < s->width && y >= 0 && y < s->height;
    return inside ? s->gray[(int64_t)y * s->width + x] : 0;
}

// ---- a kernel a stage ----

// A thread makes one pixel, a block 16x16 of them, here and below. Neighbouring threads read bytes
// that are three apart: a warp's three reads touch the same 96 bytes.
static __global__ void edges_brighten(const __grid_constant__ struct edges s)
{
    int x, y;
    if (!place(&s, &x, &y))
        return;
    for (int c = 0; c < 3; c++)
        s.bright[3 * ((int64_t)y * s.width + x) + c] =
            (uint8_t)min(s.source[y * s.source_stride + 3 * x + c] + TUTORIAL_BRIGHTNESS, 255);
}

// Reads as before; neighbouring threads write neighbouring bytes.
static __global__ void edges_average(const __grid_constant__ struct edges s)
{
    int x, y;
    if (!place(&s, &x, &y))
        return;
    const uint8_t *bright = s.bright + 3 * ((int64_t)y * s.width + x);
    s.gray[(int64_t)y * s.width + x] = (uint8_t)((bright[0] + bright[1] + bright[2] + 1) / 3);
}

// Eight neighbours from global memory, each checked against the edges: the caches catch all but
// one, and the checks are more instructions than the filter.
static __global__ void edges_differentiate(const __grid_constant__ struct edges s)
{
    int x, y;
    if (!place(&s, &x, &y))
        return;
    int a = gray_at(&s, x - 1, y - 1), b = gray_at(&s, x, y - 1), c = gray_at(&s, x + 1, y - 1);
    int d = gray_at(&s, x - 1, y), e = gray_at(&s, x + 1, y);
    int f = gray_at(&s, x - 1, y + 1), g = gray_at(&s, x, y + 1), h = gray_at(&s, x + 1, y + 1);
    int gx = c - a + 2 * (e - d) + h - f, gy = f - a + 2 * (g - b) + h - c;
    s.edge[(int64_t)y * s.width + x] = (uint8_t)min(abs(gx) + abs(gy), 255);
}

// A byte in, a byte out, and nothing to do between: all of it is the way through memory.
static __global__ void edges_divide(const __grid_constant__ struct edges s)
{
    int x, y;
    if (!place(&s, &x, &y))
        return;
    int edge = s.edge[(int64_t)y * s.width + x];
    s.target[y * s.target_stride + x] = edge < TUTORIAL_LOW    ? 0
                                        : edge > TUTORIAL_HIGH ? 255
                                                               : (uint8_t)edge;
}

// ---- the tutorial ----

struct edge_maker {
    struct step_maker base;
    struct cuda_backend *backend;
    struct tutorial_task task;
    cudaStream_t stream;
    uint8_t *memory; // all planes, one behind the other
    struct edges edges;
};

static size_t source_bytes(const struct tutorial_task *task)
{
    return (size_t)task->source_stride * (size_t)(task->height - 1) + 3 * (size_t)task->width;
}

static size_t target_bytes(const struct tutorial_task *task)
{
    return (size_t)task->target_stride * (size_t)(task->height - 1) + (size_t)task->width;
}

static cudaError_t run_async(const struct edges *edges, cudaStream_t stream)
{
    const dim3 block(TILE, TILE);
    const dim3 grid((unsigned)((edges->width + TILE - 1) / TILE),
                    (unsigned)((edges->height + TILE - 1) / TILE));
    edges_brighten<<<grid, block, 0, stream>>>(*edges);
    edges_average<<<grid, block, 0, stream>>>(*edges);
    edges_differentiate<<<grid, block, 0, stream>>>(*edges);
    edges_divide<<<grid, block, 0, stream>>>(*edges);
    return cudaGetLastError();
}

static enum status repeat(struct step_maker *maker, enum tutorial_step step, int times)
{
    struct edge_maker *self = (struct edge_maker *)maker;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status && step != TUTORIAL_EDGES)
        status = CUDA_CHECK(self->backend, cudaErrorInvalidValue);
    for (int k = 0; k < times && !status; k++)
        status = CUDA_CHECK(self->backend, run_async(&self->edges, self->stream));
    return status ? status : CUDA_CHECK(self->backend, cudaStreamSynchronize(self->stream));
}

static enum status make(struct step_maker *maker, enum tutorial_step step)
{
    struct edge_maker *self = (struct edge_maker *)maker;
    const struct tutorial_task *task = &self->task;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMemcpyAsync((void *)self->edges.source, task->source,
                                                           source_bytes(task),
                                                           cudaMemcpyHostToDevice, self->stream));
    if (!status)
        status = CUDA_CHECK(self->backend,
                            cudaMemcpyAsync(self->edges.target, task->target, target_bytes(task),
                                            cudaMemcpyHostToDevice, self->stream));
    if (!status)
        status = repeat(maker, step, 1);
    return status
               ? status
               : CUDA_CHECK(self->backend, cudaMemcpy(task->target, self->edges.target,
                                                      target_bytes(task), cudaMemcpyDeviceToHost));
}

static void destroy(struct step_maker **maker)
{
    struct edge_maker *self = (struct edge_maker *)*maker;
    cudaSetDevice(self->backend->device);
    if (self->stream)
        cudaStreamDestroy(self->stream);
    cudaFree(self->memory);
    free(self);
    *maker = NULL;
}

static enum status allocate(struct edge_maker *self)
{
    const struct tutorial_task *task = &self->task;
    size_t samples = (size_t)task->width * (size_t)task->height;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status =
            CUDA_CHECK(self->backend, cudaMalloc(&self->memory, 5 * samples + source_bytes(task) +
                                                                    target_bytes(task)));
    if (!status)
        status = CUDA_CHECK(self->backend,
                            cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
    if (status)
        return status;
    self->edges.bright = self->memory;
    self->edges.gray = self->edges.bright + 3 * samples;
    self->edges.edge = self->edges.gray + samples;
    self->edges.source = self->edges.edge + samples;
    self->edges.target = self->edges.edge + samples + source_bytes(task);
    return STATUS_OK;
}

enum status edge_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker)
{
    struct edge_maker *self = (struct edge_maker *)calloc(1, sizeof *self);
    *maker = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = {make, repeat, destroy};
    self->backend = (struct cuda_backend *)backend;
    self->task = *task;
    self->edges = {.source_stride = task->source_stride,
                   .target_stride = task->target_stride,
                   .width = task->width,
                   .height = task->height};
    *maker = &self->base;
    enum status status = allocate(self);
    if (status)
        destroy(maker);
    return status;
}
