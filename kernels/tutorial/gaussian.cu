// The steps of the tutorial on the GPU (plan/tutorial.h), one idea after the other. Read them in
// order: each kernel is the one before with one thing mended.
//
//   naive       every sample from global memory              289 reads a result
//   shared      ... from shared memory                       289 reads there, 4 from outside
//   separable   17 + 17 instead of 289, in two kernels        34 reads there, 2 + 2 from outside
//   unrolled    four samples a read, several results a thread, loops laid out flat
//
// They are for reading: sluice filters by kernels/stencil/separable.cu and
// kernels/stencil/fused.cu.
#include <stdlib.h>

#include "kernels/executor/cuda.h"

extern "C" {
#include "plan/tutorial.h"
}

// Arguments of all four kernels, by value: they lie in the constant bank, which gives a warp whose
// threads ask for the same word that word at once. That is where weights belong, and where they
// came from in the lesson (__constant__), but a launch of another stream cannot overwrite them
// here.
struct step {
    struct tutorial_filter filter;
    const uint8_t *source;
    uint8_t *target;
    uint16_t *between; // of the separable steps: what the columns' pass leaves for the rows'
    ptrdiff_t source_stride, target_stride; // bytes
    int between_stride;                     // samples, a multiple of four
    int width, height;
    int radius;
};

// Sample (x, y) of the source as the filter sees it: zero beyond the edges.
static __device__ inline uint32_t source_at(const struct step *s, int x, int y)
{
    bool inside = x >= 0 && x < s->width && y >= 0 && y < s->height;
    return inside ? s->source[y * s->source_stride + x] : 0;
}

// ---- naive ----

enum { TILE = 16, TILE_THREADS = TILE * TILE };

// A thread makes one result, a block 16x16 of them. It reads its 289 samples from global memory:
// neighbouring threads read neighbouring bytes, which is well, but a sample is read by 289 threads.
// The caches catch nearly all of that, and are what bounds it: each read goes through the memory
// pipe and is checked against the edges, for one multiplication. The next step fetches a sample
// once a block.
static __global__ void tutorial_naive(const __grid_constant__ struct step s)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= s.width || y >= s.height)
        return;
    uint32_t sum = 1u << TUTORIAL_SQUARE_BITS >> 1;
    for (int b = -s.radius; b <= s.radius; b++)
        for (int a = -s.radius; a <= s.radius; a++)
            sum += s.filter.weight[TUTORIAL_RADIUS + b][TUTORIAL_RADIUS + a] *
                   source_at(&s, x + a, y + b);
    s.target[y * s.target_stride + x] = (uint8_t)(sum >> TUTORIAL_SQUARE_BITS);
}

// ---- shared ----

enum { SQUARE = TILE + 2 * TUTORIAL_RADIUS };

// The block first copies all that its results need, 32x32 samples, into shared memory: 256 threads
// copy four each, a warp a row of 32 bytes. Edges are seen to on the way, so that the loop is free
// of them. Then every thread reads its 289 samples there; the 16 of a row lie in five words of five
// banks, and threads that want the same word get it at once. What bounds it now is arithmetic, and
// the read that goes with each multiplication: 289 of both. The next step needs 34.
static __global__ void tutorial_shared(const __grid_constant__ struct step s)
{
    __shared__ uint8_t tile[SQUARE][SQUARE];
    int left = blockIdx.x * TILE - TUTORIAL_RADIUS, top = blockIdx.y * TILE - TUTORIAL_RADIUS;
    for (int k = threadIdx.y * TILE + threadIdx.x; k < SQUARE * SQUARE; k += TILE_THREADS)
        tile[k / SQUARE][k % SQUARE] = (uint8_t)source_at(&s, left + k % SQUARE, top + k / SQUARE);
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= s.width || y >= s.height)
        return;
    uint32_t sum = 1u << TUTORIAL_SQUARE_BITS >> 1;
    for (int b = -s.radius; b <= s.radius; b++)
        for (int a = -s.radius; a <= s.radius; a++)
            sum += s.filter.weight[TUTORIAL_RADIUS + b][TUTORIAL_RADIUS + a] *
                   tile[threadIdx.y + TUTORIAL_RADIUS + b][threadIdx.x + TUTORIAL_RADIUS + a];
    s.target[y * s.target_stride + x] = (uint8_t)(sum >> TUTORIAL_SQUARE_BITS);
}

// ---- separable ----

