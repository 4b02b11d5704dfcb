// The levels of a row pipeline (row_pipeline.h), and what a family of steps provides. For the files
// rows_*.c and row_pipeline.c alone.
#pragma once

#include "cpu/row_pipeline.h"
#include "cpu/row_window.h"

struct row_level;

// How steps of one kind make rows. `level` is the step's number in pipeline->level, from 0, the
// load; `here` is pipeline->level[level], and here->state belongs to the family.
struct row_family {
    // Stencils: whether rows are read beyond their ends, as far as op_radius_x().
    bool reads_along;

    // Stencils: how many rows of the level below are held at once.
    int (*window_rows)(const struct row_pipeline *pipeline, const struct plan_step *step);

    // (optional) Allocate here->state; nothing is allocated later. STATUS_MEMORY is the only
    // failure; finish() follows where here->state was set.
    enum status (*init)(struct row_pipeline *pipeline, int level);
    void (*finish)(void *state);

    // (optional) Forget the rows of another picture.
    void (*restart)(void *state);

    // Make rows y .. y + count - 1 of the level's result, all within the picture, at most
    // rows_at_once of the row kernels.
    void (*make)(struct row_pipeline *pipeline, int level, int y, int count, void *const *to);

    // (optional) The same with a step of POINT_RANGES on the result, which is then not worth rows
    // of its own. Samples of both are of one size.
    void (*make_ranges)(struct row_pipeline *pipeline, int level, const struct point *ranges, int y,
                        int count, void *const *to);

    // (optional) Bytes that the state holds, but for what is only some rows.
    size_t (*bytes)(const struct row_pipeline *pipeline, const void *state);
};

// A row is one part; or, where components of pixels go through stencils, it is a part for each of
// those that do, one behind another. Row kernels go over all parts at once, and over the gaps between
// them: these hold samples, too, at least of the border on both sides, and nothing that is stored.
struct row_parts {
    bool of_pixels;
    int count;
    int width; // samples of each
    int step;  // samples from one to the next

    // ---- of pixels ----
    bool plain;                                 // before and after samples lie as in rows
    int ahead;                                  // rows_ahead()
    int place[FORMAT_COMPONENTS];               // in a pixel, of each part
    struct component source[FORMAT_COMPONENTS]; // by place; `offset` is from the start of a row
    struct component target[FORMAT_COMPONENTS];
    void *spared[FORMAT_COMPONENTS]; // by place: rows of what stays and of fillers; else NULL
};

struct row_level {
    const struct plan_step *step; // NULL: the load
    const struct row_family *family;
    int bytes;                // of a sample of the result
    struct row_window window; // of the level below; stencils only
    bool peeks;               // it points into memory at rows without samples above their depth
    void *state;              // the family's
};

struct row_pipeline {
    const struct plan *plan;
    const struct plan_pass *pass;
    const struct row_kernels *rows;
    enum row_window_use windows; // what those that do not only point do
    int picture_columns;         // at most
    int columns;                 // of the result, at most
    struct row_level *level;
    int levels;
    bool direct;   // level 0 points into memory ...
    bool loose;    // ... whose units may hold more than samples: pointwise steps limit them
    bool in_place; // results are made where they lie in memory ...
    void *spare;   // ... or in rows of any sample type, on their way there
    const void *constant_row;
    struct row_parts parts;

    // ---- set by row_pipeline_run() ----
    const struct row_memory *memory;
    int width, height; // the result's, all parts and gaps
};

// The families: of the load, of tables, and of the stencils, which the list in row_pipeline.c names
// by kind.
extern const struct row_family rows_load, rows_mix, rows_pointwise;
extern const struct row_family rows_separable, rows_box, rows_convolve, rows_gradient;

// ---- what families work with ----

static inline int sample_bytes(int depth)
{
    return depth > 8 ? 2 : 1;
}

// Row k of memory for as many as are made at once, of any sample type.
static inline size_t row_scratch_stride(const struct row_pipeline *pipeline)
{
    return row_aligned((size_t)pipeline->columns * 2);
}

static inline void *row_scratch(const struct row_pipeline *pipeline, void *memory, int k)
{
    return (uint8_t *)memory + (size_t)k * row_scratch_stride(pipeline);
}

void *row_scratch_alloc(const struct row_pipeline *pipeline);

// Make rows of a level, see struct row_family.
static inline void row_level_make(struct row_pipeline *pipeline, int level, int y, int count,
                                  void *const *to)
{
    pipeline->level[level].family->make(pipeline, level, y, count, to);
}

// Rows first .. first + count - 1 of the extended result of the level below a stencil; one row.
// They stay until the window has moved past them.
void row_level_window(struct row_pipeline *pipeline, int level, int first, int count,
                      const void **row);
static inline const void *row_level_below(struct row_pipeline *pipeline, int level, int v)
{
    const void *row;
    row_level_window(pipeline, level, v, 1, &row);
    return row;
}

// Where rows first .. first + count - 1 of a window are that only points into memory.
void row_level_peek(const struct row_pipeline *pipeline, const struct op *op, int first, int count,
                    const void **row);

// Row y of an operand in memory, and how its samples lie.
const uint8_t *row_operand(const struct row_pipeline *pipeline, struct operand operand, int y,
                           const struct component **at);

// Load row y of source `s`, `width` samples, as rows between levels are.
void row_load(const struct row_pipeline *pipeline, int s, int y, void *to, int width);

// The parts of rows, and how long these are at most: pipeline->columns. STATUS_MEMORY is the only
// failure; finish them then, too.
enum status row_parts_init(struct row_pipeline *pipeline);
void row_parts_finish(struct row_parts *parts);

// Set the width of a row for a picture of `width` columns.
void row_parts_resize(struct row_pipeline *pipeline, int width);

// Take the components of pixels of row y of the source apart; put them together in the target's.
void row_parts_load(struct row_pipeline *pipeline, int y, void *to);
void row_parts_store(struct row_pipeline *pipeline, const void *row, int y);

// row_extend() of each part; alike row_extend_sums().
void row_parts_extend(const struct row_pipeline *pipeline, void *row, int bytes, int reach,
                      enum border border, int value);
void row_parts_extend_sums(const struct row_pipeline *pipeline, uint32_t *sum, int reach,
                           enum border border, uint32_t value);

// True if samples of an operand may be larger than their depth has them: those of the input only.
bool row_is_loose(const struct row_pipeline *pipeline, struct operand operand);
