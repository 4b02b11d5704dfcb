// Cuts: the times at which a file is divided into parts, each decoded by itself.
//
// Part k of n, from 0 on, has the frames whose pts lie at or behind cut k and before cut k + 1. Cut
// 0 is before all frames and cut n behind all. Every cut between is the first key frame at or
// behind the k-th part of the file's duration that decodes without an error; where there is none,
// it is the end, and parts behind it are empty. A cut is a property of the file alone: whoever asks
// for it, on whatever machine, finds the same.
//
// Where times cannot be sought (raw bitstreams, packets without pts, clocks that jump), the cut is
// the k-th part of the duration to the microsecond, and the part is decoded from the beginning of
// the file: n times the work, and the same frames.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/part_span.h"

struct source_request;

struct cuts_request {
    const struct source_request *source; // of a file
    int part, parts;                     // part 0 .. parts - 1
    int64_t max_pixels;
    const struct log *log;
    const atomic_bool *stop; // ends the search, with STATUS_STOPPED
};

// Find a part's cuts. Reads the file about them; all of it where its clock may jump, as in MPEG-TS.
// Fails as source_open(), and with STATUS_INPUT if it is read in different ways.
enum status cuts_find(const struct cuts_request *request, struct part_span *span);
