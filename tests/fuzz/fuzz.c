#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/patterns.h"

void fuzz_require(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, what);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    FUZZ_REQUIRE(text);
    if (size)
        memcpy(text, data, size);
    return text;
}

char *fuzz_line(char **text)
{
    char *line = *text;
    *text += strcspn(line, "\n");
    if (**text)
        *(*text)++ = 0;
    return line;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char name[32];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_REQUIRE(fd >= 0);
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    }
    FUZZ_REQUIRE(pwrite(fd, data, size, 0) == (ssize_t)size);
    FUZZ_REQUIRE(!ftruncate(fd, (off_t)size)); // behind it: memory that is there stays
    return name;
}

bool fuzz_replays;

size_t fuzz_share(const uint8_t *data, size_t size, size_t count)
{
    uint32_t hash = 2166136261U; // FNV-1a
    for (size_t k = 0; k < size; k++)
        hash = (hash ^ data[k]) * 16777619U;
    return (hash ^ hash >> 16) % count;
}

int fuzz_next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    FUZZ_REQUIRE(fd >= 0);
    close(fd);
    return fd;
}

// ---- templates ----

enum { MAX_SIDE = 64 };

static enum status measure(const struct picture_reader *reader, struct pattern *pattern, char *why,
                           size_t size)
{
    enum status status = pattern_measure(reader, pattern, why, size);
    if (status)
        return status;
    if (pattern->width > 0 && pattern->width <= MAX_SIDE && pattern->height > 0 &&
        pattern->height <= MAX_SIDE)
        return STATUS_OK;
    snprintf(why, size, "it is larger than templates of fuzzers");
    return STATUS_USAGE;
}

const struct picture_reader fuzz_reader = {.measure = measure, .load = pattern_load};

// ---- numbers ----

uint8_t fuzz_byte(struct fuzz_bytes *bytes)
{
    if (!bytes->left)
        return 0;
    bytes->left--;
    return *bytes->at++;
}

int fuzz_below(struct fuzz_bytes *bytes, int bound)
{
    int value = fuzz_byte(bytes);
    if (bound > 256)
        value = value << 8 | fuzz_byte(bytes);
    return value % bound;
}
