// Convolutions of bytes by products of bytes, two at a time, where sums fit 16 bits.
//
// With small weights these are the sums themselves. Weights that are small multiples of one number,
// but for some that are whole, make a sum of those multiples, which the number multiplies: that this
// gives every result is looked up for each value that the sum can have.
#pragma once

#include <stdbool.h>

#include "cpu/rows/rows.h"
#include "plan/op.h"

// Returns false where there is no such form.
bool convolve_bytes_find(const struct op_convolve *f, struct convolve_bytes *form);
