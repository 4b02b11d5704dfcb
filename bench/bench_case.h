// A case of the benchmark: a chain on frames of noise in memory, without a file around them.
#pragma once

#include <stdint.h>

#include "plan/backend.h"

enum { MAX_TOGETHER = 8, SHAPES = 3 };

// Frames that stay on the GPU are submitted several together, as a caller of the library can; those
// between host and GPU one by one, as a job does, or by twos.
struct shape {
    char name[32];
    int width, height;
    int together;
};

// 1080p, 4K, 8K.
extern const struct shape usual_shapes[SHAPES];

// The shape that --size asks for, up to 2^28 samples; STATUS_USAGE with a sentence.
enum status shape_init(int width, int height, const struct log *log, struct shape *shape);

// Frames go from host memory to host memory through `slots` slots, as a job's do, unless they are
// resident or still.
struct bench_case_request {
    struct backend *backend; // outlives the bench_case, as `log` does
    const struct log *log;
    const char *chain;
    void (*lower)(void *opaque, struct program *program); // (optional) instead of the chain
    void *opaque;
    const struct shape *shape;
    int depth;
    bool rgb; // sources are R, G, B side by side instead of gray; the depth is 8
    int slots;
    bool resident; // sources lie in the device's memory, results stay there; as many slots as keep
                   // the GPU from waiting for the host
    int frames;    // that differ in their place; 0: more than the cache of the device holds
    bool still;    // one frame after another, each by all threads, in one slot
    bool by_twos;  // two frames a submission, unless they are resident or still; `slots` is even
};

// A chain ready to run. All frames hold the same noise, of equal sizes the same noise everywhere.
struct bench_case {
    struct backend *backend;
    struct program program;
    struct plan *plan;
    struct executor *executor;
    int slots, together;
    bool still;
    bool resident;                 // sources on the device, and no targets
    void *stream;                  // of sources on the device; NULL: on the host
    struct image *source, *target; // `frames` of each
    int frames;
    size_t bytes, target_bytes; // of a source, and of a target, which may be of another model
};

// Make *bench_case ready. bench_case_free() leaves it zeroed, and accepts it so, as a failure does.
enum status bench_case_init(struct bench_case *bench_case,
                            const struct bench_case_request *request);
void bench_case_free(struct bench_case *bench_case);

// Filter frames for about `ns`, and at least one in each slot: *frames is how many. Results of
// those that do not stay on the device lie in the targets.
enum status bench_case_run(struct bench_case *bench_case, int64_t ns, int64_t *frames);

// A caller's streams, which serve in turn (`source_stream_serves` of struct work), and memory of
// the device for its results.
struct bench_streams {
    void *const *stream;
    int streams;
    const struct image *target; // as many as there are slots
};

// The same of a resident one on a caller's streams.
enum status bench_case_run_on(struct bench_case *bench_case, const struct bench_streams *streams,
                              int64_t ns, int64_t *frames);
