#include "stages/stage.h"

struct box {
    int radius;
    enum border border;
};

static void lower(const void *options, struct program *program)
{
    const struct box *box = options;
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < format_colors(meaning); c++)
        program_stencil(
            program, c, box->border,
            (struct op){.kind = OP_BOX,
                        .box = {.radius_x = subsampled(box->radius, format_shift_x(meaning, c)),
                                .radius_y = subsampled(box->radius, format_shift_y(meaning, c))}});
}

const struct stage stage_box = {
    .name = "box",
    .summary = "box blur: the mean of a square",
    .formula = "y = mean of x over |i|, |j| <= radius, rounded exactly; subsampled chroma uses the "
               "radius divided by its subsampling, rounded up",
    .size = sizeof(struct box),
    .option = {OPTION(struct box, radius, .unit = "pixels", .required = true, .min = 1,
                      .max = 16384, .help = "half the side"),
               OPTION_BORDER(struct box, border)},
    .lower = lower,
};