// One pass after the other: a filter of 17x17 that is the product of two of 17 takes 34
// multiplications. The columns' pass, in blocks of 16x16 results again, needs 16 columns of 32
// samples, two for each thread to copy. It leaves 16-bit samples in global memory, as the rows of a
// result need columns of other blocks.
static __global__ void tutorial_separable_columns(const __grid_constant__ struct step s)
{
    __shared__ uint8_t tile[SQUARE][TILE];
    int left = blockIdx.x * TILE, top = blockIdx.y * TILE - TUTORIAL_RADIUS;
    for (int k = threadIdx.y; k < SQUARE; k += TILE)
        tile[k][threadIdx.x] = (uint8_t)source_at(&s, left + threadIdx.x, top + k);
    __syncthreads();
    int x = left + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= s.width || y >= s.height)
        return;
    uint32_t sum = 1u << s.filter.column_shift >> 1;
    for (int k = -s.radius; k <= s.radius; k++)
        sum += s.filter.tap[TUTORIAL_RADIUS + k] *
               tile[threadIdx.y + TUTORIAL_RADIUS + k][threadIdx.x];
    s.between[(ptrdiff_t)y * s.between_stride + x] = (uint16_t)(sum >> s.filter.column_shift);
}

// The rows' pass is the same lying down: 16 rows of 32 samples for 16x16 results.
//
// Both are bounded by traffic: half of a tile is margin, so that all is fetched twice; a warp of
// 16-wide blocks asks for two pieces of 16 samples, each a fraction of what memory gives in one go;
// and for one multiplication a thread still counts, compares, computes an address and reads. The
// next step mends these.
static __global__ void tutorial_separable_rows(const __grid_constant__ struct step s)
{
    __shared__ uint16_t tile[TILE][SQUARE];
    int left = blockIdx.x * TILE - TUTORIAL_RADIUS, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = threadIdx.x; k < SQUARE; k += TILE) {
        bool inside = left + k >= 0 && left + k < s.width && y < s.height;
        tile[threadIdx.y][k] = inside ? s.between[(ptrdiff_t)y * s.between_stride + left + k] : 0;
    }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x;
    if (x >= s.width || y >= s.height)
        return;
    uint32_t sum = 1u << s.filter.row_shift >> 1;
    for (int k = -s.radius; k <= s.radius; k++)
        sum += s.filter.tap[TUTORIAL_RADIUS + k] *
               tile[threadIdx.y][threadIdx.x + TUTORIAL_RADIUS + k];
    s.target[y * s.target_stride + x] = (uint8_t)(sum >> s.filter.row_shift);
}

// ---- unrolled ----

// Blocks of 32x8 threads, a warp to a row. A thread owns four neighbouring samples, a word of
// bytes, so that a warp asks for 128 bytes side by side; and it makes STEPS such vec4s, eight rows
// apart, so that the margin is little beside them: of 80 rows 64 are results.
enum { WARP = 32, WARPS = 8, VEC4 = 4, COLUMNS = WARP * VEC4, STEPS = 8, ROWS = STEPS * WARPS };

// Samples x .. x + 3 of the source in one word, the first in the lowest byte: in one read where
// they lie in the picture and at a multiple of four bytes.
static __device__ inline uint32_t source_vec4(const struct step *s, int x, int y)
{
    if (x + VEC4 <= s->width && y >= 0 && y < s->height) {
        const uint8_t *at = s->source + y * s->source_stride + x;
        if ((uintptr_t)at % VEC4 == 0)
            return *(const uint32_t *)at;
    }
    uint32_t word = 0;
    for (int i = 0; i < VEC4; i++)
        word |= source_at(s, x + i, y) << 8 * i;
    return word;
}

// The columns' pass. The loop over 17 taps has a fixed end, and the compiler lays it out flat: no
// counter, no comparison, weights as operands of the multiplications, addresses as constants in
// the reads. One read of a word gives samples for four sums. A warp's 32 words lie in 32 banks. The
// last vec4 of a row may reach past the picture: there is room, and the sums of zeros are zero.
static __global__ void __launch_bounds__(WARP *WARPS)
    tutorial_unrolled_columns(const __grid_constant__ struct step s)
{
    __shared__ uint32_t tile[ROWS + 2 * TUTORIAL_RADIUS][WARP];
    int x = blockIdx.x * COLUMNS + threadIdx.x * VEC4, top = blockIdx.y * ROWS;
#pragma unroll
    for (int k = threadIdx.y; k < ROWS + 2 * TUTORIAL_RADIUS; k += WARPS)
        tile[k][threadIdx.x] = source_vec4(&s, x, top - TUTORIAL_RADIUS + k);
    __syncthreads();
    if (x >= s.width)
        return;
    for (int row = threadIdx.y; row < ROWS && top + row < s.height; row += WARPS) {
        uint32_t sum[VEC4];
        for (int i = 0; i < VEC4; i++)
            sum[i] = 1u << s.filter.column_shift >> 1;
#pragma unroll
        for (int k = 0; k < TUTORIAL_TAPS; k++) {
            uint32_t word = tile[row + k][threadIdx.x];
            for (int i = 0; i < VEC4; i++)
                sum[i] += s.filter.tap[k] * (word >> 8 * i & 0xff);
        }
        for (int i = 0; i < VEC4; i++)
            sum[i] >>= s.filter.column_shift;
        *(uint2 *)&s.between[(ptrdiff_t)(top + row) * s.between_stride + x] =
            make_uint2(sum[0] | sum[1] << 16, sum[2] | sum[3] << 16);
    }
}

