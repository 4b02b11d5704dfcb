#include <math.h>
#include <stdlib.h>

#include "stages/design/convolution.h"
#include "stages/stage.h"

struct convolve {
    char *kernel;
    double scale, bias;
    enum border border;
};

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
    return fabs(sum) > 1e-9 * sizes && isfinite(1 / sum) ? 1 / sum : 1;
}

static void lower(const void *options, struct program *program)
{
    const struct convolve *convolve = options;
    struct kernel kernel;
    enum status status = kernel_read(convolve->kernel, &kernel);
    if (status) {
        program->status = status;
        return;
    }
    flip(&kernel);
    for (int c = 0; c < format_colors(&program->picture.meaning); c++)
        program_convolution(program, c,
                            &(struct convolution){.width = kernel.width,
                                                  .height = kernel.height,
                                                  .origin_x = kernel.width - 1 - kernel.width / 2,
                                                  .origin_y = kernel.height - 1 - kernel.height / 2,
                                                  .weight = kernel.weight,
                                                  .scale = isnan(convolve->scale)
                                                               ? scale_of(&kernel)
                                                               : convolve->scale,
                                                  .bias = convolve->bias,
                                                  .border = convolve->border});
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
    .size = sizeof(struct convolve),
    .option = {OPTION(struct convolve, kernel,
                      .unit = "rows of numbers as '1 2 1/2 4 2/1 2 1', or a file of them",
                      .required = true, .resolve = kernel_resolve, .help = "the weights"),
               OPTION(struct convolve, scale, .min = -65536, .max = 65536,
                      .derived = "1 / sum of the kernel, 1 if that is 0",
                      .help = "what the sum is multiplied by"),
               OPTION(struct convolve, bias, .unit = "code values", .min = -255, .max = 255,
                      .help = "what is added to the result"),
               OPTION_BORDER(struct convolve, border)},
    .lower = lower,
};
