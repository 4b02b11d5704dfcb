// The parts of a pass (plan/plan.h) as kernels make it: up to two stencils, with a table before
// each and behind the last. Thread-safe: plans are immutable.
#pragma once

#include <stddef.h>

// The C headers of plan/ know nothing of C++.
extern "C" {
#include "plan/plan.h"
}

enum { STENCILS = 2 }; // in a pass, at most

static inline int sample_bytes(int depth)
{
    return depth > 8 ? 2 : 1;
}

static inline const struct plan_step *pass_step(const struct plan_pass *pass, int n)
{
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil && n-- == 0)
            return &pass->step[k];
    return NULL;
}

static inline int pass_stencils(const struct plan_pass *pass)
{
    int count = 0;
    while (pass_step(pass, count))
        count++;
    return count;
}

// Operations that are not part of a table: stencils, or one on the full frame.
static inline int pass_operations(const struct plan_pass *pass)
{
    return pass->full_frame ? 1 : pass_stencils(pass);
}

static inline const struct op *pass_stencil(const struct plan_pass *pass, int n)
{
    const struct plan_step *step = pass_step(pass, n);
    return step ? step->stencil : NULL;
}

// The table behind `n` stencils.
static inline const struct plan_step *pass_table(const struct plan_pass *pass, int n)
{
    for (int k = 0; k < pass->steps; k++) {
        if (pass->step[k].stencil)
            n--;
        else if (n == 0)
            return &pass->step[k];
    }
    return NULL;
}

// The depth of the samples that stencil `n` sees.
static inline int stencil_depth(const struct plan_pass *pass, int n)
{
    return pass_step(pass, n)->depth_in;
}
