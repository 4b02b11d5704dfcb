#include "stages/design/separable.h"
#include "stages/stage.h"

struct sharpen {
    double amount, sigma;
    int radius;
    enum border border;
};

static void lower(const void *options, struct program *program)
{
    const struct sharpen *sharpen = options;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        if (!format_is_chroma(&program->picture.meaning, c))
            program_gaussian(program, c, sharpen->sigma, sharpen->radius, sharpen->border,
                             sharpen->amount);
}

const struct stage stage_sharpen = {
    .name = "sharpen",
    .summary = "unsharp mask: add what a Gaussian blur takes away",
    .formula = "y = clamp(x + amount * (x - gaussian(x))); on Y'CbCr x is Y'",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.6",
    .size = sizeof(struct sharpen),
    .option = {OPTION(struct sharpen, amount, .initial = 1, .min = 0.01, .max = 16,
                      .help = "how much of the difference is added"),
               OPTION(struct sharpen, sigma, .unit = "pixels", .initial = 1, .min = 0.3, .max = 250,
                      .help = "standard deviation of the blur"),
               OPTION(struct sharpen, radius, .unit = "pixels", .min = 1, .max = 16384,
                      .derived = "round(6 sigma + 1) / 2", .help = "where its weights are cut off"),
               OPTION_BORDER(struct sharpen, border)},
    .lower = lower,
};
