#include "pipeline/ffmpeg/memory.h"

#include <string.h>

// backend->free() wants the size: it is kept before the data, where the alignment leaves room.
enum { HEADER = 64 };

static void block_free(void *opaque, uint8_t *data)
{
    struct backend *backend = opaque;
    size_t size;
    memcpy(&size, data - HEADER, sizeof size);
    backend->free(backend, data - HEADER, size);
}

AVBufferRef *memory_alloc(void *opaque, buffer_size size)
{
    struct backend *backend = opaque;
    size_t whole = (size_t)size + HEADER;
    uint8_t *memory = backend->alloc(backend, whole);
    if (!memory)
        return NULL;
    memcpy(memory, &whole, sizeof whole);
    AVBufferRef *buffer = av_buffer_create(memory + HEADER, size, block_free, backend, 0);
    if (!buffer)
        backend->free(backend, memory, whole);
    return buffer;
}
