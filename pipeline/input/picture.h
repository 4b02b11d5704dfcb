// Pictures from files, for stages that look for them.
#pragma once

#include "stages/pattern.h"

// Reads what FFmpeg can decode: any picture, and of a video the first. A name is a regular file's,
// and nothing else is opened. Any thread.
extern const struct picture_reader picture_reader;
