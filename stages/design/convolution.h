// The design of convolutions: from real weights to the integers of OP_CONVOLVE.
//
// Weights become the cheapest form whose result is provably within 1 code value of 8 bits for every
// picture, of these:
//
//   direct, 31 bits     every weight by itself, sums of 32 bits
//   lines in words      one or two pairs of lines of 16 bits, sums of columns rounded to as many
//                       (not of whole lines, which are exact), sums of 32
//   lines, 24 bits      one or two pairs of lines, sums that single precision holds
//   lines, 52 bits      the same in 32 or 64 bits, or double precision
//   direct, 52 bits     every weight by itself
//
// The error of integers, and of what one or two pairs of lines leave of a kernel, is the worst over
// all pictures: 255 times the sum of effective - ideal weights where that is positive, or negative,
// and what rounding the sums of columns adds.
// The rounding of the result takes 1/2.
//
// Lines come of the singular value decomposition, of which the first two triplets are found by
// orthogonal iteration (G. H. Golub, C. F. Van Loan, Matrix Computations, 4th ed., sections 8.2 and
// 8.6). A kernel of whole numbers of rank 1 is factored exactly instead.
#pragma once

#include "plan/program.h"
#include "stages/design/kernel.h"

// A convolution of a component, on its samples' distance from black (chroma: from neutral), in
// full-range 8-bit units:
//
//   y = bias + scale * sum of weight[row][column] * x(i + column - origin_x, j + row - origin_y)
//
// or given as lines: weight[row][column] = sum_r line_y[r][row] * line_x[r][column].
struct convolution {
    int width, height;
    int origin_x, origin_y;
    const double *weight; // row by row; NULL where there are lines
    const double *line_x[2], *line_y[2];
    int lines; // how many, 0 to 2
    double scale;
    double bias;   // not of chroma
    bool absolute; // |sum| instead; weights sum to 0, and there is no bias
    enum border border;
};

// Append the convolution of component `c` of the picture.
void program_convolution(struct program *program, int c, const struct convolution *convolution);

// The best approximation of a matrix, row by row, of height x width by two pairs of lines:
// line_y[r] times line_x[r], the larger first, of which a second may be zero. The caller brings
// memory for 2 * height and 2 * width numbers.
void convolution_lines(const double *weight, int width, int height, double *line_x[2],
                       double *line_y[2]);
