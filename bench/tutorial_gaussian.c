// One Gaussian in the steps of V. Podlozhnyuk, "Image convolution with CUDA" (2007).
#include <stdio.h>

#include "bench/tutorial.h"

static const struct lesson_step steps[] = {
    {1, "CPU, one thread", ONE_THREAD, TUTORIAL_PLAIN},
    {2, "CPU, all threads", ALL_THREADS, TUTORIAL_PLAIN},
    {3, "CUDA, naive 2-D from global memory", CUDA_GPU, TUTORIAL_NAIVE},
    {4, "CUDA, 2-D in shared memory", CUDA_GPU, TUTORIAL_SHARED},
    {5, "CUDA, separable in shared memory", CUDA_GPU, TUTORIAL_SEPARABLE},
    {6, "CUDA, separable, coalesced and unrolled", CUDA_GPU, TUTORIAL_UNROLLED},
    {7, "sluice, CPU, one thread", ONE_THREAD, TUTORIAL_STEPS},
    {7, "sluice, CPU, all threads", ALL_THREADS, TUTORIAL_STEPS},
    {7, "sluice, CUDA", CUDA_GPU, TUTORIAL_STEPS},
};

static const struct lesson lesson = {.number = SLUICE_LESSON_GAUSSIAN,
                                     .step = steps,
                                     .steps = sizeof steps / sizeof *steps,
                                     .two_references = true,
                                     .over_all = true};

enum status tutorial_gaussian(struct tutorial *tutorial, const struct shape *shape)
{
    snprintf(tutorial->size, sizeof tutorial->size, "%s", shape->name);
    snprintf(tutorial->chain, sizeof tutorial->chain, "gaussian=2.5:8:border=zero");
    tutorial->article = (struct sluice_article){.over_one = 12.6, .over_all = 3.8}; // its best step
    return tutorial_climb(tutorial, &lesson, shape);
}
