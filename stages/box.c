#include "stages/stage.h"

enum { RADIUS, BORDER };

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < format_colors(meaning); c++) {
        struct op_box box = {.radius_x = subsampled((int)value[RADIUS], format_shift_x(meaning, c)),
                             .radius_y =
                                 subsampled((int)value[RADIUS], format_shift_y(meaning, c))};
        program_stencil(program, c, (enum border)value[BORDER],
                        (struct op){.kind = OP_BOX, .box = box});
    }
}

const struct stage stage_box = {
    .name = "box",
    .summary = "box blur: the mean of a square",
    .formula = "y = mean of x over |i|, |j| <= radius, rounded exactly; subsampled chroma uses the "
               "radius divided by its subsampling, rounded up",
    .option = {{"radius", OPTION_INT, "pixels", NAN, 1, 16384, NULL, NULL, "half the side"},
               STAGE_BORDER},
    .lower = lower,
};
