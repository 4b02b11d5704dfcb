// Reference-counted memory from a backend, for libavutil's buffer pools.
#pragma once

#include <libavutil/buffer.h>

#include "pipeline/ffmpeg/compat.h"
#include "plan/backend.h"

// A buffer of `size` bytes from backend->alloc(), NULL if there is none left. The shape of an
// allocator of av_buffer_pool_init2(); `backend` is a struct backend and must outlive the buffer.
// The last reference may be dropped by any thread.
AVBufferRef *memory_alloc(void *backend, buffer_size size);
