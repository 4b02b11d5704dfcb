// How much of the host's memory a plan may take, known before it is taken: the system would give
// more than there is, and end the process later.
#pragma once

#include <stdint.h>

#include "plan/backend.h"

// The machine's memory.
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

// Check that the frames' analysis and the memory that the plan works in stay within the backend's
// memory_limit. STATUS_USAGE, with a sentence, if they do not. Any thread.
enum status budget_check(const struct budget_request *request);
