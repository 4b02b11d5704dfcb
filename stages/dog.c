#include "stages/blobs.h"
#include "stages/separable.h"

#include <math.h>

enum { SIGMA_1, SIGMA_2, SCALE };

// A Gaussian as a line of the larger radius, zero beyond its own.
static double *gaussian_line(struct program *program, double sigma, int radius)
{
    double *half = program_alloc(program, ((size_t)radius + 1) * sizeof *half);
    if (!half)
        return NULL;
    gaussian_weights(sigma, gaussian_radius(sigma), half);
    return blobs_line(program, half, radius);
}

static double *negative(struct program *program, const double *line, int radius)
{
    double *turned = program_alloc(program, (2 * (size_t)radius + 1) * sizeof *turned);
    for (int k = 0; turned && line && k <= 2 * radius; k++)
        turned[k] = -line[k];
    return turned;
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    double first = value[SIGMA_1];
    double second = isnan(value[SIGMA_2]) ? fmin(1.6 * first, BLOBS_SIGMA) : value[SIGMA_2];
    int radius = gaussian_radius(fmax(first, second));
    const double *one = gaussian_line(program, first, radius);
    const double *other = gaussian_line(program, second, radius);
    const double *minus = negative(program, other, radius);
    const double *const line_x[2] = {one, other}, *const line_y[2] = {one, minus};
    blobs_lower(program, radius, line_x, line_y, value + SCALE);
}

const struct stage stage_dog = {
    .name = "dog",
    .summary = "difference of two Gaussians: what is of a size between them",
    .formula = "d = gaussian(x, sigma1) - gaussian(x, sigma2), both cut off as gaussian does; y = "
               "min(255, |scale * d|), or 127.5 + scale * d clamped with sign=signed; Y'CbCr "
               "becomes gray",
    .source =
        "D. Marr, E. Hildreth, \"Theory of edge detection\", Proc. R. Soc. Lond. B 207 (1980)",
    .option = {{"sigma1", OPTION_REAL, "pixels", 1, 0.1, BLOBS_SIGMA, NULL, NULL,
                "standard deviation of the first"},
               {"sigma2", OPTION_REAL, "pixels", NAN, 0.1, BLOBS_SIGMA, NULL, "1.6 sigma1",
                "of the one that is taken away"},
               BLOBS_OPTIONS},
    .lower = lower,
};
