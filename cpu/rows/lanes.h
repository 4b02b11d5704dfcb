// Vectors of 16-bit lanes, as wide as the level of the instruction set has them, for what compilers
// do not find in plain loops: the sum of two products per 32-bit lane. The rest is GNU C.
// SIMD_LANES, how many there are, is defined where they exist; kernels have a plain form as well.
// With ROWS_SIMDE these are the intrinsics of x86-64-v2, which SIMDe's headers make of others: NEON's.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(ROWS_SIMDE)
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/sse4.2.h>
#endif

#if defined(__x86_64__) || defined(ROWS_SIMDE)
#if defined(__SSSE3__) || defined(ROWS_SIMDE)
#define LANES_SSSE3
#endif
#if defined(__SSE4_1__) || defined(ROWS_SIMDE)
#define LANES_SSE4_1
#endif

#if defined(__AVX512BW__)
#define SIMD_LANES 32
#define LANES_CALL(name, a, b) _mm512_##name((__m512i)(a), (__m512i)(b))
#define LANES_CALL_1(name, a) _mm512_##name((__m512i)(a))
#elif defined(__AVX2__)
#define SIMD_LANES 16
#define LANES_CALL(name, a, b) _mm256_##name((__m256i)(a), (__m256i)(b))
#define LANES_CALL_1(name, a) _mm256_##name((__m256i)(a))
#else
#define SIMD_LANES 8
#define LANES_CALL(name, a, b) _mm_##name((__m128i)(a), (__m128i)(b))
#define LANES_CALL_1(name, a) _mm_##name((__m128i)(a))
#endif

// Before a loop over up to 4 (8) sums that shall stay in registers; before one over products, of
// which there are any number, where 32 registers hold what several of them need.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#define UNROLL_8 _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 4")
#define UNROLL_8 _Pragma("GCC unroll 8")
#endif
#if SIMD_LANES == 32 && !defined(__clang__)
#define UNROLL_PRODUCTS _Pragma("GCC unroll 4")
#else
#define UNROLL_PRODUCTS
#endif

typedef uint16_t lanes16 __attribute__((vector_size(2 * SIMD_LANES)));
typedef uint8_t lanes8x2 __attribute__((vector_size(2 * SIMD_LANES))); // of a whole vector
typedef int16_t lanes16s __attribute__((vector_size(2 * SIMD_LANES)));
typedef uint32_t lanes32 __attribute__((vector_size(2 * SIMD_LANES)));
typedef int32_t lanes32s __attribute__((vector_size(2 * SIMD_LANES)));
typedef float lanes_float __attribute__((vector_size(2 * SIMD_LANES)));

// sum + (a's even lane times b's) + (a's odd lane times b's), of signed 16-bit lanes.
static inline lanes32 lanes_madd(lanes32 sum, lanes16 a, lanes16 b)
{
#ifdef __AVX512VNNI__
    return (lanes32)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#else
    return sum + (lanes32)LANES_CALL(madd_epi16, a, b);
#endif
}

#if SIMD_LANES == 32
// a with the even (odd) lanes of b added.
#define LANES_ADD_SOME

static inline lanes16 lanes_add_even(lanes16 a, lanes16 b)
{
    return (lanes16)_mm512_mask_add_epi16((__m512i)a, 0x55555555, (__m512i)a, (__m512i)b);
}

static inline lanes16 lanes_add_odd(lanes16 a, lanes16 b)
{
    return (lanes16)_mm512_mask_add_epi16((__m512i)a, 0xaaaaaaaa, (__m512i)a, (__m512i)b);
}

// Have a value in a register, not in memory twice: loads across cache lines cost as much as sums.
static inline void lanes_hold(lanes16 *a)
{
    __asm__("" : "+v"(*a));
}
#endif

// Lanes of a and b in turn, from the low (high) half of each 128 bits.
static inline lanes16 lanes_low(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(unpacklo_epi16, a, b);
}

