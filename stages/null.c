#include "stages/stage.h"

static void lower(const void *no_options, struct program *program)
{
    (void)no_options, (void)program;
}

const struct stage stage_null = {
    .name = "null",
    .summary = "leave the picture as it is",
    .formula = "y = x, all planes byte-identical",
    .lower = lower,
};
