// The span of a part: the frames of a file that are one part's, see seek/cuts.h.
#pragma once

#include <libavutil/avutil.h>
#include <libavutil/mathematics.h>
#include <stdbool.h>
#include <stdint.h>

// Times are microseconds of the file.
struct part_span {
    int64_t begin_us; // its frames are at or behind; INT64_MIN: the first part
    int64_t end_us;   // its frames are before; INT64_MAX: the last part, or no cut was found
    int64_t seek_us;  // packets are read from the key frame on that a seek to this time finds;
                      // INT64_MIN: from the beginning of the file
    bool begins_at_key, ends_at_key; // a cut is a key frame's pts, not only a time
};

// True if a frame or packet of this pts is the part's. NULL: all are. One without a pts is.
static inline bool part_span_has(const struct part_span *span, int64_t pts, AVRational time_base)
{
    if (!span || pts == AV_NOPTS_VALUE)
        return true;
    int64_t at_us = av_rescale_q(pts, time_base, AV_TIME_BASE_Q);
    return at_us >= span->begin_us && at_us < span->end_us;
}
