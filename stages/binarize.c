#include "stages/stage.h"

struct binarize {
    double level;
};

static void lower(const void *options, struct program *program)
{
    const struct binarize *binarize = options;
    program_keep_luma(program);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_binarize(program, c, binarize->level);
}

const struct stage stage_binarize = {
    .name = "binarize",
    .summary = "black and white, nothing between",
    .formula = "y = 255 where x >= level, else 0; Y'CbCr becomes gray",
    .size = sizeof(struct binarize),
    .option = {OPTION(struct binarize, level, .unit = "code values", .initial = 128, .min = 0,
                      .max = 256, .help = "the first value that is white")},
    .lower = lower,
};
