#include "stages/edges.h"

enum { MODE, SCALE, BORDER };

void edges_lower(const double *value, int side, int center, struct program *program)
{
    program_keep_luma(program);
    const struct format *meaning = &program->picture.meaning;
    for (int c = 0; c < format_colors(meaning); c++) {
        struct levels levels = format_levels(meaning, c);
        struct op_gradient gradient = {.side = side,
                                       .center = center,
                                       .norm = (enum norm)value[MODE],
                                       .scale = llround(value[SCALE] * 65536),
                                       .base = levels.low,
                                       .limit = levels.high - levels.low};
        program_stencil(program, c, (enum border)value[BORDER],
                        (struct op){.kind = OP_GRADIENT, .gradient = gradient});
    }
}
