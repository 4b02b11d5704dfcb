#include "stages/separable.h"
#include "stages/stage.h"

#include <math.h>

enum { AMOUNT, SIGMA, RADIUS, BORDER };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    int radius = isnan(value[RADIUS]) ? -1 : (int)value[RADIUS];
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        if (!format_is_chroma(&program->picture.meaning, c))
            program_gaussian(program, c, value[SIGMA], radius, (enum border)value[BORDER],
                             value[AMOUNT]);
}

const struct stage stage_sharpen = {
    .name = "sharpen",
    .summary = "unsharp mask: add what a Gaussian blur takes away",
    .formula = "y = clamp(x + amount * (x - gaussian(x))); on Y'CbCr x is Y'",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.6",
    .option = {{"amount", OPTION_REAL, "", 1, 0.01, 16, NULL, NULL,
                "how much of the difference is added"},
               {"sigma", OPTION_REAL, "pixels", 1, 0.3, 250, NULL, NULL,
                "standard deviation of the blur"},
               {"radius", OPTION_INT, "pixels", NAN, 1, 16384, NULL, "round(6 sigma + 1) / 2",
                "where its weights are cut off"},
               STAGE_BORDER},
    .lower = lower,
};
