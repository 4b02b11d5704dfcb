// Part set: all parts of one output, read and found to add up.
#pragma once

#include <stdint.h>

#include "base/log.h"
#include "base/status.h"
#include "pipeline/part/manifest.h"

struct part_set {
    char **folder;             // in order
    struct manifest *manifest; // of each
    int count;
    int filled;     // the first part with frames; `count`: none has
    int64_t frames; // of all
};

// Read the manifests of these folders, given in any order and ended by NULL. STATUS_INPUT, with a
// sentence that names the part, where they are not all parts of one output: one is missing, there
// twice, altered, cut short, of another source, chain, arithmetic or encoding; cuts do not meet; or
// the part before a cut decodes the frame behind it to something else than the part that begins
// there. STATUS_USAGE: there is none. part_set_free() in either case.
enum status part_set_read(const char *const *folders, const struct log *log, struct part_set *set);
void part_set_free(struct part_set *set);
