// The steps of template matching on the GPU (plan/tutorial.h), to be read in order.
//
//   naive   all from global memory: of a 32x32 template 2048 reads a place
//   tiles   samples and template from shared memory
//
// Both sum, for each place, what its neighbour has summed before: f and f^2 over windows that are
// alike but for a row and a column, and products that differ by a shift.
// kernels/full_frame/match_fused.cu begins there: sums that slide, products on tensor cores, scores
// that are worked out only where they matter.
#include <stdlib.h>

#include "kernels/executor/cuda.h"

extern "C" {
#include "plan/tutorial.h"
#include "plan/match.h"
}

enum { TILE = 16, SIDE = TILE + TUTORIAL_MATCH_SIDE - 1 };

// Arguments of both kernels, by value.
struct step {
    const uint8_t *source, *samples; // of the picture, of the template; rows without gaps
    uint8_t *target;
    int width, height;                   // of the picture
    int template_width, template_height; // and of the template
    int64_t count, sum;
    double norm;
};

// Sums over the window at a place.
struct window {
    int products;
    uint32_t samples, squares;
};

static __device__ inline void add(struct window *window, int f, int t)
{
    window->products += f * (t - MATCH_BIAS);
    window->samples += f;
    window->squares += f * f;
}

static __device__ inline uint8_t shade_of(const struct step *s, const struct window *window)
{
    float score =
        match_score(s->count, s->sum, s->norm, window->products, window->samples, window->squares);
    return (uint8_t)match_shade(score, 255);
}

// ---- naive ----

// A thread makes one place, a block 16x16 of them. Neighbouring threads read neighbouring samples,
// and the same one of the template; the caches catch nearly all. What bounds it are the reads: two
// for three multiplications. The next step has them nearer.
static __global__ void match_naive(const __grid_constant__ struct step s)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x + s.template_width > s.width || y + s.template_height > s.height)
        return;
    struct window window = {};
    for (int j = 0; j < s.template_height; j++)
        for (int i = 0; i < s.template_width; i++)
            add(&window, s.source[(int64_t)(y + j) * s.width + x + i],
                s.samples[j * s.template_width + i]);
    s.target[(int64_t)(y + s.template_height / 2) * s.width + x + s.template_width / 2] =
        shade_of(&s, &window);
}

// ---- tiles ----

// The block first copies the samples that its places need, up to 47x47, and the template into
// shared memory; then each thread sums as before. What bounds it now is that sums are made anew for
// every place.
static __global__ void match_tiles(const __grid_constant__ struct step s)
{
    __shared__ uint8_t tile[SIDE][SIDE], samples[TUTORIAL_MATCH_SIDE][TUTORIAL_MATCH_SIDE];
    int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    int columns = TILE + s.template_width - 1, rows = TILE + s.template_height - 1;
    for (int j = threadIdx.y; j < rows; j += TILE)
        for (int i = threadIdx.x; i < columns; i += TILE)
            if (left + i < s.width && top + j < s.height)
                tile[j][i] = s.source[(int64_t)(top + j) * s.width + left + i];
    for (int j = threadIdx.y; j < s.template_height; j += TILE)
        for (int i = threadIdx.x; i < s.template_width; i += TILE)
            samples[j][i] = s.samples[j * s.template_width + i];
    __syncthreads();
    int x = left + threadIdx.x, y = top + threadIdx.y;
    if (x + s.template_width > s.width || y + s.template_height > s.height)
        return;
    struct window window = {};
    for (int j = 0; j < s.template_height; j++)
        for (int i = 0; i < s.template_width; i++)
            add(&window, tile[threadIdx.y + j][threadIdx.x + i], samples[j][i]);
    s.target[(int64_t)(y + s.template_height / 2) * s.width + x + s.template_width / 2] =
        shade_of(&s, &window);
}

// ---- the tutorial ----

struct tutorial_match {
    struct cuda_backend *backend;
    struct tutorial_match_task task;
    cudaStream_t stream;
    struct step step; // its memory is the tutorial's
};

static size_t picture_bytes(const struct tutorial_match *self)
{
    return (size_t)self->task.width * (size_t)self->task.height;
}

static cudaError_t run_async(const struct tutorial_match *self, enum tutorial_match_step step)
{
    const dim3 block(TILE, TILE);
    const dim3 grid((unsigned)((self->task.width + TILE - 1) / TILE),
                    (unsigned)((self->task.height + TILE - 1) / TILE));
    if (step == TUTORIAL_MATCH_NAIVE)
        match_naive<<<grid, block, 0, self->stream>>>(self->step);
    else
        match_tiles<<<grid, block, 0, self->stream>>>(self->step);
    return cudaGetLastError();
}

enum status tutorial_match_repeat(struct tutorial_match *self, enum tutorial_match_step step,
                                  int times)
{
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    for (int k = 0; k < times && !status; k++)
        status = CUDA_CHECK(self->backend, run_async(self, step));
    return status ? status : CUDA_CHECK(self->backend, cudaStreamSynchronize(self->stream));
}

enum status tutorial_match_make(struct tutorial_match *self, enum tutorial_match_step step)
{
    size_t bytes = picture_bytes(self);
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status =
            CUDA_CHECK(self->backend, cudaMemsetAsync(self->step.target, 0, bytes, self->stream));
    if (!status)
        status = tutorial_match_repeat(self, step, 1);
    return status ? status
                  : CUDA_CHECK(self->backend, cudaMemcpy(self->task.target, self->step.target,
                                                         bytes, cudaMemcpyDeviceToHost));
}

void tutorial_match_destroy(struct tutorial_match **maker)
{
    struct tutorial_match *self = *maker;
    if (!self)
        return;
    cudaSetDevice(self->backend->device);
    if (self->stream)
        cudaStreamDestroy(self->stream);
    cudaFree((void *)self->step.source);
    cudaFree((void *)self->step.samples);
    cudaFree(self->step.target);
    free(self);
    *maker = NULL;
}

static enum status copy(struct tutorial_match *self, const void *from, size_t bytes,
                        const uint8_t **to)
{
    void *memory = NULL;
    enum status status = CUDA_CHECK(self->backend, cudaMalloc(&memory, bytes));
    *to = (const uint8_t *)memory;
    if (status)
        return status;
    return CUDA_CHECK(self->backend, cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
}

static enum status allocate(struct tutorial_match *self)
{
    const struct op_template *t = self->task.pattern;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status = CUDA_CHECK(self->backend,
                            cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMalloc(&self->step.target, picture_bytes(self)));
    if (!status)
        status = copy(self, self->task.source, picture_bytes(self), &self->step.source);
    return status
               ? status
               : copy(self, t->sample, (size_t)t->width * (size_t)t->height, &self->step.samples);
}

enum status tutorial_match_create(struct backend *backend, const struct tutorial_match_task *task,
                                  struct tutorial_match **maker)
{
    const struct op_template *t = task->pattern;
    struct tutorial_match *self = (struct tutorial_match *)calloc(1, sizeof *self);
    *maker = self;
    if (!self)
        return STATUS_MEMORY;
    self->backend = (struct cuda_backend *)backend;
    self->task = *task;
    self->step.width = task->width;
    self->step.height = task->height;
    self->step.template_width = t->width;
    self->step.template_height = t->height;
    self->step.count = t->count;
    self->step.sum = t->sum;
    self->step.norm = t->norm;
    enum status status = allocate(self);
    if (status)
        tutorial_match_destroy(maker);
    return status;
}
