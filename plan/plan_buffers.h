// The last step of making a plan: buffers that are never alive together share memory.
#pragma once

#include "plan/plan.h"

// Number the buffers of a plan whose passes are complete, each written once, anew: as few as can
// be. STATUS_MEMORY is the only failure; the plan is then as it was.
enum status plan_share_buffers(struct plan *plan);
