// Structs that callers allocate and that grow at their end: the first member, a size_t, is the size
// that the caller knows. Whatever two versions of a struct have in common is at its beginning.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline size_t sized_of(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

// Read a caller's struct into *to, of `size` bytes; members that the caller does not know are zero.
// False if it is smaller than `least`, that of the first version, or if a member that is not known
// here is not zero.
static inline bool sized_read(void *to, size_t size, const void *from, size_t least)
{
    size_t given = sized_of(from);
    assert(least > sizeof given && least <= size);
    for (size_t k = size; k < given; k++)
        if (((const char *)from)[k])
            return false;
    if (given < least)
        return false;
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
    return true;
}

// Write *from, of `size` bytes, to a caller's struct, as far as the caller knows it; members that
// are not known here become zero. False, and nothing is written, if the caller set no size.
static inline bool sized_write(void *to, const void *from, size_t size)
{
    size_t given = sized_of(to), first = sizeof given, known = given < size ? given : size;
    assert(size > first);
    if (given <= first)
        return false;
    memcpy((char *)to + first, (const char *)from + first, known - first);
    memset((char *)to + known, 0, given - known);
    return true;
}
