// Host memory and the clock, as the backends that run on the CPU share them.
#pragma once

#include "plan/backend.h"

// backend->alloc and backend->free for memory that no device reads: aligned to 64 bytes.
void *host_alloc(struct backend *backend, size_t bytes);
void host_free(struct backend *backend, void *memory, size_t bytes);

// A clock that never jumps, and the processor time of the calling thread, in nanoseconds.
long long host_now_ns(void);
long long host_thread_ns(void);
