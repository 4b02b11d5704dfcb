// Run a fuzzer's function once for each file that is named: `replay_NAME FILE...`. What a fuzzer
// has found is tried again by any compiler, without libFuzzer.
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"

enum { MAX_INPUT = 1 << 20 };

int main(int argc, char **argv)
{
    uint8_t *data = calloc(MAX_INPUT, 1);
    FUZZ_REQUIRE(data);
    fuzz_replays = true;
    for (int k = 1; k < argc; k++) {
        FILE *file = fopen(argv[k], "rb");
        if (!file) {
            fprintf(stderr, "%s cannot be read\n", argv[k]);
            return 2;
        }
        size_t size = fread(data, 1, MAX_INPUT, file);
        fclose(file);
        fprintf(stderr, "%s\n", argv[k]);         // ahead of what it may end by
        uint8_t *exact = calloc(size + !size, 1); // for sanitizers, which look at its end
        FUZZ_REQUIRE(exact);
        for (size_t n = 0; n < size; n++)
            exact[n] = data[n];
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    free(data);
    printf("%d passed\n", argc - 1);
    return 0;
}
