// Products of samples with a template on tensor cores, in device code: a block's tile of samples
// and slices of the template in shared memory, and sums that a warp accumulates for its places.
#pragma once

#include "kernels/full_frame/match.cuh"

enum { WIDE = SPAN / 16 };

// sum += a b: 16 rows of 32 signed bytes, and 32 rows of 8 bytes.
static __device__ inline void multiply(int sum[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++)
            asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+r"(sum[2 * k]), "+r"(sum[2 * k + 1])
                : "r"(a[2 * half + k]), "r"(half ? b1 : b0));
#endif
}

// Samples as bytes of shared memory, for some rows of places: `stride` words from row to row, an
// odd multiple of four, so that eight rows of four words lie in different banks.
struct tile {
    uint32_t *word;
    int stride, rows, words;
};

enum fill { FILL_SAMPLES, FILL_HIGH, FILL_LOW }; // the samples, or bytes of their squares

static __device__ inline uint32_t filled(uint32_t word, enum fill fill)
{
    if (fill == FILL_SAMPLES)
        return word;
    uint32_t made = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t sample = word >> 8 * k & 0xff, square = sample * sample;
        made |= (fill == FILL_HIGH ? square >> 8 : square & 0xff) << 8 * k;
    }
    return made;
}

// Four samples of the picture, zeros beyond it, in one read where they lie so.
static __device__ inline uint32_t read_vec4(const struct match *m, bool aligned, int x, int y)
{
    if (y >= m->height)
        return 0;
    const uint8_t *at = m->from + (i64)y * m->from_stride + x;
    if (aligned && x + 4 <= m->width)
        return __ldg((const uint32_t *)at);
    uint32_t word = 0;
    for (int k = 0; k < 4 && x + k < m->width; k++)
        word |= (uint32_t)__ldg(at + k) << 8 * k;
    return word;
}

// Words one by one.
static __device__ inline void fill_words(const struct match *m, const struct tile *tile, int x,
                                         int y, enum fill fill, int first)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 3) == 0;
    for (int k = threadIdx.y; k < tile->rows; k += blockDim.y)
        for (int w = first + threadIdx.x; w < tile->words; w += WARP)
            tile->word[k * tile->stride + w] =
                filled(read_vec4(m, aligned, x + 4 * w, y + k), fill);
}

enum { FILL_ROWS = 10 }; // that a lane asks for before it waits for the first

// All threads of a block fill its tile, half a warp a row, 16 bytes a lane, as far as these lie
// within the picture.
static __device__ inline void fill_tile(const struct match *m, const struct tile *tile, int x,
                                        int y, enum fill fill)
{
    bool aligned = (((uintptr_t)m->from | (uintptr_t)m->from_stride) & 15) == 0;
    int quads = aligned ? min(max(m->width - x, 0) / 16, tile->words / 4) : 0;
    int quad = threadIdx.x % 16, apart = 2 * blockDim.y;
    const uint8_t *from = m->from + x + 16 * quad;
    for (int first = 2 * threadIdx.y + threadIdx.x / 16; first < tile->rows && quad < quads;
         first += FILL_ROWS * apart) {
        uint4 four[FILL_ROWS];
#pragma unroll
        for (int k = 0; k < FILL_ROWS; k++)
            four[k] = __ldg((const uint4 *)(from + (i64)min(y + first + k * apart, m->height - 1) *
                                                       m->from_stride));
#pragma unroll
        for (int k = 0; k < FILL_ROWS; k++)
            if (first + k * apart < tile->rows)
                *(uint4 *)(tile->word + (first + k * apart) * tile->stride + 4 * quad) =
                    make_uint4(filled(four[k].x, fill), filled(four[k].y, fill),
                               filled(four[k].z, fill), filled(four[k].w, fill));
    }
    if (4 * quads < tile->words)
        fill_words(m, tile, x, y, fill, 4 * quads);
}

