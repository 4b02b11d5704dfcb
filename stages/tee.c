#include "stages/stage.h"

struct tee {
    char *output;
};

static void lower(const void *options, struct program *program)
{
    (void)options; // whoever writes the picture looks at the output
    program_tee(program);
}

const struct stage stage_tee = {
    .name = "tee",
    .alias = "tap",
    .summary = "write the picture as it is here to a further output; it goes on unchanged",
    .formula = "y = x",
    .size = sizeof(struct tee),
    .option = {OPTION(struct tee, output, .unit = "a file or what else can be an output",
                      .required = true, .writes = WRITES_PICTURES,
                      .help = "where it goes, like an output of the command line with the usual "
                              "encoding")},
    .lower = lower,
};
