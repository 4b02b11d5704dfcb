#include "stages/blobs.h"

#include <stdlib.h>

enum { SCALE, SIGN, BORDER };

double *blobs_line(struct program *program, const double *half, int radius)
{
    double *line = program_alloc(program, (2 * (size_t)radius + 1) * sizeof *line);
    for (int k = -radius; line && k <= radius; k++)
        line[radius + k] = half[abs(k)];
    return line;
}

void blobs_lower(struct program *program, int radius, const double *const line_x[2],
                 const double *const line_y[2], const double *value)
{
    if (program->status)
        return;
    program_keep_luma(program);
    bool absolute = value[SIGN] == 0;
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_convolution(program, c,
                            &(struct convolution){.width = 2 * radius + 1,
                                                  .height = 2 * radius + 1,
                                                  .origin_x = radius,
                                                  .origin_y = radius,
                                                  .line_x = {line_x[0], line_x[1]},
                                                  .line_y = {line_y[0], line_y[1]},
                                                  .lines = 2,
                                                  .scale = value[SCALE],
                                                  .bias = absolute ? 0 : 127.5,
                                                  .absolute = absolute,
                                                  .border = (enum border)value[BORDER]});
}