// Rows of a template's slices in shared memory: 16 bytes more than the slices' columns before them,
// and as many behind.
struct taps {
    uint32_t *word;
    int stride; // words
};

static __host__ __device__ inline int taps_words(int steps)
{
    return (SLICE_COLUMNS * steps + 32) / 4;
}

// `count` rows, and zeros in those that fill the last slice.
static __device__ inline void fill_taps(const struct taps *taps, const int8_t *from, int stride,
                                        int count, int slices)
{
    for (int k = threadIdx.y; k < slices * SLICE_ROWS; k += blockDim.y)
        for (int w = threadIdx.x; w < taps->stride; w += WARP)
            taps->word[k * taps->stride + w] =
                k < count ? __ldg((const uint32_t *)(from + (i64)k * stride) + w) : 0;
}

// A row of the template as left factors: result g of 16 takes sample c times tap c - g, so row g of
// the factor is the template's row moved by g, a band of a matrix that is alike along diagonals.
// In words: those of 16 columns each, of results g = lane / 4 and g + 8. Each is cut from two words
// of the row, as far apart for all lanes.
static __device__ inline void load_band(uint32_t to[6], const uint32_t *row)
{
    int lane = threadIdx.x, from = 16 + 4 * (lane % 4) - lane / 4;
    row += from / 4;
    for (int part = 0; part < 3; part++)
        for (int half = 0; half < 2; half++) {
            const uint32_t *at = row + 4 * part - 2 * half;
            to[2 * part + half] = __funnelshift_r(at[0], at[1], 8 * (from % 4));
        }
}

// Products of a warp's places with 16 rows of a template at a time, and 48 columns.
//
// A result of a product is 16 neighbouring places of 8 rows; a lane's words of right factors are
// four neighbouring samples in each of 8 rows, as they lie in the tile: those of row offset j + 8
// are those of the places 8 rows further down of offset j. So rows j and j + 8 of the template are
// taken together, and words are read once for both and for all results that they count towards:
// 50 words serve 96 products.
template <int DEEP>
static __device__ inline void accumulate(int sum[DEEP][WIDE][4], const struct tile *tile,
                                         const struct taps *taps, int slices, int steps)
{
    int lane = threadIdx.x;
    for (int slice = 0; slice < slices; slice++)
        for (int step = 0; step < steps; step++)
#pragma unroll 1
            for (int j = 0; j < 8; j++) {
                uint32_t band[12], above[WIDE + 2], below[WIDE + 2];
                const uint32_t *tap =
                    taps->word + (SLICE_ROWS * slice + j) * taps->stride + SLICE_COLUMNS / 4 * step;
                load_band(band, tap);
                load_band(band + 6, tap + 8 * taps->stride);
                const uint32_t *row =
                    tile->word +
                    (threadIdx.y * 8 * DEEP + SLICE_ROWS * slice + j + lane / 4) * tile->stride +
                    SLICE_COLUMNS / 4 * step + lane % 4;
                for (int c = 0; c < WIDE + 2; c++)
                    above[c] = row[4 * c];
#pragma unroll
                for (int u = 0; u < DEEP; u++) {
                    row += 8 * tile->stride;
                    for (int c = 0; c < WIDE + 2; c++)
                        below[c] = row[4 * c];
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band, above[c], above[c + 1]);
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band + 4, above[c + 2], below[c]);
                    for (int c = 0; c < WIDE; c++)
                        multiply(sum[u][c], band + 8, below[c + 1], below[c + 2]);
                    for (int c = 0; c < WIDE + 2; c++)
                        above[c] = below[c];
                }
            }
}

// For `rows` rows of places.
static __host__ __device__ inline struct tile tile_of(int rows, int slices, int steps)
{
    struct tile tile = {};
    tile.rows = rows + SLICE_ROWS * slices;
    tile.words = (SPAN + SLICE_COLUMNS * steps) / 4;
    tile.stride = tile.words / 8 * 8 + 4;
    tile.stride += tile.stride < tile.words ? 8 : 0;
    return tile;
}
