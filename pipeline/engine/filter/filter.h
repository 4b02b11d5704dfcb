// A chain bound to one kind of frame: its program, plan and executor, and the frames they fill.
#pragma once

#include <libavutil/frame.h>

#include "pipeline/output/sink.h"
#include "plan/backend.h"
#include "stages/chain.h"

struct need_job;

struct filter_request {
    const struct chain *chain;
    const struct sink_formats *formats; // of each picture: the chain's result, and its tees
    struct backend *backend;
    int slots;
    bool frames_in_flight;
    int64_t max_pixels; // of a template; 0: any
    bool strict;        // what can do nothing on such frames is refused, not only logged
    // (optional) What it is a part of: all that this takes of memory has to stay within its ceiling
    // (need.h). NULL: the stages alone within the backend's memory_limit.
    const struct need_job *job;
    // Frames on the GPU: the stream on which they become valid, and the software format of the
    // same video.
    void *device_stream;
    enum AVPixelFormat software_pixel;
    const struct log *log;
};

struct filter;

// Bind the chain to frames like `frame`. The request's pointers must outlive the filter. A backend that
// has no room for them on its device and can be left (plan/backend.h) is, where the request has a job.
enum status filter_create(const struct filter_request *request, const AVFrame *frame,
                          struct filter **filter);

// Whether filter_create() will make it, as far as can be known: nothing of the size of a frame is
// allocated, and nothing runs. Any thread.
enum status filter_check(const struct filter_request *request, const AVFrame *frame);

// Give *props, an empty frame, the properties of `frame` that filter_check() looks at.
void filter_first_props(const AVFrame *frame, AVFrame *props);

// Free the filter; frames that it gave out stay valid. No slot may be busy. Leaves NULL.
void filter_destroy(struct filter **filter);

// True if frames like this one are what the filter was made for.
bool filter_accepts(const struct filter *filter, const AVFrame *frame);

// True if a template of its chain is larger than the picture, as one may be that is not strict.
bool filter_misfits(const struct filter *filter);

// Begin to filter `in` in slot `slot` (0 to slots - 1), into an empty frame for each picture.
// Planes that no stage touches, and those that are constant, are shared, not copied. All frames
// must stay until filter_wait(). *in may be replaced by a converted picture of the same frame.
enum status filter_submit(struct filter *filter, int slot, AVFrame *in, AVFrame *const *out);

// Wait until the slot's frame is filtered; *times (optional) says how long it took.
enum status filter_wait(struct filter *filter, int slot, struct work_times *times);

// Recompute `in` by the scalar reference and compare with the pictures. STATUS_FAILED, with a
// sentence that names the first differing byte, if they differ. The encode thread.
enum status filter_verify(struct filter *filter, const AVFrame *in, AVFrame *const *out,
                          int64_t index);

// The analysis of the slot's frame once it is filtered, in the order of the program, until the
// slot is used again; NULL: there is none.
void *const *filter_analysis(const struct filter *filter, int slot);

// The bytes of all that the filter's slots hold of analysis.
int64_t filter_analysis_bytes(const struct filter *filter);

// The pixel format of filtered frames.
enum AVPixelFormat filter_pixel(const struct filter *filter);

// The plan, or NULL when frames go through as they are.
const struct plan *filter_plan(const struct filter *filter);

// Bytes of the host's memory that it holds, about, but for frames.
int64_t filter_memory(const struct filter *filter);

// ---- for reports, without a backend ----

// Lower `chain` for frames like `frame` and find the format of each picture as filter_create()
// does; `natural` (optional) gets what the chain leaves of each. On success program_free() is the
// caller's.
enum status filter_lower(const struct chain *chain, const struct sink_formats *formats,
                         const AVFrame *frame, enum AVPixelFormat software_pixel,
                         struct program *program, enum AVPixelFormat *output,
                         struct format *natural);
