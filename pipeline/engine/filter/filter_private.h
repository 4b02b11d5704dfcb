// A filter from the inside: filter.c makes and runs it, filter_format.c chooses pixel formats,
// filter_memory.c gives pictures and analysis their memory, filter_verify.c compares with the
// reference.
#pragma once

#include <libavutil/buffer.h>

#include "pipeline/engine/filter/filter.h"
#include "pipeline/ffmpeg/pixel.h"
#include "pipeline/ffmpeg/scaler.h"

// Frames are of one kind where these are equal.
struct frame_kind {
    int width, height;
    enum AVPixelFormat pixel; // on the GPU: of its memory
    bool on_device;
    struct color_tags tags;
};

// The memory of one of the pictures that are made of a frame.
struct picture_memory {
    enum AVPixelFormat pixel;
    struct color_tags tags;
    AVBufferPool *pool;
    size_t plane_offset[FORMAT_PLANES]; // of computed planes in a buffer of the pool
    int linesize[FORMAT_PLANES];
    AVBufferRef *constant[FORMAT_PLANES];
};

struct filter {
    struct filter_request request;
    struct frame_kind input;
    bool unknown;  // loads do not know the input's format
    bool bypass;   // ... but no stage needs them to: frames go through as they are
    bool converts; // ... and libswscale makes `loaded` of it first
    enum AVPixelFormat loaded;
    struct scaler *scaler;

    struct program program;
    struct plan *plan;
    struct executor *executor;
    struct picture_memory picture[MAX_PICTURES]; // of the program
    struct image *tee;                           // of each slot, as struct work has them
    bool has_fields;                             // which stencils see each by itself

    // The analysis of slot k begins at analysis[k * program.analyses].
    void **analysis;
    size_t *analysis_bytes; // of each in the program

    // ---- the encode thread's; all else is constant once the filter is made ----
    // Made when first asked to verify.
    struct backend *scalar;
    struct executor *reference;
};

// The format of a frame's samples, wherever they are.
enum AVPixelFormat filter_memory_format(const AVFrame *frame);

// True if `in` is filtered field by field into `out`.
bool filter_uses_fields(const struct filter *filter, const AVFrame *in, AVFrame *const *out);

// ---- filter.c ----

// Make a filter that is planned and has no memory to run in. `view` is a frame that it is for, and
// becomes one like those that will be loaded. `reports`: what is lost is logged. On failure *filter
// is NULL.
enum status filter_begin(const struct filter_request *request, AVFrame *view, bool reports,
                         struct filter **filter);

// ---- filter_need.c ----

// Work out what the job of a planned filter takes. STATUS_MEMORY is the only failure.
struct need;
enum status filter_measure(const struct filter *filter, struct need *need);

// Check that the stages of a planned filter that is no job's keep within the backend's limit.
enum status filter_check_budget(const struct filter *filter);

// ---- filter_format.c ----

// STATUS_USAGE with a sentence where a format was asked for that the picture cannot have: colours
// become gray by a stage, not by chance.
enum status filter_check_asked(const struct filter *filter, const struct sink_formats *formats,
                               const struct format *natural);

// Log what is lost where an output gets another format than the chain leaves.
void filter_report_loss(const struct filter *filter, const struct sink_formats *formats,
                        const struct format *natural, const struct format *output);

// ---- filter_memory.c ----

// Allocate what all frames share: pools, constant planes, the analysis of every slot. `view` is a
// frame like those that are loaded.
enum status filter_memory_create(struct filter *filter, const AVFrame *view);
void filter_memory_destroy(struct filter *filter);

// The bytes of the planes that are made of picture `n` of a planned filter, for one frame.
int64_t filter_picture_bytes(const struct filter *filter, int n);

// Make `out`, an empty frame, picture `n` of `in`: its properties, and for its planes new memory,
// the input's, or the shared constants.
enum status filter_prepare_frame(const struct filter *filter, int n, const AVFrame *in,
                                 AVFrame *out);
