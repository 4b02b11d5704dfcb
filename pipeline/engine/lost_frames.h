// Frames that a GPU has decoded and lost: decoded again on the CPU, and laid out as they were.
#pragma once

#include "pipeline/engine/filter/spare.h"

struct decoder;

// The finder of a job that decodes on the GPU; the decoder outlives it.
struct spare_finder lost_frames_of(struct decoder *decoder);
