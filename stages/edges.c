// Edges by a gradient: sobel, prewitt and scharr differ in three numbers only.
#include <math.h>

#include "stages/stage.h"

struct edges {
    enum norm mode;
    double scale;
    enum border border;
};

// Smoothing weights are (side, center, side). Y'CbCr becomes gray first: edges have no colour.
static void lower(const struct edges *edges, int side, int center, struct program *program)
{
    program_keep_luma(program);
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < format_colors(meaning); c++) {
        struct levels levels = format_levels(meaning, c);
        struct op_gradient gradient = {.side = side,
                                       .center = center,
                                       .norm = edges->mode,
                                       .scale = llround(edges->scale * 65536),
                                       .base = levels.low,
                                       .limit = levels.high - levels.low};
        program_stencil(program, c, edges->border,
                        (struct op){.kind = OP_GRADIENT, .gradient = gradient});
    }
}

// The members of the three stages that only the initial scale tells apart.
#define EDGES_OPTIONS(scale_)                                                              \
    .size = sizeof(struct edges),                                                          \
    .option = {OPTION(struct edges, mode, .initial = NORM_L1, .choices = "l1|l2|x|y",      \
                      .help = "|gx| + |gy|, sqrt(gx^2 + gy^2), |gx| alone or |gy| alone"), \
               OPTION(struct edges, scale, .initial = scale_, .min = 0.001, .max = 16,     \
                      .help = "what the result is multiplied by"),                         \
               OPTION_BORDER(struct edges, border)}

static void sobel_lower(const void *options, struct program *program)
{
    lower(options, 1, 2, program);
}

static void prewitt_lower(const void *options, struct program *program)
{
    lower(options, 1, 1, program);
}

static void scharr_lower(const void *options, struct program *program)
{
    lower(options, 3, 10, program);
}

const struct stage stage_sobel = {
    .name = "sobel",
    .summary = "edges: gradient by Sobel's operator (weights 1 2 1)",
    .formula = "gx = (1 2 1)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)); "
               "Y'CbCr becomes gray",
    .source = "I. Sobel, G. Feldman, A 3x3 isotropic gradient operator, 1968; Gonzalez and Woods, "
              "4th ed., section 10.2",
    EDGES_OPTIONS(1),
    .lower = sobel_lower,
};

const struct stage stage_prewitt = {
    .name = "prewitt",
    .summary = "edges: gradient by Prewitt's operator (weights 1 1 1)",
    .formula = "gx = (1 1 1)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)); "
               "Y'CbCr becomes gray",
    .source = "J. M. S. Prewitt, Object enhancement and extraction, 1970",
    EDGES_OPTIONS(1),
    .lower = prewitt_lower,
};

const struct stage stage_scharr = {
    .name = "scharr",
    .summary = "edges: gradient by Scharr's operator (weights 3 10 3), truest in direction",
    .formula = "gx = (3 10 3)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)), "
               "scaled to sobel's size unless told otherwise; Y'CbCr becomes gray",
    .source = "H. Scharr, Optimale Operatoren in der Digitalen Bildverarbeitung, Heidelberg, 2000",
    EDGES_OPTIONS(0.25),
    .lower = scharr_lower,
};
