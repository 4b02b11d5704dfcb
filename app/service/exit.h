// How the program ends: what who started it learns of the run.
#pragma once

#include "sluice/sluice.h"

// Exit codes; signals add 128. docs/service.md has the table.
enum {
    EXIT_WHOLE = 0,
    EXIT_OTHER = 1,
    EXIT_USAGE = 2,
    EXIT_DAMAGED = 3,
    EXIT_INPUT = 4,
    EXIT_OUTPUT = 5,
    EXIT_DEVICE = 6,
    EXIT_SIGNAL = 128,
};

int exit_code_of(enum sluice_status status);

// Flush standard output: returns `code`, or EXIT_OUTPUT with a sentence on standard error if `code`
// was EXIT_WHOLE and the output did not arrive. A closed pipe (EPIPE) has no sentence.
int finish_output(int code);
