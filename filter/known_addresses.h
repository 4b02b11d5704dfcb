// Addresses that were found in the GPU's memory, as far as there is room: some hundred frames of a
// caller's pool. A cache of sets, as processors have them: an address has a place in one set only,
// by its hash, and in a full set takes the place of the one that came first.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KNOWN_SETS = 256, KNOWN_WAYS = 4 };

struct known_addresses {
    const uint8_t *address[KNOWN_SETS][KNOWN_WAYS]; // NULL: none
    uint8_t oldest[KNOWN_SETS];
};

// The set of an address. Those of a pool are apart by large numbers with few bits, which has to be
// undone: half of MurmurHash3's finalizer (Appleby).
static inline unsigned known_addresses_set(const uint8_t *address)
{
    uint64_t bits = (uintptr_t)address;
    bits = (bits ^ bits >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return (unsigned)((bits ^ bits >> 33) >> 24) % KNOWN_SETS;
}

static inline bool known_addresses_has(const struct known_addresses *known, const uint8_t *address)
{
    const uint8_t *const *set = known->address[known_addresses_set(address)];
    for (int k = 0; k < KNOWN_WAYS; k++)
        if (set[k] == address)
            return address != NULL;
    return false;
}

static inline void known_addresses_add(struct known_addresses *known, const uint8_t *address)
{
    unsigned set = known_addresses_set(address);
    known->address[set][known->oldest[set]] = address;
    known->oldest[set] = (uint8_t)((known->oldest[set] + 1) % KNOWN_WAYS);
}
