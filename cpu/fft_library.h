// A library of transforms, as fft.c calls it. For the files fft*.c alone.
#pragma once

#include "cpu/fft.h"

typedef double complex_value[2];

struct fft_library {
    struct transform_library about; // first: the caller's pointer to it is one to this
    const char *name;               // of fft_choose()
    double cost;                    // about, of small kernels, by FFTW's

    // Whether it is installed; it is loaded then. Thread-safety: any thread, any number of times.
    bool (*is_there)(void);

    // Make what belongs to fft->library, of the sides of `fft` and for its tile: `kernel` and
    // `work`, which starts as NULL. STATUS_MEMORY is the only failure; finish() follows.
    enum status (*init)(struct fft *fft);
    void (*finish)(struct fft *fft); // also after half an init(); the kernel is freed by the caller

    // Keep the spectrum of the tile, conjugate, times what makes results of run() those of a
    // correlation; the tile is lost.
    void (*take_kernel)(struct fft *fft);

    // Turn the tile into sums, not rounded, as far as they are asked for.
    void (*run)(struct fft *fft);

    size_t (*bytes)(const struct fft *fft); // beside the tile
};

// Samples are rows of columns + 2 numbers, which is what the spectrum of real samples takes.
struct fft {
    const struct fft_library *library;
    int columns, rows; // of the transform: powers of two, 16 and more
    int width, height; // of the kernel
    complex_value *tile;

    // ---- the library's ----
    complex_value *kernel;
    void *work;
};

// Complex values in a tile.
static inline size_t fft_values(const struct fft *fft)
{
    return (size_t)fft->rows * (size_t)(fft->columns / 2 + 1);
}

extern const struct fft_library *const fft_fftw, *const fft_tx;
