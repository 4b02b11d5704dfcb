// How much of the host's memory a plan may take, known before it is taken: the system would give
// more than there is, and end the process later.
#pragma once

#include <stdint.h>

#include "plan/backend.h"

// Memory that plans may take where nobody says: what is available now, less a reserve; all of the
// machine's where the system does not say what is available.
int64_t budget_memory(void);

// A plan, for so many frames of a size in flight.
struct budget_request {
    struct backend *backend;
    const struct plan *plan;
    int width, height, slots;
    bool frames_in_flight; // as backend->executor_create() has it
    int seats;             // frames whose analysis is kept; 0: as many as `slots`
    bool without_analyses; // nobody wants the analysis
    const char *fewer;     // how fewer frames in flight are asked for; NULL: "--ring 1"
    const struct log *log;
};

// Bytes of memory that it needs.
struct budget_need {
    size_t analysis;             // of the host's, all frames'
    struct executor_need stages; // what its passes work in
    const struct op *most; // the operation that has the most of `analysis`; NULL: there is none
};

// Work out what the plan needs. STATUS_MEMORY, or STATUS_DEVICE of a device that does not work. Any
// thread.
enum status budget_measure(const struct budget_request *request, struct budget_need *need);

// Check that the frames' analysis and the memory that the plan works in stay within the backend's
// memory_limit. STATUS_USAGE, with a sentence, if they do not. Any thread.
enum status budget_check(const struct budget_request *request);