// Four neighbouring samples between the passes, as they lie in memory; zeros beyond the picture,
// which the columns' pass has left in vec4s that reach past it, too.
static __device__ inline uint2 between_vec4(const struct step *s, int x, int y)
{
    if (x < 0 || x >= s->width)
        return make_uint2(0, 0);
    return *(const uint2 *)&s->between[(ptrdiff_t)y * s->between_stride + x];
}

static __device__ inline void target_vec4(const struct step *s, int x, int y, const uint32_t *value)
{
    uint8_t *at = s->target + y * s->target_stride + x;
    if (x + VEC4 <= s->width && (uintptr_t)at % VEC4 == 0) {
        *(uint32_t *)at = value[0] | value[1] << 8 | value[2] << 16 | value[3] << 24;
        return;
    }
    for (int i = 0; i < VEC4 && x + i < s->width; i++)
        at[i] = (uint8_t)value[i];
}

// The rows' pass. A tile's row is 32 vec4s and two more on both sides for the margin. A thread
// takes the five vec4s around its own, 20 samples in registers, and has all that its four results
// need: five reads of 8 bytes for 68 multiplications. Each row is its warp's own, so that nobody
// waits for the others.
//
// Left to mend: the samples between the passes go through memory, twice the bytes of the picture
// each way; integers multiply at half the rate of floats; and a picture of 1080p keeps a large GPU
// busy for less time than a launch takes. sluice's own kernels begin there: both passes in one,
// sums by dot products or on tensor cores, several pictures a launch.
static __global__ void __launch_bounds__(WARP *WARPS)
    tutorial_unrolled_rows(const __grid_constant__ struct step s)
{
    constexpr int margin = TUTORIAL_RADIUS / VEC4;
    __shared__ uint2 tile[WARPS][margin + WARP + margin];
    int left = blockIdx.x * COLUMNS, lane = threadIdx.x, x = left + lane * VEC4;
    uint2 *row = tile[threadIdx.y];
    for (int y = blockIdx.y * ROWS + threadIdx.y; y < s.height && y < (int)(blockIdx.y + 1) * ROWS;
         y += WARPS) {
        row[margin + lane] = between_vec4(&s, x, y);
        if (lane < margin)
            row[lane] = between_vec4(&s, x - TUTORIAL_RADIUS, y);
        if (lane >= WARP - margin)
            row[lane + 2 * margin] = between_vec4(&s, x + TUTORIAL_RADIUS, y);
        __syncwarp();
        uint32_t sample[VEC4 + 2 * TUTORIAL_RADIUS], sum[VEC4];
#pragma unroll
        for (int j = 0; j <= 2 * margin; j++) {
            uint2 four = row[lane + j];
            sample[VEC4 * j] = four.x & 0xffff;
            sample[VEC4 * j + 1] = four.x >> 16;
            sample[VEC4 * j + 2] = four.y & 0xffff;
            sample[VEC4 * j + 3] = four.y >> 16;
        }
        for (int i = 0; i < VEC4; i++) {
            sum[i] = 1u << s.filter.row_shift >> 1;
#pragma unroll
            for (int k = 0; k < TUTORIAL_TAPS; k++)
                sum[i] += s.filter.tap[k] * sample[i + k];
            sum[i] >>= s.filter.row_shift;
        }
        if (x < s.width)
            target_vec4(&s, x, y, sum);
        __syncwarp();
    }
}

// ---- launchers ----

static dim3 blocks(const struct step *s, int columns, int rows)
{
    return dim3((unsigned)((s->width + columns - 1) / columns),
                (unsigned)((s->height + rows - 1) / rows));
}

