#include "stages/edges.h"

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    edges_lower(value, 1, 2, program);
}

const struct stage stage_sobel = {
    .name = "sobel",
    .summary = "edges: gradient by Sobel's operator (weights 1 2 1)",
    .formula = "gx = (1 2 1)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)); "
               "Y'CbCr becomes gray",
    .source = "I. Sobel, G. Feldman, A 3x3 isotropic gradient operator, 1968; Gonzalez and Woods, "
              "4th ed., section 10.2",
    .option = EDGES_OPTIONS(1),
    .lower = lower,
};
