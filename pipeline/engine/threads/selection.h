// The part of the input that goes into the output, and whether the output has all of it.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// Times are microseconds of the input.
struct selection {
    // ---- constant while the threads run ----
    int64_t begin_us;    // AV_NOPTS_VALUE: from its beginning
    int64_t end_us;      // INT64_MAX: to its end
    int64_t frame_limit; // INT64_MAX: none
    bool video_only;     // no other stream goes into the output
    bool part;           // it is a part of a file: other frames are not this job's, nor counted
    bool all_read;       // ... which is decoded to its end, in case that frames come out of order
    // ---- the decode thread's; any thread reads ----
    atomic_bool complete;        // the output has all its frames: what follows is not wanted
    _Atomic int64_t last_end_us; // where the last of them ends, once it is complete
};

// Where the output ends, as far as is known by now.
static inline int64_t selection_end_us(const struct selection *selection)
{
    return selection->complete ? selection->last_end_us : selection->end_us;
}
