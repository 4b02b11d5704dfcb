// Bytes that come piece by piece, and go so. A zeroed one is empty.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *data; // NULL: nothing was added
    size_t size, room;
};

// Append; false, with the buffer as it was, without memory.
bool buffer_add(struct buffer *buffer, const char *data, size_t size);

// Remove so much of the beginning.
void buffer_remove(struct buffer *buffer, size_t size);

// Empty it, and give its memory back.
void buffer_free(struct buffer *buffer);
