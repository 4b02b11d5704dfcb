// Census: how each part of a farm stands, and its join and its audit: by folders, by the exit codes
// that scripts have left, and by what Slurm knows.
#pragma once

#include <stdio.h>

#include "app/farm/farm.h"
#include "app/farm/slurm.h"

enum task_state {
    TASK_DONE,   // what it makes is there, and whole
    TASK_UNTRUE, // it is there, and is not whole
    TASK_RUNNING,
    TASK_PENDING,
    TASK_FAILED,
    TASK_MISSING, // nobody makes it, as far as is known
    TASK_STATES
};

struct task {
    enum task_state state;
    bool queued;               // pending or running, whatever there is already
    char job[SLURM_ID];        // by this job; "": none
    int code;                  // the exit code of the last try, if it failed; 0: not known
    char reason[SLURM_REASON]; // of pending: why
};

struct census {
    struct task *part; // part[0] is part 1
    int parts;
    struct task join, audit;
    int count[TASK_STATES]; // of parts
    bool queue_known;       // Slurm has been asked
    bool audit_known;       // there is a farm's folder that would say so
};

// Take it. `files`: read all files of all parts, and compare them with their manifests; else the
// manifests alone. Sentences about parts that are not whole go to config's log. SLUICE_STATUS_FAILED
// if squeue is there and does not answer. census_free() in either case.
enum sluice_status census_take(const struct farm *farm, const struct sluice_config *config,
                               bool files, struct census *census);
void census_free(struct census *census);

// Count the parts again, whose states the caller has changed.
void census_count(struct census *census);

// Write the numbers of the parts of a state, as sbatch reads them: "3,7-9".
void census_list(const struct census *census, enum task_state state, FILE *to);

// "done", "not whole", "running" ...
const char *task_state_name(enum task_state state);

// True if a job of the farm is pending or running, as far as Slurm has been asked.
bool census_is_queued(const struct census *census);

// The exit code that sums it up, with what 'sluice farm status' says of each.
enum farm_exit { FARM_WHOLE = 0, FARM_FAILED = 1, FARM_UNFINISHED = 7 };
enum farm_exit census_exit(const struct census *census);
