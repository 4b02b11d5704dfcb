// The plan: a program regrouped into passes that a backend can run fast, with the same result.
//
// A pass makes one plane, or the components of pixels. It reads each source once and writes the result
// once: gather the samples of a component from the input's storage (or mix several, each through a table where pointwise
// operations come first), apply its steps, scatter the result into the output's storage. A step is a
// table, into which a run of pointwise operations folds, or a stencil. An operation on the full frame
// is a pass by itself, from plain samples in memory to such, or to nowhere where nothing but its
// analysis is wanted. Components that lie side by side in pixels, RGB's or NV12's chroma, and become
// others by the same steps, are made by one pass. Planes that no operation touches are no pass at all:
// the output refers to the input's.
//
// Passes run in order; a pass reads what earlier ones wrote into buffers, or into plain planes of
// an output picture. A picture that tees take is made by the pass that the chain makes it by,
// unless one of them wants it in another format. A plan holds for every picture size.
//
// Thread-safety: immutable once created, freely shared.
#pragma once

#include <stdio.h>

#include "plan/program.h"

struct plan_step;

// Limits of one pass of a backend. Stencils join while their number and the sum of their radii
// stay within these. One that is larger by itself begins a pass: it reads memory only.
struct plan_limits {
    int stencils;
    int radius;
    // (optional) Whether the backend makes a stencil of all components of a pixel in one pass. NULL: none.
    bool (*joins)(const struct plan_step *stencil);
    int transform; // the products from which on convolutions cost less by transforms; 0: never
    struct transform_size transform_size;
    const struct transform_library *transform_library; // who makes them, static; NULL: nobody
    const char *transform_why; // (optional) why that library, or none: "... is not there"; static
};

enum place {
    PLACE_INPUT,    // index: component of the input picture
    PLACE_BUFFER,   // index: plan buffer
    PLACE_OUTPUT,   // index: n * FORMAT_COMPONENTS + component of picture n; 3 may be its filler
    PLACE_CONSTANT, // index: the value of every sample
};

struct operand {
    enum place place;
    int index;
    bool joined; // all components of an input's or output's pixels as one, see plan_pass.together
};

// A plane between passes: native-endian samples, one byte each up to 8 bits, two above.
struct plan_buffer {
    struct program_plane grid;
};

// One step of a pass: a stencil, or a table of 2^depth_in entries.
struct plan_step {
    const struct op *stencil; // NULL: a table
    bool transform;           // a convolution of rank 0, by Fourier transforms that are exact
    const uint16_t *table;    // the plan's
    int depth_in, depth_out;
    const struct op *const *folded; // the pointwise operations in the table, for fast arithmetic
    int folded_count;
};

struct plan_pass {
    const struct op *mix;        // NULL: source[0] as it is
    const struct op *full_frame; // NULL: steps; else one of source[0], to one target or none
    int analysis, reads;         // of `full_frame`: its analysis, and what it reads; -1: none
    struct operand source[3];
    struct program_plane source_grid[3];
    struct plan_step before[3]; // of a mix on one grid: the table of each source, if it has one
    int sources;
    struct plan_step *step;
    int steps;
    struct operand target[FORMAT_COMPONENTS]; // all get the same samples
    int targets;
    struct program_plane grid; // of the result; its depth is that of the samples stored
    // Rows have so many times as many samples: those of so many components, which lie side by side in
    // pixels and become others by the same steps; or 1. A stencil's neighbours are those of the same
    // component.
    int together;
    unsigned kept, filled; // bit k: sample k of a pixel stays as it is, or has all bits
    int load_depth;        // of the samples that the first step sees
    int halo_x, halo_y;    // how far around a place the sources are read
};

// Where a plane of the output picture comes from.
enum plane_origin {
    PLANE_COMPUTED,  // passes write all its components
    PLANE_REFERENCE, // it is plane `source` of the input, byte for byte
    PLANE_CONSTANT,  // each component has one value: program->out[c].value
};

struct plan_plane {
    enum plane_origin origin;
    int source;
};

struct plan_picture {
    struct plan_plane plane[FORMAT_PLANES];
};

struct plan_block;

struct plan {
    const struct program *program; // the caller's
    struct plan_limits limits;
    struct plan_pass *pass;
    int passes;
    struct plan_buffer *buffer;
    int buffers;
    struct plan_picture picture[MAX_PICTURES];                // that the program makes
    struct component joined[1 + MAX_PICTURES][FORMAT_PLANES]; // pixels of the input and of pictures
                                                              // as one component; bytes 0: none
    unsigned reads; // bit p: some pass reads plane p of the input
    struct plan_block *blocks;
};

// Group the finished `program`, which must outlive the plan. On success the caller owns *plan.
// STATUS_MEMORY is the only failure; *plan is NULL then.
enum status plan_create(const struct program *program, struct plan_limits limits,
                        struct plan **plan);
void plan_destroy(struct plan **plan);

// True if a plane of picture `n` is written by the backend: its passes make it, or it is one of the
// input that has to be fetched because that is on the device.
static inline bool plan_writes(const struct plan *plan, int n, int p, bool source_on_device)
{
    enum plane_origin origin = plan->picture[n].plane[p].origin;
    return origin == PLANE_COMPUTED || (origin == PLANE_REFERENCE && source_on_device);
}

// True if a pass reads neighbours: one of its steps is a stencil.
static inline bool plan_pass_has_stencil(const struct plan_pass *pass)
{
    for (int k = 0; k < pass->steps; k++)
        if (pass->step[k].stencil)
            return true;
    return false;
}

// True if the only picture may be written over its source, plane by plane with the same strides, by
// a backend that makes one pass after another and each row from a copy of what it reads in that
// row: no pass reads what one has overwritten.
bool plan_is_in_place(const struct plan *plan);

// The component of the input or of an output picture that an operand is; NULL: neither.
const struct component *plan_component(const struct plan *plan, struct operand operand);

// Samples in a row that a pass makes of a picture of `width` columns.
static inline int plan_pass_columns(const struct plan_pass *pass, int width)
{
    return subsampled(width, pass->grid.shift_x) * pass->together;
}

// True if an operand lies in memory as plain samples of this depth (component_is_plain()), so that
// rows can be pointed at.
bool plan_is_plain(const struct plan *plan, struct operand operand, int depth);

// Bytes that a pass reads from and writes to memory for a picture of this size, each sample once.
size_t plan_pass_bytes(const struct plan *plan, const struct plan_pass *pass, int width,
                       int height);

// Write the plan as text: a paragraph a pass, then each output plane's origin. Bytes are given for
// a picture of width x height.
void plan_print(const struct plan *plan, int width, int height, FILE *to);
