#include "app/app.h"
#include "app/option.h"

static const struct option_row rows[] = {
    {
        .name = "parts",
        OF_RUN(farm.parts),
        .argument = "N",
        .min = 1,
        .max = 1000000,
        .help = "farm: cut the input into N parts, a task each",
        .details = "Parts of a minute or more of work: a job takes seconds to start. Slurm's "
                   "arrays have up to MaxArraySize - 1 tasks, often 1000.",
    },
    {
        .name = "at-once",
        OF_RUN(farm.at_once),
        .argument = "N",
        .min = 1,
        .max = 1000000,
        .initial = "as many as there is room for; 4 of xargs",
        .help = "farm: no more than N tasks at once",
    },
    {
        .name = "program",
        OF_RUN(farm.program),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .initial = "this one, by its whole path; sluice in an image",
        .help = "farm: the sluice that tasks call",
    },
    {
        .name = "dry-run",
        OF_RUN(farm.dry_run),
        .help = "farm submit, resume: print scripts and commands, and submit nothing",
    },
    {
        .name = "as",
        OF_RUN(farm.engine),
        .argument = "ENGINE",
        .initial = "slurm",
        .choices = {{"slurm", 0, "scripts, and the commands of sbatch"},
                    {"kubernetes", 0, "an Indexed Job, and one that joins and audits"},
                    {"xargs", 0, "a line for a shell"}},
        .help = "farm print: for whom",
    },
    {
        .name = "image",
        OF_RUN(farm.image),
        .argument = "NAME",
        .initial = "sluice",
        .help = "farm print --as kubernetes: the container image, with sluice on its PATH",
    },
    {
        .name = "claim",
        OF_RUN(farm.claim),
        .argument = "NAME",
        .initial = "work",
        .help = "farm print --as kubernetes: the PersistentVolumeClaim with the files",
    },
    {0},
};

const struct option_section section_farm = {
    .name = "farm",
    .commands = FOR(FARM),
    .title = "Many machines",
    .about = "'sluice farm' gives the parts of one output to an engine that schedules tasks: "
             "Slurm, Kubernetes, or xargs. Words behind '--' are options of sbatch.",
    .rows = rows,
};
