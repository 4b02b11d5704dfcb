// Samples of pixels side by side in words, in device code.
#pragma once

#include "kernels/device.cuh"

// Samples `first`, `first` + `distance` ... of some words of T, as many as one word has.
template <typename T>
static __device__ inline uint32_t word_of_samples(const uint32_t *word, int first, int distance)
{
    uint32_t pair[2];
    if constexpr (sizeof(T) == 2) {
        int a = first, b = first + distance;
        return __byte_perm(word[a / 2], word[b / 2],
                           (a % 2 ? 0x32u : 0x10u) | (b % 2 ? 0x7600u : 0x5400u));
    } else {
        for (int k = 0; k < 2; k++) {
            int a = first + 2 * k * distance, b = a + distance;
            pair[k] = __byte_perm(word[a / 4], word[b / 4], (uint32_t)(a % 4 | (4 + b % 4) << 4));
        }
        return __byte_perm(pair[0], pair[1], 0x5410);
    }
}

// Word `i` of pixels of so many samples, from planes of which each has `words` words in `plane`, one
// behind another.
template <typename T, int SAMPLES>
static __device__ inline uint32_t word_of_pixels(const uint32_t *plane, int words, int i)
{
    constexpr int each = 4 / sizeof(T); // samples of a word
    uint32_t from[each], place[each];
    for (int k = 0; k < each; k++) {
        int n = i * each + k, x = n / SAMPLES;
        from[k] = plane[n % SAMPLES * words + x / each];
        place[k] = (uint32_t)(x % each);
    }
    if constexpr (sizeof(T) == 2) {
        return __byte_perm(from[0], from[1],
                           (place[0] ? 0x32u : 0x10u) | (place[1] ? 0x7600u : 0x5400u));
    } else {
        uint32_t low = __byte_perm(from[0], from[1], place[0] | (4 + place[1]) << 4);
        uint32_t high = __byte_perm(from[2], from[3], place[2] | (4 + place[3]) << 4);
        return __byte_perm(low, high, 0x5410);
    }
}
