#include "stages/stage.h"

#include <stdio.h>

enum { LOW, HIGH };

// threshold=256 and threshold=0:-1 leave nothing between them, and say so.
static bool fits(const double *value, char *why, size_t size)
{
    snprintf(why, size,
             "t1 is %g and t2 is %g; what is below t1 becomes black and what is above t2 white, so "
             "t2 must not be less",
             value[LOW], value[HIGH]);
    return value[LOW] <= value[HIGH] + 1;
}

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
    .fits = fits,
    .lower = lower,
};
