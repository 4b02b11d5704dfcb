// What the fuzzers share: tests/fuzz/fuzz_*.c have one function each, which libFuzzer calls with
// bytes that it makes up (`make fuzz`), and replay.c with those of tests/fuzz/corpus (`make test`).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stages/pattern.h"

// libFuzzer's name of it. Returns 0.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// End the process, with a sentence, where what must hold does not.
#define FUZZ_REQUIRE(condition) fuzz_require((condition), #condition, __FILE__, __LINE__)
void fuzz_require(bool holds, const char *what, const char *file, int line);

// A copy that ends with a zero; the caller frees it. Ends the process without memory.
char *fuzz_text(const uint8_t *data, size_t size);

// The first line of a text, which is cut off; *text is the rest, or its end.
char *fuzz_line(char **text);

// The name of a regular file in memory that holds the bytes, the same file each time: for readers
// of files.
const char *fuzz_file(const uint8_t *data, size_t size);

// True when inputs are replayed: everything is tried on each then, while a fuzzer shares costly
// trials among its inputs: number fuzz_share() of so many is this input's, from its bytes.
extern bool fuzz_replays;
size_t fuzz_share(const uint8_t *data, size_t size, size_t count);

// The number that the next descriptor would have: the same before and after what closes its own.
int fuzz_next_descriptor(void);

// A reader of the templates of tests/patterns.h, of 64 samples a side at most.
extern const struct picture_reader fuzz_reader;

// Bytes that a fuzzer turns into numbers, one after another; 0 behind the last.
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};
uint8_t fuzz_byte(struct fuzz_bytes *bytes);

// 0 .. bound - 1, for bounds up to 65536.
int fuzz_below(struct fuzz_bytes *bytes, int bound);
