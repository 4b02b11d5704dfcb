// The launch of a kernel, which is made at once, or recorded (kernels/recording.h).
#pragma once

#include "kernels/recording.h"

template <typename Parameter>
static inline void recording_add(struct recording *recording, const Parameter &value)
{
    recording_add_argument(recording, &value, sizeof value, alignof(Parameter));
}

template <typename... Parameters, typename... Arguments>
static inline void kernel_launch_or_note(bool early, void (*kernel)(Parameters...), dim3 grid,
                                         dim3 block, size_t shared, cudaStream_t stream,
                                         const Arguments &...argument)
{
    struct recording *recording = recording_with_room(
        stream, sizeof...(Parameters), (0 + ... + (sizeof(Parameters) + alignof(Parameters))));
    if (!recording) {
        kernel<<<grid, block, shared, stream>>>(argument...);
        return;
    }
    recording_add_launch(recording, (const void *)kernel, grid, block, shared, early);
    (recording_add<Parameters>(recording, argument), ...);
}

// kernel<<<grid, block, shared, stream>>>(argument...), or a note of it. Errors of either are the
// runtime's last, cudaGetLastError().
template <typename... Parameters, typename... Arguments>
static inline void kernel_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, const Arguments &...argument)
{
    kernel_launch_or_note(false, kernel, grid, block, shared, stream, argument...);
}

// The same for a kernel whose threads all call await_last_kernel() (kernels/device.cuh) before they
// touch frames: from compute capability 9.0 on its launch may overlap the end of the kernel before it
// on the stream, whosever that is (CUDA C++ Programming Guide, "Programmatic Dependent Launch").
template <typename... Parameters, typename... Arguments>
static inline void kernel_launch_early(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                       size_t shared, cudaStream_t stream,
                                       const Arguments &...argument)
{
    kernel_launch_or_note(true, kernel, grid, block, shared, stream, argument...);
}
