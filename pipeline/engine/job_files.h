// The files that a job's configuration names, which no two may write.
#pragma once

#include "pipeline/output/file/path_conflicts.h"
#include "sluice/sluice.h"

// Reserve outputs, tees, reports, the trace and what config->reserved_outputs names. STATUS_USAGE
// with a sentence, and NULL, where one of them is another, or the input, or what was read with
// `chain`, the config's; STATUS_OUTPUT where the trace or one of the others cannot be written; for
// outputs file_check() says so when they are made. The config's strings are not needed later.
enum status job_files_reserve(const struct sluice_config *config, const struct chain *chain,
                              const struct log *log, struct path_conflicts **conflicts);
