#include "stages/stage.h"

enum { LEVEL };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    program_keep_luma(program);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_binarize(program, c, value[LEVEL]);
}

const struct stage stage_binarize = {
    .name = "binarize",
    .summary = "black and white, nothing between",
    .formula = "y = 255 where x >= level, else 0; Y'CbCr becomes gray",
    .option = {{"level", OPTION_REAL, "code values", 128, 0, 256, NULL, NULL,
                "the first value that is white"}},
    .lower = lower,
};
