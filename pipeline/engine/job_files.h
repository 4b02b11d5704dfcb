// The files of a job that no two may write: what its configuration says of them.
#pragma once

#include "pipeline/output/file/path_conflicts.h"
#include "sluice/sluice.h"

// Note outputs, tees, reports, the trace and what config->reserved_outputs names. STATUS_USAGE with
// a sentence, and NULL, where one of them is another, or the input, or what was read with `chain`,
// the config's; STATUS_OUTPUT where the trace or one of the others cannot be written, as
// file_check() says it of outputs when they are made. The config's strings are not needed later.
enum status job_files_claim(const struct sluice_config *config, const struct chain *chain,
                            const struct log *log, struct path_conflicts **conflicts);
