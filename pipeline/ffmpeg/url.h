// Names of inputs and outputs: a file, several images, an address.
//
// A name that exists as it stands is always that file.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The name without what FFmpeg's users put in front of files: "file:x" is x, unless x alone would
// be no file, as an address is; "pipe:", and the pipe of the number that is meant anyway, are "-",
// other pipes a name in /dev/fd. Points into `name` or is static.
const char *url_plain(const char *name, bool is_output);

// "scheme://...".
bool url_has_scheme(const char *name);

// An address whose source plays whether anyone watches or not: rtsp, rtmp, srt, udp, rtp, tcp.
bool url_is_live(const char *name);

// Why the name of an address's host, which `host` gets, leads nowhere, as the end of a sentence;
// NULL: it is no name, or leads somewhere. For an address that could not be opened: asks, as
// opening it does, and so may take as long.
const char *url_host_trouble(const char *name, char *host, size_t size);

// Kinds of devices by FFmpeg's name, each with an input of that kind; ended by a NULL format.
struct device_name {
    const char *format, *example;
};
extern const struct device_name device_names[];

// A device: a camera's node ("/dev/video0", "/dev/v4l/by-id/..."), or "FORMAT:WHAT" with the format
// of a device_name in front. *format and *what (in `name`, or static) are set if so.
bool url_is_device(const char *name, const char **format, const char **what);

// The name without what must not be read by others, see base/secrets.h.
void url_without_secrets(const char *name, char *to, size_t size);

// "in%04d.png": images by number.
bool url_is_numbered(const char *name);

// True if a pattern's numbers would be longer than names of files are: libavformat counts out what may
// be billions of zeros.
bool url_has_long_numbers(const char *name);

// Write the name that a pattern such as "f%04d.png" has for a number, as av_get_frame_filename2(),
// whose flags they are. Below 0: it is no pattern, or has long numbers.
int url_numbered_name(char *to, int size, const char *pattern, int number, int flags);

// "*.png": images by glob(7).
bool url_is_globbed(const char *name);

// True if there is a file that a globbed name means.
bool url_has_matches(const char *name);

// FFmpeg's name of a format that people know by another: y4m, mkv.
const char *url_format(const char *format);

// The lowest number that a file of a numbered name has, -1 if there is none, and how many files
// there are.
int url_first_number(const char *name, int *count);

// The file that a name leads to, with all symbolic links followed to their end, where nothing needs
// to be yet. The caller frees it; NULL with errno: links that lead to each other, or no memory.
char *url_resolve(const char *name);

// True if writing `output` would replace a file that `input` reads, by whatever way it is spelled
// and by whichever of its hard links.
bool urls_collide(const char *input, const char *output);

// True if two names are of one file, which need not be there yet: of one folder, however it is
// spelled, and the same in it with links followed, or a numbered one and one of those that it
// stands for.
bool urls_are_same(const char *a, const char *b);
