#include "stages/convolution.h"
#include "stages/stage.h"

#include <math.h>

enum { ROW, COLUMN, SCALE, BIAS, BORDER };

static void flip(struct kernel *line)
{
    for (int k = 0; k < line->width / 2; k++) {
        double weight = line->weight[k];
        line->weight[k] = line->weight[line->width - 1 - k];
        line->weight[line->width - 1 - k] = weight;
    }
}

static double sum_of(const struct kernel *line)
{
    double sum = 0, sizes = 0;
    for (int k = 0; k < line->width; k++) {
        sum += line->weight[k];
        sizes += fabs(line->weight[k]);
    }
    return fabs(sum) > 1e-9 * sizes ? sum : 0;
}

static double scale_of(const struct kernel *row, const struct kernel *column)
{
    double sum = sum_of(row) * sum_of(column);
    return sum != 0 ? 1 / sum : 1;
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    struct kernel row = {0}, column = {0};
    enum status status = kernel_read(text[ROW], &row);
    if (!status)
        status = kernel_read(text[COLUMN] ? text[COLUMN] : text[ROW], &column);
    if (status)
        program->status = status;
    flip(&row);
    flip(&column);
    for (int c = 0; c < format_colors(&program->picture.meaning) && !status; c++)
        program_convolution(program, c,
                            &(struct convolution){.width = row.width,
                                                  .height = column.width,
                                                  .origin_x = row.width - 1 - row.width / 2,
                                                  .origin_y = column.width - 1 - column.width / 2,
                                                  .line_x = {row.weight},
                                                  .line_y = {column.weight},
                                                  .lines = 1,
                                                  .scale = isnan(value[SCALE])
                                                               ? scale_of(&row, &column)
                                                               : value[SCALE],
                                                  .bias = value[BIAS],
                                                  .border = (enum border)value[BORDER]});
    kernel_free(&row);
    kernel_free(&column);
}

const struct stage stage_sepconvolve = {
    .name = "sepconvolve",
    .summary = "convolution with a row and a column of up to 511 numbers each",
    .formula = "as convolve, k(row, column) = column(row) row(column)",
    .option = {{"row", OPTION_TEXT, "numbers as '1 4 6 4 1', or a file of them", NAN, 0, 0, NULL,
                NULL, "the weights along a row", kernel_resolve_line},
               {"column", OPTION_TEXT, "numbers, or a file of them", NAN, 0, 0, NULL,
                "those of the row", "the weights along a column", kernel_resolve_line},
               {"scale", OPTION_REAL, "", NAN, -65536, 65536, NULL,
                "1 / sum of the products, 1 if that is 0", "what the sum is multiplied by"},
               {"bias", OPTION_REAL, "code values", 0, -255, 255, NULL, NULL,
                "what is added to the result"},
               STAGE_BORDER},
    .lower = lower,
};
