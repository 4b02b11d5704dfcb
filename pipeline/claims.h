// Which files a job reads and writes: what one writes no other may, nor may it have been read.
#pragma once

#include "pipeline/sluice.h"
#include "stages/chain.h"
#include "stages/log.h"
#include "stages/status.h"

struct claims;

// Claim outputs, taps, reports, the trace and what config->others names. STATUS_USAGE with a
// sentence, and NULL, where one of them is another, or the input, or what was read with `chain`,
// the config's; STATUS_OUTPUT where the trace or one of the others cannot be written, as
// file_check() says it of outputs when they are made. The config's strings are not needed later.
enum status claims_create(const struct sluice_config *config, const struct chain *chain,
                          const struct log *log, struct claims **claims);
void claims_destroy(struct claims **claims);

// Whether nothing that is claimed, nor what the job reads, is this file, which is to be written
// while the job runs; else STATUS_USAGE with a sentence. Any thread.
enum status claims_check_file(const struct claims *claims, const char *name, const struct log *log);

// Whether another chain, that may take over, reads nothing that is claimed; else STATUS_USAGE with
// a sentence. Any thread.
enum status claims_check(const struct claims *claims, const struct chain *chain,
                         const struct log *log);
