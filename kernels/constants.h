// Constants of a plan, gathered on the host as they will lie in one piece on the device. They are
// gathered twice: first without host memory, which only measures and finds the places.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct constants {
    uint8_t *host; // NULL: measure only
    size_t room;   // bytes at `host`; what goes beyond is not written
    uint8_t *device;
    size_t used; // bytes, a multiple of 256
};

// Reserve `bytes`, and return their place on the device. *host is where to write them, NULL to
// leave it.
static inline void *constants_take(struct constants *constants, size_t bytes, void **host)
{
    size_t at = constants->used;
    assert(at % 256 == 0 && host);
    constants->used += (bytes + 255) / 256 * 256;
    *host = constants->host && constants->used <= constants->room ? constants->host + at : NULL;
    return constants->device + at;
}

// A copy of `bytes` on the host.
static inline const void *constants_put(struct constants *constants, const void *from, size_t bytes)
{
    void *host;
    const void *device = constants_take(constants, bytes, &host);
    if (host)
        memcpy(host, from, bytes);
    return device;
}

// Words that `fill(to)` writes, and counts without `to`; NULL where it has none.
template <typename Fill>
static inline const uint32_t *constants_words(struct constants *constants, const Fill &fill)
{
    size_t count = fill(NULL);
    if (!count)
        return NULL;
    void *host;
    const void *device = constants_take(constants, count * sizeof(uint32_t), &host);
    if (host)
        fill((uint32_t *)host);
    return (const uint32_t *)device;
}
