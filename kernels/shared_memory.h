// How much dynamic shared memory a kernel may have.
//
// A launch that wants more than 48 KiB together with what its kernel declares, which is 8 KiB at most
// in this program, is refused unless that was allowed to the kernel on this device. What is allowed holds for the kernel, not for a launch, and
// the last one to say so wins: another thread's, or one that was recorded before. So as much is allowed
// each time as the device has, whatever the launch takes.
#pragma once

#include <stddef.h>

#include <cuda_runtime_api.h>

// Let launches of `kernel` on the current device have as much as it can give; nothing if `bytes`, which
// is what the next one takes, need no leave. Any thread.
cudaError_t shared_memory_allow(const void *kernel, size_t bytes);
