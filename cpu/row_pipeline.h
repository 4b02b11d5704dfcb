// A pass made row by row: no plane between its steps, only as many rows as the stencils ask for.
//
// Level 0 loads a row of the source (or mixes several); level k applies step k to rows of level
// k - 1. A stencil keeps a window of rows of the level below, by the row's place in the extended
// picture: row -1 is a row of its own, whatever the border makes it. So a window never has to care
// about edges, and asking for rows in order computes each one once. A level that reads rows exactly
// as they lie in memory copies nothing and points at them. Components of packed pixels are taken apart
// when they are loaded, and put together when they are stored. Levels make as many rows at a time as
// the row kernels like best, so that each asks for as many from the one below.
//
// How a kind of step makes its rows is a row family (row_level.h), a file each: rows_*.c.
#pragma once

#include "cpu/rows/rows.h"
#include "plan/plan.h"

// Where the operands of a plan are for one frame. Buffers are planes as plan_buffer describes.
struct row_memory {
    const struct image *source, *target; // a target for each picture of the program
    uint8_t *const *buffer;
    const ptrdiff_t *buffer_stride;
};

struct row_pipeline;

// True if a stencil is made of all components of pixels in one pass: struct plan_limits, `joins`.
bool row_pipeline_joins(const struct plan_step *stencil);

// Prepare a pass of `plan` for pictures up to `width` columns. Windows and rows are allocated here,
// nothing later. `plan` and `rows` must outlive it. STATUS_MEMORY is the only failure.
enum status row_pipeline_create(const struct plan *plan, const struct plan_pass *pass, int width,
                                const struct row_kernels *rows, struct row_pipeline **pipeline);
void row_pipeline_destroy(struct row_pipeline **pipeline);

// Bytes that it holds, but for what is only some rows; and those that one would hold, of which none
// is taken: they may be more than there is memory. STATUS_MEMORY is the only failure.
size_t row_pipeline_bytes(const struct row_pipeline *pipeline);
enum status row_pipeline_measure(const struct plan *plan, const struct plan_pass *pass, int width,
                                 const struct row_kernels *rows, size_t *bytes);

// Make rows first .. last - 1 of the pass's result. Thread-safety: a pipeline serves one
// thread at a time; several of one pass may make different rows of one picture at once.
void row_pipeline_run(struct row_pipeline *pipeline, const struct row_memory *memory, int first,
                      int last);
