// libsluice-filter: a chain of stages as a filter of frames that the caller has. (Since 1.1.)
//
// Needs no FFmpeg. libsluice, which reads and writes videos (sluice/sluice.h), has all of this,
// too.
//
//     struct sluice_filter_config config = {
//         .size = sizeof config, .chain = "gray,gaussian=2,sobel",
//         .input = {.size = sizeof config.input, .pixfmt = "rgb24", .width = 1920, .height = 1080},
//     };
//     struct sluice_filter *filter;
//     enum sluice_status status = sluice_filter_create(&config, &filter);
//     if (!status)
//         status = sluice_filter_run(filter, &in, &out, NULL);
//     sluice_filter_destroy(&filter);
//
// Results. The same bits from every backend, on every machine (docs/arithmetic.md).
//
// Flow. sluice_filter_submit() begins a frame and returns; sluice_filter_receive() gives frames
// back in the order in which they were submitted. Up to `frames_in_flight` are under way between
// the two: then submit says SLUICE_STATUS_AGAIN. sluice_filter_run() is both, for one frame, and
// sluice_filter_run_many() for any number.
//
// Memory. All memory is the caller's. A frame's planes, in and out, stay as they are from submit
// until receive has given the frame back; a result's are read as well as written. A result may go
// into the frame it is made of: the same planes and strides; other ways of overlapping are refused.
// Any address and stride of 30 bits does; rows that begin at multiples of 64 bytes are the fastest.
// Host memory from sluice_filter_alloc() goes to and from a GPU without a copy by the calling
// thread; other host memory is copied within submit, and within receive, by way of memory that the
// filter takes when it first needs it. A filter on the CPU takes such memory for results over their
// sources, where stages see neighbours.
//
// Streams. With frames in device memory the calls wait for no GPU. `stream` is the caller's CUDA
// stream (cudaStream_t; NULL: the default stream): submit takes what is on it by then as what makes
// the source and what last read the target, and receive lets it wait for the result. So the result
// is there for whatever is put on the stream after receive returns. A stream is of the filter's GPU,
// is not being captured, and stays until the frames on it have been received. In between the filter
// works on streams of its own, where frames overlap. Where the caller goes from stream to stream, or
// sluice_filter_run() and sluice_filter_run_many() have no more than one launch takes, and source
// and result are in device memory, it works on the caller's, which is cheaper for small frames. From
// compute capability 9.0 on such work may begin while the kernel before it on the stream ends, and
// waits for that one alone: what a kernel of the caller's did not wait for, which was itself launched
// by programmatic dependent launch, has to be over.
// Chains that analyse (`stats`, `match`, `wavelet`) let receive wait for the numbers; sources in
// host memory let it wait until they have been read.
//
// Threads. One thread submits, sets and asks for chain and plan; one, which may be another,
// receives and asks for analysis; create and destroy are called before and after all else. Any
// number of filters may live at once; on one GPU they share its primary context, which is the CUDA
// runtime's. A filter on the CPU has threads of its own, and the one that receives filters, too: always
// with a single frame in flight, else as long as frames are small. Frames that take less than to wake
// another thread are left to it, as are all with a single frame in flight where `threads` is 1: nothing
// is done to those before it receives.
//
// Errors. A call that fails returns a status, and the log gets the reason as one sentence. A wrong
// frame is refused with SLUICE_STATUS_USAGE before anything is touched, and nothing is submitted:
// a plane without an address, a stride shorter than a row, memory of another kind than the frame
// says. A GPU that fails makes every later call SLUICE_STATUS_DEVICE; receive gives the frames under
// way back with it, one a call, and what is in their results is undefined.
#pragma once

#include "sluice/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

// A picture that a stage looks for (`match=logo.png`): luma of full range, 8 bits, row by row
// without padding. `mask` (optional) is 1 for samples that count, else 0.
struct sluice_picture {
    size_t size;
    int width, height;
    const uint8_t *sample, *mask;
};

struct sluice_filter_config {
    size_t size;
    const char *chain;          // as docs/stages.md describes them; NULL: "gray,gaussian=1.4,sobel,
                                // threshold=20:240". Stages can write no files here.
    struct sluice_format input; // of every frame that comes in
    const char *output_pixfmt;  // NULL: what the chain leaves, see sluice_filter_output()
    enum sluice_range output_range;

    enum sluice_backend backend; // AUTO: a GPU where there is one, else the CPU
    int device;                  // which GPU
    int threads;                 // of the CPU; 0: one per usable core
    int frames_in_flight;        // 0: as many as keep the backend busy; 1: one at a time, each by
                                 // all threads; 64 at most

    bool wavelet_planes; // `wavelet` delivers every value of every scale, too

    // (optional; without it a chain can name no pictures) Find the picture that a chain names.
    // SLUICE_STATUS_USAGE: there is none. What it points at is read before it is called again, or
    // the call that parses the chain returns.
    enum sluice_status (*picture)(void *opaque, const char *name, struct sluice_picture *picture);

    // Called with one sentence at a time, which lives until the callback returns; from any thread.
    // No newline ends it. Behind what is wrong with a chain stand two lines more: the chain, and a
    // mark below the place. NULL: silence.
    void (*log)(void *opaque, enum sluice_log_level level, const char *sentence);
    void *opaque; // for both
};

struct sluice_filter;

// On success the caller owns *filter; on failure it is NULL. SLUICE_STATUS_USAGE with the place
// marked if the chain is none, or does not fit the format; SLUICE_STATUS_DEVICE if the GPU that was
// required is not there.
SLUICE_API enum sluice_status sluice_filter_create(const struct sluice_filter_config *config,
                                                   struct sluice_filter **filter);

