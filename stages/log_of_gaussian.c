#include "stages/blobs.h"
#include "stages/separable.h"

#include <math.h>

enum { SIGMA, SCALE };

// The second derivative (k^2 - m) g(k) / sigma^4 of a Gaussian g whose weights sum to 1. With m the
// variance of these weights, sigma^2 but for sampling, it sums to 0.
static void second_derivative(const double *g, double sigma, int radius, double *h)
{
    double m = 0;
    for (int k = 1; k <= radius; k++)
        m += 2.0 * k * k * g[k];
    for (int k = 0; k <= radius; k++)
        h[k] = ((double)k * k - m) * g[k] / pow(sigma, 4);
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    int radius = gaussian_radius(value[SIGMA]);
    double *g = program_alloc(program, ((size_t)radius + 1) * sizeof *g);
    double *h = program_alloc(program, ((size_t)radius + 1) * sizeof *h);
    if (!g || !h)
        return;
    gaussian_weights(value[SIGMA], radius, g);
    second_derivative(g, value[SIGMA], radius, h);
    const double *smooth = blobs_line(program, g, radius), *bent = blobs_line(program, h, radius);
    const double *const line_x[2] = {bent, smooth}, *const line_y[2] = {smooth, bent};
    blobs_lower(program, radius, line_x, line_y, value + SCALE);
}

const struct stage stage_log = {
    .name = "log",
    .summary = "Laplacian of a Gaussian: blobs and edges of a size",
    .formula = "l = sum of (h(i) g(j) + g(i) h(j)) x, g the weights of gaussian, h(k) = (k^2 - m) "
               "g(k) / sigma^4, m such that h sums to 0; y = min(255, |scale * l|), or 127.5 + "
               "scale * l clamped with sign=signed; Y'CbCr becomes gray",
    .source =
        "D. Marr, E. Hildreth, \"Theory of edge detection\", Proc. R. Soc. Lond. B 207 (1980)",
    .option = {{"sigma", OPTION_REAL, "pixels", 1.4, 0.3, BLOBS_SIGMA, NULL, NULL,
                "standard deviation of the Gaussian"},
               BLOBS_OPTIONS},
    .lower = lower,
};
