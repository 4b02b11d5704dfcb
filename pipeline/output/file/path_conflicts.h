// Path conflicts: a file that one output writes is neither read nor written by another.
//
// Thread-safety: adding is for one thread, before the job runs; the checks are for any, then.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "stages/chain.h"

struct path_conflicts;

// Create an empty set of names. STATUS_MEMORY is the only failure.
enum status path_conflicts_create(struct path_conflicts **conflicts);
void path_conflicts_destroy(struct path_conflicts **conflicts);

// Add a file that is read ("-": standard input). Names are copied.
enum status path_conflicts_add_input(struct path_conflicts *conflicts, const char *name);

// Add a file that is written; STATUS_USAGE with a sentence where it is written already, or read: as
// an input or by `chain`.
enum status path_conflicts_add_output(struct path_conflicts *conflicts, const struct chain *chain,
                                      const char *name, const struct log *log);

// Check that a file which is to be written while the job runs is neither read nor written
// otherwise; else STATUS_USAGE with a sentence.
enum status path_conflicts_check_file(const struct path_conflicts *conflicts, const char *name,
                                      const struct log *log);

// Check that another chain, which may take over, reads nothing that is written; else STATUS_USAGE
// with a sentence.
enum status path_conflicts_check_chain(const struct path_conflicts *conflicts,
                                       const struct chain *chain, const struct log *log);
