// The steps of the tutorial benchmark (plan/tutorial.h) against their references.
#pragma once

#include <stdbool.h>

#include "plan/backend.h"

struct tutorial_settings {
    bool large;
    int threads;
    const struct log *log;
};

// Add how many steps were right, and how many were not; each wrong one is printed.
void tutorial_run(const struct tutorial_settings *settings, struct backend *backend, int *passed,
                  int *failed);
