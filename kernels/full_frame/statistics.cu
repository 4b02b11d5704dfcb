// OP_STATISTICS.
#include <assert.h>

#include "kernels/op_kernels.h"
#include "kernels/recording.cuh"

enum { THREADS = 256, BLOCKS = 512 };
static_assert((int)THREADS == (int)STATISTICS_BINS, "a thread for each bin");

// ---- device helpers ----

typedef unsigned long long u64;

struct part {
    u64 low, high, sum, squares;
};

static __device__ void reduce_warp(struct part *part)
{
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        u64 low = __shfl_down_sync(~0u, part->low, lanes);
        u64 high = __shfl_down_sync(~0u, part->high, lanes);
        part->low = low < part->low ? low : part->low;
        part->high = high > part->high ? high : part->high;
        part->sum += __shfl_down_sync(~0u, part->sum, lanes);
        part->squares += __shfl_down_sync(~0u, part->squares, lanes);
    }
}

// ---- kernels ----

static __global__ void begin_kernel(struct statistics *found)
{
    found->bin[threadIdx.x] = 0;
    if (threadIdx.x)
        return;
    found->low = UINT16_MAX;
    found->high = 0;
    found->sum = found->squares = 0;
}

// A block counts every gridDim.x-th row, its threads neighbouring samples, into a histogram in
// shared memory; what it found is added to the whole once, at its end. Sums are of integers, so
// their order means nothing.
template <typename T>
static __global__ void count_kernel(const uint8_t *from, int stride, int width, int height,
                                    int depth, struct statistics *found)
{
    const unsigned max_value = (1u << depth) - 1;
    __shared__ unsigned bin[STATISTICS_BINS];
    struct part part = {UINT16_MAX, 0, 0, 0};
    bin[threadIdx.x] = 0;
    __syncthreads();
    for (int y = blockIdx.x; y < height; y += gridDim.x) {
        const T *row = (const T *)(from + (ptrdiff_t)y * stride);
        for (int x = threadIdx.x; x < width; x += THREADS) {
            u64 value = min((unsigned)row[x], max_value);
            part.low = value < part.low ? value : part.low;
            part.high = value > part.high ? value : part.high;
            part.sum += value;
            part.squares += value * value;
            atomicAdd(&bin[value >> (depth - 8)], 1u);
        }
    }
    __syncthreads();
    if (bin[threadIdx.x])
        atomicAdd((u64 *)&found->bin[threadIdx.x], (u64)bin[threadIdx.x]);
    reduce_warp(&part);
    if (threadIdx.x % 32)
        return;
    atomicMin((u64 *)&found->low, part.low);
    atomicMax((u64 *)&found->high, part.high);
    atomicAdd((u64 *)&found->sum, part.sum);
    atomicAdd((u64 *)&found->squares, part.squares);
}

// ---- launcher ----

static cudaError_t statistics_async(const struct full_frame *frame, cudaStream_t stream)
{
    struct statistics *found = (struct statistics *)frame->analysis;
    assert(found);
    int blocks = frame->height < BLOCKS ? frame->height : BLOCKS;
    kernel_launch(begin_kernel, 1, THREADS, 0, stream, found);
    if (frame->depth > 8)
        kernel_launch(count_kernel<uint16_t>, blocks, THREADS, 0, stream, frame->from,
                      frame->from_stride, frame->width, frame->height, frame->depth, found);
    else
        kernel_launch(count_kernel<uint8_t>, blocks, THREADS, 0, stream, frame->from,
                      frame->from_stride, frame->width, frame->height, frame->depth, found);
    cudaError_t error = cudaGetLastError();
    return error || !frame->to ? error : pointwise_copy_frame_async(frame, stream);
}

const struct op_kernels statistics_kernels = {
    .kind = OP_STATISTICS,
    .full_frame_async = statistics_async,
    .launches = true,
};