// Waits for frames under way. Leaves NULL, accepts NULL behind it.
SLUICE_API void sluice_filter_destroy(struct sluice_filter **filter);

// The format of results; its strings live as long as the filter. SLUICE_STATUS_USAGE if format->size
// is not set.
SLUICE_API enum sluice_status sluice_filter_output(const struct sluice_filter *filter,
                                                   struct sluice_format *format);

// "cuda, NVIDIA H200, compute capability 9.0", for people. Lives as long as the filter.
SLUICE_API const char *sluice_filter_backend(const struct sluice_filter *filter);

// Frames that may be under way at once.
SLUICE_API int sluice_filter_frames_in_flight(const struct sluice_filter *filter);

// ---- frames ----

// Begin `in`, into the planes of `out`. pts and opaque of `in` ride along to receive().
SLUICE_API enum sluice_status sluice_filter_submit(struct sluice_filter *filter,
                                                   const struct sluice_frame *in,
                                                   const struct sluice_frame *out, void *stream);

// Begin `count` frames, all or none, with less overhead for each: on a GPU small pictures of equal
// strides are filtered by one launch for up to eight. SLUICE_STATUS_AGAIN if there is no room for
// all of them; SLUICE_STATUS_USAGE if there never is.
SLUICE_API enum sluice_status sluice_filter_submit_many(struct sluice_filter *filter,
                                                        const struct sluice_frame *in,
                                                        const struct sluice_frame *out, int count,
                                                        void *stream);

// Give back the oldest frame under way: `out` as it was submitted, with the pts and opaque of `in`.
// Waits for a result in host memory; lets `stream`, that of submit, wait for one in device memory.
// SLUICE_STATUS_END if there is none under way.
SLUICE_API enum sluice_status sluice_filter_receive(struct sluice_filter *filter,
                                                    struct sluice_frame *out);

// submit() and receive() for one frame, with none under way.
SLUICE_API enum sluice_status sluice_filter_run(struct sluice_filter *filter,
                                                const struct sluice_frame *in,
                                                const struct sluice_frame *out, void *stream);

// submit_many() and receive() for `count` frames, any number, with none under way, by the calling
// thread: no other one submits or receives meanwhile. The first failure ends it: frames under way are
// received, no others are begun. Frames are begun some together, all or none, so one that is refused
// takes some of those before it along. SLUICE_STATUS_USAGE if some are under way, or count is below 0.
SLUICE_API enum sluice_status sluice_filter_run_many(struct sluice_filter *filter,
                                                     const struct sluice_frame *in,
                                                     const struct sluice_frame *out, int count,
                                                     void *stream);

// Host memory from which and into which the backend copies fastest, aligned to 64 bytes; NULL when
// there is none left. Any thread. Freed by the same filter, before it is destroyed.
SLUICE_API void *sluice_filter_alloc(struct sluice_filter *filter, size_t bytes);
SLUICE_API void sluice_filter_free(struct sluice_filter *filter, void *memory, size_t bytes);

// ---- changes ----

// Filter with other options from the next submitted frame on, all of them at once:
// "gaussian.sigma=2.5, threshold.t1=30", or of the second of two, "gaussian#2.sigma=1"; or by
// another chain. Frames under way keep theirs, which is freed when the last of them is received:
// that waits for the GPU, if there is one. SLUICE_STATUS_USAGE, with a sentence in `why` (optional)
// and nothing changed, if it does not fit, or if another format would come out.
SLUICE_API enum sluice_status sluice_filter_set(struct sluice_filter *filter, const char *options,
                                                char *why, size_t size);
SLUICE_API enum sluice_status sluice_filter_set_chain(struct sluice_filter *filter,
                                                      const char *chain, char *why, size_t size);

// The chain as it is now, and its plan (passes, halos, bytes) as text. The caller frees it with
// free(); NULL without memory.
SLUICE_API char *sluice_filter_chain(const struct sluice_filter *filter);
SLUICE_API char *sluice_filter_plan(const struct sluice_filter *filter);

// ---- analysis ----

enum sluice_analysis_kind {
    SLUICE_ANALYSIS_STATISTICS, // of `stats`, one a component
    SLUICE_ANALYSIS_MATCHES,    // of `match`
    SLUICE_ANALYSIS_WAVELET,    // of `wavelet`
};

struct sluice_match {
    float x, y;  // of its top left corner, in columns and rows, to a part of one
    float score; // 0 to 1
    int number;  // of the picture that was found, of those of the stage, from 0
    int width, height;
};

// The findings of a stage in a frame. Values are in code values of 8 bits, full range.
struct sluice_analysis {
    size_t size;
    enum sluice_analysis_kind kind;
    const char *stage; // its name; static
    int width, height; // of the plane that was analysed
    // STATISTICS
    const char *component; // "Y", "R", ...
    double min, max, mean, deviation;
    const uint64_t *histogram; // samples in each of `bins` equal parts of the code values
    int bins;
    // MATCHES, best first
    const struct sluice_match *match;
    int matches;
    // WAVELET: a mean square a scale and, with `wavelet_planes`, width x height values a scale, row
    // by row; docs/arithmetic.md says in which units
    int scales;
    const double *scale; // in samples
    const double *energy;
    const float *plane; // of the first scale, the others follow; NULL: not asked for
};

// Analysis number `index` from 0 of the frame that was received last; what it points at lives until
// the next receive(), run() or run_many(). SLUICE_STATUS_END past the last.
SLUICE_API enum sluice_status sluice_filter_analysis(const struct sluice_filter *filter, int index,
                                                     struct sluice_analysis *analysis);

#ifdef __cplusplus
}
#endif
