// Proof source: the file that an output, or its parts, were made of.
//
// Thread-safety: none is needed; it reads files.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "pipeline/input/source.h"
#include "pipeline/part/manifest.h"
#include "sluice/sluice.h"

// What `made` was made of: the file, which is config->input or else where it was then, and the
// number of the video in it. Points into both.
struct source_request proof_source(const struct sluice_config *config, const struct manifest *made);

// Check that the file is the one that `made` was made of; `what` names that in the sentence.
// STATUS_INPUT if it is another, or cannot be read.
enum status proof_source_check(const struct source_request *source, const struct manifest *made,
                               const char *what, const struct log *log);
