#include <math.h>

#include "stages/design/convolution.h"
#include "stages/stage.h"

struct sepconvolve {
    char *row, *column;
    double scale, bias;
    enum border border;
};

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
    return sum != 0 && isfinite(1 / sum) ? 1 / sum : 1;
}

static void lower(const void *options, struct program *program)
{
    const struct sepconvolve *lines = options;
    struct kernel row = {0}, column = {0};
    enum status status = kernel_read(lines->row, &row);
    if (!status)
        status = kernel_read(lines->column ? lines->column : lines->row, &column);
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
                                                  .scale = isnan(lines->scale)
                                                               ? scale_of(&row, &column)
                                                               : lines->scale,
                                                  .bias = lines->bias,
                                                  .border = lines->border});
    kernel_free(&row);
    kernel_free(&column);
}

const struct stage stage_sepconvolve = {
    .name = "sepconvolve",
    .summary = "convolution with a row and a column of up to 511 numbers each",
    .formula = "as convolve, k(row, column) = column(row) row(column)",
    .size = sizeof(struct sepconvolve),
    .option = {OPTION(struct sepconvolve, row, .unit = "numbers as '1 4 6 4 1', or a file of them",
                      .required = true, .resolve = kernel_resolve_line,
                      .help = "the weights along a row"),
               OPTION(struct sepconvolve, column, .unit = "numbers, or a file of them",
                      .derived = "those of the row", .resolve = kernel_resolve_line,
                      .help = "the weights along a column"),
               OPTION(struct sepconvolve, scale, .min = -65536, .max = 65536,
                      .derived = "1 / sum of the products, 1 if that is 0",
                      .help = "what the sum is multiplied by"),
               OPTION(struct sepconvolve, bias, .unit = "code values", .min = -255, .max = 255,
                      .help = "what is added to the result"),
               OPTION_BORDER(struct sepconvolve, border)},
    .lower = lower,
};
