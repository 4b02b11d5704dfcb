// What names of inputs and outputs stand for: a file, several images, an address.
//
// A name that exists as it stands is always that file.
#pragma once

#include <stdbool.h>

// "scheme://...".
bool name_is_url(const char *name);

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
