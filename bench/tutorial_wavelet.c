// The Mexican hat, a scale at a time, of pictures that grow.
#include <stdio.h>

#include "bench/tutorial.h"

static const struct lesson_step steps[] = {
    {1, "the definition, one thread", REFERENCE, TUTORIAL_STEPS},
    {2, "sluice, CPU, one thread", ONE_THREAD, TUTORIAL_STEPS},
    {2, "sluice, CPU, all threads", ALL_THREADS, TUTORIAL_STEPS},
    {2, "sluice, CUDA", CUDA_GPU, TUTORIAL_STEPS},
};

// The definition takes a second of 2048x2048.
static const struct lesson lesson = {.number = SLUICE_LESSON_WAVELET,
                                     .step = steps,
                                     .steps = sizeof steps / sizeof *steps,
                                     .most_ns = 2000000000};

static const struct shape shapes[] = {
    {"512x512", 512, 512, 8}, {"1024x1024", 1024, 1024, 8}, {"2048x2048", 2048, 2048, 4}};

// Scales, and the milliseconds that an article tells of its GPU at the first shape, where it does:
// beyond the last its kernels were ended by a time-out.
static const struct scale {
    int scale;
    double article_ms;
} scales[] = {{1, 385}, {4, 0}, {8, 0}, {16, 0}, {32, 21800}};

enum { WAVELET_SHAPES = sizeof shapes / sizeof *shapes, SCALES = sizeof scales / sizeof *scales };

static enum status climb_scale(struct tutorial *tutorial, const struct shape *shape,
                               const struct scale *scale)
{
    snprintf(tutorial->size, sizeof tutorial->size, "%.31s, scale %d", shape->name, scale->scale);
    snprintf(tutorial->chain, sizeof tutorial->chain, "wavelet=%d", scale->scale);
    bool told = shape->width == shapes[0].width && shape->height == shapes[0].height;
    tutorial->article = (struct sluice_article){.ms = told ? scale->article_ms : 0};
    return tutorial_climb(tutorial, &lesson, shape);
}

enum status tutorial_wavelet(struct tutorial *tutorial, const struct shape *own, bool quick)
{
    const struct shape *shape = own ? own : shapes;
    int count = own ? 1 : quick ? WAVELET_SHAPES - 1 : WAVELET_SHAPES;
    enum status status = STATUS_OK;
    for (int k = 0; k < count && !status; k++)
        for (int j = 0; j < SCALES && !status; j += quick ? SCALES - 1 : 1)
            status = climb_scale(tutorial, &shape[k], &scales[j]);
    return status;
}