static inline lanes16 lanes_high(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(unpackhi_epi16, a, b);
}

// Undo both, for signed 32-bit lanes that fit 16 bits.
static inline lanes16 lanes_pack(lanes32s low, lanes32s high)
{
    return (lanes16)LANES_CALL(packs_epi32, low, high);
}

// Signed lanes.
static inline lanes16 lanes_min(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(min_epi16, a, b);
}

static inline lanes16 lanes_magnitude(lanes16 a)
{
#ifdef LANES_SSSE3
    return (lanes16)LANES_CALL_1(abs_epi16, a);
#else
    return (lanes16)LANES_CALL(max_epi16, a, -a);
#endif
}

static inline lanes16 lanes_max(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(max_epi16, a, b);
}

static inline lanes32s lanes_min_32(lanes32s a, lanes32s b)
{
#ifdef LANES_SSE4_1
    return (lanes32s)LANES_CALL(min_epi32, a, b);
#else
    lanes32s is_less = a < b;
    return (a & is_less) | (b & ~is_less);
#endif
}

static inline lanes32s lanes_max_32(lanes32s a, lanes32s b)
{
#ifdef LANES_SSE4_1
    return (lanes32s)LANES_CALL(max_epi32, a, b);
#else
    lanes32s is_more = a > b;
    return (a & is_more) | (b & ~is_more);
#endif
}

static inline lanes32 lanes_magnitude_32(lanes32 a)
{
#ifdef LANES_SSSE3
    return (lanes32)LANES_CALL_1(abs_epi32, a);
#else
    lanes32 sign = (lanes32)((lanes32s)a >> 31);
    return (a ^ sign) - sign;
#endif
}

// The even lanes of one and those of the other after each of them.
static inline lanes16 lanes_turn(lanes16 even, lanes16 odd)
{
    lanes16 later = (lanes16)((lanes32)odd << 16);
#if SIMD_LANES == 32
    return (lanes16)_mm512_mask_mov_epi16((__m512i)even, 0xaaaaaaaa, (__m512i)later);
#elif SIMD_LANES == 16
    return (lanes16)_mm256_blend_epi16((__m256i)even, (__m256i)later, 0xaa);
#else
    return (lanes16)(((lanes32)even & 0xffff) | (lanes32)later);
#endif
}

static inline lanes_float lanes_to_float(lanes32 whole)
{
#if SIMD_LANES == 32
    return (lanes_float)_mm512_cvtepi32_ps((__m512i)whole);
#elif SIMD_LANES == 16
    return (lanes_float)_mm256_cvtepi32_ps((__m256i)whole);
#else
    return (lanes_float)_mm_cvtepi32_ps((__m128i)whole);
#endif
}

// The whole number nearest to the root of each lane below 2^22: none of these roots is a half.
// Above, it may be one more.
static inline lanes32s lanes_root(lanes32 whole)
{
#if SIMD_LANES == 32
    return (lanes32s)_mm512_cvttps_epi32(
        _mm512_add_ps(_mm512_sqrt_ps((__m512)lanes_to_float(whole)), _mm512_set1_ps(0.5f)));
#elif SIMD_LANES == 16
    return (lanes32s)_mm256_cvttps_epi32(
        _mm256_add_ps(_mm256_sqrt_ps((__m256)lanes_to_float(whole)), _mm256_set1_ps(0.5f)));
#else
    return (lanes32s)_mm_cvttps_epi32(
        _mm_add_ps(_mm_sqrt_ps((__m128)lanes_to_float(whole)), _mm_set1_ps(0.5f)));
#endif
}

static inline lanes16 lanes_load(const void *from)
{
    lanes16 value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void lanes_store(void *to, lanes16 value)
{
    memcpy(to, &value, sizeof value);
}

static inline lanes16 lanes_load_8(const uint8_t *from)
{
#if SIMD_LANES == 32
    return (lanes16)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)from));
