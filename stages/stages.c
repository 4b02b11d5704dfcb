#include "stages/stage.h"

#include <string.h>

extern const struct stage stage_null, stage_brightness, stage_contrast, stage_gamma, stage_invert,
    stage_gray, stage_gaussian, stage_box, stage_sharpen, stage_sobel, stage_prewitt, stage_scharr,
    stage_laplacian, stage_emboss, stage_threshold, stage_binarize, stage_convolve,
    stage_sepconvolve, stage_dog, stage_log, stage_stats, stage_tee, stage_wavelet, stage_match;

const struct stage *const stages[] = {
    // one sample from one
    &stage_brightness,
    &stage_contrast,
    &stage_gamma,
    &stage_invert,
    &stage_gray,
    // one from its neighbours
    &stage_gaussian,
    &stage_box,
    &stage_sharpen,
    &stage_sobel,
    &stage_prewitt,
    &stage_scharr,
    &stage_laplacian,
    &stage_emboss,
    &stage_dog,
    &stage_log,
    &stage_convolve,
    &stage_sepconvolve,
    &stage_wavelet,
    // one of few
    &stage_threshold,
    &stage_binarize,
    // what looks at the picture
    &stage_stats,
    &stage_match,
    &stage_tee,
    &stage_null,
    NULL,
};

static bool is_name(const char *text, const char *name, size_t length)
{
    return text && strlen(text) == length && !memcmp(text, name, length);
}

const struct stage *stage_find(const char *name, size_t length)
{
    for (const struct stage *const *stage = stages; *stage; stage++)
        if (is_name((*stage)->name, name, length) || is_name((*stage)->alias, name, length))
            return *stage;
    return NULL;
}
