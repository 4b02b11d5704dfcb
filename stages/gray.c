#include "stages/stage.h"

struct gray {
    enum { GRAY_LUMA, GRAY_MEAN } mode;
};

// (R + G + B) / 3 of Y'CbCr, from R = Y' + 2 (1 - kr) Cr and so on.
static void mean_weights(const struct format *yuv, double weight[3])
{
    double kr = yuv->kr, kb = yuv->kb, kg = 1 - kr - kb;
    weight[0] = 1;
    weight[1] = (2 * (1 - kb) - 2 * kb * (1 - kb) / kg) / 3;
    weight[2] = (2 * (1 - kr) - 2 * kr * (1 - kr) / kg) / 3;
}

static void lower(const void *options, struct program *program)
{
    const struct gray *gray = options;
    const struct format *meaning = &program->picture.meaning;
    double weight[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0};
    if (meaning->model == MODEL_GRAY || gray->mode == GRAY_LUMA) {
        program_gray(program, meaning->depth);
        return;
    }
    if (meaning->model == MODEL_YUV)
        mean_weights(meaning, weight);
    program_weigh(program, weight);
}

const struct stage stage_gray = {
    .name = "gray",
    .summary = "one full-range gray plane",
    .formula =
        "luma: Y' expanded to 0..255, or kr R + kg G + kb B with the weights of the stream's "
        "matrix (BT.601 for untagged RGB); mean: (R + G + B) / 3",
    .source = "ITU-R BT.601, BT.709, BT.2020; ITU-T H.273",
    .size = sizeof(struct gray),
    .option = {OPTION(struct gray, mode, .initial = GRAY_LUMA, .choices = "luma|mean",
                      .help = "which weights the colours have")},
    .lower = lower,
};
