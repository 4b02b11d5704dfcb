// Blobs: dog and log, differences of Gaussians as two pairs of lines, of luma.
#include <math.h>
#include <stdlib.h>

#include "stages/design/convolution.h"
#include "stages/design/separable.h"
#include "stages/stage.h"

#define BLOBS_SIGMA 85 // up to here radii fit into a kernel

// Options of both.
struct blobs {
    double scale;
    enum sign sign;
    enum border border;
};

// The rows of member `blobs`.
#define BLOBS_OPTIONS(s)                                                        \
    OPTION_AS(s, blobs.scale, "scale", .initial = 1, .min = 0.01, .max = 16384, \
              .help = "what the result is multiplied by"),                      \
        OPTION_SIGN(s, blobs.sign), OPTION_BORDER(s, blobs.border)

struct dog {
    double sigma1, sigma2;
    struct blobs blobs;
};

struct log_of_gaussian {
    double sigma;
    struct blobs blobs;
};

// A line of 2 radius + 1 weights from the centre and one side of it, centre first. The program's;
// NULL without memory.
static double *line_of(struct program *program, const double *half, int radius)
{
    double *line = program_alloc(program, (2 * (size_t)radius + 1) * sizeof *line);
    for (int k = -radius; line && k <= radius; k++)
        line[radius + k] = half[abs(k)];
    return line;
}

// Append scale * (first pair of lines + second) of a kernel of side 2 radius + 1. Y'CbCr becomes
// gray first.
static void lower(struct program *program, int radius, const double *const line_x[2],
                  const double *const line_y[2], const struct blobs *blobs)
{
    if (program->status)
        return;
    program_keep_luma(program);
    bool absolute = blobs->sign == SIGN_ABSOLUTE;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_convolution(program, c,
                            &(struct convolution){.width = 2 * radius + 1,
                                                  .height = 2 * radius + 1,
                                                  .origin_x = radius,
                                                  .origin_y = radius,
                                                  .line_x = {line_x[0], line_x[1]},
                                                  .line_y = {line_y[0], line_y[1]},
                                                  .lines = 2,
                                                  .scale = blobs->scale,
                                                  .bias = absolute ? 0 : 127.5,
                                                  .absolute = absolute,
                                                  .border = blobs->border});
}

// ---- dog ----

// A Gaussian as a line of the larger radius, zero beyond its own.
static double *gaussian_line(struct program *program, double sigma, int radius)
{
    double *half = program_alloc(program, ((size_t)radius + 1) * sizeof *half);
    if (!half)
        return NULL;
    gaussian_weights(sigma, gaussian_radius(sigma), half);
    return line_of(program, half, radius);
}

static double *negative(struct program *program, const double *line, int radius)
{
    double *turned = program_alloc(program, (2 * (size_t)radius + 1) * sizeof *turned);
    for (int k = 0; turned && line && k <= 2 * radius; k++)
        turned[k] = -line[k];
    return turned;
}

static void dog_lower(const void *options, struct program *program)
{
    const struct dog *dog = options;
    double first = dog->sigma1;
    double second = isnan(dog->sigma2) ? fmin(1.6 * first, BLOBS_SIGMA) : dog->sigma2;
    int radius = gaussian_radius(fmax(first, second));
    const double *one = gaussian_line(program, first, radius);
    const double *other = gaussian_line(program, second, radius);
    const double *minus = negative(program, other, radius);
    const double *const line_x[2] = {one, other}, *const line_y[2] = {one, minus};
    lower(program, radius, line_x, line_y, &dog->blobs);
}

const struct stage stage_dog = {
    .name = "dog",
    .summary = "difference of two Gaussians: what is of a size between them",
    .formula = "d = gaussian(x, sigma1) - gaussian(x, sigma2), both cut off as gaussian does; y = "
               "min(255, |scale * d|), or 127.5 + scale * d clamped with sign=signed; Y'CbCr "
               "becomes gray",
    .source =
        "D. Marr, E. Hildreth, \"Theory of edge detection\", Proc. R. Soc. Lond. B 207 (1980)",
    .size = sizeof(struct dog),
    .option = {OPTION(struct dog, sigma1, .unit = "pixels", .initial = 1, .min = 0.1,
                      .max = BLOBS_SIGMA, .help = "standard deviation of the first"),
               OPTION(struct dog, sigma2, .unit = "pixels", .min = 0.1, .max = BLOBS_SIGMA,
                      .derived = "1.6 sigma1", .help = "of the one that is taken away"),
               BLOBS_OPTIONS(struct dog)},
    .lower = dog_lower,
};

// ---- log ----

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

static void log_lower(const void *options, struct program *program)
{
    const struct log_of_gaussian *log = options;
    int radius = gaussian_radius(log->sigma);
    double *g = program_alloc(program, ((size_t)radius + 1) * sizeof *g);
    double *h = program_alloc(program, ((size_t)radius + 1) * sizeof *h);
    if (!g || !h)
        return;
    gaussian_weights(log->sigma, radius, g);
    second_derivative(g, log->sigma, radius, h);
    const double *smooth = line_of(program, g, radius), *bent = line_of(program, h, radius);
    const double *const line_x[2] = {bent, smooth}, *const line_y[2] = {smooth, bent};
    lower(program, radius, line_x, line_y, &log->blobs);
}

const struct stage stage_log = {
    .name = "log",
    .summary = "Laplacian of a Gaussian: blobs and edges of a size",
    .formula = "l = sum of (h(i) g(j) + g(i) h(j)) x, g the weights of gaussian, h(k) = (k^2 - m) "
               "g(k) / sigma^4, m such that h sums to 0; y = min(255, |scale * l|), or 127.5 + "
               "scale * l clamped with sign=signed; Y'CbCr becomes gray",
    .source =
        "D. Marr, E. Hildreth, \"Theory of edge detection\", Proc. R. Soc. Lond. B 207 (1980)",
    .size = sizeof(struct log_of_gaussian),
    .option = {OPTION(struct log_of_gaussian, sigma, .unit = "pixels", .initial = 1.4, .min = 0.3,
                      .max = BLOBS_SIGMA, .help = "standard deviation of the Gaussian"),
               BLOBS_OPTIONS(struct log_of_gaussian)},
    .lower = log_lower,
};
