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

// The lessons of the tutorial, each from plain code to sluice's own kernels. Their last step is
// sluice; before it are
enum sluice_lesson {
    SLUICE_LESSON_GAUSSIAN, // radius 8, zero border, 8-bit gray. 1, 2: plain C by one and by all
                            // threads; 3 to 6: those of V. Podlozhnyuk, "Image convolution with
                            // CUDA" (2007)
    SLUICE_LESSON_MATCHING, // of a template of 32x32. 1 and 2: CUDA
    SLUICE_LESSON_EDGES,   // brightness, mean gray, Sobel, two thresholds of 8-bit RGB. 1, 2: plain
                           // C, a stage after another, by one and by all threads; 3: CUDA, so
    SLUICE_LESSON_WAVELET, // the Mexican hat of a scale, 8-bit gray. 1: its definition, one thread
};

// An article's figures of a lesson and size, on its author's machine: how many times as fast its
// best step was as one thread and as all, and how long it took. 0: it does not tell.
struct sluice_article {
    double over_one, over_all, ms;
};

// A step of the tutorial at one size. Times are milliseconds a picture, which stays in the memory
// of the device.
struct sluice_tutorial_row {
    enum sluice_lesson lesson;
    int step;
    const char *name;
    const char *size;   // "1080p", "4K", "8K", "WxH", and what else rows of a lesson differ in
    const char *device; // "1 thread", "NVIDIA H200, compute capability 9.0"
    const char *absent; // why it cannot be had here: there are no figures then. NULL: it can
    int runs;
    double mean, median, low, high;
    double processor; // mean milliseconds of processor time a picture, all threads, which others on
                      // the machine change least; 0: not known
    double over_one, over_all; // how many times as fast as step 1, and as step 2 where that is all
                               // threads, by means; 0: there is no such step here
    struct sluice_article article;
    int off_by; // largest difference from the scalar reference, in code values: 0, or
                // 1 of those that compute in two dimensions and round once
};

// Run the steps of the tutorial: each step is compared with its reference, to the bit, and then
// timed, 50 runs (fewer of wavelets that are slow) of pictures of three sizes (of input_width alone
// where that is given). `quick` takes the smallest two and few runs. Without a GPU, or with
// SLUICE_BACKEND_CPU, the steps on it are absent; SLUICE_BACKEND_CUDA insists on one. row() as in
// sluice_bench(). A step that is wrong is SLUICE_STATUS_FAILED.
enum sluice_status sluice_tutorial(const struct sluice_config *config, bool quick,
                                   void (*row)(void *opaque, const struct sluice_tutorial_row *row),
                                   void *opaque);
