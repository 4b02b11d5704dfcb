#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "control",
        OF_RUN(control),
        .argument = "SOCKET",
        .completes = COMPLETE_FILES,
        .help = "listen on a Unix socket for 'sluice ctl': change parameters, take snapshots",
    },
    {
        .name = "journal",
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
        OF_RUN(config.metrics),
        .argument = "ADDRESS",
        .help = "serve Prometheus metrics over HTTP: PORT (this machine only) or HOST:PORT",
        .suggested = "9464 0.0.0.0:9464",
    },
    {
        .name = "json",
        OF_RUN(json),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "write the summary as JSON; - is standard output",
    },
    {
        .name = "trace",
        OF_RUN(config.trace),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "write a timeline of threads, queues and GPU streams for ui.perfetto.dev",
    },
    {
        .name = "quiet",
        .letter = 'q',
        OF_RUN(quiet),
        .help = "log errors only; no progress, no summary",
    },
    {
        .name = "verbose",
        .letter = 'v',
        OF_RUN(verbose),
        .help = "log more, including FFmpeg's own messages",
    },
    {
        .name = "help",
        .letter = 'h',
        .type = VALUE_FLAG,
        .set = show_help,
        .help = "show the help; 'sluice help TOPIC' for a section, an option, a stage or all",
    },
    {
        .name = "version",
        .type = VALUE_FLAG,
        .set = show_version,
        .help = "show the versions of sluice, FFmpeg and CUDA",
    },
    {0},
};

const struct option_section section_running = {
    .name = "running",
    .title = "Control, reports and messages",
    .rows = rows,
};
