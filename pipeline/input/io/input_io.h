// Reading a local file or standard input: an AVIOContext of our own for the demuxer, which ends
// when the job is over, also on a pipe that nobody writes to.
//
// Thread-safety: one thread at a time.
#pragma once

#include <libavformat/avio.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"

struct input_io;

struct input_io_request {
    const char *name; // of the file; unused with is_stdin
    bool is_stdin;
    const struct log *log;
    // True to end; asked before every read and while one waits.
    bool (*is_over)(void *opaque);
    void *opaque;
};

// Open it; all that the request points to is referred to. STATUS_INPUT and a sentence in the log
// for a file that is absent, a folder or empty.
enum status input_io_open(const struct input_io_request *request, struct input_io **input);

// Free it and its context. Accepts NULL behind the pointer, leaves NULL.
void input_io_close(struct input_io **input);

// The context that libavformat reads through; seekable on a regular file.
AVIOContext *input_io_context(const struct input_io *input);

// Read up to `size` bytes at an offset of a regular file, without moving where the demuxer reads.
// Returns how many there were; 0 where it is no regular file.
size_t input_io_read_at(const struct input_io *input, int64_t at, uint8_t *to, size_t size);

// The size of a regular file now; -1 where it is none.
int64_t input_io_size(const struct input_io *input);

// The descriptor of a regular file that is read from its beginning on, which stays the input's; -1 where
// it is none, as standard input may be in the middle of one.
int input_io_file(const struct input_io *input);

// True if a regular file is shorter now than when it was opened.
bool input_io_has_shrunk(const struct input_io *input);

// True if anything was read until now.
bool input_io_has_data(const struct input_io *input);

// The error of the last read that failed, a number of errno.h; 0: none did. The demuxer may have
// taken it for the end, or have passed over what it lacked. Any thread.
int input_io_error(const struct input_io *input);
