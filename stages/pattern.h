// Templates: the pictures that a stage looks for, kept with the chain that names their files.
//
// Their sizes are read when the chain is; they are decoded when it is known that they fit, once.
// A set is what one stage was given. Copies of a chain share it: it is counted.
//
// Thread-safety: any thread may count a set up or down, and load it. Samples are read after that.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    MAX_PATTERN_SIDE = 65535,        // samples
    MAX_PATTERN_SAMPLES = 256 << 20, // samples of all templates of a set
};

// Luma, full range, 8 bits, row by row; NULL before it is loaded. `mask` is 1 for samples that
// count, else 0; NULL: all do.
struct pattern {
    char *name;
    int width, height;
    uint8_t *sample, *mask;
    void *file; // what the reader keeps between measure() and load(); NULL: nothing
};

// Reads pictures, for stages/ that knows no file format: pipeline/input/picture.h has one that reads
// files. Each call gets the reader, which may be the first member of something larger.
struct picture_reader {
    // Find the size of the picture in the file that *pattern names, the first where there are more,
    // without decoding it: sets width, height and file. On STATUS_USAGE `why` says why, as "it is
    // no picture".
    enum status (*measure)(const struct picture_reader *reader, struct pattern *pattern, char *why,
                           size_t size);

    // Decode the picture that was measured. Everything of *pattern but its name is set; its memory,
    // of malloc(), is the caller's, also on failure; `file` is NULL then. A mask says where alpha
    // is 128 or more. Nothing larger than width x height is decoded.
    enum status (*load)(const struct picture_reader *reader, struct pattern *pattern, char *why,
                        size_t size);

    // (optional) Free what is kept of a picture that was not loaded. Leaves NULL.
    void (*forget)(void **file);
};

enum { PATTERNS_MEASURED, PATTERNS_LOADING, PATTERNS_LOADED };

struct pattern_set {
    atomic_int users, state;
    const struct picture_reader *reader;
    int count;
    struct pattern *pattern;
};

// Read the sizes of `names`, joined by newlines. On success the caller has one count of *set.
// STATUS_USAGE, with the reason in `why` as "logo.png; it is no picture", where one of them is none
// that could be found. `reader` outlives the set.
enum status pattern_set_read(const char *names, const struct picture_reader *reader,
                             struct pattern_set **set, char *why, size_t size);

// Read the samples, if that was not done yet. STATUS_USAGE as above, also of what is all of one
// shade.
enum status pattern_set_load(struct pattern_set *set, char *why, size_t size);

// One more count of the set, which may be NULL.
struct pattern_set *pattern_set_ref(struct pattern_set *set);

// One less; frees the set with the last one. Leaves NULL.
void pattern_set_unref(struct pattern_set **set);
