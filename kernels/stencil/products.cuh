// Products on tensor cores and what they need, in device code: samples on their way from shared
// memory into the lanes of a warp, sums of halves and of bytes.
//
// The shapes are those of mma, ldmatrix and movmatrix in NVIDIA's PTX ISA.
#pragma once

#include "kernels/copies.cuh"
#include "kernels/device.cuh"

// ---- matrices of eight by eight ----

// Eight by eight units of 16 bits four times: lane l gets units 2 (l % 4) and the next of row l / 4
// of each. `at` is this lane's row.
static __device__ inline void load_matrices(uint32_t to[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

static __device__ inline void load_matrices_two(uint32_t to[2], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(at));
}

// The same, transposed: lane l gets rows 2 (l % 4) and the next of column l / 4.
static __device__ inline void load_transposed(uint32_t to[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at));
}

static __device__ inline void load_transposed_two(uint32_t to[2], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(at));
}

// Eight by eight halves, transposed.
static __device__ inline uint32_t transposed(uint32_t rows)
{
    uint32_t columns;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
    return columns;
}

static __device__ inline uint32_t word_of(uint32_t first, uint32_t second)
{
    return __byte_perm(first, second, 0x5410);
}

// ---- products of halves ----

// sum (16 x 8) = start + a (16 x 16) b (16 x 8) of halves; `brief`: of the first eight columns of a
// and rows of b only.
static __device__ inline void multiply(bool brief, float sum[4], const uint32_t a[4],
                                       const uint32_t b[2], const float start[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (!brief) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(start[0]),
              "f"(start[1]), "f"(start[2]), "f"(start[3]));
        return;
    }
#endif
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%7, %8, %9, %10};"
        : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(start[0]), "f"(start[1]), "f"(start[2]),
          "f"(start[3]));
    if (!brief)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[2]), "r"(a[3]), "r"(b[1]));
}

// ---- products of bytes ----

// sum (16 x 8) = start + a (16 x 32) b (32 x 8) of bytes; `brief`: of the first sixteen columns of
// a and rows of b only.
static __device__ inline void multiply(bool brief, int sum[4], const uint32_t a[4],
                                       const uint32_t b[2], const int start[4])
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
    if (brief)
        asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%7, %8, %9, %10};"
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(start[0]), "r"(start[1]), "r"(start[2]),
              "r"(start[3]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start[0]),
              "r"(start[1]), "r"(start[2]), "r"(start[3]));
#else
    for (int k = 0; k < 2; k++) {
        asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
            : "=r"(sum[2 * k]), "=r"(sum[2 * k + 1])
            : "r"(a[k]), "r"(b[0]), "r"(start[2 * k]), "r"(start[2 * k + 1]));
        if (!brief)
            asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                : "+r"(sum[2 * k]), "+r"(sum[2 * k + 1])
                : "r"(a[2 + k]), "r"(b[1]));
    }
#endif
}

// The same, of bytes of which those of a or b have a sign.
template <bool A, bool B>
static __device__ inline void multiply_signed(bool brief, int sum[4], const uint32_t a[4],
                                              const uint32_t b[2], const int start[4])
{
    static_assert(A || B, "multiply() has neither");
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
#define MULTIPLY(types)                                                                        \
    if (brief)                                                                                 \
        asm("mma.sync.aligned.m16n8k16.row.col.s32." types ".s32 {%0, %1, %2, %3}, {%4, %5}, " \
            "{%6}, {%7, %8, %9, %10};"                                                         \
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])                           \
            : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(start[0]), "r"(start[1]), "r"(start[2]),    \
              "r"(start[3]));                                                                  \
    else                                                                                       \
        asm("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0, %1, %2, %3}, "           \
            "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"                                \
            : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])                           \
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(start[0]), \
              "r"(start[1]), "r"(start[2]), "r"(start[3]))
#else
#define MULTIPLY(types)                                                                          \
    for (int k = 0; k < 2; k++) {                                                                \
        asm("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0, %1}, {%2}, {%3}, {%4, %5};" \
            : "=r"(sum[2 * k]), "=r"(sum[2 * k + 1])                                             \
            : "r"(a[k]), "r"(b[0]), "r"(start[2 * k]), "r"(start[2 * k + 1]));                   \
        if (!brief)                                                                              \
            asm("mma.sync.aligned.m8n8k16.row.col.s32." types                                    \
                ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};"                                           \
                : "+r"(sum[2 * k]), "+r"(sum[2 * k + 1])                                         \
                : "r"(a[2 + k]), "r"(b[1]));                                                     \
    }
#endif
    if constexpr (A && B) {
        MULTIPLY("s8.s8");
    } else if constexpr (A) {
        MULTIPLY("s8.u8");
    } else {
        MULTIPLY("u8.s8");
    }
#undef MULTIPLY
}

// The parts of a sum.
struct parts {
    int low[4], middle[4], high[4];
};

static __device__ inline uint32_t total(const struct parts *sum, int k)
{
    return (uint32_t)sum->low[k] + ((uint32_t)sum->middle[k] << 8) + ((uint32_t)sum->high[k] << 16);
}

// The low bytes of two words of two samples each, or the high ones.
static __device__ inline uint32_t bytes_of(uint32_t first, uint32_t second, int part)
{
    return __byte_perm(first, second, part ? 0x7531 : 0x6420);
}
