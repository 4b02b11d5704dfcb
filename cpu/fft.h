// Large convolutions by Fourier transforms, exact: the sums of OP_CONVOLVE are integers, and what
// the transforms err by is less than what rounding to the nearest forgives; who makes them asks
// op_convolve_transform_is_exact() first. A library that is installed does the work in double
// precision: FFTW 3, else libavutil of FFmpeg. Both are looked for when the program runs, and not
// needed to build it.
//
// A picture is made tile by tile (overlap-save): a tile of samples is as large as the transform,
// its results are fewer by the kernel's side less 1.
//
// Errors: op_convolve_transform_error() has the bound. Of libavutil it counts
//
//   roots of unity  off by up to 4 times 2^-53. Those of length N are cos(k f) for f = 2 pi / N, of
//                   angles up to pi / 2: pi and the product are rounded, 1.36 times 2^-53 of the
//                   angle, which moves the root by 2.14 times 2^-53 at most, and a cosine that is
//                   right to a unit in the last place moves both of its parts by up to 2^-53, 1.42
//                   together.
//   butterflies     those of split radix, y = U +- (wZ + vZ'). Values of U come from N / 2 and go
//                   through one addition, those of Z from N / 4 and through a product and two
//                   additions: one product for two levels. U times sqrt 2, Z and Z' times 2 have
//                   together the length of y: errors relative to these lengths do not add up, the
//                   greatest goes on.
//   one addition    more in each transform. It takes two rows of real samples as one of complex
//                   ones, and is then split by one addition of each value; sums and differences of
//                   two rows have together the length that the rows have.
//
// Thread-safety: a struct fft serves one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "plan/op.h"

struct fft;

// Choose a library: `name` is "fftw", "libavutil" or "none", NULL for the first of these that is
// there. *library is static, NULL for none; *why says in a few words why it is not FFTW, or that it
// was asked for; else NULL. False if there is no library of that name here.
bool fft_choose(const char *name, const struct transform_library **library, const char **why);

// How many products cost as much as transforms of this library, of as many as those of FFTW cost;
// `library` may be NULL.
int fft_worth(const struct transform_library *library, int products);

// How large transforms pay here.
static const struct transform_size fft_size = {.times = 4, .most = 1024};

// Prepare the kernel of `op`, of rank 0, for pictures up to `columns` wide, with a library of
// fft_choose(). STATUS_MEMORY is the only failure.
enum status fft_create(const struct transform_library *library, const struct op_convolve *op,
                       int columns, struct fft **fft);

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
