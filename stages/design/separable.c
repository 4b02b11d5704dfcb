#include "stages/design/separable.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    DIRECT_RADIUS = 32, // up to here every tap is worth its multiplication
    MAX_DECIMATE = 6,
    NARROW_BITS = 13,
    NARROW_FRACTION = 3,
    WIDE_BITS = 15,
    EXACT_BITS = 22,
};

// The share of the taps of both axes, and of the rounding between them, in the 1/2 code value that
// the final rounding leaves.
static const double budget = 0.46;

// One axis: the ideal weights, centre first, and the integer taps chosen for them.
struct axis {
    double sigma;
    int radius;
    double *weight; // radius + 1
    int32_t *tap;   // as many, or fewer on a coarser grid
    int tap_radius;
    int decimate;
};

int gaussian_radius(double sigma)
{
    return (int)lround(6 * sigma + 1) / 2;
}

void gaussian_weights(double sigma, int radius, double *weight)
{
    assert(sigma > 0 && radius >= 0);
    double sum = 0;
    for (int k = 0; k <= radius; k++) {
        weight[k] = exp(-(double)k * k / (2 * sigma * sigma));
        sum += k ? 2 * weight[k] : weight[k];
    }
    for (int k = 0; k <= radius; k++)
        weight[k] /= sum;
}

// The index of the largest weight fraction not yet rounded up; the first of equals.
static int largest_fraction(const double *weight, const int32_t *tap, int radius, double scale)
{
    int best = 0;
    double most = 0;
    for (int k = 1; k <= radius; k++) {
        double fraction = weight[k] * scale - tap[k];
        if (fraction > most) {
            most = fraction;
            best = k;
        }
    }
    return best;
}

// Round weights to taps of `bits` bits that sum to 2^bits: down, then pairs up by the largest
// remainder until the centre, which takes the rest, is nearest to its own weight.
static void quantise(const double *weight, int radius, int bits, int32_t *tap)
{
    double scale = ldexp(1, bits), fractions = 0;
    int32_t rest = 1 << bits;
    for (int k = 1; k <= radius; k++) {
        tap[k] = (int32_t)floor(weight[k] * scale);
        fractions += weight[k] * scale - tap[k];
        rest -= 2 * tap[k];
    }
    for (long up = lround(fractions); up > 0; up--) {
        int k = largest_fraction(weight, tap, radius, scale);
        if (!k)
            break;
        tap[k]++;
        rest -= 2;
    }
    tap[0] = rest;
}

// Give taps at most 11 significant bits of 13: below 2048 any, below 4096 even, above divisible by
// four. Only the centre and its neighbours can be that large.
static void shorten(int32_t *tap, int radius)
{
    if (radius >= 1 && tap[1] >= 2048 && tap[1] % 2) {
        tap[1]--;
        tap[0] += 2;
    }
    if (radius >= 1 && tap[0] >= 4096 && tap[0] % 4) {
        tap[1]++;
        tap[0] -= 2;
    }
}

static int trimmed(const int32_t *tap, int radius)
{
    while (radius > 0 && tap[radius] == 0)
        radius--;
    return radius;
}

// Taps of a Gaussian on a grid 2^decimate apart. Its variance is what the two tents leave of
// sigma^2, each (D^2 - 1) / 6, and its end is weighted by how much of the last cell the radius
// covers. Returns the radius, or -1 if the tents alone are wider.
static int coarse_weights(const struct axis *axis, int decimate, double *weight)
{
    int d = 1 << decimate;
    double variance = axis->sigma * axis->sigma - (d * (double)d - 1) / 3;
    if (variance <= 0)
        return -1;
    int radius = (axis->radius + d - 1) / d;
    gaussian_weights(sqrt(variance) / d, radius, weight);
    double sum = 0;
    for (int k = 0; k <= radius; k++) {
        double covered = (axis->radius + 0.5 - (k * d - d / 2.0)) / d;
        weight[k] *= fmin(fmax(covered, 0), 1);
        sum += k ? 2 * weight[k] : weight[k];
    }
    for (int k = 0; k <= radius; k++)
        weight[k] /= sum;
    return radius;
}

// Add to effect[origin + ...] what grid sample `m` contributes, weighted by `share`.
static void spread_tent(double *effect, int origin, int m, int d, double share)
{
    for (int a = 1 - d; a < d; a++)
        effect[origin + m * d + a] += share * (d - abs(a)) / ((double)d * d);
}

// The worst error, in 8-bit code values over all pictures and places, of taps on a grid against
// the ideal weights. Places differ by their distance `phase` from the grid point before them.
// Negative if memory ran out.
static double taps_error(const struct axis *axis, const int32_t *tap, int radius, int decimate,
                         int bits)
{
    int d = 1 << decimate, reach = (radius + 2) * d + axis->radius + d;
    double *effect = malloc((size_t)(2 * reach + 1) * sizeof *effect), worst = 0;
    if (!effect)
        return -1;
    for (int phase = 0; phase < d; phase++) {
        for (int i = 0; i <= 2 * reach; i++)
            effect[i] = 0;
        for (int k = -radius; k <= radius; k++) {
            double share = ldexp(tap[abs(k)], -bits);
            spread_tent(effect, reach, k, d, share * (d - phase) / d);
            spread_tent(effect, reach, k + 1, d, share * phase / d);
        }
        double difference = 0;
        for (int i = -reach; i <= reach; i++) {
            int k = abs(i - phase);
            difference += fabs(effect[reach + i] - (k <= axis->radius ? axis->weight[k] : 0));
        }
        worst = fmax(worst, 127.5 * difference);
    }
    free(effect);
    return worst;
}

