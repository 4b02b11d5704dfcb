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
    FUZZ_REQUIRE(!ftruncate(fd, 0));
    FUZZ_REQUIRE(pwrite(fd, data, size, 0) == (ssize_t)size);
    return name;
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
