// Cameras: the modes that V4L2 drivers of this machine offer, asked of the kernel.
//
// libavdevice opens them. It takes what is next to what was asked for without a word, so that is
// looked up here before: in the list of modes where the driver has one, else by asking the driver
// what it would make of it (VIDIOC_TRY_FMT). Interface: linux/videodev2.h, and the kernel's "Video
// for Linux API".
#pragma once

#include <libavutil/rational.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/status.h"
#include "sluice/sluice.h"

struct camera {
    char name[32];     // the driver's, for people
    int width, height; // as it is set
    struct sluice_mode *mode;
    int modes;
    bool busy;
    int fd;
};

// Open the device and read its modes. It disturbs nobody who uses the camera. STATUS_INPUT with a
// sentence if there is no such device, it is none that captures video, or may not be opened. The
// caller closes it, also after a failure.
enum status camera_open(const char *path, const struct log *log, struct camera *camera);
void camera_close(struct camera *camera);

// Request for a camera, as in source_request; NULL and 0: none.
struct camera_request {
    const char *pixfmt;
    int width, height;
    struct sluice_rate rate;
};

// Check that the camera can be opened and has what is asked for. *pixfmt is the format to open it
// in, static or the request's own; NULL if it does not matter. Without a format in the request it
// is the one that is fastest in that size, of several the one that needs least to be done to it.
// STATUS_INPUT with a sentence as of camera_open(), or if others use it; STATUS_USAGE with one that
// lists what there is if it has no such mode.
enum status camera_check(const char *path, const struct camera_request *request,
                         const struct log *log, const char **pixfmt);

// Check that what was opened gives about the rate that was asked for: not every driver lists its
// rates, and none refuses one. `given` is 0 where it is not known.
enum status camera_check_rate(const char *path, const struct camera_request *request,
                              AVRational given, const struct log *log);
