// The definition: a program run as it is written, one operation after another, on whole planes.
// Plain loops over stages/op.h, no cleverness, no speed. Whatever disagrees with it is wrong.
#pragma once

#include "stages/program.h"

// Run `program` on `source` (its input format) and write every component of `target` (its output
// format), both in host memory, of equal size. Planes of the target with a NULL pointer are left
// out. Fillers (the x of rgb0) become the highest code. `side` (optional) has memory for the side
// data of each operation that has any, in the program's order; NULL: not wanted.
//
// STATUS_MEMORY if planes could not be allocated; the target is then untouched.
// Thread-safety: any number of threads may run one program.
enum status scalar_run(const struct program *program, const struct image *source,
                       const struct image *target, void *const *side);

// The same for each field by itself when `fields` is set and the picture has fields.
enum status scalar_run_fields(const struct program *program, const struct image *source,
                              const struct image *target, bool fields, void *const *side);
