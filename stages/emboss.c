#include "stages/stage.h"

#include <math.h>

enum { AMOUNT, ANGLE, BORDER };

// The derivative towards the light, by Prewitt's pair of kernels over three, plus the sample.
static void emboss_weights(double amount, double angle, double one, int32_t *weight)
{
    const double pi = 3.14159265358979323846;
    double x = cos(angle * pi / 180), y = -sin(angle * pi / 180); // rows count downwards
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            weight[3 * (j + 1) + i + 1] = (int32_t)lround(-amount * (i * x + j * y) / 3 * one);
    weight[4] += (int32_t)one;
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    int bits = program_convolve_bits(program, 1 + 2 * value[AMOUNT]);
    const struct format *meaning = &program->picture.meaning;
    int32_t *weight = program_alloc(program, 9 * sizeof *weight);
    if (!weight)
        return;
    emboss_weights(value[AMOUNT], value[ANGLE], ldexp(1, bits), weight);
    for (int c = 0; c < format_colors(meaning); c++) {
        if (format_is_chroma(meaning, c))
            continue;
        struct levels levels = format_levels(meaning, c);
        struct op_convolve convolve = {.weight = weight,
                                       .width = 3,
                                       .height = 3,
                                       .origin_x = 1,
                                       .origin_y = 1,
                                       .bits = bits,
                                       .offset = 1 << bits >> 1,
                                       .low = levels.low,
                                       .high = levels.high};
        program_stencil(program, c, (enum border)value[BORDER],
                        (struct op){.kind = OP_CONVOLVE, .convolve = convolve});
    }
}

const struct stage stage_emboss = {
    .name = "emboss",
    .summary = "relief: the picture lit from one side",
    .formula = "y = clamp(x - amount * (gx cos(angle) - gy sin(angle))), gx and gy Prewitt's "
               "derivatives over 3; on Y'CbCr x is Y'",
    .option = {{"amount", OPTION_REAL, "", 1, 0.01, 8, NULL, NULL, "depth of the relief"},
               {"angle", OPTION_REAL, "degrees", 135, -360, 360, NULL, NULL,
                "where the light comes from, counter-clockwise from the right"},
               STAGE_BORDER},
    .lower = lower,
};
