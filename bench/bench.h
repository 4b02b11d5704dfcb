// Benchmark and tutorial: how fast this machine filters, and the steps by which filters got so
// fast. They use the library's own parts, and belong to the program, not to the library.
#pragma once

#include <stdbool.h>

#include "sluice/sluice.h"

// One figure, from several repetitions.
struct sluice_bench_row {
    const char *group; // "link": host and GPU; "resident": frames that stay on the GPU; "library":
                       // the same through sluice/filter.h; "memory": from host memory to host
                       // memory; "file": a whole job
    const char *name;  // the chain, or what was done
    const char *size;  // "1080p", "4K", "8K", "64x64"; NULL: none
    const char *unit;  // "Gpx/s", "GB/s", "fps", "us": microseconds a frame
    double median, low, high;
    double reference; // what the figure is held against, of the same run; 0: nothing
    const char *reference_name;
    double ratio;       // median / reference
    const char *device; // what filtered: "2 x NVIDIA H200, compute capability 9.0"
};

// Measure the chain of `config` (NULL: several) on its backend, with gray frames in memory (of
// input_width, input_height and input_pixfmt, or of three sizes and 8 bits), and with config->input
// the whole path over its first ten seconds, or config->duration. `quick` takes seconds, and is
// less certain. row() is called with each figure once it is known, strings and all gone when it
// returns.
enum sluice_status sluice_bench(const struct sluice_config *config, bool quick,
                                void (*row)(void *opaque, const struct sluice_bench_row *row),
                                void *opaque);

// A step of the tutorial at one size: the same Gaussian (radius 8, zero border, 8-bit gray) from
// plain C to sluice's own kernels, in the steps of V. Podlozhnyuk, "Image convolution with CUDA"
// (2007). Times are milliseconds a picture, which stays in the memory of the device.
struct sluice_tutorial_row {
    int step; // 1 and 2: plain C by one and by all threads; 3 to 6: lessons on CUDA; 7: sluice
    const char *name;
    const char *size;   // "1080p", "4K", "8K", "WxH"
    const char *device; // "1 thread", "NVIDIA H200, compute capability 9.0"
    const char *absent; // why it cannot be had here: there are no figures then. NULL: it can
    bool matching;      // a step of template matching: `step` counts from 1 again, 1 and 2 being
                        // lessons on CUDA, 3 sluice; over_one is over step 1, 0 where it is absent
    int runs;
    double mean, median, low, high;
    double over_one, over_all; // how many times as fast as step 1 and step 2, by means
    int off_by; // largest difference from the scalar reference, in code values: 0, or
                // 1 of those that compute in two dimensions and round once
};

// Run the steps of the tutorial: each step is compared with its reference, to the bit, and then
// timed, 50 runs of pictures of three sizes (of input_width alone where that is given). `quick`
// takes the smallest two and few runs. Without a GPU, or with SLUICE_BACKEND_CPU, the steps on it
// are absent; SLUICE_BACKEND_CUDA insists on one. row() as in sluice_bench(). A step that is wrong
// is SLUICE_STATUS_FAILED.
enum sluice_status sluice_tutorial(const struct sluice_config *config, bool quick,
                                   void (*row)(void *opaque, const struct sluice_tutorial_row *row),
                                   void *opaque);
