// The executor of the CUDA backend: a ring of slots on one GPU.
//
// A slot's frame is upload, passes and download, enqueued in one go; slots overlap because copies
// up, kernels and copies down are different engines of the GPU. Uploads share a stream and so do
// downloads, for an engine that changes between streams pauses: about a tenth of the link's pace
// with frames of 2 MB. Passes go on a few streams in turn, or on the caller's.
//
//   executor        slots, submit and wait
//   layout          where things lie in the memory of a slot
//   pass_constants  tables, taps and transforms on the device
//   transfer        frames between host and device, and the order between streams
//   dispatch        which kernel makes what a pass holds
//   stencils        passes with stencils, whose samples lie as these want them
//   views           operands of a pass as kernels see them
//   graph           the launches of a submission as one
//   direct          frames in the caller's device memory
//   clock           when events of the GPU happened, by the host's clock
//
// A slot belongs to the submitting thread until submit_async() returns, then to the GPU until
// `end` fires, then to the waiting thread. One that is handed over is the submitting thread's at
// once: its next frame is ordered on the GPU behind the last that used the slot's memory. Frames that
// touch the caller's planes alone, on the caller's stream, use none, and `end` is recorded behind them
// only if somebody asks for it. Passes of a frame follow each other on one stream, and so do its two
// fields: buffers and scratch need no further order. From stream to stream the order is `uploaded` and
// `computed`.
//
// Frames that are submitted together go on one stream, and each pass is one
// launch for all of them where they lie alike in memory. The first slot leads: its events are those
// of the others too.
#pragma once

#include <time.h>

#include "kernels/executor/clock.h"
#include "kernels/executor/cuda.h"
#include "kernels/executor/graph.h"
#include "kernels/executor/layout.h"

// More streams overlap no more, and cost small frames: an H200 has 1893 thousand million pixels of 1080p
// a second brightened by four of them, 1250 by eight.
enum { WORK_STREAMS = 4 };

// The executor's own streams on which frames end.
enum { LANE_DOWNLOAD = WORK_STREAMS, LANES, LANE_NONE = -1 };

struct cuda_slot {
    cudaStream_t work_stream; // of its group, if it leads one: the executor's, or the caller's
    cudaEvent_t source_ready; // on the stream that delivers device sources
    cudaEvent_t began;        // sources on the device are there
    cudaEvent_t uploaded, computed;
    cudaEvent_t done;
    cudaEvent_t made; // `done` without a time, which costs the host a microsecond less
    cudaEvent_t end;  // which of the two its last frame has, if it leads
    bool ended;       // atomic: `end` was recorded behind its last group
    bool timed;       // the times of the frames that it leads are taken
    uint8_t *memory;
    int lane;         // whose stream `end` is on, if it leads; LANE_NONE: a caller's
    long long turn;   // the number of its last group among all groups, if it leads; from 1
    int leader;       // the slot whose events are this one's
    int user;         // the slot that led the last group in this one's memory
    cudaEvent_t used; // `end` of the last group in memory that it led; NULL: none
    unsigned long long used_on; // the number of that group's stream
    bool over;                  // atomic: `end` was waited for
    bool handed_over;           // and not used since
    bool has_heir;              // the last stream that it was handed over to, if it leads
    cudaStream_t heir;
    bool uploads, downloads; // whether there was anything: else `uploaded`, `computed` are not used
    bool refers;             // planes that no pass reads come from the host behind `uploaded`
    // When the copy up was put on its stream, or the source was found to be there, without `began`; or 0.
    long long begun_ns;
    bool by_graph;      // its last group was not launched by recording_launch_dependent()
    struct graph graph; // large
};

// The frames of neighbouring slots, on the way together, with a target for each picture of the
// program. What no frame or picture has is left as it was: it is large.
struct device_frames {
    struct image source[FRAMES], target[MAX_PICTURES][FRAMES];
    int count;
    const struct work *work;
    uint8_t *memory; // the first slot's
    bool in_slots;   // planes lie in the slots' memory, but for those that a pass takes apart
};

struct cuda_executor {
    struct executor base;
    struct cuda_backend *backend;
    const struct plan *plan;
    int width, height;
    int slots;
    struct cuda_slot *slot;
    cudaStream_t work_stream[WORK_STREAMS]; // of groups of frames in turn
    unsigned long long work_stream_id[WORK_STREAMS];
    cudaStream_t upload_stream, download_stream;
    unsigned groups;              // that went on them
    long long turns;              // groups, wherever they went
    long long over[LANES];        // atomic: all up to this turn are over on this stream
    struct recording *recording;  // the submitting thread's; NULL: not only kernels are launched
    struct driver_launch driver;  // the same
    struct device_frames *frames; // the same: those of the group that is submitted
    cudaStream_t last_stream;     // the caller's of the last group
    struct pass_constants *constants; // of each pass
    uint8_t *memory;
    size_t constant_bytes;
    struct slot_layout layout;
    unsigned long long known_stream; // a caller's that is this GPU's; 0: none
    long long submitted;             // frames, for profilers
    struct gpu_clock clock;
};

static inline long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
