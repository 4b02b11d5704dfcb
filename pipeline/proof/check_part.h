// Check part: whether the files of a part are what its manifest says.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "pipeline/part/manifest.h"

// Compare the packets of video.nut, and the other files, with the part's manifest, which was read
// before. STATUS_INPUT, with a sentence that names the part and the first file that differs.
//
// Thread-safety: none is needed; it reads files.
enum status check_part(const char *folder, const struct manifest *manifest, const struct log *log);
