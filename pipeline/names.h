// What names of inputs and outputs stand for: a file, several images, an address.
//
// A name that exists as it stands is always that file.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// "scheme://...".
bool name_is_url(const char *name);

// An address whose source plays whether anyone watches or not: rtsp, rtmp, srt, udp, rtp, tcp.
bool name_is_live(const char *name);

// A device: "/dev/video0", or "FORMAT:WHAT" with a device's format of FFmpeg's in front, as
// in "v4l2:/dev/video0", "x11grab::0", "lavfi:testsrc". *format and *what (in `name`, or static)
// are set if so.
bool name_is_device(const char *name, const char **format, const char **what);

// The name without what must not be read by others: the password of a URL, and values of parameters
// that are called like secrets.
void name_without_secrets(const char *name, char *to, size_t size);

// "in%04d.png": images by number.
bool name_is_numbered(const char *name);

// "*.png": images by glob(7).
bool name_is_globbed(const char *name);

// What FFmpeg calls a format that people know by another name: y4m, mkv.
const char *name_of_format(const char *format);

// Of a numbered name: the lowest number that a file there has, -1 if there is none, and how many
// files there are.
int name_first_number(const char *name, int *count);

// Whether writing `output` would replace a file that `input` reads, by whatever way it is spelled.
bool names_collide(const char *input, const char *output);
