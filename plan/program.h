// A program: a chain lowered to operations, one after another, on whole planes.
//
// It is straight-line code over numbered planes, each written once. Planes 0 to 3 are the input's
// components (luma or R first, alpha last); each operation makes the next one. While a chain is
// lowered, `picture` says what the planes made so far mean; stages read it and append operations
// through the verbs below. A program makes one picture, and one more for each tee. The program is
// the reference of a chain: cpu/reference/scalar.c runs it as it stands, the plan (plan.h) only
// regroups it.
//
// Errors are sticky: an allocation that fails sets `status`, and every later verb does nothing.
//
// Thread-safety: none while it is built; immutable and freely shared afterwards.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "plan/format.h"
#include "plan/op.h"

// A plane of the program: its grid within the picture, and the depth of its samples.
struct program_plane {
    int shift_x, shift_y;
    int depth;
};

// A component of the output: a plane of the program, or one value everywhere.
struct program_output {
    int plane; // -1: constant
    int value;
};

// The picture at some point of the chain: what it means, and which plane holds each component.
// `meaning` is a planar format whose storage says nothing.
struct picture {
    struct format meaning;
    int plane[FORMAT_COMPONENTS];
};

// The main picture and those of tees.
enum { MAX_PICTURES = 16 };

// A picture that leaves the chain on its way.
struct program_tee {
    struct picture picture; // as it was there
    bool chosen;            // `output` is set
    struct format output;
    struct program_output out[FORMAT_COMPONENTS];
};

struct program_block;

struct program {
    struct format input;  // how the planes 0 to 3 lie in memory
    struct format output; // set by program_finish()

    struct program_plane *plane;
    int planes;
    struct op *op;
    int ops;
    int *analysis; // the operations that have analysis, by their numbers
    int analyses;
    int record; // of the operations that are appended now
    struct program_output out[FORMAT_COMPONENTS];
    struct program_tee tee[MAX_PICTURES - 1];
    int tees;

    struct picture picture;
    enum status status;
    struct program_block *blocks; // what program_alloc() gave
};

// Begin a program that reads pictures of format `input`. *program is zeroed first; finish with
// program_free(), also after a failure.
enum status program_init(struct program *program, const struct format *input);
void program_free(struct program *program);

// Zeroed memory that lives as long as the program; NULL and status STATUS_MEMORY on failure.
void *program_alloc(struct program *program, size_t bytes);

// ---- verbs for lowering: component `c` of the picture goes through one more operation ----

// Append `op`, whose sources, depths and tables are set; the result is a new plane of `depth` bits
// on the grid of component `c`. Returns its number.
int program_append(struct program *program, const struct op *op, int shift_x, int shift_y,
                   int depth);

// Append an operation that looks at component `c` of the picture and leaves it as it is.
void program_watch(struct program *program, int c, struct op op);

// The number of the analysis of operation `op`; -1: it has none.
int program_analysis(const struct program *program, int op);

// The bytes of analysis number `analysis` of a picture of width x height.
size_t program_analysis_bytes(const struct program *program, int analysis, int width, int height);

// Append a unary operation on component `c` of the picture, which becomes the result.
void program_unary(struct program *program, int c, struct op op);

// value = gain * value + offset, in full-range 8-bit units (format.h, struct levels), saturating at
// black and white. Chroma is scaled about neutral and has no offset. Nothing is appended for the
// identity.
void program_affine(struct program *program, int c, double gain, double offset);

// value = curve(value, parameter), by a table over all codes; values are limited to 0..255 before
// and after. Not for chroma.
void program_curve(struct program *program, int c, double (*curve)(double value, double parameter),
                   double parameter);

// 0 where value < low, 255 where value > high, else unchanged.
void program_threshold(struct program *program, int c, double low, double high);

// 255 where value >= level, else 0.
void program_binarize(struct program *program, int c, double level);

// A stencil on component `c`: sets the source and the border value.
void program_stencil(struct program *program, int c, enum border border, struct op op);

// As many fraction bits for the weights of OP_CONVOLVE as its 32-bit sums leave room for, when
// their absolute values sum to `weights` at most.
int program_convolve_bits(const struct program *program, double weights);

// The picture becomes full-range gray of `depth` bits: the luma of Y'CbCr, or of RGB by the weights
// of its matrix.
void program_gray(struct program *program, int depth);

// Y'CbCr becomes gray by leaving its chroma behind; gray and RGB stay as they are.
void program_keep_luma(struct program *program);

// The picture becomes `meaning` (model, depth, range, matrix, chroma grid) by the fewest
// operations; alpha is kept when both have it, made opaque when only `meaning` has it.
void program_convert(struct program *program, const struct format *meaning);

// R'G'B' or Y'CbCr becomes full-range gray as sum of weight[c] * value of component c, the weights
// being in full-range units.
void program_weigh(struct program *program, const double weight[3]);

// Let the picture leave here, besides going on.
void program_tee(struct program *program);

// Choose the format of tee `tee`, for program_finish().
void program_choose_tee(struct program *program, int tee, const struct format *output);

// End the program: convert to `output` and say which plane goes where, and the same of each tee.
// NULL, and tees that were not chosen: the storage that needs no conversion, see
// program_natural_format().
enum status program_finish(struct program *program, const struct format *output);

// The format that a picture of the program has: that of the input if nothing has changed its
// meaning, else a planar one.
struct format program_natural_format(const struct program *program, const struct picture *picture);

// ---- the pictures that a program makes: number 0, and number n > 0 of tee n - 1 ----

static inline int program_pictures(const struct program *program)
{
    return 1 + program->tees;
}

static inline const struct format *program_format(const struct program *program, int n)
{
    return n ? &program->tee[n - 1].output : &program->output;
}

static inline const struct program_output *program_out(const struct program *program, int n)
{
    return n ? program->tee[n - 1].out : program->out;
}

// True if the program changes nothing: every component of the output is that of the input.
bool program_is_identity(const struct program *program);

// True if frames with fields are filtered field by field: their rows are of two moments, which
// stencils must not mix; but an operation on the full frame gets it whole.
bool program_keeps_fields(const struct program *program);
