// Bytes of a component that lie 2 to 4 bytes apart, as those of RGB side by side or of NV12's chroma
// do, by shuffles. Compilers gather such bytes by several shuffles each and scatter them one by one.
// PACKED_BYTES is defined where these exist.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cpu/rows/lanes.h"

#if defined(__x86_64__) && defined(__SSE4_1__)
#define PACKED_BYTES

// Loops whose distance shall be a constant in them.
#define PACKED_INLINE static inline __attribute__((always_inline))

enum { PACKED_STEPS = 4, PACKED_HALF = 16 };

#ifdef __AVX2__
enum { PACKED_LANES = 2 }; // lanes of 16 bytes
typedef __m256i packed_vector;

static inline packed_vector packed_both(const uint8_t *low, const uint8_t *high)
{
    __m128i first = _mm_loadu_si128((const __m128i *)low);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(first),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

static inline void packed_write_both(uint8_t *low, uint8_t *high, packed_vector value)
{
    _mm_storeu_si128((__m128i *)low, _mm256_castsi256_si128(value));
    _mm_storeu_si128((__m128i *)high, _mm256_extracti128_si256(value, 1));
}
#define packed_shuffle _mm256_shuffle_epi8
#define packed_choose _mm256_blendv_epi8
#define packed_or _mm256_or_si256
#define packed_and _mm256_and_si256
#define packed_low_8 _mm256_unpacklo_epi8
#define packed_high_8 _mm256_unpackhi_epi8
#define packed_low_16 _mm256_unpacklo_epi16
#define packed_high_16 _mm256_unpackhi_epi16
#else
enum { PACKED_LANES = 1 };
typedef __m128i packed_vector;

static inline packed_vector packed_both(const uint8_t *low, const uint8_t *high)
{
    (void)high;
    return _mm_loadu_si128((const __m128i *)low);
}

static inline void packed_write_both(uint8_t *low, uint8_t *high, packed_vector value)
{
    (void)high;
    _mm_storeu_si128((__m128i *)low, value);
}
#define packed_shuffle _mm_shuffle_epi8
#define packed_choose _mm_blendv_epi8
#define packed_or _mm_or_si128
#define packed_and _mm_and_si128
#define packed_low_8 _mm_unpacklo_epi8
#define packed_high_8 _mm_unpackhi_epi8
#define packed_low_16 _mm_unpacklo_epi16
#define packed_high_16 _mm_unpackhi_epi16
#endif

// Samples that are dealt with at once, in one vector.
enum { PACKED_SAMPLES = PACKED_LANES * PACKED_HALF };

static inline packed_vector packed_read(const uint8_t *from)
{
    packed_vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void packed_write(uint8_t *to, packed_vector value)
{
    memcpy(to, &value, sizeof value);
}

// Which byte of vector j of 16 pixels is sample i, and which of 16 samples is byte i of vector j,
// for pixels of `step` bytes, the sample's at `offset`. 0x80: none.
#define PACKED_BYTE(step, offset, j, i)                                             \
    ((step) * (i) + (offset) >= 16 * (j) && (step) * (i) + (offset) < 16 * (j) + 16 \
         ? (step) * (i) + (offset)-16 * (j)                                         \
         : 0x80)
#define PACKED_SAMPLE(step, offset, j, i) \
    ((16 * (j) + (i)) % (step) == (offset) ? (16 * (j) + (i)) / (step) % 16 : 0x80)
#define PACKED_16(of, ...)                                                                     \
    {                                                                                          \
        of(__VA_ARGS__, 0), of(__VA_ARGS__, 1), of(__VA_ARGS__, 2), of(__VA_ARGS__, 3),        \
            of(__VA_ARGS__, 4), of(__VA_ARGS__, 5), of(__VA_ARGS__, 6), of(__VA_ARGS__, 7),    \
            of(__VA_ARGS__, 8), of(__VA_ARGS__, 9), of(__VA_ARGS__, 10), of(__VA_ARGS__, 11),  \
            of(__VA_ARGS__, 12), of(__VA_ARGS__, 13), of(__VA_ARGS__, 14), of(__VA_ARGS__, 15) \
    }
#define PACKED_PLACE(of, step, offset)                                     \
    {                                                                      \
        PACKED_16(of, step, offset, 0), PACKED_16(of, step, offset, 1),    \
            PACKED_16(of, step, offset, 2), PACKED_16(of, step, offset, 3) \
    }
#define PACKED_PLACES(of, step)                                                          \
    {                                                                                    \
        PACKED_PLACE(of, step, 0), PACKED_PLACE(of, step, 1), PACKED_PLACE(of, step, 2), \
            PACKED_PLACE(of, step, 3)                                                    \
    }

// By step - 2, offset and j.
typedef const uint8_t packed_index[PACKED_STEPS - 1][PACKED_STEPS][PACKED_STEPS][PACKED_HALF];
static packed_index packed_byte = {PACKED_PLACES(PACKED_BYTE, 2), PACKED_PLACES(PACKED_BYTE, 3),
                                   PACKED_PLACES(PACKED_BYTE, 4)};
static packed_index packed_sample = {PACKED_PLACES(PACKED_SAMPLE, 2),
                                     PACKED_PLACES(PACKED_SAMPLE, 3),
                                     PACKED_PLACES(PACKED_SAMPLE, 4)};

// True if bytes `step` apart, the first at `offset` of a pixel, are for the functions below, which
// touch whole pixels and nothing else.
static inline bool packed_fits(int step, int offset, int width)
{
    return step >= 2 && step <= PACKED_STEPS && offset >= 0 && offset < step &&
           width >= PACKED_SAMPLES;
}

// One vector of to[x] = the byte at step x + offset from `from`, the first pixel.
PACKED_INLINE void packed_gather_at(const uint8_t *from, int step, const packed_vector *shuffle,
                                    uint8_t *to, int x)
{
    const uint8_t *low = from + (size_t)step * (size_t)x, *high = low + step * PACKED_HALF;
    packed_vector sum = packed_shuffle(packed_both(low, high), shuffle[0]);
    for (int j = 1; j < step; j++) {
        packed_vector part = packed_both(low + PACKED_HALF * j, high + PACKED_HALF * j);
        sum = packed_or(sum, packed_shuffle(part, shuffle[j]));
    }
    packed_write(to + x, sum);
}

// The same of `count` components.
PACKED_INLINE void packed_gather_some_at(const uint8_t *from, int step, int count,
                                         const packed_vector shuffle[][PACKED_STEPS],
                                         void *const *to, int x)
{
    const uint8_t *low = from + (size_t)step * (size_t)x, *high = low + step * PACKED_HALF;
    packed_vector sum[PACKED_STEPS];
    for (int j = 0; j < step; j++) {
        packed_vector part = packed_both(low + PACKED_HALF * j, high + PACKED_HALF * j);
        for (int c = 0; c < count; c++) {
            packed_vector bytes = packed_shuffle(part, shuffle[c][j]);
            sum[c] = j ? packed_or(sum[c], bytes) : bytes;
        }
    }
    for (int c = 0; c < count; c++)
        packed_write((uint8_t *)to[c] + x, sum[c]);
}

PACKED_INLINE void packed_gather_some(const uint8_t *from, int step, int count, const int *offset,
                                      void *const *to, int width)
{
    packed_vector shuffle[PACKED_STEPS][PACKED_STEPS];
    for (int c = 0; c < count; c++)
        for (int j = 0; j < step; j++)
            shuffle[c][j] = packed_both(packed_byte[step - 2][offset[c]][j],
                                        packed_byte[step - 2][offset[c]][j]);
    int x = 0;
    for (; x + PACKED_SAMPLES <= width; x += PACKED_SAMPLES)
        packed_gather_some_at(from, step, count, shuffle, to, x);
    if (x < width)
        packed_gather_some_at(from, step, count, shuffle, to, width - PACKED_SAMPLES);
}

PACKED_INLINE void packed_gather(const uint8_t *from, int step, int offset, uint8_t *to, int width)
{
    const uint8_t(*index)[PACKED_HALF] = packed_byte[step - 2][offset];
    packed_vector shuffle[PACKED_STEPS];
    for (int j = 0; j < step; j++)
        shuffle[j] = packed_both(index[j], index[j]);
    int x = 0;
    for (; x + PACKED_SAMPLES <= width; x += PACKED_SAMPLES)
        packed_gather_at(from, step, shuffle, to, x);
    if (x < width)
        packed_gather_at(from, step, shuffle, to, width - PACKED_SAMPLES);
}

// One vector of: the byte at step x + offset from `to`, the first pixel, = from[x]. Those between
// stay, and are read and written, so that nobody else may write to this row meanwhile. 16 bytes have
// their samples from the first 16 of the vector, or from the others.
PACKED_INLINE void packed_scatter_at(const uint8_t *from, uint8_t *to, int step,
                                     const packed_vector *shuffle, int x)
{
    const uint8_t *half[2] = {from + x, from + x + PACKED_SAMPLES - PACKED_HALF};
    for (int j = 0; j < step; j++) {
        int low = PACKED_LANES * j >= step, high = PACKED_LANES * (j + 1) - 1 >= step;
        uint8_t *at = to + (size_t)step * (size_t)x + (size_t)j * sizeof(packed_vector);
        packed_vector samples = packed_shuffle(packed_both(half[low], half[high]), shuffle[j]);
        packed_write(at, packed_choose(samples, packed_read(at), shuffle[j]));
    }
}

PACKED_INLINE void packed_scatter(const uint8_t *from, uint8_t *to, int step, int offset, int width)
{
    const uint8_t(*index)[PACKED_HALF] = packed_sample[step - 2][offset];
    packed_vector shuffle[PACKED_STEPS];
    for (int j = 0; j < step; j++)
        shuffle[j] =
            packed_both(index[PACKED_LANES * j % step], index[(PACKED_LANES * (j + 1) - 1) % step]);
    int x = 0;
    for (; x + PACKED_SAMPLES <= width; x += PACKED_SAMPLES)
        packed_scatter_at(from, to, step, shuffle, x);
    if (x < width)
        packed_scatter_at(from, to, step, shuffle, width - PACKED_SAMPLES);
}

// Write the `count` vectors that PACKED_SAMPLES pixels are, of which each lane of 16 bytes has those
// of 16 pixels. Bytes stay those of `source`, if there is one, where `made` has no 0x80.
PACKED_INLINE void packed_write_pixels(const packed_vector *pixels, int count,
                                       const uint8_t *source, const packed_vector *made,
                                       uint8_t *to)
{
    for (int j = 0; j < count; j++) {
        packed_vector all = pixels[j];
        if (source) {
            const uint8_t *low = source + PACKED_HALF * j;
            all = packed_choose(packed_both(low, low + PACKED_HALF * count), all, made[j]);
        }
        packed_write_both(to + PACKED_HALF * j, to + PACKED_HALF * (count + j), all);
    }
}

// PACKED_SAMPLES pixels of `count` components.
PACKED_INLINE void packed_interleave_samples(const packed_vector *samples, int count,
                                             const packed_vector shuffle[][PACKED_STEPS],
                                             packed_vector *pixels)
{
    if (count == 2) {
        pixels[0] = packed_low_8(samples[0], samples[1]);
        pixels[1] = packed_high_8(samples[0], samples[1]);
        return;
    }
    if (count == 4) {
        packed_vector first[2] = {packed_low_8(samples[0], samples[1]),
                                  packed_high_8(samples[0], samples[1])};
        packed_vector second[2] = {packed_low_8(samples[2], samples[3]),
                                   packed_high_8(samples[2], samples[3])};
        for (int j = 0; j < 2; j++) {
            pixels[2 * j] = packed_low_16(first[j], second[j]);
            pixels[2 * j + 1] = packed_high_16(first[j], second[j]);
        }
        return;
    }
    for (int j = 0; j < count; j++) {
        pixels[j] = packed_shuffle(samples[0], shuffle[0][j]);
        for (int c = 1; c < count; c++)
            pixels[j] = packed_or(pixels[j], packed_shuffle(samples[c], shuffle[c][j]));
    }
}

enum { PACKED_LINE = 64 };

PACKED_INLINE void packed_interleave_at(const struct pixels *f, int count,
                                        const packed_vector shuffle[][PACKED_STEPS],
                                        const packed_vector *made, uint8_t *to, int x)
{
    packed_vector samples[PACKED_STEPS], pixels[PACKED_STEPS];
    size_t first = (size_t)count * (size_t)x;
    for (int c = 0; c < count; c++)
        samples[c] = packed_read((const uint8_t *)f->from[c] + x);
    packed_interleave_samples(samples, count, shuffle, pixels);
    for (int line = 0; f->ahead && line < count * PACKED_SAMPLES; line += PACKED_LINE)
        __builtin_prefetch(to + first + f->ahead + line, 1);
    packed_write_pixels(pixels, count, f->kept ? f->source + first : NULL, made, to + first);
}

// Pixels of `count` components, of a vector of these or more.
PACKED_INLINE void packed_interleave(const struct pixels *pixels, int count, uint8_t *to, int width)
{
    const struct pixels f = *pixels;
    packed_vector shuffle[PACKED_STEPS][PACKED_STEPS], made[PACKED_STEPS];
    for (int j = 0; j < count; j++) {
        memset(&made[j], 0x80, sizeof made[j]);
        for (int c = 0; c < count; c++) {
            const uint8_t *index = packed_sample[count - 2][c][j];
            shuffle[c][j] = packed_both(index, index);
            if (f.kept >> c & 1)
                made[j] = packed_and(made[j], shuffle[c][j]);
        }
    }
    for (int x = 0; x < width; x += PACKED_SAMPLES)
        packed_interleave_at(&f, count, shuffle, made, to,
                             x + PACKED_SAMPLES <= width ? x : width - PACKED_SAMPLES);
}
#endif
