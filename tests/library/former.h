// Structs as a caller of an earlier version has them: behind each are bytes of 0xA5, which no library
// may read or write.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/common.h>

enum { BEHIND = 512 };

// A struct of so many bytes with others behind it, its size set.
static void *begin(size_t size)
{
    char *made = malloc(size + BEHIND);
    memset(made, 0, size);
    memset(made + size, 0xA5, BEHIND);
    memcpy(made, &size, sizeof size);
    return made;
}

static void end(const char *what, void *made, size_t size, enum sluice_status status)
{
    size_t now;
    memcpy(&now, made, sizeof now);
    for (int k = 0; k < BEHIND; k++)
        if (((unsigned char *)made)[size + (size_t)k] != 0xA5) {
            printf("%s: byte %d behind the struct is written\n", what, k);
            exit(1);
        }
    if (status || now != size) {
        printf("%s: %s, size %zu of %zu\n", what, sluice_status_name(status), now, size);
        exit(1);
    }
    free(made);
}

#define TRY(type, call)                      \
    do {                                     \
        struct type *to = begin(sizeof *to); \
        enum sluice_status status_ = call;   \
        end(#type, to, sizeof *to, status_); \
    } while (0)
