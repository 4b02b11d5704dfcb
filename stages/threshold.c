#include "stages/stage.h"

enum { LOW, HIGH };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    program_keep_luma(program);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_threshold(program, c, value[LOW], value[HIGH]);
}

const struct stage stage_threshold = {
    .name = "threshold",
    .summary = "double threshold: black below the first, white above the second",
    .formula = "y = 0 where x < t1, 255 where x > t2, else x; Y'CbCr becomes gray",
    .source = "J. Canny, A computational approach to edge detection, PAMI 8 (1986), for the pair",
    .option = {{"t1", OPTION_REAL, "code values", NAN, 0, 256, NULL, NULL,
                "below it everything is black"},
               {"t2", OPTION_REAL, "code values", 255, -1, 255, NULL, NULL,
                "above it everything is white"}},
    .lower = lower,
};
