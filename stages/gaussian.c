#include "stages/design/separable.h"
#include "stages/stage.h"

struct gaussian {
    double sigma;
    int radius;
    enum border border;
};

static void lower(const void *options, struct program *program)
{
    const struct gaussian *gaussian = options;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_gaussian(program, c, gaussian->sigma, gaussian->radius, gaussian->border, 0);
}

const struct stage stage_gaussian = {
    .name = "gaussian",
    .summary = "Gaussian blur, any sigma, cost independent of it when large",
    .formula = "y = sum of w(i) w(j) x over |i|, |j| <= radius, w(k) = exp(-k^2 / (2 sigma^2)) / "
               "sum; subsampled chroma uses sigma and radius divided by its subsampling",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.5",
    .size = sizeof(struct gaussian),
    .option = {OPTION(struct gaussian, sigma, .unit = "pixels", .required = true, .min = 0.1,
                      .max = 250, .help = "standard deviation"),
               OPTION(struct gaussian, radius, .unit = "pixels", .min = 1, .max = 16384,
                      .derived = "round(6 sigma + 1) / 2", .help = "where the weights are cut off"),
               OPTION_BORDER(struct gaussian, border)},
    .lower = lower,
};
