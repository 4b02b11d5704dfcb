// Backends run plans: the border between the engine, which moves frames and knows no sample, and
// the three backends, which know samples and no file.
//
//   backend    a device: the scalar reference, the CPU, one GPU, or several of them
//              (pipeline/engine/filter/multi_gpu.h)
//   executor   one plan, for one picture size, with a number of slots on that device
//   slot       one frame's seat: everything it needs was allocated when the executor was made
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "base/status.h"
#include "plan/format.h"
#include "plan/plan.h"

// One frame's work.
//
// The source has the format of the program's input; its memory is the host's, or the device's when
// `source_on_device`, where it becomes valid on `source_stream` (the backend's kind of stream);
// with `source_abroad` it is another device's, and copied first. The
// target has the format of the program's output and is host memory from the backend's alloc().
// Planes that the plan computes are written; so are referenced planes when the source is on the
// device. A target plane with a NULL pointer is not wanted: constant planes, and referenced ones
// that the engine shares with the source frame. `tee` has such a target for each tee of the
// program, and stays until wait() has returned. A target on the host may be its
// source where plan_is_in_place() or the backend (`reads_first`) says so; else they do not overlap.
//
// With `target_on_device` the target and all tees are this device's memory instead, at any address,
// with any stride of 31 bits. All planes that have data are written, constant and referenced ones,
// too, and nothing around their rows. A target plane may be the source's plane of the same number,
// with the same address and stride; else none overlaps with another, or with the source. Such work
// begins behind what is on `source_stream` when it is submitted, wherever its source is. With
// `source_stream_serves` it may be done on that stream itself, without times: the source is on this
// device, too. `alone`: the caller lets that stream wait for it before there is more, so no other
// work of it overlaps this but by the ends of kernels; the stream lives, and is not captured, until
// wait() or hand_over() has returned. `untimed`: wait() is not asked for its times; then no
// processor time has to be measured, which takes two system calls.
//
// `analysis` has host memory from alloc() for each analysis of the program (struct program,
// `analysis`), as many bytes as op_analysis_bytes() says; NULL: not wanted, one or all. It is
// written when wait() returns. Work with analysis has no fields.
struct work {
    struct image source;
    struct image target;
    const struct image *tee;
    bool source_on_device, source_abroad, target_on_device;
    bool source_stream_serves, alone, untimed;
    void *source_stream; // NULL: the device's default stream
    int64_t source_pts;  // names the source to whoever finds it again; no backend looks at it
    bool fields;         // filter each field by itself; has image_has_fields()
    void *const *analysis;
};

// Where picture number `n` of the program goes, see program_pictures().
static inline const struct image *work_target(const struct work *work, int n)
{
    return n ? &work->tee[n - 1] : &work->target;
}

// When a part of a frame's work ran, in nanoseconds of CLOCK_MONOTONIC, and how much processor time
// it took. Engines that serve one frame after another leave `busy_ns` 0: they were busy from the
// part's begin, or the end of the same part of the frame before if that was later.
struct work_span {
    long long begin_ns, end_ns, busy_ns;
};

struct work_times {
    struct work_span upload, compute, download; // all 0: there was none
};

struct executor {
    // Begin the work and return without waiting for it; the scalar reference does it before it
    // returns, and the CPU leaves much of it to wait(), with one slot or where frames are small. Its
    // memory must stay until wait() has returned. `slot` counts from 0 and must be idle: never used,
    // waited for, or handed over. One thread at a time.
    enum status (*submit_async)(struct executor *executor, int slot, const struct work *work);

    // Wait until the slot's frame is done, and say how it went. *times (optional) is set on
    // success, to zeros where its source's stream served. Another thread than the submitting one
    // may call this, one at a time per slot.
    enum status (*wait)(struct executor *executor, int slot, struct work_times *times);

    // Free everything. All slots must be idle. Accepts NULL behind the pointer.
    void (*destroy)(struct executor **executor);

    // (optional) The same as submit_async for `count` frames in slots `slot`, `slot` + 1, ... with
    // less overhead for each. All of them must be idle before any is used again.
    enum status (*submit_many_async)(struct executor *executor, int slot, const struct work *work,
                                     int count);

    // (optional) Let what is put on `stream` from now on wait for the slot's frame, whose target is
    // on the device: the slot is idle then. Waits for nothing itself but that a source on the host
    // has been read. Failures of the frame are those of later calls. As wait(), instead of it.
    enum status (*hand_over)(struct executor *executor, int slot, void *stream);

    size_t memory; // bytes of the host's that it holds, about
};

// Which memory an address is in, as a backend sees it.
enum memory_kind {
    MEMORY_HOST,    // pageable, or nobody's
    MEMORY_PINNED,  // the host's, from alloc() or otherwise known to the device
    MEMORY_DEVICE,  // this device's
    MEMORY_MANAGED, // moves between host and device
    MEMORY_PEER,    // another device's
};

// Memory that an executor takes, about: most of it is exact, and what is only some rows or some
// numbers is left out. Frames on the host and analyses are not its own.
struct executor_need {
    size_t host;   // that its stages work in
    size_t device; // of the device's, all of it; of several devices on the one that has the most
};

enum link_way { LINK_UP, LINK_DOWN, LINK_BOTH, LINK_WAYS };

