#include "stages/stage.h"

static void lower(const double *value, const char *const *text, struct program *program)
{
    (void)value, (void)text;
    program_tee(program);
}

const struct stage stage_tee = {
    .name = "tee",
    .alias = "tap",
    .summary = "write the picture as it is here to a further output; it goes on unchanged",
    .formula = "y = x",
    .option = {{"output", OPTION_TEXT, "a file or what else can be an output", NAN, 0, 0, NULL,
                NULL, "where it goes, like an output of the command line with the usual encoding",
                NULL, false, WRITES_PICTURES}},
    .lower = lower,
};
