#include "stages/stage.h"

static void lower(const void *no_options, struct program *program)
{
    (void)no_options;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_affine(program, c, -1, 255);
}

const struct stage stage_invert = {
    .name = "invert",
    .summary = "the negative: black becomes white, colours their complements",
    .formula = "y = 255 - x; Cb and Cr are mirrored about neutral",
    .lower = lower,
};
