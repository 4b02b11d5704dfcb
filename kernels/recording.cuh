// The launch of a kernel, which is made at once, or recorded (kernels/recording.h).
#pragma once

#include "kernels/recording.h"

template <typename Parameter>
static inline void recording_add(struct recording *recording, const Parameter &value)
{
    recording_add_argument(recording, &value, sizeof value, alignof(Parameter));
}

// kernel<<<grid, block, shared, stream>>>(argument...), or a note of it. Errors of either are the
// runtime's last, cudaGetLastError(). True if it is a note.
template <typename... Parameters, typename... Arguments>
static inline bool kernel_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, const Arguments &...argument)
{
    struct recording *recording = recording_with_room(
        stream, sizeof...(Parameters), (0 + ... + (sizeof(Parameters) + alignof(Parameters))));
    if (!recording) {
        kernel<<<grid, block, shared, stream>>>(argument...);
        return false;
    }
    recording_add_launch(recording, (const void *)kernel, grid, block, shared);
    (recording_add<Parameters>(recording, argument), ...);
    return true;
}

#ifdef DEPENDENT_LAUNCHES
// The same for a kernel that calls await_previous_kernel() (kernels/device.cuh): the note says that it
// may be launched by recording_launch_dependent().
template <typename... Arguments>
static inline void kernel_launch_dependent(const Arguments &...argument)
{
    if (kernel_launch(argument...))
        recording_mark_dependent();
}
#endif
