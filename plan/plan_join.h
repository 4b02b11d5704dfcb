// The components of a pixel in one pass: samples side by side that all become others by the same steps.
#pragma once

#include "plan/plan.h"

// Note in plan->joined which planes consist of pixels whose samples lie side by side.
void plan_find_joined(struct plan *plan);

// Make one pass of those that take the components of such a plane through the same tables and stencils
// into the same places of another plane. Some may stay as they are or be fillers. The plan's passes are
// complete.
void plan_join_passes(struct plan *plan);
