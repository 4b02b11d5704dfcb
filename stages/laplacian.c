#include <math.h>

#include "stages/stage.h"

struct laplacian {
    enum { NEIGHBOURS_4, NEIGHBOURS_8 } neighbours;
    double scale;
    enum sign sign;
    enum border border;
};

static const int32_t four[9] = {0, 1, 0, 1, -4, 1, 0, 1, 0};
static const int32_t eight[9] = {1, 1, 1, 1, -8, 1, 1, 1, 1};

static void lower(const void *options, struct program *program)
{
    const struct laplacian *laplacian = options;
    const int32_t *kernel = laplacian->neighbours == NEIGHBOURS_4 ? four : eight;
    program_keep_luma(program);
    int bits = program_convolve_bits(program, 16 * laplacian->scale);
    bool absolute = laplacian->sign == SIGN_ABSOLUTE;
    const struct format *meaning = &program->picture.meaning;
    int32_t *weight = program_alloc(program, 9 * sizeof *weight);
    if (!weight)
        return;
    // One rounding for all, so that flat parts stay at zero.
    for (int k = 0; k < 9; k++)
        weight[k] = kernel[k] * (int32_t)lround(ldexp(laplacian->scale, bits));
    for (int c = 0; c < format_colors(meaning); c++) {
        struct levels levels = format_levels(meaning, c);
        int middle = (int)lround(levels.zero + 127.5 * levels.scale);
        struct op_convolve convolve = {.weight = weight,
                                       .width = 3,
                                       .height = 3,
                                       .origin_x = 1,
                                       .origin_y = 1,
                                       .bits = bits,
                                       .offset = 1 << bits >> 1,
                                       .absolute = absolute,
                                       .base = absolute ? levels.low : middle,
                                       .low = levels.low,
                                       .high = levels.high};
        program_stencil(program, c, laplacian->border,
                        (struct op){.kind = OP_CONVOLVE, .convolve = convolve});
    }
}

const struct stage stage_laplacian = {
    .name = "laplacian",
    .summary = "second derivative: fine detail and zero crossings",
    .formula = "l = sum of the 4 or 8 neighbours - 4 or 8 times x; y = min(255, |scale * l|), or "
               "128 + scale * l clamped with sign=signed; Y'CbCr becomes gray",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.6",
    .size = sizeof(struct laplacian),
    .option = {OPTION(struct laplacian, neighbours, .initial = NEIGHBOURS_4, .choices = "4|8",
                      .help = "which of them take part"),
               OPTION(struct laplacian, scale, .initial = 1, .min = 0.01, .max = 8,
                      .help = "what the result is multiplied by"),
               OPTION_SIGN(struct laplacian, sign), OPTION_BORDER(struct laplacian, border)},
    .lower = lower,
};
