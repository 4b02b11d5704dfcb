// Figures: what a run tells of itself, whether one job makes its output or many do. The closing
// summary, its JSON and the line of progress know nothing else of a run.
//
// Counts of several jobs are added; shares of time are means, each job weighing as long as it ran;
// names are those of the first job that has them.
#pragma once

#include "sluice/sluice.h"

// A report, and its figures.
struct figures_record {
    struct sluice_record about;
    struct figures_sum {
        const char *name;
        double *sum;
        int values;
        int64_t frames;
    } * figure;
};

enum { FIGURES_MAX_OUTPUTS = 16 };

// What there is to tell of an output that was made in parts.
struct figures_parts {
    int parts, jobs; // jobs: the most at once
    int found;       // parts that were there from an earlier run
    int again;       // parts made a second time, in one thread, as the input was damaged
    int64_t frames_found;
    double made_seconds; // in which the parts were made
    double join_seconds; // in which they were joined
    double idle;         // share of the jobs' time in which they had no part to make
    const char *choice;  // how many jobs there were and why, a sentence; NULL: as asked for
};

// Zero is empty. Strings are the figures' own.
struct figures {
    struct sluice_summary summary;
    struct sluice_output_figures output[FIGURES_MAX_OUTPUTS];
    int outputs;
    struct figures_record *record;
    int records;
    const struct figures_parts *parts; // NULL: the output was made in one piece

    // ---- figures.c's ----
    double job_seconds; // all jobs' together
    char **text;
    int texts;
};

// Add what a job tells after sluice_job_run(). Without memory names and reports are left out.
void figures_add(struct figures *figures, const struct sluice_job *job);

// Add a ledger's counts to another.
void figures_add_ledger(struct sluice_ledger *to, const struct sluice_ledger *from);

// A copy of a text that lives as long as the figures; NULL is NULL.
const char *figures_text(struct figures *figures, const char *text);

void figures_free(struct figures *figures);

// Whether frames were damaged or left out.
bool figures_are_damaged(const struct figures *figures);

// Frames that this run has written, without those of parts that were there before.
int64_t figures_frames(const struct figures *figures);

// ---- while it runs ----

// A snapshot of a run, for the line of progress.
struct figures_now {
    struct sluice_progress progress; // of all its jobs
    int jobs;                        // at once; 0: the run is one job
    int parts, parts_done;
    bool joining;
};

typedef void figures_read(const void *run, struct figures_now *now);

// The same of one job: `run` is a struct sluice_job.
figures_read figures_of_job;
