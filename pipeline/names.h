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

// Whether writing `output` would replace a file that `input` reads, by whatever way it is spelled.
bool names_collide(const char *input, const char *output);
