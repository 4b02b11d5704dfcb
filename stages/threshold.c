#include <stdio.h>

#include "stages/stage.h"

struct threshold {
    double t1, t2;
};

// threshold=256 and threshold=0:-1 leave nothing between them, and say so.
static bool fits(const void *options, char *why, size_t size)
{
    const struct threshold *threshold = options;
    snprintf(why, size,
             "t1 is %g and t2 is %g; what is below t1 becomes black and what is above t2 white, so "
             "t2 must not be less",
             threshold->t1, threshold->t2);
    return threshold->t1 <= threshold->t2 + 1;
}

static void lower(const void *options, struct program *program)
{
    const struct threshold *threshold = options;
    program_keep_luma(program);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_threshold(program, c, threshold->t1, threshold->t2);
}

const struct stage stage_threshold = {
    .name = "threshold",
    .summary = "double threshold: black below the first, white above the second",
    .formula = "y = 0 where x < t1, 255 where x > t2, else x; Y'CbCr becomes gray",
    .source = "J. Canny, A computational approach to edge detection, PAMI 8 (1986), for the pair",
    .size = sizeof(struct threshold),
    .option = {OPTION(struct threshold, t1, .unit = "code values", .required = true, .min = 0,
                      .max = 256, .help = "below it everything is black"),
               OPTION(struct threshold, t2, .unit = "code values", .initial = 255, .min = -1,
                      .max = 255, .help = "above it everything is white")},
    .fits = fits,
    .lower = lower,
};
