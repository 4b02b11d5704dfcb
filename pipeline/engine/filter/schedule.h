// The chains of a run by the time of the input: the one that it begins with, then those that are
// planned (struct sluice_change).
//
// Each text is parsed once, and a picture that several of them name is read once. A schedule does
// not change once it is read: any number of threads may use it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "sluice/sluice.h"
#include "stages/chain.h"

struct schedule {
    int count; // 0: empty, as zeroed memory is
    struct chain *chain;
    char **text;     // what each was parsed from
    int64_t *pts_us; // the first has none
};

// Parse `first` and `changes` (optional, ended by a NULL chain). STATUS_USAGE, with the place marked
// in the log, if one of them is no chain. The caller frees *schedule, also on failure.
enum status schedule_read(const char *first, const struct sluice_change *changes,
                          const struct log *log, struct schedule *schedule);

// Make *to a copy, which shares the pictures. The caller frees it, also on failure.
enum status schedule_copy(const struct schedule *schedule, struct schedule *to);
void schedule_free(struct schedule *schedule);

// True if the schedule was read from these texts.
bool schedule_is_of(const struct schedule *schedule, const char *first,
                    const struct sluice_change *changes);
