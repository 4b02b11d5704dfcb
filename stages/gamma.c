#include <math.h>

#include "stages/stage.h"

struct gamma {
    double gamma;
};

static double power(double value, double gamma)
{
    return 255 * pow(value / 255, 1 / gamma);
}

static void lower(const void *options, struct program *program)
{
    const struct gamma *gamma = options;
    if (gamma->gamma == 1)
        return;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        if (!format_is_chroma(&program->picture.meaning, c))
            program_curve(program, c, power, gamma->gamma);
}

const struct stage stage_gamma = {
    .name = "gamma",
    .summary = "lighten or darken the middle, black and white stay",
    .formula = "y = 255 (x / 255)^(1 / gamma); on Y'CbCr x is Y'",
    .source = "C. Poynton, Digital Video and HD, 2nd ed., chapter 27",
    .size = sizeof(struct gamma),
    .option = {OPTION(struct gamma, gamma, .required = true, .min = 0.01, .max = 100,
                      .help = "above 1 lightens, below 1 darkens")},
    .lower = lower,
};
