#include "stages/edges.h"

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    edges_lower(value, 3, 10, program);
}

const struct stage stage_scharr = {
    .name = "scharr",
    .summary = "edges: gradient by Scharr's operator (weights 3 10 3), truest in direction",
    .formula = "gx = (3 10 3)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)), "
               "scaled to sobel's size unless told otherwise; Y'CbCr becomes gray",
    .source = "H. Scharr, Optimale Operatoren in der Digitalen Bildverarbeitung, Heidelberg, 2000",
    .option = EDGES_OPTIONS(0.25),
    .lower = lower,
};