// Choose the coarsest grid whose taps of `bits` bits keep within `allowed`. Returns the error, more
// than `allowed` if there is no such grid, negative if memory ran out.
static double fit_axis(struct axis *axis, int bits, double allowed, double *scratch)
{
    for (int decimate = axis->radius > DIRECT_RADIUS ? MAX_DECIMATE : 0;; decimate--) {
        const double *weight = axis->weight;
        int radius = axis->radius;
        if (decimate) {
            radius = coarse_weights(axis, decimate, scratch);
            weight = scratch;
            if (radius < 0)
                continue;
        }
        quantise(weight, radius, bits, axis->tap);
        if (bits == NARROW_BITS)
            shorten(axis->tap, radius);
        double error = taps_error(axis, axis->tap, radius, decimate, bits);
        axis->decimate = decimate;
        axis->tap_radius = trimmed(axis->tap, radius);
        if (error <= allowed || decimate == 0)
            return error;
    }
}

static bool init_axis(struct program *program, struct axis *axis, double sigma, int radius,
                      int shift)
{
    axis->sigma = ldexp(sigma, -shift);
    axis->radius = radius < 0 ? gaussian_radius(axis->sigma) : subsampled(radius, shift);
    int nothing = (int)ceil(6.5 * axis->sigma); // weights below 1e-9 from here on
    if (axis->radius > nothing)
        axis->radius = nothing;
    size_t count = (size_t)axis->radius + 1;
    axis->weight = program_alloc(program, count * sizeof *axis->weight);
    axis->tap = program_alloc(program, count * sizeof *axis->tap);
    if (!axis->weight || !axis->tap)
        return false;
    gaussian_weights(axis->sigma, axis->radius, axis->weight);
    return true;
}

// Try one form for both axes, of a blur whose errors the result shows `magnified`. Returns whether
// they are within the budget; without memory the program has that status.
static bool fit(struct program *program, struct axis axis[2], int bits, int fraction,
                double magnified, double *scratch)
{
    double between = ldexp(0.5, -fraction); // the rounding of the vertical pass
    double allowed = (budget / magnified - between) / 2;
    for (int a = 0; a < 2; a++) {
        double error = fit_axis(&axis[a], bits, allowed, scratch);
        if (error < 0)
            program->status = STATUS_MEMORY;
        if (error < 0 || error > allowed)
            return false;
    }
    return true;
}

void program_gaussian(struct program *program, int c, double sigma, int radius, enum border border,
                      double amount)
{
    assert(sigma > 0 && amount >= 0 && amount <= 16);
    assert(format_has(&program->picture.meaning, c));
    const struct format *meaning = &program->picture.meaning;
    struct axis axis[2] = {0};
    if (program->status ||
        !init_axis(program, &axis[0], sigma, radius, format_shift_x(meaning, c)) ||
        !init_axis(program, &axis[1], sigma, radius, format_shift_y(meaning, c)))
        return;
    int longest = axis[0].radius > axis[1].radius ? axis[0].radius : axis[1].radius;
    double *scratch = program_alloc(program, (size_t)(longest + 1) * sizeof *scratch);
    if (!scratch)
        return;
    int bits = NARROW_BITS, fraction = NARROW_FRACTION;
    bool narrow = meaning->depth == 8 && amount == 0 && longest <= DIRECT_RADIUS;
    double magnified = fmax(amount, 1);
    if (!narrow || !fit(program, axis, bits, fraction, magnified, scratch)) {
        bits = WIDE_BITS;
        fraction = 16 - meaning->depth;
        // The budget is in 8-bit code values: of deeper samples the fraction is no part of it.
        if (!fit(program, axis, bits, 8, magnified, scratch))
            fit(program, axis, bits = EXACT_BITS, 8, magnified, scratch);
    }
    if (program->status || (axis[0].tap_radius == 0 && axis[1].tap_radius == 0))
        return;
    struct levels levels = format_levels(meaning, c);
    program_stencil(program, c, border,
                    (struct op){.kind = OP_SEPARABLE,
                                .separable = {.tap_x = axis[0].tap,
                                              .tap_y = axis[1].tap,
                                              .radius_x = axis[0].tap_radius,
                                              .radius_y = axis[1].tap_radius,
                                              .bits = bits,
                                              .fraction = fraction,
                                              .decimate_x = axis[0].decimate,
                                              .decimate_y = axis[1].decimate,
                                              .amount = (int)lround(amount * 256),
                                              .low = levels.low,
                                              .high = levels.high}});
}
