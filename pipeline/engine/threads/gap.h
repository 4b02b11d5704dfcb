// Gap frames: an output's pictures while a live source is lost. The last picture, black, or none,
// so that the picture before stays for as long as players like.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum gap_kind { GAP_SKIP, GAP_FREEZE, GAP_BLACK };

struct gap;

// `time_base` is of the frames' timestamps, `rate` what is filled in at ({0}: 25 a second).
enum status gap_create(enum gap_kind kind, AVRational time_base, AVRational rate, struct gap **gap);
void gap_destroy(struct gap **gap);

// A frame was written. It stays the caller's; the picture is referred to until the next one.
enum status gap_note(struct gap *gap, const AVFrame *frame);

// True if a frame is to be left out, because the gap was filled beyond it.
bool gap_covers(const struct gap *gap, const AVFrame *frame);

// The next frame of the filling, if it is due when the source's clock says `clock_us`: *frame is
// the caller's then (av_frame_free()), else NULL. The filling stays a second behind the clock: so
// long may a source that is back take to give its first picture.
enum status gap_fill(struct gap *gap, int64_t clock_us, AVFrame **frame);
