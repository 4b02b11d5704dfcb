#include "stages/stage.h"

struct brightness {
    double offset;
};

static void lower(const void *options, struct program *program)
{
    const struct brightness *brightness = options;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_affine(program, c, 1, brightness->offset);
}

const struct stage stage_brightness = {
    .name = "brightness",
    .summary = "make the picture lighter or darker",
    .formula = "y = clamp(x + offset); on Y'CbCr x is Y', on RGB each of R, G and B",
    .size = sizeof(struct brightness),
    .option = {OPTION(struct brightness, offset, .unit = "code values", .required = true,
                      .min = -255, .max = 255,
                      .help = "what is added, 255 being the distance from black to white")},
    .lower = lower,
};
