// A kernel of a caller's that takes its time: it lets the kernel behind it on the stream begin at once, where that
// was launched by programmatic dependent launch, and touches memory only then. Built where the tests have CUDA.
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

// All of the blocks leave room for those of another kernel on any GPU.
enum { BLOCKS = 16, THREADS = 128 };

static __global__ void copy_late(uint8_t *to, const uint8_t *from, uint8_t *also_to,
                                 const uint8_t *also_from, size_t bytes, size_t also_bytes,
                                 long long clocks)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    for (long long begin = clock64(); clock64() - begin < clocks;)
        continue;
    for (size_t k = blockIdx.x * THREADS + threadIdx.x; k < bytes; k += BLOCKS * THREADS)
        to[k] = from[k];
    for (size_t k = blockIdx.x * THREADS + threadIdx.x; k < also_bytes; k += BLOCKS * THREADS)
        also_to[k] = also_from[k];
}

// A stream that waits for no other; NULL if there is none.
extern "C" void *late_stream(void)
{
    cudaStream_t stream = NULL;
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ? NULL : stream;
}

// Copy twice, device memory, or nothing, behind `clocks` of the GPU. 0, or the runtime's error.
extern "C" int late_copy(void *stream, uint8_t *to, const uint8_t *from, size_t bytes,
                         uint8_t *also_to, const uint8_t *also_from, size_t also_bytes,
                         long long clocks)
{
    copy_late<<<BLOCKS, THREADS, 0, (cudaStream_t)stream>>>(to, from, also_to, also_from, bytes,
                                                            also_bytes, clocks);
    return (int)cudaGetLastError();
}

extern "C" bool late_stream_is_idle(void *stream)
{
    cudaError_t error = cudaStreamQuery((cudaStream_t)stream);
    cudaGetLastError();
    return error == cudaSuccess;
}

// Wait for what is on the stream, and end it.
extern "C" int late_stream_end(void *stream)
{
    cudaError_t error = cudaStreamSynchronize((cudaStream_t)stream);
    return (int)(error ? error : cudaStreamDestroy((cudaStream_t)stream));
}
