#include "control/buffer.h"

#include <stdlib.h>
#include <string.h>

bool buffer_add(struct buffer *buffer, const char *data, size_t size)
{
    size_t wanted = buffer->size + size;
    if (wanted > buffer->room) {
        size_t room = wanted > 2 * buffer->room ? wanted : 2 * buffer->room;
        char *larger = realloc(buffer->data, room);
        if (!larger)
            return false;
        buffer->data = larger;
        buffer->room = room;
    }
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size = wanted;
    return true;
}

void buffer_remove(struct buffer *buffer, size_t size)
{
    buffer->size -= size;
    memmove(buffer->data, buffer->data + size, buffer->size);
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){0};
}
