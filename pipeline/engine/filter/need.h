// Memory that a job needs, worked out before any of it is taken, and its ceiling.
//
// Frames, stages and analyses, which are made here, are known to some rows of a picture. Pictures of
// decoders and encoders are estimated from what they took when it was measured. The
// program itself, its code and FFmpeg's, has some 40 MiB beside that nobody counts.
//
// The ceiling is one for all jobs of a process: what one of them has claimed another cannot have.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/engine/filter/filter.h"

enum need_part {
    NEED_DECODER, // packets that wait, pictures to refer to, those of threads: an estimate
    NEED_RING,    // frames in flight, before and behind the stages, and those that wait for a slot
    NEED_STAGES,  // what passes work in; with --verify, the reference too
    NEED_REPORTS, // the analysis of the frames in flight, and records on their way to files
    NEED_OUTPUTS, // frames and packets that wait for outputs; pictures of encoders: an estimate
    NEED_PAGE,    // what the control page keeps
    NEED_PARTS,
};

struct need {
    int slots, width, height;
    int64_t host[NEED_PARTS], device[NEED_PARTS]; // bytes
};

// Ceiling of a job: memory that it may take.
struct ceiling {
    int64_t host;           // bytes; 0: nobody says
    _Atomic int64_t device; // the same
    bool host_asked, device_asked;
    // ---- guarded by the process's lock ----
    int64_t claimed;     // of the host's, the most that was needed
    int64_t device_need; // that was found within it last
};

// Parts of a job that take memory beside its stages. All outlives the filters that point at it, and is
// constant while they are made.
struct need_job {
    struct ceiling *ceiling;
    enum AVCodecID codec; // of the input
    int codec_threads;    // 0: as many as it takes
    bool on_device;       // the GPU decodes
    bool keeps_packets;   // ... or will, once it is ready
    int packets_queued, frames_queued;
    const struct sink *sink; // (optional)
    bool live, verifies;
    bool claims; // it runs, or will at once; else it is only looked at, and other jobs may have all
    bool leaves_gpu; // the CPU is taken if the GPU has no room for even one frame: no error
    int64_t page;    // bytes
};

// Set the ceiling: of the host `mem` bytes, 0: what is available now, or was before other jobs of
// this process began, less a reserve (base/host_memory.h); of the device `vram`, 0: what is free on
// it now, less a sixteenth. Where `vram` is given and the backend has no memory of its own a sentence
// says that it limits nothing. Any thread, as all below.
void ceiling_open(int64_t mem, int64_t vram, struct backend *backend, const struct log *log,
                  struct ceiling *ceiling);

// Set the ceiling of the device's memory as above, of a device that was not there then.
void ceiling_add_device(struct ceiling *ceiling, struct backend *backend);

// The most that was needed of the host's memory, and what was needed last of the device's.
void ceiling_figures(const struct ceiling *ceiling, int64_t *host, int64_t *device);

// Give back what was claimed. Zeroed ones and closed ones are accepted.
void ceiling_close(struct ceiling *ceiling);

// Work out what a job would take whose filter is made of this request, which has `job`, for frames
// like `frame`. Fails as filter_check() does, but not for memory.
enum status filter_need(const struct filter_request *request, const AVFrame *frame,
                        struct need *need);

// Sum of all parts.
int64_t need_host(const struct need *need);
int64_t need_device(const struct need *need);

// True if the device's memory has no room for it; the sentence says how much it lacks.
enum { NEED_SENTENCE = 200 };
bool need_lacks_device(const struct need *need, const struct ceiling *ceiling,
                       char sentence[NEED_SENTENCE]);

// Check that it is within the ceiling; then as much of it is claimed as was not before, where the job
// claims. STATUS_USAGE, of the device's memory STATUS_DEVICE, with a sentence that says the need, the
// ceiling and what takes less, where it is not; or, of a job that leaves the GPU, that the CPU filters.
enum status need_check(const struct need *need, const struct need_job *job, const struct log *log);

// Find the most frames in flight, from request->slots down to 1, with which the job stays within
// its ceiling, for frames like `frame`: *slots. As need_check() where one does not. Where it cannot
// be known, as the chain does not suit such frames, *slots is request->slots.
enum status need_fit(const struct filter_request *request, const AVFrame *frame, int *slots);

// Write the need as text, a line a part.
void need_print(const struct need *need, const struct ceiling *ceiling, FILE *to);
