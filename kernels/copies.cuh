// Copies from global to shared memory that go on while a thread works, in device code: a thread begins
// some, commits them as a group, and waits for its groups in turn. What other threads read has a
// barrier behind the wait. GPUs before compute capability 8.0 copy at once.
//
// As cp.async in NVIDIA's PTX ISA.
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>

// Sixteen bytes, past the first cache.
static __device__ inline void copy_ahead(uint8_t *to, const uint8_t *from)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from));
#else
    *(uint4 *)to = __ldg((const uint4 *)from);
#endif
}

// Four bytes.
static __device__ inline void copy_word_ahead(uint32_t *to, const uint8_t *from)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
        "l"(from));
#else
    *to = __ldg((const uint32_t *)from);
#endif
}

static __device__ inline void copies_commit(void)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until all but the last `LEFT_OUT` groups of copies are there.
template <int LEFT_OUT> static __device__ inline void copies_wait(void)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT_OUT) : "memory");
#endif
}
