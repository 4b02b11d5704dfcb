#include "stages/stage.h"

enum { OFFSET };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_affine(program, c, 1, value[OFFSET]);
}

const struct stage stage_brightness = {
    .name = "brightness",
    .summary = "make the picture lighter or darker",
    .formula = "y = clamp(x + offset); on Y'CbCr x is Y', on RGB each of R, G and B",
    .option = {{"offset", OPTION_REAL, "code values", NAN, -255, 255, NULL, NULL,
                "what is added, 255 being the distance from black to white"}},
    .lower = lower,
};
