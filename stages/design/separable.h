// The design of Gaussian filters: from sigma to the integer taps of OP_SEPARABLE.
//
// A Gaussian truncated at `radius` and normalised, w(k) = exp(-k^2 / (2 sigma^2)) / sum, k =
// -radius
// .. radius, becomes the cheapest form whose result is provably within 1 code value of 8 bits, for
// every picture:
//
//   narrow   8-bit samples, 13-bit taps, 3 fraction bits between the passes. All sums stay below
//            2^24 and taps have at most 11 significant bits, so that 16-bit integer, single and
//            half precision arithmetic all give the same exact sums.
//   wide     15-bit taps on 16-bit samples: sums fit 32 bits. Past radius 32 on a grid 2, 4, ...
//            columns apart while the error allows it, which makes the cost independent of sigma.
//   exact    22-bit taps where 15 are too few: a large radius with a larger sigma, or a sharpening
//            that magnifies the blur's error.
//
// The error of taps is the worst over all pictures: half the sum of |effective - ideal weight|,
// times 255, as both sum to 1. The rounding of the result takes 1/2, and the two passes share the
// rest.
#pragma once

#include "plan/program.h"

// The radius at which a Gaussian is cut off when none is given: about 3.2 sigma, by the rule that
// OpenCV's getGaussianKernel follows for 8-bit pictures, round(6 sigma + 1) / 2.
int gaussian_radius(double sigma);

// Fill weight[0 .. radius] with a normalised symmetric Gaussian: weight[0] + 2 sum(rest) = 1.
void gaussian_weights(double sigma, int radius, double *weight);

// Blur component `c` of the picture by a Gaussian of `sigma` luma samples, cut off at `radius` luma
// samples (negative: gaussian_radius()). Subsampled components use both divided by their
// subsampling. With amount > 0 (at most 16) sharpen instead: value + amount * (value - blurred).
// Appends nothing when the taps come out as the identity.
void program_gaussian(struct program *program, int c, double sigma, int radius, enum border border,
                      double amount);
