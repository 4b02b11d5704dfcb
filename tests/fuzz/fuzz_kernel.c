// Attacked: files of kernels ("convolve=FILE"), and the same bytes as a kernel in the chain's text.
//
// Must hold: a refusal has a reason; what is taken has 1 to 511 numbers a side, each finite, not all
// of them 0, and its text reads as the same kernel; no descriptor stays open.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stages/design/kernel.h"
#include "tests/fuzz/fuzz.h"

static void check_kernel(const char *text, bool line)
{
    struct kernel kernel;
    FUZZ_REQUIRE(!kernel_read(text, &kernel));
    FUZZ_REQUIRE(kernel.width > 0 && kernel.width <= KERNEL_SIDE);
    FUZZ_REQUIRE(kernel.height > 0 && kernel.height <= KERNEL_SIDE);
    FUZZ_REQUIRE(!line || kernel.height == 1);
    double sizes = 0;
    for (int k = 0; k < kernel.width * kernel.height; k++) {
        FUZZ_REQUIRE(fabs(kernel.weight[k]) <= KERNEL_LARGEST);
        sizes += fabs(kernel.weight[k]);
    }
    FUZZ_REQUIRE(sizes > 0);
    kernel_free(&kernel);
}

static void check_resolve(char *(*resolve)(const char *text, char *why, size_t size),
                          const char *text, bool line)
{
    char why[512] = "";
    char *resolved = resolve(text, why, sizeof why);
    FUZZ_REQUIRE(resolved || *why);
    if (!resolved)
        return;
    check_kernel(resolved, line);
    char *again = resolve(resolved, why, sizeof why);
    FUZZ_REQUIRE(again && !strcmp(resolved, again));
    free(again);
    free(resolved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    const char *file = fuzz_file(data, size);
    int descriptor = fuzz_next_descriptor();
    check_resolve(kernel_resolve, file, false);
    check_resolve(kernel_resolve_line, file, true);
    check_resolve(kernel_resolve, text, false);
    check_resolve(kernel_resolve_line, text, true);
    free(text);
    FUZZ_REQUIRE(descriptor == fuzz_next_descriptor());
    return 0;
}
