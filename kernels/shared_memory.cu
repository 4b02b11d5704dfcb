#include "kernels/shared_memory.h"

cudaError_t shared_memory_allow(const void *kernel, size_t bytes)
{
    const size_t free_for_all = 40 << 10; // 48 KiB, less what kernels declare
    struct cudaFuncAttributes about;
    int device = 0, most = 0;
    if (bytes <= free_for_all)
        return cudaSuccess;
    cudaError_t error = cudaGetDevice(&device);
    if (!error)
        error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (!error)
        error = cudaFuncGetAttributes(&about, kernel);
    return error ? error
                 : cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        most - (int)about.sharedSizeBytes);
}
