// The CUDA backend: the device (cuda.cu), the executor, which runs a plan on it (executor.cu), and
// the limits that filters are measured against (measure.cu).
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

// The C headers of plan/ know nothing of C++.
extern "C" {
#include "plan/backend.h"
}

// Functions of the driver. Each member is NULL where the driver has no such function.
struct driver_calls {
    CUresult (*get_current)(CUcontext *context);
    CUresult (*is_capturing)(CUstream stream, CUstreamCaptureStatus *status);
    CUresult (*stream_id)(CUstream stream, unsigned long long *id);
    CUresult (*launch)(const CUlaunchConfig *config, CUfunction function, void **arguments,
                       void **extra);
};

struct cuda_backend {
    struct backend base;
    const struct log *log;
    int device;
    pthread_mutex_t failing;
    bool failed;         // guarded by `failing`: a failure was logged
    bool reaches;        // the submitting thread's; the way to another GPU's memory was asked for
    bool copies_at_once; // one call of CUDA may begin with several copies
    bool dependent_launches; // the code that the GPU runs has them (kernels/recording.h)
    struct driver_calls driver;
    CUcontext context; // the device's; NULL: not known
};

// The device that is current in the calling thread, until the end of the scope: a program with
// several GPUs may work with another one than this backend, whose calls make theirs current. A
// thread that has none keeps the backend's: to ask for a device would begin to use it.
struct callers_device {
    const struct cuda_backend *backend;
    int before;      // -1: none, or the backend's
    bool is_current; // the backend's is, so that calls need not make it so

    explicit callers_device(const struct cuda_backend *self)
        : backend(self), before(-1), is_current(false)
    {
        CUcontext context = NULL;
        if (!self->driver.get_current || self->driver.get_current(&context) || !context)
            return;
        is_current = context == self->context;
        if (!is_current)
            cudaGetDevice(&before);
    }

    ~callers_device()
    {
        if (before >= 0 && before != backend->device)
            cudaSetDevice(before);
    }
};

// Turn a CUDA error into a status. The first is logged with the name of the call that met it, before
// any thread returns with one; a GPU that failed once fails in every later call, and those stay
// silent.
#define CUDA_CHECK(backend, call) cuda_check(backend, call, #call)
enum status cuda_fail(struct cuda_backend *backend, cudaError_t error, const char *call);
static inline enum status cuda_check(struct cuda_backend *backend, cudaError_t error,
                                     const char *call)
{
    return error == cudaSuccess ? STATUS_OK : cuda_fail(backend, error, call);
}

// backend->executor_create.
enum status cuda_executor_create(struct backend *backend, const struct plan *plan, int width,
                                 int height, int slots, bool frames_in_flight,
                                 struct executor **executor);

// backend->executor_measure.
enum status cuda_executor_measure(struct backend *backend, const struct plan *plan, int width,
                                  int height, int slots, bool frames_in_flight,
                                  struct executor_need *need);

// backend->measure_copy, backend->measure_link.
enum status cuda_measure_copy(struct backend *backend, size_t bytes, double seconds, double *rate);
enum status cuda_measure_link(struct backend *backend, enum link_way way, double seconds,
                              double *rate);
