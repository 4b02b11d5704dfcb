#include "stages/stage.h"

struct contrast {
    double gain;
};

static void lower(const void *options, struct program *program)
{
    const struct contrast *contrast = options;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_affine(program, c, contrast->gain, 127.5 * (1 - contrast->gain));
}

const struct stage stage_contrast = {
    .name = "contrast",
    .summary = "spread values away from mid-gray, or draw them towards it",
    .formula = "y = clamp((x - 127.5) * gain + 127.5); Cb and Cr are scaled about neutral",
    .size = sizeof(struct contrast),
    .option = {OPTION(struct contrast, gain, .required = true, .min = 0, .max = 100,
                      .help = "1 changes nothing, 0 leaves mid-gray")},
    .lower = lower,
};