#elif SIMD_LANES == 16
    return (lanes16)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)from));
#else
    __m128i bytes = _mm_loadl_epi64((const __m128i *)from);
    return (lanes16)_mm_unpacklo_epi8(bytes, _mm_setzero_si128());
#endif
}

// Lanes that fit bytes.
static inline void lanes_store_8(uint8_t *to, lanes16 value)
{
#if SIMD_LANES == 32
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi16_epi8((__m512i)value));
#elif SIMD_LANES == 16
    __m256i bytes = _mm256_packus_epi16((__m256i)value, (__m256i)value);
    bytes = _mm256_permute4x64_epi64(bytes, 0x08);
    _mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bytes));
#else
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16((__m128i)value, (__m128i)value));
#endif
}

// Both vectors, one after the other.
static inline void lanes_store_8_both(uint8_t *to, lanes16 first, lanes16 second)
{
    lanes16 bytes = (lanes16)LANES_CALL(packus_epi16, first, second);
#if SIMD_LANES == 32
    const __m512i order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    bytes = (lanes16)_mm512_permutexvar_epi64(order, (__m512i)bytes);
#elif SIMD_LANES == 16
    bytes = (lanes16)_mm256_permute4x64_epi64((__m256i)bytes, 0xd8);
#endif
    lanes_store(to, bytes);
}

#ifdef LANES_SSSE3
#define LANES_BYTES

// Bytes of a and b in turn, from the low (high) half of each 128 bits.
static inline lanes16 lanes_low_8(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(unpacklo_epi8, a, b);
}

static inline lanes16 lanes_high_8(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(unpackhi_epi8, a, b);
}

// a's even byte times b's, which is signed, and the odd ones: sums that fit 16 bits.
static inline lanes16 lanes_madd_8(lanes16 a, lanes16 b)
{
    return (lanes16)LANES_CALL(maddubs_epi16, a, b);
}

// Signed lanes as bytes, limited to what these hold, in the order of lanes_low_8() and
// lanes_high_8().
static inline lanes16 lanes_pack_8(lanes16 low, lanes16 high)
{
    return (lanes16)LANES_CALL(packus_epi16, low, high);
}
#endif

// Twice the sums of bytes 0 and 1, 2 and 3, ...
static inline lanes16 lanes_pair_sums_twice(const uint8_t *from)
{
    lanes16 bytes = lanes_load(from);
#ifdef LANES_SSSE3
    return (lanes16)LANES_CALL(maddubs_epi16, bytes, (lanes16){0} + 0x0202);
#else
    return ((bytes & 0xff) + (bytes >> 8)) << 1;
#endif
}

// The signed lanes of even and odd in turn, which are not negative, as bytes of at most 255.
static inline lanes8x2 lanes_turn_8(lanes16 even, lanes16 odd)
{
#ifdef LANES_SSSE3
#define LANES_TURN 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15
    static const uint8_t turn[]
        __attribute__((aligned(64))) = {LANES_TURN, LANES_TURN, LANES_TURN, LANES_TURN};
    lanes16 halves = (lanes16)LANES_CALL(packus_epi16, even, odd);
    return (lanes8x2)LANES_CALL(shuffle_epi8, halves, lanes_load(turn));
#else
    lanes16 full = (lanes16){0} + 255;
    return (lanes8x2)(lanes_min(even, full) | lanes_min(odd, full) << 8);
#endif
}

static inline lanes8x2 lanes_min_8(lanes8x2 a, lanes8x2 b)
{
    return (lanes8x2)LANES_CALL(min_epu8, a, b);
}

static inline lanes8x2 lanes_max_8(lanes8x2 a, lanes8x2 b)
{
    return (lanes8x2)LANES_CALL(max_epu8, a, b);
}

