// The edge filter: from a stage after another to the passes of sluice's plan.
#include <stdio.h>

#include "bench/tutorial.h"

static const struct lesson_step steps[] = {
    {1, "CPU, one thread, a stage after another", ONE_THREAD, TUTORIAL_EDGES},
    {2, "CPU, all threads, a stage after another", ALL_THREADS, TUTORIAL_EDGES},
    {3, "CUDA, a kernel a stage, global memory", CUDA_GPU, TUTORIAL_EDGES},
    {4, "sluice, CPU, one thread", ONE_THREAD, TUTORIAL_STEPS},
    {4, "sluice, CPU, all threads", ALL_THREADS, TUTORIAL_STEPS},
    {4, "sluice, CUDA", CUDA_GPU, TUTORIAL_STEPS},
};

static const struct lesson lesson = {.number = SLUICE_LESSON_EDGES,
                                     .step = steps,
                                     .steps = sizeof steps / sizeof *steps,
                                     .rgb = true,
                                     .over_all = true};

enum status tutorial_edges(struct tutorial *tutorial, const struct shape *shape)
{
    snprintf(tutorial->size, sizeof tutorial->size, "%s", shape->name);
    snprintf(tutorial->chain, sizeof tutorial->chain,
             "brightness=%d,gray=mean,sobel=l1:border=zero,threshold=%d:%d", TUTORIAL_BRIGHTNESS,
             TUTORIAL_LOW, TUTORIAL_HIGH);
    tutorial->article = (struct sluice_article){.over_one = 27.6};
    return tutorial_climb(tutorial, &lesson, shape);
}
