// The CPU as the spare of a GPU that fails while it works: what the GPU has not done is done by the
// CPU, and so is all that follows, to the same bits. Or, where the GPU was asked for, the failure
// is told with the number of the frame that it met.
//
// A GPU's failure lasts: its context answers every later call with the same error. Host memory that
// was pinned for it stays readable, and what it does not pin any more is plain memory. Frames in its
// own memory are lost with it: a finder has them decoded again. Where there is none, or it does not
// find one, the job ends with STATUS_DEVICE.
//
// A spare is made before the backend, whose log it keeps, guards one, and is destroyed after it.
#pragma once

#include "plan/backend.h"

struct spare_request {
    bool goes_on; // else a failure of the GPU is the job's
    int threads;  // of the CPU, see backend_cpu_create()
    const struct log *log;
};

// Finds frames that a GPU has lost. Both calls from the threads that submit and wait, one at a time a
// frame.
struct spare_finder {
    // Make *found the source of the work, in the host's memory, which stays until forget(): of the same
    // format and size, all its planes there. STATUS_DEVICE: it cannot be had.
    enum status (*find)(void *opaque, const struct work *lost, struct image *found, void **memory);
    void (*forget)(void *opaque, void **memory);
    void *opaque;
};

struct spare;

enum status spare_create(const struct spare_request *request, struct spare **spare);

// Set the finder, which outlives the spare's work, ahead of that.
void spare_set_finder(struct spare *spare, const struct spare_finder *finder);

// Free it; the backend that it guards is gone. Leaves NULL.
void spare_destroy(struct spare **spare);

// The log to make a GPU's backend with: errors that its work meets wait here for the frame's number, all
// else goes through. The CPU's backend has the job's log: its errors are not the GPU's. Thread-safe.
const struct log *spare_log(struct spare *spare);

// Frame `frame` of the job is the first that the backend gets, ahead of the spare's work; else frame 0 is.
void spare_begin_at(struct spare *spare, long long frame);

// Frames that the CPU was given since the GPU failed; 0 of NULL. Any thread.
long long spare_frames(struct spare *spare);

// Put a backend with GPUs behind the spare: *backend is another one then, which owns it, and which can
// be left if the job goes on. Its work is in host memory, or on the GPU. Leaves a backend without GPUs as
// it is. STATUS_MEMORY: *backend is destroyed, and NULL.
enum status spare_guard(struct spare *spare, struct backend **backend);
