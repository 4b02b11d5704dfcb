// Templates: the pictures that a stage looks for, read from files when a chain is, and kept with
// it.
//
// A set is what one stage was given. Copies of a chain share it: it is counted, and never changes.
//
// Thread-safety: any thread may count a set up or down.
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/status.h"

enum {
    TEMPLATE_SIDE = 65535,         // samples
    TEMPLATE_SET_MOST = 256 << 20, // samples of all templates of a set
};

// Luma, full range, 8 bits, row by row. `mask` is 1 for samples that count, else 0; NULL: all do.
struct template
{
    char *name;
    int width, height;
    uint8_t *sample, *mask;
};

struct template_set {
    atomic_int users;
    int count;
    struct template *template;
};

// Read `names`, joined by newlines. On success the caller has one count of *set. STATUS_USAGE, with
// the reason in `why` as "logo.png; it is no picture", where one of them is none that could be
// found.
enum status template_set_read(const char *names, struct template_set **set, char *why, size_t size);

// One more count of the set, which may be NULL.
struct template_set *template_set_ref(struct template_set *set);

// One less; frees the set with the last one. Leaves NULL.
void template_set_unref(struct template_set **set);

// Read the picture in a file: the first, where there are more. Everything of *template but its name
// is set; its memory, of malloc(), is the caller's. A mask says where alpha is 128 or more. On
// STATUS_USAGE `why` says why, as "it is no picture".
//
// Defined by whoever can read pictures: pipeline/picture.c.
enum status template_load(const char *name, struct template *template, char *why, size_t size);
