// Pixel formats by GStreamer's name and by sluice's.
#pragma once

#include <gst/video/video.h>
#include <stdbool.h>

#include "sluice/filter.h"

// Every format that both know, as the caps of a pad, preferred first: "{ I420, NV12, ... }".
extern const char formats_caps[];

// GStreamer's description as the library's; its strings are static. Returns false for a format that
// is not among formats_caps.
bool formats_describe(const GstVideoInfo *info, struct sluice_format *format);

// Say in caps of pictures of `out` made of `in` what the library says of them: matrix, range and
// siting. What the caps demand already stays.
void formats_say(const GstVideoInfo *in, const GstVideoInfo *out,
                 const struct sluice_format *format, GstStructure *caps);
