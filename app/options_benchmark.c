#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "quick",
        OF_RUN(quick),
        .help = "measure for seconds instead of minutes, with wider spread",
    },
    {
        .name = "ladder",
        OF_RUN(ladder),
        .help = "tutorial: filters from plain C to CUDA, each step measured",
    },
    {
        .name = "chart",
        OF_RUN(chart),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "draw the figures as SVG",
    },
    {0},
};

const struct option_section section_benchmark = {
    .name = "benchmark",
    .commands = FOR(BENCH),
    .title = "Benchmark ('sluice bench')",
    .about = "Options of filtering, --size, --pix-fmt and --json hold here, too.",
    .rows = rows,
};
