#include "stages/stage.h"

#include <math.h>

enum { GAMMA };

static double power(double value, double gamma)
{
    return 255 * pow(value / 255, 1 / gamma);
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    if (value[GAMMA] == 1)
        return;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        if (!format_is_chroma(&program->picture.meaning, c))
            program_curve(program, c, power, value[GAMMA]);
}

const struct stage stage_gamma = {
    .name = "gamma",
    .summary = "lighten or darken the middle, black and white stay",
    .formula = "y = 255 (x / 255)^(1 / gamma); on Y'CbCr x is Y'",
    .source = "C. Poynton, Digital Video and HD, 2nd ed., chapter 27",
    .option = {{"gamma", OPTION_REAL, "", NAN, 0.01, 100, NULL, NULL,
                "above 1 lightens, below 1 darkens"}},
    .lower = lower,
};
