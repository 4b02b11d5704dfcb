#include "stages/stage.h"

enum { MODE };
enum { MODE_LUMA, MODE_MEAN };

// (R + G + B) / 3 of Y'CbCr, from R = Y' + 2 (1 - kr) Cr and so on.
static void mean_weights(const struct format *yuv, double weight[3])
{
    double kr = yuv->kr, kb = yuv->kb, kg = 1 - kr - kb;
    weight[0] = 1;
    weight[1] = (2 * (1 - kb) - 2 * kb * (1 - kb) / kg) / 3;
    weight[2] = (2 * (1 - kr) - 2 * kr * (1 - kr) / kg) / 3;
}

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)text;
    const struct format *meaning = &program->picture.meaning;
    bool mean = value[MODE] == MODE_MEAN;
    double weight[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0};
    if (meaning->model == MODEL_GRAY || !mean) {
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
    .option = {{"mode", OPTION_CHOICE, "", MODE_LUMA, 0, 1, "luma|mean", NULL,
                "which weights the colours have"}},
    .lower = lower,
};
