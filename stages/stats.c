#include "stages/stage.h"

struct stats {
    char *report;
};

static const char *component_name(const struct format *meaning, int c)
{
    static const char *const names[][FORMAT_COMPONENTS] = {
        [MODEL_GRAY] = {"Y", "", "", "A"},
        [MODEL_YUV] = {"Y", "Cb", "Cr", "A"},
        [MODEL_RGB] = {"R", "G", "B", "A"},
    };
    return names[meaning->model][c];
}

static void lower(const void *options, struct program *program)
{
    (void)options; // whoever writes the records looks at the report
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        struct levels levels = format_levels(meaning, c);
        if (format_has(meaning, c))
            program_watch(program, c,
                          (struct op){.kind = OP_STATISTICS,
                                      .statistics = {.depth = meaning->depth,
                                                     .component = component_name(meaning, c),
                                                     .zero = levels.zero,
                                                     .scale = levels.scale}});
    }
}

const struct stage stage_stats = {
    .name = "stats",
    .summary =
        "least, greatest, mean, deviation and histogram of each component; the picture stays",
    .formula = "mean = sum x / n, deviation^2 = sum x^2 / n - mean^2, histogram of 256 bins of "
               "codes; chroma about 0",
    .size = sizeof(struct stats),
    .option = {OPTION(struct stats, report, .unit = "a file", .derived = "none",
                      .writes = WRITES_RECORDS,
                      .help = "where a line of JSON a frame and component goes")},
    .lower = lower,
};