struct backend {
    const char *name;     // "scalar", "cpu", "cuda"
    char description[96]; // "NVIDIA H200, compute capability 9.0", "16 threads, AVX2"
    struct plan_limits limits;
    bool has_device_memory; // can read sources on the device; with hand_over(), write targets there
    bool reads_first;       // a host's target may always be its source
    int gpus;               // slot k is served by GPU k % gpus, over a link; 0: by the host itself
    int parallel;           // frames that it works on at the same time, about
    int in_flight;          // frames that keep it busy; 0: one more than it works on
    size_t memory_limit;    // bytes of the host's for the analysis and the work of the frames in
                            // flight; set and kept to by whoever made the backend; 0: none

    // Make an executor with `slots` seats for pictures of width x height. `plan` must outlive it.
    // `frames_in_flight` is false when single pictures matter more than throughput: the CPU then
    // splits a picture between its threads instead of giving each its own.
    enum status (*executor_create)(struct backend *backend, const struct plan *plan, int width,
                                   int height, int slots, bool frames_in_flight,
                                   struct executor **executor);

    // (optional; NULL: next to none) Work out how much memory such an executor would take; the
    // estimate itself takes less than a slot. STATUS_MEMORY, or STATUS_DEVICE of a device that does not
    // work. Thread-safe.
    enum status (*executor_measure)(struct backend *backend, const struct plan *plan, int width,
                                    int height, int slots, bool frames_in_flight,
                                    struct executor_need *need);

    // (optional; NULL: never) True if the device works no more, whatever it is asked. Some
    // microseconds. Thread-safe.
    bool (*is_lost)(struct backend *backend);

    // (optional; NULL: it cannot) Leave the device for the host's own processors, for a reason that is
    // told with the first frame that they have: it is lost from here on, executors made later and frames
    // submitted later do without it, to the same bits. The thread that submits.
    void (*leave)(struct backend *backend, const char *why);

    // (optional; NULL: it has no memory of its own) Bytes of the device's memory that are free now,
    // of several devices the least. Thread-safe.
    size_t (*device_room)(struct backend *backend);

    // Host memory from which and into which this backend copies fastest, aligned to at least 64
    // bytes; NULL when there is none left. Thread-safe.
    void *(*alloc)(struct backend *backend, size_t bytes);
    void (*free)(struct backend *backend, void *memory, size_t bytes);

    // (optional; NULL: all is MEMORY_HOST) The kind of memory that `address` is in, which need not
    // be anybody's. Less than a microsecond. Thread-safe.
    enum memory_kind (*memory_kind)(struct backend *backend, const void *address);

    // For decoders on the device: its context, and a new stream on which they deliver. NULL where
    // has_device_memory is false.
    void *(*device_context)(struct backend *backend);
    enum status (*stream_create)(struct backend *backend, void **stream);
    void (*stream_destroy)(struct backend *backend, void **stream);

    // For measuring; NULL where there is not one GPU. Device memory that holds a copy of host
    // memory, NULL when there is none left; bytes a second that a plain copy of `bytes` within the
    // device's memory moves, and that the link to the host does in each direction. They take about
    // `seconds`.
    void *(*device_copy)(struct backend *backend, const void *data, size_t bytes);
    void (*device_free)(struct backend *backend, void *memory);
    enum status (*measure_copy)(struct backend *backend, size_t bytes, double seconds,
                                double *rate);
    enum status (*measure_link)(struct backend *backend, enum link_way way, double seconds,
                                double *rate);

    void (*destroy)(struct backend **backend);
};

// Begin the work of `count` frames, in neighbouring slots from `slot` on: at once where the backend
// can, else one after another.
static inline enum status executor_submit_many_async(struct executor *executor, int slot,
                                                     const struct work *work, int count)
{
    if (executor->submit_many_async)
        return executor->submit_many_async(executor, slot, work, count);
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        status = executor->submit_async(executor, slot + k, &work[k]);
    return status;
}

// A backend that is made while another one works.
struct backend_later {
    // The backend that works from now on, which is the one before where there will be no other. NULL: it
    // is not known yet. Nanoseconds. Thread-safe.
    struct backend *(*get)(void *opaque);
    void *opaque;
};

static inline void executor_destroy(struct executor **executor)
{
    if (*executor)
        (*executor)->destroy(executor);
}

static inline void backend_destroy(struct backend **backend)
{
    if (*backend)
        (*backend)->destroy(backend);
}

// Each backend's constructor. The caller owns *backend, and *log must outlive it.
//
// scalar: work is done within submit_async, on the calling thread.
enum status backend_scalar_create(const struct log *log, struct backend **backend);

// cpu: `threads` filter at once, 0 for one per core that this process may use; those that wait() are
// among them.
enum status backend_cpu_create(int threads, const struct log *log, struct backend **backend);

// cuda: GPU number `device`. STATUS_DEVICE with *backend NULL, and nothing logged, when there is no
// usable GPU; `reason` (optional) then says why in one sentence. A build without CUDA always says
// so.
enum status backend_cuda_create(int device, const struct log *log, struct backend **backend,
                                char *reason, size_t reason_size);

// Frames that keep one GPU busy.
enum { BACKEND_CUDA_IN_FLIGHT = 8 };

// True if there may be a GPU, as far as is seen without a call of its driver, which takes its time;
// false of what only the attempt shows: WSL, Jetsons.
bool backend_cuda_may_be_there(void);

// A line about each GPU, for people. Returns how many there are; `line` (optional) describes number
// `device`. 0 with the reason in `line` when there is no driver.
int backend_cuda_describe(int device, char *line, size_t size);

// True if there is no GPU, or no driver, or this build has no CUDA; false of what is there and works,
// and of what is there and does not. Where nothing works this takes as long as the attempt did.
bool backend_cuda_is_absent(void);

// "CUDA 13.0", "no CUDA". Static.
const char *backend_cuda_version(void);
