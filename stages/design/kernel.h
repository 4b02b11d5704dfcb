// Kernels as users write them: rows of numbers.
//
//   1 2 1/2 4 2/1 2 1     numbers by spaces, tabs, commas or semicolons; rows by slashes
//   blur.txt              the name of a regular file: rows by lines, what follows a # is a comment
//
// A text that reads as rows is never taken for a file. Rows have one length; numbers are finite, no
// larger than KERNEL_LARGEST; a kernel of nothing but zeros is none.
#pragma once

#include <stddef.h>

#include "base/status.h"
#include "plan/op.h"

#define KERNEL_LARGEST 65536.0

struct kernel {
    int width, height;
    double *weight; // row by row, the kernel's own
};

// The text with its file read, for `resolve` of struct stage_option. kernel_resolve() takes
// any kernel, kernel_resolve_line() one row, or one column, which becomes a row.
char *kernel_resolve(const char *text, char *why, size_t size);
char *kernel_resolve_line(const char *text, char *why, size_t size);

// Read a resolved text. The caller owns *kernel; STATUS_MEMORY is the only failure.
enum status kernel_read(const char *text, struct kernel *kernel);
void kernel_free(struct kernel *kernel);
