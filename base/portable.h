// Functions of <math.h> that give the same bits on every machine: basic operations of IEEE double
// precision, none contracted (-ffp-contract=off), in a fixed order. Those of a C library differ in
// the last bit from version to version and from processor to processor.
//
// The relative error of an exponential is below 1e-15, the error of a cosine below 1e-14.
#pragma once

// x <= 0.
double portable_exp(double x);

// |x| <= pi.
double portable_cos(double x);
