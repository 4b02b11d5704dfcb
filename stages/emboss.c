#include <math.h>

#include "stages/stage.h"

struct emboss {
    double amount, angle;
    enum border border;
};

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

static void lower(const void *options, struct program *program)
{
    const struct emboss *emboss = options;
    int bits = program_convolve_bits(program, 1 + 2 * emboss->amount);
    const struct format *meaning = &program->picture.meaning;
    int32_t *weight = program_alloc(program, 9 * sizeof *weight);
    if (!weight)
        return;
    emboss_weights(emboss->amount, emboss->angle, ldexp(1, bits), weight);
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
        program_stencil(program, c, emboss->border,
                        (struct op){.kind = OP_CONVOLVE, .convolve = convolve});
    }
}

const struct stage stage_emboss = {
    .name = "emboss",
    .summary = "relief: the picture lit from one side",
    .formula = "y = clamp(x - amount * (gx cos(angle) - gy sin(angle))), gx and gy Prewitt's "
               "derivatives over 3; on Y'CbCr x is Y'",
    .size = sizeof(struct emboss),
    .option = {OPTION(struct emboss, amount, .initial = 1, .min = 0.01, .max = 8,
                      .help = "depth of the relief"),
               OPTION(struct emboss, angle, .unit = "degrees", .initial = 135, .min = -360,
                      .max = 360,
                      .help = "where the light comes from, counter-clockwise from the right"),
               OPTION_BORDER(struct emboss, border)},
    .lower = lower,
};
