// The components of a pixel as one plane: samples side by side that all become others by the same table.
#pragma once

#include "plan/plan.h"

// Note in plan->joined which planes consist of pixels whose samples lie side by side.
void plan_find_joined(struct plan *plan);

// Make one pass of those that take each component of such a plane through the same table into the same
// place of another one. The passes of the plan are complete.
void plan_join_passes(struct plan *plan);
