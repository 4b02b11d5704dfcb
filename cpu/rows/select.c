#include "cpu/rows/rows.h"

#include <stddef.h>
#include <string.h>

extern const struct row_kernels rows_base;
#if defined(__x86_64__)
const char rows_names[] = "vnni, v4, v3, v2 or base";
#elif defined(__aarch64__)
const char rows_names[] = "neon or base";
// NULL where the build had no headers of SIMDe.
extern const struct row_kernels rows_neon __attribute__((weak));
#else
const char rows_names[] = "base";
#endif

#ifdef __x86_64__
extern const struct row_kernels rows_v2, rows_v3, rows_v4, rows_vnni;

// The levels of the x86-64 psABI, and what Ice Lake and Zen 4 have beyond, each with the
// features that its compiler flag may use.
static int runs_v2(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
           __builtin_cpu_supports("popcnt");
}

static int runs_v3(void)
{
    return runs_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}

static int runs_v4(void)
{
    return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static int runs_vnni(void)
{
    return runs_v4() && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512vbmi");
}
#endif

const struct row_kernels *rows_select(const char *name)
{
    const struct row_kernels *runnable[5];
    int count = 0;
#ifdef __x86_64__
    if (runs_vnni())
        runnable[count++] = &rows_vnni;
    if (runs_v4())
        runnable[count++] = &rows_v4;
    if (runs_v3())
        runnable[count++] = &rows_v3;
    if (runs_v2())
        runnable[count++] = &rows_v2;
#endif
#ifdef __aarch64__
    if (&rows_neon)
        runnable[count++] = &rows_neon;
#endif
    runnable[count++] = &rows_base;
    for (int k = 0; k < count; k++)
        if (!name || !strcmp(name, runnable[k]->name))
            return runnable[k];
    return NULL;
}

// An Intel Xeon of the fifth generation waits less for lines that are asked for than for those that its
// stores ask for. An AMD EPYC of the third waits longer. Others were not measured.
int rows_ahead(void)
{
#ifdef __x86_64__
    return __builtin_cpu_is("intel") ? 2048 : 0;
#else
    return 0;
#endif
}