// `then` where a < b, else `other`.
static inline lanes8x2 lanes_choose_8(lanes8x2 a, lanes8x2 b, lanes8x2 then, lanes8x2 other)
{
#ifdef __AVX512BW__
    __mmask64 is_less = _mm512_cmplt_epu8_mask((__m512i)a, (__m512i)b);
    return (lanes8x2)_mm512_mask_mov_epi8((__m512i)other, is_less, (__m512i)then);
#elif defined(LANES_SSE4_1)
    lanes8x2 is_not = (lanes8x2)((lanes8x2)LANES_CALL(max_epu8, a, b) == a);
#if SIMD_LANES == 16
    return (lanes8x2)_mm256_blendv_epi8((__m256i)then, (__m256i)other, (__m256i)is_not);
#else
    return (lanes8x2)_mm_blendv_epi8((__m128i)then, (__m128i)other, (__m128i)is_not);
#endif
#else
    lanes8x2 is_less = (lanes8x2)(a < b);
    return (is_less & then) | (~is_less & other);
#endif
}

static inline lanes8x2 lanes_all_8(int value)
{
    return (lanes8x2){0} + (uint8_t)value;
}

// The same value in every lane; the same two neighbours in every pair of lanes.
static inline lanes32 lanes_all(uint32_t value)
{
    return (lanes32){0} + value;
}

static inline lanes16 lanes_pair(const int16_t *from)
{
    uint32_t pair;
    memcpy(&pair, from, sizeof pair);
    return (lanes16)lanes_all(pair);
}

// Each lane and all before it added up; the last lane in all of them.
static inline lanes32 lanes_running(lanes32 a)
{
#if SIMD_LANES == 32
    __m512i none = _mm512_setzero_si512();
    a += (lanes32)_mm512_alignr_epi32((__m512i)a, none, 15);
    a += (lanes32)_mm512_alignr_epi32((__m512i)a, none, 14);
    a += (lanes32)_mm512_alignr_epi32((__m512i)a, none, 12);
    a += (lanes32)_mm512_alignr_epi32((__m512i)a, none, 8);
#elif SIMD_LANES == 16
    a += (lanes32)_mm256_slli_si256((__m256i)a, 4);
    a += (lanes32)_mm256_slli_si256((__m256i)a, 8);
    __m256i low = _mm256_permute2x128_si256((__m256i)a, (__m256i)a, 0x08);
    a += (lanes32)_mm256_shuffle_epi32(low, 0xff);
#else
    a += (lanes32)_mm_slli_si128((__m128i)a, 4);
    a += (lanes32)_mm_slli_si128((__m128i)a, 8);
#endif
    return a;
}

static inline lanes32 lanes_last(lanes32 a)
{
#if SIMD_LANES == 32
    return (lanes32)_mm512_permutexvar_epi32(_mm512_set1_epi32(15), (__m512i)a);
#elif SIMD_LANES == 16
    return (lanes32)_mm256_permutevar8x32_epi32((__m256i)a, _mm256_set1_epi32(7));
#else
    return (lanes32)_mm_shuffle_epi32((__m128i)a, 0xff);
#endif
}

#ifdef __AVX512VBMI__
// Look 64 bytes up at once in a table of 256 bytes, given as 16-bit entries.
#define LANES_TABLE 64

struct lanes_table {
    __m512i part[4];
};

static inline struct lanes_table lanes_table_load(const uint16_t *entry)
{
    struct lanes_table table;
    uint8_t *byte = (uint8_t *)table.part;
    for (int k = 0; k < 256; k++)
        byte[k] = (uint8_t)entry[k];
    return table;
}

static inline void lanes_table_store(uint8_t *to, const struct lanes_table *table,
                                     const uint8_t *from)
{
    __m512i index = _mm512_loadu_si512(from);
    __m512i low = _mm512_permutex2var_epi8(table->part[0], index, table->part[1]);
    __m512i high = _mm512_permutex2var_epi8(table->part[2], index, table->part[3]);
    _mm512_storeu_si512(to, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
}
#endif
#endif
