// Formats of the caller's frames (sluice/frame.h) in FFmpeg's terms, and back.
#pragma once

#include <libavutil/frame.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/ffmpeg/pixel.h"
#include "sluice/frame.h"

// The format of a frame; its pixel format's name is static.
struct sluice_format caller_format(const AVFrame *frame);

// Read a caller's format: the pixel format, and the tags of its frames. STATUS_USAGE, with a
// sentence, for what is none; sizes are not looked at but for being there.
enum status caller_read(const struct sluice_format *format, const struct log *log,
                        enum AVPixelFormat *pixel, struct color_tags *tags);
