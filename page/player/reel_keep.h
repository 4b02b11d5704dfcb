// Packets of what was kept, from a time on.
#pragma once

#include "base/status.h"

struct keep;
struct reel;
struct source;

// The reel of a keep. `source` describes the stream; both outlive the reel. rewind() changes the
// parameters of the source's stream.
enum status reel_of_keep(struct keep *keep, struct source *source, struct reel **reel);
