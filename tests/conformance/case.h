// A case: a chain on a format, by a backend and by the scalar reference.
//
// Its name says all: format, chain and seed decide the picture's size, strides, alignment and
// content, whatever other cases there are. The bytes around and between the rows of the target, and
// behind analysis, are compared too.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan/backend.h"

struct case_name {
    const char *chain;  // NULL: a random one, on a random format
    const char *format; // its name, see formats.h; NULL with `chain`
    unsigned seed;
    bool large;     // the picture is, too
    bool on_device; // targets are the device's memory, where the backend has some
    bool abroad;    // sources are as if another device's memory
};

struct test_case;

// Draw the case and hand its frames to the backend. Ends the program, with a sentence, where the
// chain or the format is none. case_finish() it.
struct test_case *case_submit(const struct case_name *name, struct backend *backend);

// Wait for the frames and compare them; a difference is printed with the command that replays it.
// Frees the case.
bool case_finish(struct test_case *test, struct backend *backend);
