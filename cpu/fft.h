// Large convolutions by Fourier transforms, exact: the sums of OP_CONVOLVE are integers, and what
// the transforms err by is less than what rounding to the nearest forgives; the plan sees to that
// (plan/plan.h). FFTW 3 in double precision does the work, where it is installed: it is looked
// for when the program runs, and not needed to build it.
//
// A picture is made tile by tile (overlap-save): a tile of samples is as large as the transform,
// its results are fewer by the kernel's side less 1.
//
// Thread-safety: a struct fft serves one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "plan/op.h"

struct fft;

// True if there is a library to transform with.
bool fft_is_there(void);

// How large transforms pay here.
static const struct transform_size fft_size = {.times = 4, .most = 1024};

// Prepare the kernel of `op`, of rank 0, for pictures up to `columns` wide. STATUS_MEMORY is the
// only failure: fft_is_there() was asked before.
enum status fft_create(const struct op_convolve *op, int columns, struct fft **fft);

// Bytes that it holds.
size_t fft_bytes(const struct fft *fft);
void fft_destroy(struct fft **fft);

// Samples that a tile takes, and results that come of them.
int fft_sample_columns(const struct fft *fft);
int fft_sample_rows(const struct fft *fft);
int fft_columns(const struct fft *fft);
int fft_rows(const struct fft *fft);

// Where sample (column, row) of the tile is to be laid, the next one beside it. The first belongs
// to weight (0, 0) of the first result.
double *fft_sample(struct fft *fft, int column, int row);

// Turn samples into sums: s of result (column, row) is then at fft_sample(column, row), whole.
void fft_run(struct fft *fft);
