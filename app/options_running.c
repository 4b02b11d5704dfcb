#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "control",
        .commands = FOR_A_RUN | FOR(SERVE),
        OF_RUN(control),
        .argument = "SOCKET",
        .completes = COMPLETE_FILES,
        .help = "listen on a Unix socket for 'sluice ctl': change parameters, take snapshots",
    },
    {
        .name = "journal",
        .commands = FOR_A_RUN | FOR(SERVE),
        OF_RUN(journal),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "log which chain filtered from which timestamp on",
    },
    {
        .name = "replay",
        OF_RUN(replay),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "change the chain at the timestamps of a journal: the same frames to the bit",
    },
    {
        .name = "metrics",
        .commands = FOR_A_RUN | FOR(SERVE),
        OF_RUN(config.metrics),
        .argument = "ADDRESS",
        .help = "serve Prometheus metrics over HTTP: PORT (this machine only) or HOST:PORT",
        .suggested = "9464 0.0.0.0:9464",
    },
    {
        .name = "json",
        .commands = FOR(FILTER) | FOR(BENCH) | FOR(AUDIT) | FOR(FARM),
        OF_RUN(json),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "write the summary as JSON; - is standard output",
    },
    {
        .name = "trace",
        .commands = FOR_A_RUN | FOR(BENCH),
        OF_RUN(config.trace),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "write a timeline of threads, queues and GPU streams for ui.perfetto.dev",
    },
    {
        .name = "sandbox",
        .commands = FOR_SANDBOXED,
        OF_RUN(sandbox),
        .argument = "WHEN",
        .choices = {{"auto", SANDBOX_AUTO, "with what the kernel has, unless a GPU may work"},
                    {"on", SANDBOX_ON, "with all of it, or the run fails"},
                    {"off", SANDBOX_OFF, "never"}},
        .initial = "auto",
        .help = "open nothing but what the command line names: auto, on or off",
        .details =
            "Before anything is decoded the kernel is told what the run may open: its inputs, the "
            "folders of its outputs with all below them, what the system has for everyone. "
            "Programs are not started, other processes not reached, and without an address no "
            "socket is made. 'sluice doctor' says what the kernel has; SECURITY.md what holds.",
    },
    {
        .name = "allow",
        .commands = FOR_SANDBOXED,
        .set = add_allowed,
        .argument = "FOLDER",
        .completes = COMPLETE_FILES,
        .wanted = "a folder",
        .help = "in the sandbox: a folder to read and write, too, for files that are named later",
        .details = "As templates that 'sluice ctl' sets are, and files that encoder options name.",
        .repeats = true,
    },
    {
        .name = "mem",
        .commands = FOR_INPUTS,
        OF_RUN(config.mem),
        .set = set_memory,
        .argument = "SIZE",
        .wanted = "an amount of memory, as in 512M, 2G or 1.5GiB",
        .initial = "what is available at the start, less a sixteenth",
        .help = "refuse what would take more memory",
        .details =
            "What a run will take is worked out before it takes it: 'sluice plan' shows it by "
            "part. Frames in flight become fewer until it fits; where one alone does not, the run "
            "is "
            "refused before it writes anything, and so is a change of a running one. All jobs of "
            "--jobs count together. Available is what the system says, and what limits of control "
            "groups leave. The program itself has about 40 MiB beside.",
        .suggested = "512M 1G 2G 4G 8G 16G",
    },
    {
        .name = "vram",
        .commands = FOR_INPUTS,
        OF_RUN(config.vram),
        .set = set_memory,
        .argument = "SIZE",
        .wanted = "an amount of memory, as in 512M, 2G or 1.5GiB",
        .initial = "what is free on the GPU at the start, less a sixteenth",
        .help = "refuse what would take more of the GPU's memory",
        .details = "Of several GPUs it holds for each. It counts for frames and stages there, and "
                   "for what its decoder has.",
        .suggested = "512M 1G 2G 4G 8G 16G",
    },
    {
        .name = "quiet",
        .letter = 'q',
        .commands = FOR_ALL,
        OF_RUN(quiet),
        .help = "log errors only; no progress, no summary",
    },
    {
        .name = "verbose",
        .letter = 'v',
        .commands = FOR_ALL,
        OF_RUN(verbose),
        .help = "log more, including FFmpeg's own messages",
    },
    {
        .name = "help",
        .letter = 'h',
        .commands = FOR_ALL,
        .type = VALUE_FLAG,
        .set = show_help,
        .help = "show the help; 'sluice help TOPIC' for a section, an option, a stage or all",
    },
    {
        .name = "version",
        .commands = FOR_ALL,
        .type = VALUE_FLAG,
        .set = show_version,
        .help = "show the versions of sluice, FFmpeg and CUDA",
    },
    {0},
};

const struct option_section section_running = {
    .name = "running",
    .commands = FOR_A_RUN,
    .title = "Control, limits, reports and messages",
    .rows = rows,
};
