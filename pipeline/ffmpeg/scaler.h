// libswscale, for what the plan's own loads and stores do not know: palettes, 5-bit and floating
// formats, and pictures whose size changes under an encoder that cannot follow.
#pragma once

#include <libavutil/frame.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

struct scaler;

// Convert `from` to `pixel` at width x height into `to`, an empty frame that gets buffers and the
// properties of `from`. *scaler is NULL at first and keeps what can be used again; colours keep
// their matrix, and their range unless `range` names another. STATUS_FAILED if libswscale cannot.
enum status scaler_convert(struct scaler **scaler, const AVFrame *from, enum AVPixelFormat pixel,
                           enum AVColorRange range, int width, int height, AVFrame *to);

// True if libswscale can make pictures of this format.
bool scaler_makes(enum AVPixelFormat pixel);

// Give a frame the format and the tags that scaler_convert() would give it.
void scaler_tag(enum AVPixelFormat pixel, enum AVColorRange range, AVFrame *frame);
void scaler_destroy(struct scaler **scaler);

// The line of a plan for such a step: unlike the plan's own, its results are not the same in every
// version of libswscale. `purpose` ends the sentence: "for the filters".
void scaler_print_step(enum AVPixelFormat from, enum AVPixelFormat to, const char *purpose,
                       FILE *file);
