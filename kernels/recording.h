// Launches of kernels, which are made at once, or recorded to be made together.
//
// kernel_launch() (kernels/recording.cuh) launches on the stream unless the calling thread records:
// then it notes the kernel, its shape and a copy of its arguments. kernels/executor/graph.h makes
// nodes of a graph of them, which costs the host less. Only kernels can be recorded: what else goes
// on a stream (copies, transforms) would overtake what was launched before it, so nobody records
// launchers with such calls.
//
// Thread-safety: a thread has at most one recording under way, which is its own until it ends.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cuda_runtime.h>

enum { RECORDED_LAUNCHES = 64, RECORDED_ARGUMENTS = 128, RECORDED_BYTES = 64 << 10 };

struct recorded_launch {
    const void *kernel;
    dim3 grid, block;
    size_t shared;                 // bytes, dynamic
    int argument, arguments;       // the first of them in `at`, and how many
    size_t bytes_begin, bytes_end; // where they lie in `data`
    bool dependent;                // it was kernel_launch_dependent()'s
    bool frames_alone;             // it touches nothing but what its views point at: no table
};

// The driver's cuLaunchKernelEx(), which spares the runtime's search for the function of a kernel.
struct driver_launch {
    CUresult (*launch)(const CUlaunchConfig *config, CUfunction function, void **arguments,
                       void **extra); // NULL: it has none, and the runtime launches
    const void *kernel;               // that was launched last, and its function on the device
    cudaFunction_t function;
};

// A copy of a recording may end in `data`, behind its `bytes` (kernels/executor/graph.cu).
struct recording {
    cudaStream_t stream; // where all launches go
    int launches, arguments;
    size_t bytes;
    struct recorded_launch launch[RECORDED_LAUNCHES];
    uint16_t at[RECORDED_ARGUMENTS]; // where arguments lie in `data`
    alignas(16) uint8_t data[RECORDED_BYTES];
};

// Let launches of the calling thread, all on `stream`, go to `recording` until recording_end(). When
// it is full, what it holds is launched, it is empty, and all further launches are made at once; their
// errors are the runtime's last. A thread that records may not begin another (asserted), nor launch on
// another stream (asserted).
void recording_begin(struct recording *recording, cudaStream_t stream);
void recording_end(void);

// Launch all that is recorded on its stream, in order.
cudaError_t recording_launch(const struct recording *recording);

// True if it is one kernel, of kernel_launch_dependent().
static inline bool recording_is_dependent(const struct recording *recording)
{
    return recording->launches == 1 && recording->launch[0].dependent;
}

// True if it is one kernel, which touches nothing but what its views point at.
static inline bool recording_touches_frames_alone(const struct recording *recording)
{
    return recording->launches == 1 && recording->launch[0].frames_alone;
}

// Launch this one kernel so that its launch overlaps the end of the previous kernel on the stream,
// whosever that is. It waits for the previous one alone: what that one itself did not wait for, if it
// was launched dependently, too, goes on beside both. Needs compute capability 9.0, of the code, too.
// `driver` is kept for one device.
cudaError_t recording_launch_dependent(const struct recording *recording,
                                       struct driver_launch *driver);

// Where the arguments of launch `k` lie, as the runtime wants them: within the recording, until it is
// begun again.
void recording_arguments(const struct recording *recording, int k,
                         void *argument[RECORDED_ARGUMENTS]);

// ---- of kernel_launch() ----

// The calling thread's recording, with room for a launch on `stream` with so many arguments, which
// take `bytes` with what aligns them; NULL: launch at once.
struct recording *recording_with_room(cudaStream_t stream, int arguments, size_t bytes);
void recording_add_launch(struct recording *recording, const void *kernel, dim3 grid, dim3 block,
                          size_t shared);
// The last launch may be made by recording_launch_dependent().
void recording_mark_dependent(void);
// The calling thread's last launch, if it records, touches nothing but what its views point at.
void recording_mark_frames_alone(void);
// One more argument of the last launch.
void recording_add_argument(struct recording *recording, const void *value, size_t bytes,
                            size_t alignment);
