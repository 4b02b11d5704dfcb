#include "stages/stage.h"

enum { GAIN };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_affine(program, c, value[GAIN], 127.5 * (1 - value[GAIN]));
}

const struct stage stage_contrast = {
    .name = "contrast",
    .summary = "spread values away from mid-gray, or draw them towards it",
    .formula = "y = clamp((x - 127.5) * gain + 127.5); Cb and Cr are scaled about neutral",
    .option = {{"gain", OPTION_REAL, "", NAN, 0, 100, NULL, NULL,
                "1 changes nothing, 0 leaves mid-gray"}},
    .lower = lower,
};
