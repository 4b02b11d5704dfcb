#include "stages/stage.h"

static const char *component_name(const struct format *meaning, int c)
{
    static const char *const names[][FORMAT_COMPONENTS] = {
        [MODEL_GRAY] = {"Y", "", "", "A"},
        [MODEL_YUV] = {"Y", "Cb", "Cr", "A"},
        [MODEL_RGB] = {"R", "G", "B", "A"},
    };
    return names[meaning->model][c];
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)value, (void)text;
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
    .option = {{"report", OPTION_TEXT, "a file", NAN, 0, 0, NULL, "none",
                "where a line of JSON a frame and component goes", NULL, false, WRITES_RECORDS}},
    .lower = lower,
};
