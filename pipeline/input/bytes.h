// The bytes of a local file, or of standard input, as a demuxer reads them: through our own
// AVIOContext, which lets go when the job is over, also of a pipe that nobody writes to.
#pragma once

#include <libavformat/avio.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct bytes;

// `is_over(opaque)` is asked before every read and while a read waits; any thread's answer.
struct bytes_request {
    const char *name; // of the file
    bool is_stdin;    // the name is for nothing then
    const struct log *log;
    bool (*is_over)(void *opaque);
    void *opaque;
};

// Open them. STATUS_INPUT and a word in the log for what is not there, is a folder or is empty.
enum status bytes_open(const struct bytes_request *request, struct bytes **bytes);

// The context is freed as well. Accepts NULL behind the pointer, leaves NULL.
void bytes_close(struct bytes **bytes);

// What libavformat reads through; seekable where they are those of a regular file.
AVIOContext *bytes_io(const struct bytes *bytes);

// Read up to `size` bytes at an offset of a regular file, without moving where the demuxer reads.
// Returns how many there were; 0 of what is no regular file.
size_t bytes_read_at(const struct bytes *bytes, int64_t at, uint8_t *to, size_t size);

// How many there are now; -1 of what is no regular file.
int64_t bytes_size(const struct bytes *bytes);

// Whether a regular file is shorter now than when it was opened.
bool bytes_have_shrunk(const struct bytes *bytes);

// Whether there was anything to read until now.
bool bytes_came(const struct bytes *bytes);
