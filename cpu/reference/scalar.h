// The reference: a program run as it is written, one operation after another, on whole planes.
// Plain loops over plan/op.h, no cleverness, no speed. Whatever disagrees with it is wrong.
#pragma once

#include "plan/backend.h"

// Run `program` on `work`, all of it in host memory: every component of the targets is written.
// Planes with a NULL pointer are left out, and so is analysis. Fillers (the x of rgb0) become the
// highest code.
//
// STATUS_MEMORY if planes could not be allocated; the targets are then untouched.
// Thread-safety: any number of threads may run one program.
enum status scalar_run(const struct program *program, const struct work *work);
