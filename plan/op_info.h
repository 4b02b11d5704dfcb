// The table of operations: one row for each kind (plan/op.h), with everything that programs and
// plans ask of an operation. Nothing in plan/ tests a kind.
//
// The row of an operation stands in a file plan/op_*.c, beside the code that it points to, and in
// the list of plan/op.c. docs/first-operation.md adds one.
#pragma once

#include <stdio.h>

#include "plan/op.h"

struct plan;
struct plan_limits;
struct plan_step;

// How an operation takes part in a pass (plan/plan.h).
enum op_family {
    OP_FAMILY_POINTWISE,  // runs of these fold into a table
    OP_FAMILY_MIX,        // several planes begin a pass
    OP_FAMILY_STENCIL,    // a step of a pass, with a halo
    OP_FAMILY_FULL_FRAME, // a pass by itself, see op_is_full_frame()
};

// How many columns and rows around a place a stencil's result depends on.
struct op_reach {
    int left, right, above, below;
};

struct op_info {
    const char *name; // for messages and plans
    enum op_family family;

    // Pointwise: y of sample x, as op_apply() gives it; and of samples in their places.
    int (*apply)(const struct op *op, int x);
    void (*apply_all)(const struct op *op, uint16_t *sample, size_t count);

    // Stencils.
    struct op_reach (*reach)(const struct op *op);

    // (optional) Stencils: whether Fourier transforms make it faster within these limits, and err
    // so little that rounding gives the exact result, of samples of `depth` bits.
    bool (*transforms)(const struct op *op, const struct plan_limits *limits, int depth);

    // (optional) Stencils: whether both, of this kind, compute the same from the same samples, but for
    // borders. NULL: it is not known.
    bool (*same)(const struct op *a, const struct op *b);

    // (optional) Stencils: what the plan's text says of `step`, which is one, after name and size.
    void (*print)(const struct plan *plan, const struct plan_step *step, FILE *to);

    // (optional) Full frame: as op_analysis_bytes() and op_reads_analysis().
    size_t (*analysis_bytes)(const struct op *op, int width, int height);
    int (*reads_analysis)(const struct op *op);
};

// The row of an operation. Static, complete for its family.
const struct op_info *op_info(const struct op *op);

// The stencil's reach.
struct op_reach op_reach(const struct op *op);

// True if two stencils make the same of the same plane.
bool op_same_stencil(const struct op *a, const struct op *b);

// True if two runs of numbers are the same; NULL is one of none.
bool op_same_numbers(const int32_t *a, const int32_t *b, int count);

// The rows.
extern const struct op_info op_affine_info, op_threshold_info, op_table_info;
extern const struct op_info op_mix_info;
extern const struct op_info op_separable_info, op_box_info, op_convolve_info, op_gradient_info;
extern const struct op_info op_statistics_info, op_wavelet_info, op_match_info, op_mark_info;
