#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "shard",
        .type = VALUE_TEXT,
        .set = set_shard,
        .argument = "I/N",
        .wanted = "I/N, part I of N from 1 on, as in 3/64",
        .help = "make part I of N of the output: OUTPUT.part-I-of-N, for 'sluice join'",
        .details =
            "The input is a file, cut at key frames. The part has exactly the frames whose pts lie "
            "between two cuts, wherever and by what it is made: the parts together are the whole, "
            "which 'sluice join' checks. It becomes a folder, which is there whole or not at all, "
            "so a part may be made again, twice at once, or on several machines that share the "
            "folder; one that is there already is left.\n"
            "Of output null: nothing is kept; the part's frames are filtered.",
    },
    {
        .name = "jobs",
        .type = VALUE_TEXT,
        .set = set_jobs,
        .argument = "N",
        .min = 1,
        .max = JOBS_MAX,
        .choices = {{"auto", 0, "as many as pay, found by measuring"}},
        .wanted = "a number of jobs, 1 to 256, or auto",
        .help = "make the output in parts, N of them at once, and join them; or auto",
        .details =
            "The input is a file. Its parts are made as by --shard, in threads of this process "
            "that "
            "share its cores, GPUs and memory, and become OUTPUT as soon as the last one is there. "
            "With auto their number grows as long as the rate does. '--device 0,1' or all gives "
            "each job a GPU of its own. Stopped, by a signal or a failure, the run leaves the "
            "parts "
            "that are finished, for --resume.",
        .suggested = "auto 2 4 8",
    },
    {
        .name = "resume",
        OF_RUN(resume),
        .help = "use the parts that a run with --jobs left when it was stopped",
        .details =
            "Parts that are there and were made of the same, by whatever number of jobs, are "
            "not made again; where none is there, all are made. Without it parts that are "
            "there are refused, unless -y replaces them.",
    },
    {
        .name = "source",
        .commands = FOR_PROOFS,
        OF_RUN(config.input),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .initial = "where it was when the parts were made",
        .help = "of join and audit: the file that the output is made of",
    },
    {
        .name = "samples",
        .commands = FOR(AUDIT) | FOR(FARM),
        OF_RUN(samples),
        .argument = "N",
        .min = 0,
        .max = 1e15,
        .initial = "100",
        .help = "of audit: how many frames are computed again; 0: all",
    },
    {
        .name = "seed",
        .commands = FOR(AUDIT),
        OF_RUN(seed),
        .argument = "N",
        .min = 0,
        .max = 4294967295.0,
        .initial = "another each time, which is printed",
        .help = "of audit: draw the same frames again",
    },
    {0},
};

const struct option_section section_parts = {
    .name = "parts",
    .commands = FOR_A_RUN,
    .title = "Parts of a file",
    .about = "One file by several processes, machines or GPUs: each makes a part, and 'sluice "
             "join' proves that the parts are the whole.",
    .rows = rows,
};

// ---- together ----

static int refuse(const char *sentence)
{
    fprintf(stderr, "sluice: %s\n", sentence);
    return EXIT_USAGE;
}

// What belongs to a run of one job.
static const char *find_other(const struct settings *settings)
{
    const struct sluice_config *config = &settings->config;
    const struct {
        bool given;
        const char *name;
    } others[] = {{config->start > 0, "--start"},
                  {config->duration > 0, "--duration"},
                  {config->frames > 0, "--frames"},
                  {config->live, "--live"},
                  {config->simulate, "--simulate"},
                  {config->output.segment > 0, "--segment"},
                  {settings->output_count > 1, "a second output"},
                  {config->parts, "--shard"},
                  {settings->page_address, "--page"},
                  {settings->control, "--control"},
                  {settings->journal, "--journal"},
                  {settings->replay, "--replay"},
                  {config->metrics, "--metrics"},
                  {config->trace, "--trace"}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (others[k].given)
            return others[k].name;
    return NULL;
}

int options_check_jobs(const struct settings *settings)
{
    if (settings->resume && !settings->jobs)
        return refuse("--resume is of --jobs: 'sluice INPUT OUTPUT --jobs auto --resume'");
    if (!settings->jobs)
        return -1;
    const char *other = find_other(settings);
    if (!other)
        return -1;
    fprintf(stderr, "sluice: --jobs does not go with %s: parts of one file make one output\n",
            other);
    return EXIT_USAGE;
}
