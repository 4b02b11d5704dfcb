// What dog and log share: differences of Gaussians as two pairs of lines, taken of luma.
#pragma once

#include "stages/convolution.h"
#include "stages/stage.h"

// Sigmas up to here have radii that a kernel has room for.
#define BLOBS_SIGMA 85

// The options after the sigmas.
#define BLOBS_OPTIONS                                                                           \
    {"scale", OPTION_REAL, "", 1, 0.01, 16384, NULL, NULL, "what the result is multiplied by"}, \
        {"sign",                                                                                \
         OPTION_CHOICE,                                                                         \
         "",                                                                                    \
         0,                                                                                     \
         0,                                                                                     \
         1,                                                                                     \
         "absolute|signed",                                                                     \
         NULL,                                                                                  \
         "the size alone, or about mid-gray"},                                                  \
        STAGE_BORDER

// A line of 2 radius + 1 weights from the centre and one side of it, centre first. The program's;
// NULL without memory.
double *blobs_line(struct program *program, const double *half, int radius);

// Append scale * (first pair of lines + second) of a kernel of side 2 radius + 1, `value` being
// those of BLOBS_OPTIONS. Y'CbCr becomes gray first.
void blobs_lower(struct program *program, int radius, const double *const line_x[2],
                 const double *const line_y[2], const double *value);
