// When events of the GPU happened, by the host's clock.
//
// cudaEventElapsedTime() tells the time between two events as a float of milliseconds, which goes by steps of a
// millisecond after five hours; and the clocks of GPU and host go apart: an H100's by 20 us a second, 72 ms an
// hour. So times are counted from an event that is about a second old and that the host has seen happen.
#pragma once

#include <cuda_runtime.h>
#include <pthread.h>

#include "kernels/executor/cuda.h"

struct gpu_clock {
    struct cuda_backend *backend;
    pthread_mutex_t lock; // guards all below
    cudaStream_t stream;  // nothing else goes on it
    cudaEvent_t epoch, next;
    long long epoch_ns, due_ns; // CLOCK_MONOTONIC: when `epoch` happened, and when it is too old
};

// The backend's GPU is the thread's, here and below. A clock that could not be made, or is all zeros, may be destroyed.
enum status gpu_clock_init(struct gpu_clock *clock, struct cuda_backend *backend);
void gpu_clock_destroy(struct gpu_clock *clock);

// When each of `count` events happened, in nanoseconds of CLOCK_MONOTONIC: right to some microseconds, and to
// half of one against each other; to more of them while the GPU is busy for other programs. All have
// happened, and were made with times. From any thread.
enum status gpu_clock_read(struct gpu_clock *clock, const cudaEvent_t *event, int count,
                           long long *ns);
