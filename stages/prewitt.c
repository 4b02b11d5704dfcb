#include "stages/edges.h"

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    edges_lower(value, 1, 1, program);
}

const struct stage stage_prewitt = {
    .name = "prewitt",
    .summary = "edges: gradient by Prewitt's operator (weights 1 1 1)",
    .formula = "gx = (1 1 1)' * (-1 0 1), gy its transpose; y = min(255, scale * norm(gx, gy)); "
               "Y'CbCr becomes gray",
    .source = "J. M. S. Prewitt, Object enhancement and extraction, 1970",
    .option = EDGES_OPTIONS(1),
    .lower = lower,
};
