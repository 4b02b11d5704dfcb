#include "stages/convolution.h"
#include "stages/stage.h"

#include <math.h>
#include <stdlib.h>

enum { KERNEL, SCALE, BIAS, BORDER };

// Turn the kernel by half a turn: the operation lays it on the picture as it is.
static void flip(struct kernel *kernel)
{
    int count = kernel->width * kernel->height;
    for (int k = 0; k < count / 2; k++) {
        double weight = kernel->weight[k];
        kernel->weight[k] = kernel->weight[count - 1 - k];
        kernel->weight[count - 1 - k] = weight;
    }
}

// 1 / sum, where that is more than what rounding leaves of 0.
static double scale_of(const struct kernel *kernel)
{
    double sum = 0, sizes = 0;
    for (int k = 0; k < kernel->width * kernel->height; k++) {
        sum += kernel->weight[k];
        sizes += fabs(kernel->weight[k]);
    }
    return fabs(sum) > 1e-9 * sizes ? 1 / sum : 1;
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    struct kernel kernel;
    enum status status = kernel_read(text[KERNEL], &kernel);
    if (status) {
        program->status = status;
        return;
    }
    flip(&kernel);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_convolution(
            program, c,
            &(struct convolution){.width = kernel.width,
                                  .height = kernel.height,
                                  .origin_x = kernel.width - 1 - kernel.width / 2,
                                  .origin_y = kernel.height - 1 - kernel.height / 2,
                                  .weight = kernel.weight,
                                  .scale = isnan(value[SCALE]) ? scale_of(&kernel) : value[SCALE],
                                  .bias = value[BIAS],
                                  .border = (enum border)value[BORDER]});
    kernel_free(&kernel);
}

const struct stage stage_convolve = {
    .name = "convolve",
    .summary = "convolution with any kernel up to 511x511, odd or even",
    .formula =
        "y = clamp(bias + scale * sum of k(row, column) x(i + width / 2 - column, j + height "
        "/ 2 - row)), halves rounded down: convolution, so a dot becomes the kernel as it "
        "is written, not its mirror image; chroma the same about neutral, without bias and "
        "with the same kernel whatever its subsampling",
    .source = "R. C. Gonzalez, R. E. Woods, Digital Image Processing, 4th ed., section 3.4",
    .option = {{"kernel", OPTION_TEXT, "rows of numbers as '1 2 1/2 4 2/1 2 1', or a file of them",
                NAN, 0, 0, NULL, NULL, "the weights", kernel_resolve},
               {"scale", OPTION_REAL, "", NAN, -65536, 65536, NULL,
                "1 / sum of the kernel, 1 if that is 0", "what the sum is multiplied by"},
               {"bias", OPTION_REAL, "code values", 0, -255, 255, NULL, NULL,
                "what is added to the result"},
               STAGE_BORDER},
    .lower = lower,
};
