#include "stages/separable.h"
#include "stages/stage.h"

#include <math.h>

enum { SIGMA, RADIUS, BORDER };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    int radius = isnan(value[RADIUS]) ? -1 : (int)value[RADIUS];
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_gaussian(program, c, value[SIGMA], radius, (enum border)value[BORDER], 0);
}

const struct stage stage_gaussian = {
    .name = "gaussian",
    .summary = "Gaussian blur, any sigma, cost independent of it when large",
    .formula = "y = sum of w(i) w(j) x over |i|, |j| <= radius, w(k) = exp(-k^2 / (2 sigma^2)) / "
               "sum; subsampled chroma uses sigma and radius divided by its subsampling",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.5",
    .option = {{"sigma", OPTION_REAL, "pixels", NAN, 0.1, 250, NULL, NULL, "standard deviation"},
               {"radius", OPTION_INT, "pixels", NAN, 1, 16384, NULL, "round(6 sigma + 1) / 2",
                "where the weights are cut off"},
               STAGE_BORDER},
    .lower = lower,
};
