// A GPU that is made ready while the CPU already works: its context takes a third of a second, more than
// short jobs take in all. Until it is there the CPU decodes and filters, to the same bits.
//
//   state     gpu_start_backend()   leaves this state when
//   STARTING  NULL                  the thread has made the GPU's backend, or has failed
//   READY     the GPU's             never
//   ABSENT    the CPU's             never: it works on
#pragma once

#include "base/status.h"
#include "plan/backend.h"

struct gpu_start_request {
    // Make the GPU's backend, and see that the job has room on it. Any failure: the CPU works on, and
    // the call has said why, where that is worth a sentence. A thread of its own.
    enum status (*make)(void *opaque, struct backend **backend);
    void *opaque;
    struct backend *cpu; // what works meanwhile; outlives the start
};

struct gpu_start;

// Begin to make the backend. STATUS_MEMORY. Where no thread is to be had the CPU works on.
enum status gpu_start_create(const struct gpu_start_request *request, struct gpu_start **start);

// Wait until it is known whether there is a GPU: nothing more of the request is used then. NULL is accepted.
// One thread, the destroying one.
void gpu_start_settle(struct gpu_start *start);

// The same, and free the backend: nothing that it made may be left. Accepts NULL behind the
// pointer, and leaves it.
void gpu_start_destroy(struct gpu_start **start);

// The backend that works from now on; NULL: the GPU is not there yet. Nanoseconds. Thread-safe.
struct backend *gpu_start_backend(const struct gpu_start *start);

// The same for a decoder that waits for it (plan/backend.h).
struct backend_later gpu_start_later(struct gpu_start *start);
