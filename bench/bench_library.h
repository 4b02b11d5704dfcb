// Frames through the library's interface (sluice/filter.h), beside the same chain run by its parts.
#pragma once

#include "bench/bench_case.h"
#include "sluice/filter.h"

enum { BENCH_STREAMS = 4 };

// A chain on frames of `bench_case`, which are resident: sources are its own, results go to memory
// of the device.
struct bench_library {
    struct bench_case *bench_case;
    struct sluice_filter *filter;
    struct sluice_frame *in, *out; // `frames` sources, `targets` results
    struct image *target;          // the results again, as the executor has them
    int targets;
    void *stream[BENCH_STREAMS];
};

// Make *library ready; bench_case, a resident one, outlives it. SLUICE_STATUS_USAGE, and silence,
// for chains that are none of a filter's, as those with tees. bench_library_free() accepts what is
// zeroed, as a failure leaves it.
enum status bench_library_init(struct bench_library *library, struct bench_case *bench_case,
                               const char *chain, const char *pixfmt, int device);
void bench_library_free(struct bench_library *library);

// Filter frames for about `ns`, on `streams` of its streams in turn, at most BENCH_STREAMS: *frames
// is how many.
enum status bench_library_run(struct bench_library *library, int streams, int64_t ns,
                              int64_t *frames);

// The same by the executor alone, without the library's interface: what streams cost each other.
enum status bench_library_run_executor(struct bench_library *library, int streams, int64_t ns,
                                       int64_t *frames);

// Filter small frames, each by itself, for about `ns`: *us is what one takes. They lie in device
// memory, where nothing waits for the last but one, or in ordinary memory of the host, where all
// are waited for.
enum status bench_library_run_small(struct backend *backend, const char *chain, int device,
                                    bool on_device, int64_t ns, double *us);