static cudaError_t run_async(const struct step *s, enum tutorial_step step, cudaStream_t stream)
{
    const dim3 square(TILE, TILE), warps(WARP, WARPS);
    const dim3 tiles = blocks(s, TILE, TILE), stripes = blocks(s, COLUMNS, ROWS);
    switch (step) {
    case TUTORIAL_NAIVE:
        tutorial_naive<<<tiles, square, 0, stream>>>(*s);
        break;
    case TUTORIAL_SHARED:
        tutorial_shared<<<tiles, square, 0, stream>>>(*s);
        break;
    case TUTORIAL_SEPARABLE:
        tutorial_separable_columns<<<tiles, square, 0, stream>>>(*s);
        tutorial_separable_rows<<<tiles, square, 0, stream>>>(*s);
        break;
    case TUTORIAL_UNROLLED:
        tutorial_unrolled_columns<<<stripes, warps, 0, stream>>>(*s);
        tutorial_unrolled_rows<<<stripes, warps, 0, stream>>>(*s);
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

// ---- the tutorial ----

// Copies of the task's memory on the device, rows as far apart and beginning as far from multiples
// of 256 bytes as the caller's.
struct cuda_maker {
    struct step_maker base;
    struct cuda_backend *backend;
    struct tutorial_task task;
    cudaStream_t stream;
    uint8_t *source_memory, *target_memory;
    struct step step;
};

static size_t skew(const void *at)
{
    return (uintptr_t)at % 256;
}

static size_t extent(const struct tutorial_task *task, ptrdiff_t stride)
{
    return (size_t)stride * (size_t)(task->height - 1) + (size_t)task->width;
}

// Look again and again: to be woken takes longer than some pictures.
static cudaError_t await(cudaStream_t stream)
{
    cudaError_t error;
    while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady)
        cudaGetLastError(); // not to be ready would pass for an error of the next launch
    return error;
}

static enum status repeat(struct step_maker *maker, enum tutorial_step step, int times)
{
    struct cuda_maker *self = (struct cuda_maker *)maker;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    for (int k = 0; k < times && !status; k++)
        status = CUDA_CHECK(self->backend, run_async(&self->step, step, self->stream));
    return status ? status : CUDA_CHECK(self->backend, await(self->stream));
}

static enum status make(struct step_maker *maker, enum tutorial_step step)
{
    struct cuda_maker *self = (struct cuda_maker *)maker;
    const struct tutorial_task *task = &self->task;
    size_t target_bytes = extent(task, task->target_stride);
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMemcpyAsync((void *)self->step.source, task->source,
                                                           extent(task, task->source_stride),
                                                           cudaMemcpyHostToDevice, self->stream));
    if (!status)
        status =
            CUDA_CHECK(self->backend, cudaMemcpyAsync(self->step.target, task->target, target_bytes,
                                                      cudaMemcpyHostToDevice, self->stream));
    if (!status)
        status = repeat(maker, step, 1);
    return status ? status
                  : CUDA_CHECK(self->backend, cudaMemcpy(task->target, self->step.target,
                                                         target_bytes, cudaMemcpyDeviceToHost));
}

static void destroy(struct step_maker **maker)
{
    struct cuda_maker *self = (struct cuda_maker *)*maker;
    cudaSetDevice(self->backend->device);
    if (self->stream)
        cudaStreamDestroy(self->stream);
    cudaFree(self->source_memory);
    cudaFree(self->target_memory);
    cudaFree(self->step.between);
    free(self);
    *maker = NULL;
}

static enum status allocate(struct cuda_maker *self)
{
    const struct tutorial_task *task = &self->task;
    size_t source = skew(task->source) + extent(task, task->source_stride);
    size_t target = skew(task->target) + extent(task, task->target_stride);
    size_t between = sizeof(uint16_t) * (size_t)self->step.between_stride * (size_t)task->height;
    enum status status = CUDA_CHECK(self->backend, cudaSetDevice(self->backend->device));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMalloc(&self->source_memory, source));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMalloc(&self->target_memory, target));
    if (!status)
        status = CUDA_CHECK(self->backend, cudaMalloc(&self->step.between, between));
    if (!status)
        status = CUDA_CHECK(self->backend,
                            cudaStreamCreateWithFlags(&self->stream, cudaStreamNonBlocking));
    return status;
}

enum status step_maker_create_cuda(struct backend *backend, const struct tutorial_task *task,
                                   struct step_maker **maker)
{
    struct cuda_maker *self = (struct cuda_maker *)calloc(1, sizeof *self);
    *maker = NULL;
    if (!self)
        return STATUS_MEMORY;
    self->base = {make, repeat, destroy};
    self->backend = (struct cuda_backend *)backend;
    self->task = *task;
    self->step = {.filter = task->filter,
                  .source_stride = task->source_stride,
                  .target_stride = task->target_stride,
                  .between_stride = (task->width + VEC4 - 1) / VEC4 * VEC4,
                  .width = task->width,
                  .height = task->height,
                  .radius = TUTORIAL_RADIUS};
    *maker = &self->base;
    enum status status = allocate(self);
    if (status) {
        destroy(maker);
        return status;
    }
    self->step.source = self->source_memory + skew(task->source);
    self->step.target = self->target_memory + skew(task->target);
    return STATUS_OK;
}
