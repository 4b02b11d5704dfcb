// What the edge stages share: sobel, prewitt and scharr differ in three numbers only.
#pragma once

#include <math.h>

#include "stages/stage.h"

// The option table of a gradient stage whose result is scaled by `scale_` unless told otherwise.
#define EDGES_OPTIONS(scale_)                                           \
    {                                                                   \
        {"mode",                                                        \
         OPTION_CHOICE,                                                 \
         "",                                                            \
         NORM_L1,                                                       \
         0,                                                             \
         NORM_Y,                                                        \
         "l1|l2|x|y",                                                   \
         NULL,                                                          \
         "|gx| + |gy|, sqrt(gx^2 + gy^2), |gx| alone or |gy| alone"},   \
            {"scale", OPTION_REAL, "",                                  \
             scale_,  0.001,       16,                                  \
             NULL,    NULL,        "what the result is multiplied by"}, \
            STAGE_BORDER                                                \
    }

// Lower a gradient with the smoothing weights (side, center, side), values from EDGES_OPTIONS.
// Y'CbCr becomes gray first: edges have no colour.
void edges_lower(const double *value, int side, int center, struct program *program);
