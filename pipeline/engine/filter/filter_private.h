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

// Make `out`, an empty frame, picture `n` of `in`: its properties, and for its planes new memory,
// the input's, or the shared constants.
enum status filter_prepare_frame(const struct filter *filter, int n, const AVFrame *in,
                                 AVFrame *out);
