// Slurm: jobs by sbatch, and what squeue says of them. What is asked of Slurm is a command line,
// which can be shown as it is run.
#pragma once

#include "app/farm/farm.h"

enum { SLURM_ID = 32, SLURM_REASON = 96 };

struct slurm_job {
    const char *name;    // "part", "join" or "audit": its script
    const char *array;   // "1-40" or "3,7-9": the parts; NULL: no array
    const char *depends; // "afterok:17:18_3"; NULL: nothing. A job that cannot begin any more is
                         // cancelled
};

// The command line that submits a job, with the options of the farm; without those about GPUs for
// jobs that are no array. The caller frees it; NULL without memory.
char *slurm_command(const struct farm *farm, const struct slurm_job *job);

// Run one. SLUICE_STATUS_FAILED, with a sentence, if sbatch takes no job.
enum sluice_status slurm_submit(const char *command, char id[SLURM_ID]);

// Cancel the jobs of this name that have not begun, if there are any.
void slurm_cancel(const struct farm *farm, const char *name);

enum slurm_state { SLURM_PENDING, SLURM_RUNNING, SLURM_FAILED, SLURM_COMPLETED };

// A task, or a job that is no array. Numbers of jobs say little: a controller that has lost its
// table gives them again. Names do not.
struct slurm_task {
    char name[8]; // "part", "join" or "audit"
    char id[SLURM_ID];
    int task; // -1: no array
    enum slurm_state state;
    char reason[SLURM_REASON]; // the nodes on which it runs, or "(why it does not)"
};

// Call `note` for what Slurm knows of the farm's jobs. SLUICE_STATUS_END: squeue is not here;
// SLUICE_STATUS_FAILED, with a sentence: it does not answer.
enum sluice_status slurm_queue(const struct farm *farm,
                               void (*note)(void *opaque, const struct slurm_task *task),
                               void *opaque);
