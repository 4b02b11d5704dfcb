// Capture devices: FFmpeg's libavdevice, found when one is asked for. The program does not link to
// it: it brings in a dozen libraries of desktops, which most runs and most servers have no use for.
//
// sluice_devices() lists the devices that there are, camera.h the modes of cameras.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"

// The demuxer of a kind of device ("v4l2", "x11grab", "lavfi"). STATUS_INPUT with a sentence if
// libavdevice is not here or lacks it. Any thread.
enum status device_find(const char *format, const struct log *log, const AVInputFormat **demuxer);

// True if the demuxer is the one for cameras. Its packets lie in the driver's memory, which goes
// when it is closed, and reading from it cannot be interrupted but with AVFMT_FLAG_NONBLOCK.
bool device_is_camera(const AVInputFormat *demuxer);
